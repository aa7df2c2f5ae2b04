//! What is refused, with which setting, and what containers may have.

use super::*;
use crate::driver::config::DockerMount;
use crate::model::value::Value;

fn asked(change: impl FnOnce(&mut DockerConfig)) -> DockerConfig {
    let mut asked = DockerConfig {
        image: "busybox:1".to_owned(),
        ..DockerConfig::default()
    };
    change(&mut asked);
    asked
}

fn refusal(change: impl FnOnce(&mut DockerConfig)) -> String {
    let refused = DockerPolicy::default().admit(&asked(change));
    refused.err().unwrap_or_default()
}

#[test]
fn refusal_names_setting_that_allows_it() {
    let bind = |source: &str| DockerMount {
        target: "/x".to_owned(),
        readonly: true,
        kind: MountKind::Bind {
            source: source.to_owned(),
            propagation: None,
        },
    };
    for (why, words) in [
        (refusal(|it| it.privileged = true), "allow_privileged"),
        (
            refusal(|it| it.cap_add = vec!["sys_admin".to_owned()]),
            "allow_caps",
        ),
        (
            refusal(|it| it.pid_mode = Some("host".to_owned())),
            "allowed_modes { pid }",
        ),
        (
            refusal(|it| it.ipc_mode = Some("container:x".to_owned())),
            "allowed_modes { ipc }",
        ),
        (
            refusal(|it| it.runtime = Some("sysbox".to_owned())),
            "allow_runtimes",
        ),
        (
            refusal(|it| it.volumes = vec!["/etc:/x".to_owned()]),
            "volumes { enabled }",
        ),
        (
            refusal(|it| it.volumes = vec!["local/../../..:/x".to_owned()]),
            "volumes { enabled }",
        ),
        (
            refusal(|it| it.volumes = vec!["data".to_owned()]),
            "SOURCE:/TARGET",
        ),
        (
            refusal(|it| it.mounts = vec![bind("/etc")]),
            "volumes { enabled }",
        ),
        (
            refusal(|it| it.security_opt = vec!["systempaths=unconfined".to_owned()]),
            "allow_privileged",
        ),
        (
            refusal(|it| it.security_opt = vec!["seccomp=/x.json".to_owned()]),
            "not supported",
        ),
        (
            refusal(|it| drop(it.ulimit.insert("nofile".to_owned(), "many".to_owned()))),
            "soft:hard",
        ),
    ] {
        assert!(why.contains(words), "{words}: {why:?}");
    }
    assert_eq!(
        refusal(|it| it.volumes = vec!["local/x:/x:ro".to_owned()]),
        ""
    );
    assert_eq!(refusal(|it| it.mounts = vec![bind("local/x")]), "");
}

#[test]
fn container_has_capabilities_and_ports_that_it_may_have() {
    let policy = DockerPolicy::default();
    let port = AssignedPort {
        label: "http".to_owned(),
        value: 20_000,
        to: 80,
        host_ip: "127.0.0.1".to_owned(),
        ..AssignedPort::default()
    };
    let wanted = asked(|it| {
        it.ports = vec!["http".to_owned()];
        it.cap_drop = vec!["all".to_owned()];
        it.cap_add = vec!["chown".to_owned()];
    });
    let container = policy
        .container(&wanted, std::slice::from_ref(&port))
        .unwrap_or_default();
    assert_eq!(container.ports, [port]);
    assert_eq!(
        container.capabilities.names().collect::<Vec<_>>(),
        ["chown"]
    );
    let usual = policy.container(&asked(|_| {}), &[]).unwrap_or_default();
    assert_eq!(usual.capabilities.names().count(), USUAL.len());
    let why = policy.container(&wanted, &[]).err().unwrap_or_default();
    assert!(why.contains("no port \"http\""), "{why}");
}

#[test]
fn device_is_named_below_dev_and_allowed_by_its_real_path() {
    let device = |path: &str| {
        let device = (path.to_owned(), path.to_owned(), "rwm".to_owned());
        move |it: &mut DockerConfig| it.devices = vec![device]
    };
    for path in ["/dev/dri/", "/dev/dri//", "/dev/fuse"] {
        assert_eq!(refusal(device(path)), "", "{path}");
    }
    for path in [
        "/dev",
        "/dev/",
        "/dev//",
        "/dev/.",
        "/dev//sda",
        "/dev/../dev/sda",
        "/proc/1/root/dev/sda",
        "dev/sda",
    ] {
        let why = refusal(device(path));
        assert!(why.contains("allow_privileged"), "{path}: {why:?}");
    }
    let policy = DockerPolicy::default();
    let wanted = asked(device("/dev/serial/by-id/x"));
    let container = policy.container(&wanted, &[]).unwrap_or_default();
    for (path, may) in [
        ("/dev/ttyUSB0", true),
        ("/dev/dri/card0", true),
        ("/dev/nvidia0", false),
        ("/dev/nvidia-caps/nvidia-cap1", false),
        ("/dev/null", true),
        ("/dev/sda", false),
        ("/dev/sg0", false),
        ("/dev/kmsg", false),
        ("/dev/mem", false),
        ("/dev/fuse2", false),
    ] {
        assert_eq!(container.may_have(path), may, "{path}");
    }
    let policy = DockerPolicy {
        allow_privileged: true,
        ..DockerPolicy::default()
    };
    let all = policy.container(&asked(device("/dev")), &[]);
    assert!(all.unwrap_or_default().may_have("/dev/sda"));
}

