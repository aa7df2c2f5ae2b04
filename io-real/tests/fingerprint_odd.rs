//! Machines whose files are not as files should be.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod machines;

use std::fs;
use std::path::{Path, PathBuf};

use drover_core::fingerprint::Fingerprint;
use drover_io_real::fingerprint::{Context, InterfaceAddress, PROBES, Probe, ProbeError, Settings};
use machines::Machine;

/// Probes that ask nobody else and run no programs.
fn readers() -> impl Iterator<Item = &'static Probe> {
    let others = |probe: &&Probe| probe.off_unless_enabled || probe.name == "plugins_cni";
    PROBES.iter().filter(move |probe| !others(probe))
}

fn query(context: &Context, name: &str) -> Result<Fingerprint, ProbeError> {
    let probe = PROBES.iter().find(|probe| probe.name == name).unwrap();
    probe.query(context)
}

/// All plain files of a machine.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// What holds of every fingerprint, whatever the machine.
fn is_sane(probe: &Probe, found: &Fingerprint) {
    for (name, value) in found.attributes.iter().chain(&found.links) {
        let clean = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        assert!(
            clean(name) && clean(value),
            "{}: {name:?} = {value:?}",
            probe.name
        );
        assert!(
            value.len() <= 512,
            "{}: {name} has {} bytes",
            probe.name,
            value.len()
        );
    }
    if let Some(processors) = &found.resources.processors {
        assert!(processors.usable_compute <= processors.total_compute);
        assert!(processors.cores.len() <= 8192);
    }
    assert!(found.resources.networks.len() <= 256);
}

#[test]
fn empty_machine_gives_absent_values() {
    let context = Machine::empty().context(Settings::default());
    for probe in PROBES.iter().filter(|probe| !probe.off_unless_enabled) {
        let found = probe.query(&context).unwrap();
        let own = ["os.signals", "nomad.service_discovery"];
        let attributes: Vec<_> = found.attributes.keys().collect();
        assert!(
            attributes.iter().all(|name| own.contains(&name.as_str())),
            "{attributes:?}"
        );
        assert_eq!(
            found.resources,
            Fingerprint::default().resources,
            "{}",
            probe.name
        );
    }
}

#[test]
fn special_file_is_reported() {
    let machine = Machine::empty();
    fs::create_dir_all(machine.path("proc/meminfo/x")).unwrap();
    let reported = query(&machine.context(Settings::default()), "memory").unwrap_err();
    assert!(reported.to_string().contains("proc/meminfo"), "{reported}");
}

