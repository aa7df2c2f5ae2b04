//! What plugins are asked, as they see it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use drover_core::store::record::AssignedPort;

use super::list::List;
use super::*;

fn work() -> BuildNetwork {
    let port = |label: &str, to, host_network: &str| AssignedPort {
        label: label.to_owned(),
        value: 20_000,
        to,
        host_ip: "10.9.0.1".to_owned(),
        host_network: host_network.to_owned(),
    };
    BuildNetwork {
        mode: "cni/mine".parse().unwrap(),
        hostname: "web".to_owned(),
        dns: None,
        address: None,
        ports: vec![port("http", 80, ""), port("admin", 0, "private")],
        args: [("IP".to_owned(), "10.0.0.9".to_owned())].into(),
    }
}

fn memory() -> Memory {
    let text = r#"{"cniVersion": "1.0.0", "name": "mine", "plugins": [
        {"type": "a", "mtu": 1400, "prevResult": {"ips": []}, "runtimeConfig": {"portMappings": []}},
        {"type": "b", "capabilities": {"portMappings": true, "bandwidth": true}}]}"#;
    Memory {
        list: List::parse(text).unwrap(),
        path: Vec::new(),
        args: String::new(),
        runtime: runtime(&work()),
        result: None,
    }
}

#[test]
fn plugin_gets_the_capabilities_it_supports() {
    let memory = memory();
    let first = request(&memory, &memory.list.plugins[0], None);
    let expected = json!({"type": "a", "mtu": 1400, "name": "mine", "cniVersion": "1.0.0"});
    assert_eq!(Value::Object(first), expected);
    let last = json!({"ips": [{"address": "10.0.0.9/24"}]});
    let second = request(&memory, &memory.list.plugins[1], Some(&last));
    assert_eq!(second["prevResult"], last);
    let passed_on = second["runtimeConfig"].as_object().unwrap();
    assert_eq!(passed_on.keys().collect::<Vec<_>>(), ["portMappings"]);
    let mappings = passed_on["portMappings"].as_array().unwrap();
    assert_eq!(
        mappings[0],
        json!({"hostPort": 20_000, "containerPort": 80, "protocol": "tcp"})
    );
    assert_eq!(
        mappings[3],
        json!({"hostPort": 20_000, "containerPort": 20_000, "protocol": "udp", "hostIP": "10.9.0.1"})
    );
    assert_eq!(mappings.len(), 4);
}

#[test]
fn cni_arguments_cannot_be_injected() {
    let mut work = work();
    assert_eq!(arguments(&work).unwrap(), "IgnoreUnknown=1;IP=10.0.0.9");
    work.args.insert("IgnoreUnknown".to_owned(), "0".to_owned());
    assert_eq!(arguments(&work).unwrap(), "IP=10.0.0.9;IgnoreUnknown=0");
    for value in ["1;MAC=2", "a=b", "a\nb"] {
        work.args.insert("IP".to_owned(), value.to_owned());
        assert!(arguments(&work).is_err(), "{value:?}");
    }
}

#[test]
fn older_plugin_gets_no_previous_result_at_delete() {
    for (version, passes) in [
        ("0.1.0", false),
        ("0.3.1", false),
        ("0.4.0", true),
        ("1.1.0", true),
        ("nonsense", false),
    ] {
        assert_eq!(passes_result_at_delete(version), passes, "{version}");
    }
}