#[test]
fn namespace_of_others_needs_its_own_leave() {
    let network = |mode: &str| {
        let mode = mode.to_owned();
        refusal(|it| it.network_mode = Some(mode))
    };
    for mode in ["host", "none", "bridge", "some-network"] {
        assert_eq!(network(mode), "");
    }
    for mode in ["container:database", "ns:/proc/1/ns/net", "Container:x"] {
        let why = network(mode);
        assert!(why.contains("allowed_modes { network }"), "{mode}: {why:?}");
    }
    let cgroups = |mode: &str| {
        let mode = mode.to_owned();
        refusal(|it| it.cgroupns = Some(mode))
    };
    assert_eq!(cgroups("private"), "");
    assert!(cgroups("host").contains("allowed_modes { cgroupns }"));
    assert!(cgroups("hots").contains("private or host"));
    let policy = DockerPolicy {
        allowed_modes: [
            ("network".to_owned(), vec!["container:web-*".to_owned()]),
            ("cgroupns".to_owned(), vec!["host".to_owned()]),
        ]
        .into(),
        ..DockerPolicy::default()
    };
    let both = |network: &str| {
        policy.admit(&asked(|it| {
            it.network_mode = Some(network.to_owned());
            it.cgroupns = Some("host".to_owned());
        }))
    };
    assert_eq!(both("container:web-1"), Ok(()));
    assert!(both("container:database").is_err());
}

#[test]
fn filters_are_left_out_only_with_leave() {
    let of = |policy: &DockerPolicy, option: &str| {
        policy.admit(&asked(|it| it.security_opt = vec![option.to_owned()]))
    };
    let (closed, open) = (
        DockerPolicy::default(),
        DockerPolicy {
            allow_unconfined: true,
            ..DockerPolicy::default()
        },
    );
    for option in [
        "no-new-privileges",
        "no-new-privileges=true",
        "no-new-privileges:true",
        "apparmor=docker-default",
    ] {
        assert_eq!(of(&closed, option), Ok(()), "{option}");
    }
    for option in [
        "seccomp=unconfined",
        "seccomp:unconfined",
        "apparmor=unconfined",
        "apparmor=other",
        "label=disable",
        "label:type:spc_t",
        "no-new-privileges=false",
        "no-new-privileges=0",
    ] {
        let why = of(&closed, option).err().unwrap_or_default();
        assert!(why.contains("allow_unconfined"), "{option}: {why:?}");
        assert_eq!(of(&open, option), Ok(()), "{option}");
    }
    assert!(of(&open, "systempaths=unconfined").is_err());
}

#[test]
fn only_settings_of_the_container_itself_are_passed_on() {
    let sysctl = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        refusal(|it| drop(it.sysctl.insert(name, value)))
    };
    for name in ["net.core.somaxconn", "kernel.shmmax", "fs.mqueue.msg_max"] {
        assert_eq!(sysctl(name, "1"), "", "{name}");
    }
    for name in [
        "kernel.core_pattern",
        "vm.swappiness",
        "net./../kernel.core_pattern",
        "net..core",
        "kernel.shm_rmid_forced+kernel.core_pattern",
    ] {
        let why = sysctl(name, "1");
        assert!(why.contains("not the container's own"), "{name}: {why:?}");
    }
    assert!(sysctl("net.core.somaxconn", "1\n2").contains("one line"));
    let storage = |name: &str| {
        let name = name.to_owned();
        refusal(|it| drop(it.storage_opt.insert(name, "1G".to_owned())))
    };
    assert_eq!(storage("size"), "");
    assert!(storage("dm.basesize").contains("size may be set"));
}

#[test]
fn labels_are_bounded_and_leave_the_agent_its_own() {
    let labels = |count: usize, name: &str, value: usize| {
        let label = |index| (format!("{name}{index}"), "x".repeat(value));
        refusal(|it| it.labels = (0..count).map(label).collect())
    };
    assert_eq!(labels(1000, "org.example.", 10), "");
    assert!(labels(1001, "a", 0).contains("more than 1000"));
    assert!(labels(2, "a", 40_000).contains("bytes are more than"));
    for name in ["drover.launch", "com.hashicorp.nomad.alloc_id"] {
        assert!(labels(1, name, 0).contains("reserved"), "{name}");
    }
}

