//! What a job says of its container, as the engine has it then.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may panic"
)]

#[path = "common/docker_world.rs"]
#[macro_use]
mod docker_world;

use docker_world::{World, command, list, text, with};
use drover_core::driver::cpu_quota::CpuQuota;
use drover_core::model::value::Value;
use drover_core::store::record::AssignedPort;
use serde_json::{Value as Json, json};

/// A block of a job.
fn block(fields: &[(&str, Value)]) -> Value {
    let fields = fields.iter();
    let fields = fields.map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Map(fields.collect())
}

/// Says that what the engine has of the only container is this.
fn has(world: &World, expected: &[(&str, Json)]) {
    let container = world.engine.containers()[0].clone();
    let asked = world
        .engine
        .says(&["inspect", "-f", "{{json .}}", &container]);
    let found: Json = serde_json::from_str(&asked).unwrap();
    for (at, expected) in expected {
        assert_eq!(found.pointer(at), Some(expected), "{at} in {found:#}");
    }
}

/// An option of a job, what it says, and where the engine has what.
type OptionCase = (&'static str, Value, &'static str, Json);

fn options_of_the_program() -> Vec<OptionCase> {
    let yes = || Value::Bool(true);
    vec![
        (
            "entrypoint",
            list(&["/bin/env"]),
            "/Config/Entrypoint",
            json!(["/bin/env"]),
        ),
        (
            "work_dir",
            text("/tmp"),
            "/Config/WorkingDir",
            json!("/tmp"),
        ),
        (
            "hostname",
            text("inside"),
            "/Config/Hostname",
            json!("inside"),
        ),
        ("init", Value::Bool(false), "/HostConfig/Init", json!(false)),
        ("tty", yes(), "/Config/Tty", json!(true)),
        ("interactive", yes(), "/Config/OpenStdin", json!(true)),
        (
            "labels",
            block(&[("who", text("me"))]),
            "/Config/Labels/who",
            json!("me"),
        ),
        (
            "healthchecks",
            block(&[("disable", yes())]),
            "/Config/Healthcheck/Test",
            json!(["NONE"]),
        ),
        (
            "extra_hosts",
            list(&["db:10.0.0.9"]),
            "/HostConfig/ExtraHosts",
            json!(["db:10.0.0.9"]),
        ),
        (
            "dns_servers",
            list(&["10.0.0.53"]),
            "/HostConfig/Dns",
            json!(["10.0.0.53"]),
        ),
        (
            "dns_search_domains",
            list(&["example"]),
            "/HostConfig/DnsSearch",
            json!(["example"]),
        ),
        (
            "dns_options",
            list(&["ndots:2"]),
            "/HostConfig/DnsOptions",
            json!(["ndots:2"]),
        ),
    ]
}

fn options_of_its_rights() -> Vec<OptionCase> {
    let limit = json!([{ "Name": "nofile", "Soft": 1024, "Hard": 2048 }]);
    let setting = "net.core.somaxconn";
    vec![
        (
            "group_add",
            list(&["70"]),
            "/HostConfig/GroupAdd",
            json!(["70"]),
        ),
        (
            "cap_drop",
            list(&["all"]),
            "/HostConfig/CapDrop",
            json!(["ALL"]),
        ),
        (
            "cap_add",
            list(&["chown", "kill"]),
            "/HostConfig/CapAdd",
            json!(["CAP_CHOWN", "CAP_KILL"]),
        ),
        (
            "ulimit",
            block(&[("nofile", text("1024:2048"))]),
            "/HostConfig/Ulimits",
            limit,
        ),
        (
            "sysctl",
            block(&[(setting, text("1024"))]),
            "/HostConfig/Sysctls",
            json!({ setting: "1024" }),
        ),
        (
            "readonly_rootfs",
            Value::Bool(true),
            "/HostConfig/ReadonlyRootfs",
            json!(true),
        ),
        (
            "shm_size",
            Value::Int(1 << 20),
            "/HostConfig/ShmSize",
            json!(1 << 20),
        ),
        (
            "oom_score_adj",
            Value::Int(300),
            "/HostConfig/OomScoreAdj",
            json!(300),
        ),
        (
            "cgroupns",
            text("private"),
            "/HostConfig/CgroupnsMode",
            json!("private"),
        ),
        (
            "pids_limit",
            Value::Int(50),
            "/HostConfig/PidsLimit",
            json!(50),
        ),
        (
            "memory_hard_limit",
            Value::Int(100),
            "/HostConfig/Memory",
            json!(100 << 20),
        ),
    ]
}

