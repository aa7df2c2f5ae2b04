//! A whole file of a client of Nomad's, as it is.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use super::parse;

const CLIENT: &str = include_str!("testing/client.hcl");

/// What of it has no effect.
const WITHOUT_EFFECT: [&str; 38] = [
    "addresses.rpc",
    "advertise.rpc",
    "advertise.serf",
    "audit",
    "client.bridge_network_hairpin_mode",
    "client.cgroup_parent",
    "client.drain_on_shutdown",
    "client.fingerprint.env_aws.retry_attempts",
    "client.fingerprint.env_aws.retry_interval",
    "client.max_kill_timeout",
    "client.no_host_uuid",
    "client.nomad_service_discovery",
    "client.options.docker.cleanup.image.delay",
    "client.options.fingerprint.network.disallow_link_local",
    "client.options.user.checked_drivers",
    "client.options.user.denylist",
    "client.preferred_address_family",
    "client.server_join.retry_interval",
    "client.server_join.retry_join provider=aws",
    "client.server_join.retry_max",
    "client.template",
    "client.users",
    "consul",
    "disable_update_check",
    "enable_debug",
    "enable_syslog",
    "http_api_response_headers",
    "leave_on_interrupt",
    "leave_on_terminate",
    "limits.rpc_handshake_timeout",
    "log_file",
    "log_rotate_bytes",
    "log_rotate_max_files",
    "plugin.java",
    "telemetry.datadog_tags",
    "telemetry.statsd_address",
    "ui",
    "vault",
];

#[test]
fn client_file_of_nomad_is_read_as_it_is() {
    let config = parse(CLIENT).unwrap();
    let agent = &config.agent;
    assert_eq!(agent.http(None), "10.20.0.17:4646");
    let advertised = agent.advertised("10.20.0.17:4646");
    assert_eq!(advertised, "worker-17.ams1.example:4646");
    assert_eq!(agent.region.as_deref(), Some("eu"));
    assert_eq!(agent.log_level.as_deref(), Some("warn"));
    let node = &config.client.node;
    assert_eq!(node.servers, ["10.20.0.1", "10.20.0.2:4647"]);
    assert!(node.servers_tls && config.tls.http);
    assert_eq!(
        (&*node.class, node.pool.as_deref()),
        ("compute", Some("batch"))
    );
    assert_eq!(node.meta["gpu.present"], "no");
    assert_eq!((&*node.meta["rack"], &*node.meta["spot"]), ("17", "false"));
    let names: Vec<&str> = node.host_networks.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["public", "storage"]);
    assert_eq!(node.reserved_ports[""].len(), 3);
    assert!(node.host_volumes["certificates"].read_only);
    assert_eq!(config.exec.settings.parts.len(), 4);
    assert_eq!(
        config.limits,
        parse("limits {\n http_max_conns_per_client = 200\n}")
            .unwrap()
            .limits
    );
}

#[test]
fn client_file_of_nomad_sets_what_the_machine_has() {
    let config = parse(CLIENT).unwrap();
    let machine = &config.client.node.machine;
    assert_eq!(machine.dynamic_ports, (21_000, 31_000));
    let settings = machine.probe_settings();
    assert_eq!(settings.network_speed, Some(25_000));
    assert_eq!(settings.cpu_total_compute, Some(64_000));
    assert_eq!(settings.memory_total_mb, Some(131_072));
    assert_eq!(settings.disk_total_mb, Some(900_000));
    let programs = ["/opt/cni/bin", "/usr/libexec/cni"].map(PathBuf::from);
    assert_eq!(settings.cni_path, programs);
    assert_eq!(settings.cni_config_dir, Path::new("/etc/cni/net.d"));
}

#[test]
fn client_file_of_nomad_switches_drivers() {
    let config = parse(CLIENT).unwrap();
    let drivers = &config.client.drivers;
    for name in ["docker", "exec", "raw_exec"] {
        assert!(drivers.allows(name), "{name}");
    }
    assert!(!drivers.allows("mock_driver"));
    assert!(config.plugins.is_empty(), "{:?}", config.plugins);
}

#[test]
fn ignored_settings_of_a_client_file_are_named_once() {
    let config = parse(CLIENT).unwrap();
    assert_eq!(config.ignored, WITHOUT_EFFECT);
}

#[test]
fn name_that_nomad_does_not_have_either_is_an_error_with_the_nearest() {
    for (line, wrong, words) in [
        ("  node_class ", "  nod_class ", "did you mean node_class?"),
        (
            "  cgroup_parent ",
            "  cgroup_parnt ",
            "did you mean cgroup_parent?",
        ),
        (
            "  statsd_address ",
            "  statsd_adress ",
            "did you mean statsd_address?",
        ),
        ("vault {", "valt {", "did you mean vault?"),
        (
            "  drain_on_shutdown {",
            "  drain_on_shutdwn {",
            "did you mean drain_on_shutdown?",
        ),
        (
            "\"user.denylist\"",
            "\"user.denilist\"",
            "did you mean user.denylist?",
        ),
        (
            "  rpc  = \"10.20.0.17:4647\"",
            "  rp   = \"10.20.0.17:4647\"",
            "did you mean rpc?",
        ),
    ] {
        assert!(CLIENT.contains(line), "{line}");
        let why = parse(&CLIENT.replace(line, wrong)).unwrap_err();
        assert!(why.contains(words), "{wrong}: {why}");
    }
}