#[test]
fn fifo_does_not_block_probe() {
    let machine = Machine::empty();
    let path = machine.path("proc/meminfo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    assert!(query(&machine.context(Settings::default()), "memory").is_err());
}

#[test]
fn oversized_file_is_not_read() {
    let machine = Machine::empty();
    let file = fs::File::create(machine.path("proc/meminfo")).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = query(&machine.context(Settings::default()), "memory").unwrap_err();
    assert!(matches!(error, ProbeError::TooLarge { .. }), "{error}");
}

#[test]
fn excessive_core_count_is_refused() {
    let machine = Machine::empty();
    machine.file("sys/devices/system/cpu/online", "0-4294967295,7-3,x,,-");
    let found = query(&machine.context(Settings::default()), "cpu").unwrap();
    assert_eq!(found.attributes["cpu.numcores"], "8192");
}

#[test]
fn symlink_outside_root_is_not_followed() {
    let outside = Machine::empty();
    outside.file("secret", "MemTotal: 4096 kB\n");
    let machine = Machine::empty();
    machine.link("proc/meminfo", outside.path("secret").to_str().unwrap());
    let found = query(&machine.context(Settings::default()), "memory").unwrap();
    assert_eq!(found, Fingerprint::default());

    machine.file("real", "MemTotal: 4096 kB\n");
    machine.link("x/up", "../../../../../../../../real");
    fs::remove_file(machine.path("proc/meminfo")).unwrap();
    machine.link("proc/meminfo", "/x/up");
    let found = query(&machine.context(Settings::default()), "memory").unwrap();
    assert_eq!(found.resources.memory_mb, Some(4));
}

#[test]
fn symlink_cycle_is_error() {
    let machine = Machine::empty();
    machine.link("proc/meminfo", "other");
    machine.link("proc/other", "meminfo");
    assert!(query(&machine.context(Settings::default()), "memory").is_err());
}

#[test]
fn terminal_controls_are_removed() {
    let machine = Machine::empty();
    machine.file(
        "proc/cpuinfo",
        b"processor : 0\nmodel name : a\x1b[31mb\xff\x00c\n",
    );
    let found = query(&machine.context(Settings::default()), "cpu").unwrap();
    assert_eq!(found.attributes["cpu.modelname"], "a[31mb\u{fffd}c");
}

#[test]
fn default_interface_is_found_among_many() {
    let mut machine = Machine::read("container");
    let template = machine.kernel.addresses[1].clone();
    for number in 0..2000 {
        machine.kernel.addresses.push(InterfaceAddress {
            device: format!("br{number}"),
            ..template.clone()
        });
        machine.kernel.addresses.push(InterfaceAddress {
            device: format!("a{number}"),
            ip: "fe80::1".parse().unwrap(),
            prefix: 64,
        });
    }
    let networks = query(&machine.context(Settings::default()), "network").unwrap();
    let networks = networks.resources.networks;
    assert_eq!(networks.len(), 256);
    assert_eq!(networks[0].device, "eth0");
    assert!(
        networks
            .iter()
            .all(|network| !network.device.starts_with('a'))
    );
}

#[test]
fn odd_volume_names_are_parsed() {
    for (written, meant) in [
        (r"\040", ""),
        (r"a\040b", "a b"),
        (r"a\134040", r"a\040"),
        (r"a\0", r"a\0"),
        (r"a\", r"a\"),
        (r"a\é40", r"a\é40"),
        (r"a\04é", r"a\04é"),
        (r"a\777", r"a\777"),
    ] {
        let machine = Machine::read("container");
        let mounts = format!("1 1 0:1 / / rw - ext4 {written} rw\n");
        machine.file("proc/self/mountinfo", mounts);
        let found = query(&machine.context(Settings::default()), "storage").unwrap();
        let volume = found.attributes.get("unique.storage.volume");
        assert_eq!(volume.map_or("", String::as_str), meant, "{written}");
    }
}

/// A sequence of numbers that is the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// Spoils bytes in one of several ways.
fn spoiled(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const PIECES: &[&[u8]] = &[
        b"-",
        b",",
        b":",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b"18446744073709551615",
        b"-1",
        b"0x",
        b" - ",
        b"4294967295",
        b"{",
        b"\"",
        b"\\777",
        b"\\0",
    ];
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + numbers.below(16)).min(bytes.len());
        match numbers.below(5) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => {
                let noise: Vec<u8> = (at..end)
                    .map(|_| u8::try_from(numbers.below(256)).unwrap())
                    .collect();
                bytes.splice(at..end, noise);
            }
        }
    }
    bytes
}

#[test]
fn damaged_file_loses_own_facts_only() {
    for (seed, name) in (1..).zip(["laptop", "server", "board", "container", "unified"]) {
        let machine = Machine::read(name);
        let context = machine.context(Settings::default());
        let mut numbers = Numbers(0x9e37_79b9 * seed);
        for path in files(machine.dir.path()) {
            let whole = fs::read(&path).unwrap();
            // Files of one number have little to spoil.
            let rounds = if whole.len() > 32 { 16 } else { 3 };
            for _ in 0..rounds {
                fs::write(&path, spoiled(&whole, &mut numbers)).unwrap();
                for probe in readers() {
                    match probe.query(&context) {
                        Ok(found) => is_sane(probe, &found),
                        Err(error) => panic!("{name}, {path:?}: {}: {error}", probe.name),
                    }
                }
            }
            fs::write(&path, whole).unwrap();
        }
    }
}
