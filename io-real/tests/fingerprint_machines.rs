//! What probes find out about machines of files.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod machines;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use drover_core::fingerprint::Fingerprint;
use drover_io_real::fingerprint::{Context, HostNetwork, PROBES, ProbeError, Settings, Subnet};
use machines::{Machine, fixtures, print};

fn settings() -> Settings {
    Settings {
        alloc_dir: PathBuf::from("/srv/alloc"),
        version: "1.2.3".to_owned(),
        nomad_version: "2.0.5".to_owned(),
        revision: "abc".to_owned(),
        advertise: "192.0.2.17:4646".to_owned(),
        ..Settings::default()
    }
}

fn query(context: &Context, name: &str) -> Result<Fingerprint, ProbeError> {
    let probe = PROBES.iter().find(|probe| probe.name == name).unwrap();
    probe.query(context)
}

/// Compares with what is written beside the machine.
fn is_as_expected(name: &str) {
    let machine = Machine::read(name);
    let context = machine.context(settings());
    let mut text = String::new();
    for probe in PROBES.iter().filter(|probe| !probe.off_unless_enabled) {
        let found = probe.query(&context).unwrap();
        write!(text, "[{}]\n{}", probe.name, print(&found)).unwrap();
    }
    let path = fixtures().join(format!("{name}.expected"));
    if std::env::var_os("DROVER_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    similar(&text, &fs::read_to_string(&path).unwrap());
}

/// Two texts are the same; if not, says the lines that are not.
fn similar(found: &str, expected: &str) {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (found, expected) = (lines(found), lines(expected));
    let more: Vec<_> = found
        .iter()
        .filter(|line| !expected.contains(line))
        .collect();
    let less: Vec<_> = expected
        .iter()
        .filter(|line| !found.contains(line))
        .collect();
    assert!(
        found == expected,
        "found beside: {more:#?}\nmissing: {less:#?}"
    );
}

#[test]
fn laptop_with_two_core_types_matches_fixture() {
    is_as_expected("laptop");
}

#[test]
fn two_socket_server_matches_fixture() {
    is_as_expected("server");
}

#[test]
fn arm_board_matches_fixture() {
    is_as_expected("board");
}

#[test]
fn container_without_sysfs_matches_fixture() {
    is_as_expected("container");
}

#[test]
fn cgroup_v2_machine_matches_fixture() {
    is_as_expected("unified");
}

#[test]
fn reserved_cores_are_subtracted() {
    let settings = Settings {
        reserved_cores: BTreeSet::from([0, 15, 99]),
        reserved_compute: 800,
        ..settings()
    };
    let found = query(&Machine::read("server").context(settings), "cpu").unwrap();
    assert_eq!(found.attributes["cpu.numcores"], "16");
    assert_eq!(found.attributes["cpu.reservablecores"], "14");
    assert_eq!(found.attributes["cpu.totalcompute"], "51200");
    assert_eq!(found.attributes["cpu.usablecompute"], "44000");
    let processors = found.resources.processors.unwrap();
    let disabled: Vec<u32> = processors
        .cores
        .iter()
        .filter(|core| core.disabled)
        .map(|core| core.id)
        .collect();
    assert_eq!(disabled, [0, 15]);
}

#[test]
fn configured_values_override_detected() {
    let settings = Settings {
        cpu_total_compute: Some(1600),
        reserved_cores: BTreeSet::from([0, 1, 2, 3]),
        memory_total_mb: Some(1000),
        disk_total_mb: Some(2000),
        network_interface: Some("eno3".to_owned()),
        network_speed: Some(40),
        bridge_hairpin: true,
        ..settings()
    };
    let machine = Machine::read("server");
    let context = machine.context(settings);
    let cpu = query(&context, "cpu").unwrap();
    assert_eq!(cpu.attributes["cpu.totalcompute"], "1600");
    assert_eq!(cpu.attributes["cpu.usablecompute"], "1200");
    let memory = query(&context, "memory").unwrap();
    assert_eq!(memory.resources.memory_mb, Some(1000));
    assert_eq!(memory.attributes["memory.totalbytes"], "1048576000");
    let storage = query(&context, "storage").unwrap();
    assert_eq!(storage.resources.disk_mb, Some(2000));
    assert_eq!(
        storage.attributes["unique.storage.bytestotal"],
        "2097152000"
    );
    let network = query(&context, "network").unwrap();
    assert_eq!(
        network.attributes["unique.network.ip-address"],
        "203.0.113.9"
    );
    assert_eq!(network.resources.networks[0].speed, 40);
    let bridge = query(&context, "bridge").unwrap();
    assert_eq!(bridge.attributes["nomad.bridge.hairpin_mode"], "true");
}

#[test]
fn host_network_address_is_of_its_interface_and_in_its_subnet() {
    let network = |name: &str, interface: Option<&str>, subnet: Option<(&str, u8)>| HostNetwork {
        name: name.to_owned(),
        interface: interface.map(str::to_owned),
        subnet: subnet.map(|(ip, prefix)| Subnet {
            ip: ip.parse().unwrap(),
            prefix,
        }),
    };
    let second = Some(("198.51.100.13", 32));
    let settings = Settings {
        host_networks: vec![
            network("interface", Some("bond0"), None),
            network("subnet", None, second),
            network("both", Some("bond0"), second),
        ],
        ..settings()
    };
    let found = query(&Machine::read("server").context(settings), "network").unwrap();
    for (name, expected) in [
        ("interface", "198.51.100.12"),
        ("subnet", "198.51.100.13"),
        ("both", "198.51.100.13"),
    ] {
        let attribute = format!("unique.network.host_network.{name}");
        assert_eq!(found.attributes[&attribute], expected, "{name}");
    }
}

#[test]
fn missing_interface_is_error() {
    let settings = Settings {
        network_interface: Some("eth9".to_owned()),
        ..settings()
    };
    let error = query(&Machine::read("server").context(settings), "network").unwrap_err();
    let reported = error.to_string();
    assert!(
        reported.contains("network_interface") && reported.contains("eth9"),
        "{reported}"
    );
}

#[test]
fn probes_have_names_of_their_own() {
    let names: BTreeSet<&str> = PROBES.iter().map(|probe| probe.name).collect();
    assert_eq!(names.len(), PROBES.len());
    for probe in PROBES {
        assert_eq!(probe.off_unless_enabled, probe.name.starts_with("env_"));
    }
}