#[test]
fn limits_of_a_container_are_bounded() {
    let ulimit = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        refusal(|it| drop(it.ulimit.insert(name, value)))
    };
    for (name, value) in [
        ("nofile", "1048576"),
        ("nofile", "1024:65536"),
        ("memlock", "-1"),
        ("core", "0:-1"),
        ("nproc", "-1:-1"),
    ] {
        assert_eq!(ulimit(name, value), "", "{name}={value}");
    }
    for (name, value, expected) in [
        ("nofile", "-1", "at most"),
        ("nofile", "1024:9999999999", "at most"),
        ("sigpending", "-1", "at most"),
        ("nofile", "2048:1024", "soft limit"),
        ("core", "-1:0", "soft limit"),
        ("nofiles", "1", "there are core"),
        ("rtprio", "99", "allow_privileged"),
        ("nice", "40", "allow_privileged"),
    ] {
        let why = ulimit(name, value);
        assert!(why.contains(expected), "{name}={value}: {why:?}");
    }
    let open = DockerPolicy {
        allow_privileged: true,
        ..DockerPolicy::default()
    };
    let before_others = asked(|it| drop(it.ulimit.insert("rtprio".to_owned(), "99".to_owned())));
    assert_eq!(open.admit(&before_others), Ok(()));
}

#[test]
fn job_has_no_more_processes_than_the_agent_gives() {
    let admit = |pids_limit, pids_limit_of_tasks, wanted| {
        let policy = DockerPolicy {
            pids_limit,
            pids_limit_of_tasks,
            ..DockerPolicy::default()
        };
        policy.admit(&asked(|it| it.pids_limit = wanted))
    };
    assert_eq!(admit(0, 0, 5000), Ok(()));
    assert_eq!(admit(0, 4096, 4096), Ok(()));
    assert_eq!(admit(5000, 4096, 5000), Ok(()));
    for (of_plugin, of_tasks) in [(0, 4096), (4096, 0), (4096, 9999)] {
        let why = admit(of_plugin, of_tasks, 5000).err().unwrap_or_default();
        assert!(why.contains("more than 4096 processes"), "{why:?}");
        assert!(why.contains("pids_limit of plugin"), "{why:?}");
    }
}

#[test]
fn container_has_the_processes_of_its_job_or_those_of_the_agent() {
    let policy = DockerPolicy {
        pids_limit: 200,
        ..DockerPolicy::default()
    };
    let limit = |wanted| {
        let container = policy.container(&asked(|it| it.pids_limit = wanted), &[]);
        container.map(|it| it.pids_limit)
    };
    assert_eq!((limit(0), limit(100)), (Ok(200), Ok(100)));
}

#[test]
fn logging_driver_is_named_by_type_or_by_driver() {
    let text = |text: &str| Value::String(text.to_owned());
    for name in ["type", "driver"] {
        let options = Value::Map([("tag".to_owned(), text("web"))].into());
        let logging = [
            (name.to_owned(), text("syslog")),
            ("config".to_owned(), options),
        ];
        let config = [
            ("image".to_owned(), text("busybox:1")),
            ("logging".to_owned(), Value::Map(logging.into())),
        ];
        let read = DockerConfig::decode(&config.into()).map(|read| read.logging);
        let options = [("tag".to_owned(), "web".to_owned())].into();
        assert_eq!(read, Ok(Some(("syslog".to_owned(), options))), "{name}");
    }
}

#[test]
fn output_goes_elsewhere_only_with_leave() {
    let wanted = |driver: &str| {
        let logging = (driver.to_owned(), BTreeMap::new());
        asked(|it| it.logging = Some(logging))
    };
    let closed = DockerPolicy::default();
    for driver in ["json-file", "local", "journald", "none"] {
        assert_eq!(closed.admit(&wanted(driver)), Ok(()), "{driver}");
    }
    for driver in [
        "fluentd",
        "syslog",
        "gelf",
        "splunk",
        "JSON-FILE",
        "loki:latest",
    ] {
        let why = closed.admit(&wanted(driver)).err().unwrap_or_default();
        assert!(why.contains("allowed_logging_types"), "{driver}: {why:?}");
    }
    let open = DockerPolicy {
        allowed_logging_types: vec!["fluentd".to_owned()],
        ..DockerPolicy::default()
    };
    assert_eq!(open.admit(&wanted("fluentd")), Ok(()));
    assert!(open.admit(&wanted("json-file")).is_err());
}