/// What is mounted beside the directories of the task, of which there are three.
fn mounts() -> (Value, [(&'static str, Json); 2]) {
    let size = [("size", Value::Int(1 << 20)), ("mode", Value::Int(0o700))];
    let labels = block(&[("who", text("me"))]);
    let scratch = block(&[
        ("type", text("tmpfs")),
        ("target", text("/scratch")),
        ("tmpfs_options", block(&size)),
    ]);
    let kept = block(&[
        ("type", text("volume")),
        ("target", text("/kept")),
        ("source", text("drover-kept")),
        ("readonly", Value::Bool(true)),
        (
            "volume_options",
            block(&[("no_copy", Value::Bool(true)), ("labels", labels)]),
        ),
    ]);
    let size = json!({ "SizeBytes": 1 << 20, "Mode": 0o700 });
    let options = json!({ "NoCopy": true, "Labels": { "who": "me" } });
    let expected = [
        (
            "/HostConfig/Mounts/3",
            json!({ "Type": "tmpfs", "Target": "/scratch", "TmpfsOptions": size }),
        ),
        (
            "/HostConfig/Mounts/4",
            json!({ "Type": "volume", "Source": "drover-kept", "Target": "/kept", "ReadOnly": true,
                    "VolumeOptions": options }),
        ),
    ];
    (Value::List(vec![scratch, kept]), expected)
}

#[test]
fn option_of_a_job_reaches_its_container() {
    let mut world = world!();
    let mut config = command(&["/bin/sleep", "1000"]);
    let mut expected = Vec::new();
    for (option, value, at, has) in [options_of_the_program(), options_of_its_rights()].concat() {
        config = with(config, option, value);
        expected.push((at, has));
    }
    let (asked, mounted) = mounts();
    config = with(config, "mount", asked);
    config.user = "70:70".to_owned();
    config.cpu_shares = 500;
    (config.memory_limit, config.memory_reserved) = (64 << 20, 32 << 20);
    let (quota, period) = (50_000, 100_000);
    config.cpu_quota = Some(CpuQuota { quota, period });
    let ports = &mut config.container.as_mut().unwrap().ports;
    ports.push(AssignedPort {
        label: "http".to_owned(),
        value: 20_080,
        to: 8080,
        host_ip: "127.0.0.1".to_owned(),
        host_network: String::new(),
    });
    world.start(1, config).unwrap();
    has(&world, &expected);
    has(&world, &mounted);
    let binding = json!([{ "HostIp": "127.0.0.1", "HostPort": "20080" }]);
    let bindings = json!({ "8080/tcp": binding, "8080/udp": binding });
    has(
        &world,
        &[
            ("/Config/Cmd", json!(["/bin/sleep", "1000"])),
            ("/Config/User", json!("70:70")),
            (
                "/Config/ExposedPorts",
                json!({ "8080/tcp": {}, "8080/udp": {} }),
            ),
            ("/HostConfig/PortBindings", bindings),
            ("/HostConfig/CpuShares", json!(500)),
            ("/HostConfig/CpuQuota", json!(quota)),
            ("/HostConfig/CpuPeriod", json!(period)),
            ("/HostConfig/MemorySwap", json!(100 << 20)),
            ("/HostConfig/MemoryReservation", json!(32 << 20)),
        ],
    );
    world.end(1);
}

#[test]
fn unset_container_option_takes_the_agents_value() {
    let mut world = world!();
    world.settings.pids_limit = Some(77);
    world.settings.oom_score_adj = 9;
    world.begin();
    let asked = [
        ("pid_mode", text("host")),
        ("ipc_mode", text("shareable")),
        ("uts_mode", text("host")),
        ("userns_mode", text("host")),
        ("network_mode", text("none")),
        ("runtime", text("runc")),
    ];
    let mut config = command(&["/bin/sleep", "1000"]);
    for (option, value) in asked {
        config = with(config, option, value);
    }
    world.start(1, config).unwrap();
    has(
        &world,
        &[
            ("/HostConfig/PidMode", json!("host")),
            ("/HostConfig/IpcMode", json!("shareable")),
            ("/HostConfig/UTSMode", json!("host")),
            ("/HostConfig/UsernsMode", json!("host")),
            ("/HostConfig/NetworkMode", json!("none")),
            ("/HostConfig/Runtime", json!("runc")),
            ("/HostConfig/PidsLimit", json!(77)),
            ("/HostConfig/OomScoreAdj", json!(9)),
            ("/HostConfig/Memory", json!(64 << 20)),
            ("/HostConfig/MemorySwap", json!(64 << 20)),
            ("/HostConfig/MemoryReservation", json!(0)),
            ("/HostConfig/CpuQuota", json!(0)),
            ("/HostConfig/CapDrop", json!(["ALL"])),
            ("/HostConfig/ReadonlyRootfs", json!(false)),
            ("/HostConfig/AutoRemove", json!(false)),
        ],
    );
    world.end(1);
    // The engine of this test has neither, and says that in its own words.
    let volumes = with(command(&["/bin/true"]), "volumes", list(&["data:/data"]));
    let size = block(&[("size", text("1G"))]);
    for (launch, config, named) in [
        (
            2,
            with(volumes, "volume_driver", text("nowhere")),
            ["nowhere"; 2],
        ),
        (
            3,
            with(command(&["/bin/true"]), "storage_opt", size),
            ["quotas", "storage"],
        ),
    ] {
        let failure = world.start(launch, config).unwrap_err();
        let is_named = named.iter().any(|it| failure.message.contains(it));
        assert!(is_named, "{failure:?}");
        assert_eq!(world.destroy(launch), Ok(None));
    }
}
