use super::*;
use crate::model::network::{INTERFACE, Ipv4};
use crate::model::task::Resources;
use crate::model::volume::{HostVolume, VolumeMount, VolumeRequest};

struct World {
    job: Job,
    group: TaskGroup,
    task: Task,
    node: Node,
    ports: Vec<PortBinding>,
    hooks: Vec<(String, String)>,
    host: Vec<(String, String)>,
    address: Option<Ipv4>,
    cores: String,
    memory_oversubscription: bool,
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

fn world() -> World {
    let mut node = Node {
        datacenter: "dc1".to_owned(),
        region: "global".to_owned(),
        ..Node::default()
    };
    node.attributes.extend([pair("kernel.name", "linux")]);
    World {
        job: Job {
            id: "shop".to_owned(),
            ..Job::default()
        },
        group: TaskGroup {
            name: "web".to_owned(),
            ..TaskGroup::default()
        },
        task: Task {
            name: "server".to_owned(),
            ..Task::default()
        },
        node,
        ports: Vec::new(),
        hooks: Vec::new(),
        host: vec![pair("PATH", "/bin")],
        cores: String::new(),
        address: None,
        memory_oversubscription: true,
    }
}

impl World {
    fn env(&self) -> BTreeMap<String, String> {
        environment(&EnvInput {
            alloc_id: AllocId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            alloc_name: "shop.web[2]",
            alloc_index: Some(2),
            job: &self.job,
            parent_id: None,
            group: &self.group,
            task: &self.task,
            memory_oversubscription: self.memory_oversubscription,
            node: &self.node,
            alloc_dir: "/a/alloc",
            task_dir: "/a/server/local",
            secrets_dir: "/a/server/secrets",
            parent_cgroup: None,
            ports: &self.ports,
            address: self.address.map(|it| (it.into(), INTERFACE)),
            cores: &self.cores,
            hook_env: &self.hooks,
            host_env: &self.host,
        })
    }

