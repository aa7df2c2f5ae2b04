//! Machines of files: reads `fixtures/machines/*.machine`, whose README says how they are written.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use drover_core::fingerprint::{Fingerprint, Resources};
use drover_io_real::fingerprint::{
    Context, InterfaceAddress, Kernel, Name, Root, Settings, Volume,
};
use tempfile::TempDir;

/// A machine below a directory that goes with it.
pub struct Machine {
    pub dir: TempDir,
    pub kernel: Recorded,
}

/// What a machine's kernel says in no file.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    pub name: Name,
    pub landlock: Option<u32>,
    pub addresses: Vec<InterfaceAddress>,
    pub volume: Option<Volume>,
}

impl Kernel for Recorded {
    fn name(&self) -> Name {
        self.name.clone()
    }

    fn landlock(&self) -> Option<u32> {
        self.landlock
    }

    fn addresses(&self) -> io::Result<Vec<InterfaceAddress>> {
        Ok(self.addresses.clone())
    }

    fn volume(&self, _: &Path) -> io::Result<Option<Volume>> {
        Ok(self.volume.clone())
    }
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/machines")
}

impl Machine {
    pub fn empty() -> Machine {
        Machine {
            dir: TempDir::new().unwrap(),
            kernel: Recorded::default(),
        }
    }

    pub fn read(name: &str) -> Machine {
        let text = fs::read_to_string(fixtures().join(format!("{name}.machine"))).unwrap();
        let mut machine = Machine::empty();
        let mut open: Option<(&str, String)> = None;
        for line in text.lines() {
            if let Some(head) = line.strip_prefix('@') {
                machine.close(open.take());
                match head.split_once(" -> ") {
                    Some((path, target)) => machine.link(path.trim(), target),
                    None => open = Some((head, String::new())),
                }
            } else if let Some(reported) = line.strip_prefix("! ") {
                machine.receive(reported);
            } else if let Some((_, body)) = &mut open {
                writeln!(body, "{line}").unwrap();
            }
        }
        machine.close(open.take());
        machine
    }

    pub fn context(&self, settings: Settings) -> Context {
        Context {
            root: Arc::new(Root::open(self.dir.path()).unwrap()),
            kernel: Arc::new(self.kernel.clone()),
            settings,
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        let path = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(path), bytes).unwrap();
    }

    pub fn program(&self, path: &str, text: &str) {
        self.file(path, text);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn link(&self, path: &str, target: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    fn close(&self, open: Option<(&str, String)>) {
        let Some((head, body)) = open else {
            return;
        };
        if let Some(path) = head.strip_prefix("+ ") {
            return self.program(path, &body);
        }
        let path = head.trim();
        match path.split_once('{') {
            None => self.file(path, body),
            Some((before, rest)) => {
                let (range, after) = rest.split_once('}').unwrap();
                let (first, last) = range.split_once('-').unwrap();
                for number in first.parse::<u32>().unwrap()..=last.parse().unwrap() {
                    let body = body.replace("{}", &number.to_string());
                    self.file(&format!("{before}{number}{after}"), body);
                }
            }
        }
    }

    fn receive(&mut self, reported: &str) {
        let words: Vec<&str> = reported.split(' ').collect();
        match *words.as_slice() {
            ["kernel", kernel, release, machine, host] => {
                self.kernel.name = Name {
                    kernel: kernel.to_owned(),
                    release: release.to_owned(),
                    machine: machine.to_owned(),
                    host: host.to_owned(),
                };
            }
            ["landlock", version] => self.kernel.landlock = Some(version.parse().unwrap()),
            ["address", device, address] => {
                let (ip, prefix) = address.split_once('/').unwrap();
                self.kernel.addresses.push(InterfaceAddress {
                    device: device.to_owned(),
                    ip: ip.parse().unwrap(),
                    prefix: prefix.parse().unwrap(),
                });
            }
            ["volume", dir, bytes] => {
                self.kernel.volume = Some(Volume {
                    dir: dir.into(),
                    bytes: bytes.parse().unwrap(),
                });
            }
            _ => panic!("the kernel says nothing like {reported:?}"),
        }
    }
}

/// A fingerprint as text, a line a fact.
pub fn print(found: &Fingerprint) -> String {
    let mut text = String::new();
    for (name, value) in &found.attributes {
        writeln!(text, "{name} = {value}").unwrap();
    }
    for (name, value) in &found.links {
        writeln!(text, "link {name} = {value}").unwrap();
    }
    print_resources(&mut text, &found.resources);
    text
}

fn print_resources(text: &mut String, resources: &Resources) {
    if let Some(processors) = &resources.processors {
        let (total, usable) = (processors.total_compute, processors.usable_compute);
        writeln!(text, "processors: {usable} of {total} MHz").unwrap();
        for core in &processors.cores {
            writeln!(text, "  {core:?}").unwrap();
        }
    }
    if let Some(mib) = resources.memory_mb {
        writeln!(text, "memory: {mib} MiB").unwrap();
    }
    if let Some(mib) = resources.disk_mb {
        writeln!(text, "disk: {mib} MiB").unwrap();
    }
    for network in &resources.networks {
        let ips: Vec<String> = network
            .addresses
            .iter()
            .map(|address| format!("{}/{}", address.ip, address.prefix))
            .collect();
        let (mac, speed, default) = (&network.mac, network.speed, network.is_default);
        let device = &network.device;
        writeln!(
            text,
            "network {device}: mac {mac:?}, {speed} Mbit/s, default {default}, {ips:?}"
        )
        .unwrap();
    }
    for mode in &resources.network_modes {
        writeln!(text, "network mode {mode}").unwrap();
    }
}