    /// The values of the `env` block's keys after resolution.
    fn block(&mut self, block: &[(&str, &str)]) -> Vec<String> {
        self.task.env = block.iter().map(|(k, v)| pair(k, v)).collect();
        let env = self.env();
        block
            .iter()
            .map(|(k, _)| env.get(*k).cloned().unwrap_or_default())
            .collect()
    }
}

#[test]
fn missing_dispatch_meta_is_empty() {
    let mut world = world();
    world.job.parameterized_job = Some(crate::model::dispatch::ParameterizedJob {
        meta_optional: vec!["why".to_owned(), "who".to_owned()],
        ..Default::default()
    });
    world.job.meta.extend([pair("who", "me")]);
    let env = world.env();
    for (key, value) in [("WHY", ""), ("why", ""), ("WHO", "me"), ("who", "me")] {
        let found = env.get(&format!("NOMAD_META_{key}"));
        assert_eq!(found.map(String::as_str), Some(value), "{key}");
    }
}

/// Drivers that come with the agent mount nothing, so their tasks are told the path on the host.
#[test]
fn volume_variable_is_path_that_task_can_use() {
    let mut world = world();
    let volume = |name: &str| HostVolume {
        name: name.to_owned(),
        path: format!("/srv/{name}"),
        ..HostVolume::default()
    };
    let volumes = ["data", "own[2]"].map(|name| (name.to_owned(), volume(name)));
    world.node.host_volumes = volumes.into();
    for (name, source, per_alloc) in [
        ("my-db", "data", false),
        ("own", "own", true),
        ("gone", "gone", false),
    ] {
        let request = VolumeRequest {
            source: source.to_owned(),
            per_alloc,
            ..VolumeRequest::default()
        };
        world.group.volumes.insert(name.to_owned(), request);
        world.task.volume_mounts.push(VolumeMount {
            volume: name.to_owned(),
            destination: format!("/in/{name}"),
            ..VolumeMount::default()
        });
    }
    for (driver, paths) in [
        ("raw_exec", ["/srv/data", "/srv/own[2]"]),
        ("someones_plugin", ["/in/my-db", "/in/own"]),
    ] {
        world.task.driver = driver.to_owned();
        let env = world.env();
        let found = |name: &str| env.get(name).map(String::as_str);
        assert_eq!(found("NOMAD_VOLUME_my_db"), Some(paths[0]), "{driver}");
        assert_eq!(found("NOMAD_VOLUME_own"), Some(paths[1]), "{driver}");
        assert_eq!(found("NOMAD_VOLUME_gone"), None, "{driver}");
    }
}

#[test]
fn plain_task_env_matches_nomad() {
    let shown: Vec<String> = world()
        .env()
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(
        shown,
        [
            "NOMAD_ALLOC_DIR=/a/alloc",
            "NOMAD_ALLOC_ID=01234567-89ab-cdef-0123-456789abcdef",
            "NOMAD_ALLOC_INDEX=2",
            "NOMAD_ALLOC_NAME=shop.web[2]",
            "NOMAD_CPU_LIMIT=100",
            "NOMAD_DC=dc1",
            "NOMAD_GROUP_NAME=web",
            "NOMAD_JOB_ID=shop",
            "NOMAD_JOB_NAME=shop",
            "NOMAD_MEMORY_LIMIT=300",
            "NOMAD_NAMESPACE=default",
            "NOMAD_REGION=global",
            "NOMAD_SECRETS_DIR=/a/server/secrets",
            "NOMAD_SHORT_ALLOC_ID=01234567",
            "NOMAD_TASK_DIR=/a/server/local",
            "NOMAD_TASK_NAME=server",
            "PATH=/bin",
        ]
    );
}

#[test]
fn unset_limits_are_left_out_of_env() {
    let mut world = world();
    world.task.resources = Resources {
        memory_max_mb: -1,
        ..Resources::default()
    };
    assert_eq!(world.env().get("NOMAD_MEMORY_MAX_LIMIT"), None);
    world.task.resources.memory_max_mb = 512;
    world.cores = "0-1".to_owned();
    let env = world.env();
    assert_eq!(
        env.get("NOMAD_MEMORY_MAX_LIMIT").map(String::as_str),
        Some("512")
    );
    assert_eq!(env.get("NOMAD_CPU_CORES").map(String::as_str), Some("0-1"));
    world.memory_oversubscription = false;
    assert_eq!(world.env().get("NOMAD_MEMORY_MAX_LIMIT"), None);
}

#[test]
fn own_address_is_beside_hosts() {
    let mut world = world();
    world.ports = vec![PortBinding {
        label: "http".to_owned(),
        value: 25000,
        to: 8080,
        host_ip: "10.0.0.1".to_owned(),
    }];
    let told = |world: &World, key: &str| world.env().get(key).cloned();
    assert_eq!(told(&world, "NOMAD_ALLOC_ADDR_http"), None);
    world.address = Some(Ipv4(0xac1a_4005));
    for (key, value) in [
        ("NOMAD_ALLOC_INTERFACE_http", "eth0"),
        ("NOMAD_ALLOC_IP_http", "172.26.64.5"),
        ("NOMAD_ALLOC_ADDR_http", "172.26.64.5:8080"),
        ("NOMAD_ADDR_http", "10.0.0.1:25000"),
    ] {
        assert_eq!(told(&world, key).as_deref(), Some(value), "{key}");
    }
}

#[test]
fn port_env_has_host_and_mapped_values() {
    let mut world = world();
    let port = |label: &str, value, to, ip: &str| PortBinding {
        label: label.to_owned(),
        value,
        to,
        host_ip: ip.to_owned(),
    };
    world.ports = vec![
        port("http", 25000, 8080, "10.0.0.1"),
        port("six", 25001, 0, "::1"),
    ];
    let env = world.env();
    for (key, value) in [
        ("NOMAD_IP_http", "10.0.0.1"),
        ("NOMAD_PORT_http", "8080"),
        ("NOMAD_ADDR_http", "10.0.0.1:25000"),
        ("NOMAD_HOST_PORT_http", "25000"),
        ("NOMAD_HOST_IP_http", "10.0.0.1"),
        ("NOMAD_HOST_ADDR_http", "10.0.0.1:25000"),
        ("NOMAD_ALLOC_PORT_http", "8080"),
        ("NOMAD_PORT_six", "25001"),
        ("NOMAD_ADDR_six", "[::1]:25001"),
    ] {
        assert_eq!(env.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn meta_is_merged_in_both_spellings() {
    let mut world = world();
    world.job.meta = [
        pair("owner", "job"),
        pair("only-job", "${attr.kernel.name}"),
    ]
    .into();
    world.group.meta = [pair("owner", "group")].into();
    world.task.meta = [pair("owner", "${NOMAD_TASK_NAME}"), pair("Owner", "big")].into();
    let env = world.env();
    for (key, value) in [
        ("NOMAD_META_owner", "server"),
        ("NOMAD_META_Owner", "big"),
        ("NOMAD_META_OWNER", "server"),
        ("NOMAD_META_only_job", "linux"),
        ("NOMAD_META_ONLY_JOB", "linux"),
    ] {
        assert_eq!(env.get(key).map(String::as_str), Some(value), "{key}");
    }
    assert_eq!(env.get("NOMAD_META_only-job"), None);
}

#[test]
fn strongest_env_source_wins() {
    let mut world = world();
    world.host.push(pair("NOMAD_DC", "from host"));
    world.host.push(pair("SHELL", "from host"));
    world.task.env = [pair("SHELL", "from env"), pair("NOMAD_TASK_NAME", "mine")].into();
    let env = world.env();
    assert_eq!(env.get("NOMAD_DC").map(String::as_str), Some("dc1"));
    assert_eq!(env.get("SHELL").map(String::as_str), Some("from env"));
    assert_eq!(env.get("NOMAD_TASK_NAME").map(String::as_str), Some("mine"));
    world.hooks = vec![pair("SHELL", "first"), pair("SHELL", "${second}")];
    let env = world.env();
    assert_eq!(env.get("SHELL").map(String::as_str), Some("${second}"));
}

#[test]
fn env_references_are_order_independent() {
    let mut world = world();
    assert_eq!(
        world.block(&[("A", "${B}a"), ("B", "${C}b"), ("C", "${NOMAD_DC}")]),
        ["dc1ba", "dc1b", "dc1"]
    );
    assert_eq!(
        world.block(&[("C", "${B}a"), ("B", "${A}b"), ("A", "${NOMAD_DC}")]),
        ["dc1ba", "dc1b", "dc1"]
    );
    assert_eq!(
        world.block(&[("A", "${env.B}${env[\"B\"]}"), ("B", "x")]),
        ["xx", "x"]
    );
}

#[test]
fn env_reference_prefers_outer_value() {
    let mut world = world();
    assert_eq!(
        world.block(&[("PATH", "/opt:${PATH}"), ("Z", "${PATH}")]),
        ["/opt:/bin", "/bin"]
    );
}

#[test]
fn env_cycle_is_unchanged() {
    let mut world = world();
    assert_eq!(
        world.block(&[
            ("A", "${B}-${NOMAD_DC}"),
            ("B", "${A}"),
            ("C", "${A}+${D}"),
            ("D", "d"),
            ("S", "${S}"),
        ]),
        ["${B}-dc1", "${A}", "${A}+d", "d", "${S}"]
    );
}

#[test]
fn env_expansion_is_bounded() {
    let mut world = world();
    let mut block = vec![("K00".to_owned(), "x".repeat(1024))];
    for n in 1..64 {
        let before = format!("${{K{:02}}}", n - 1);
        block.push((format!("K{n:02}"), before.repeat(4)));
    }
    world.task.env = block.into_iter().collect();
    let total: usize = world.env().values().map(String::len).sum();
    assert!(total < 64 * 2 * MAX_VALUE, "{total}");
}

#[test]
fn invalid_env_keys_are_left_out() {
    let mut world = world();
    world.host = vec![pair("", "x"), pair("A=B", "x"), pair("N\0", "x")];
    world.task.meta = [pair("a=b", "x")].into();
    let env = world.env();
    assert!(
        env.keys()
            .all(|k| !k.is_empty() && !k.contains(['=', '\0']))
    );
    assert_eq!(env.get("NOMAD_META_a_b").map(String::as_str), Some("x"));
}

#[test]
fn user_made_env_names_are_sanitized() {
    assert_eq!(clean_key("NOMAD_META_a-b.c é"), "NOMAD_META_a_b.c__");
    assert_eq!(clean_key("NOMAD_HOST_ADDR_a-b"), "NOMAD_HOST_ADDR_a-b");
    assert_eq!(clean_key("my-own"), "my-own");
    let mut world = world();
    world.task.meta = [pair("a_b", "clean"), pair("a-b", "dashed")].into();
    let env = world.env();
    assert_eq!(env.get("NOMAD_META_a_b").map(String::as_str), Some("clean"));
}

#[test]
fn denied_env_pattern_is_left_out() {
    let pairs = ["PATH", "X_LICENSE_PATH", "AWS_REGION"].map(|key| pair(key, "v"));
    let left = filter_env(pairs, &["*_LICENSE_PATH", "PATHS"]);
    assert_eq!(left, [pair("PATH", "v"), pair("AWS_REGION", "v")]);
}
