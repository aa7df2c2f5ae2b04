//! What is known of the machine from its start: the attributes that conditions in job files and
//! interpolation look at.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::uname;

/// The machine's attributes, named as in the field.
pub fn attributes() -> BTreeMap<String, String> {
    let uname = uname();
    let mut facts = BTreeMap::new();
    let mut put = |key: &str, value: String| {
        if !value.is_empty() {
            facts.insert(key.to_owned(), value);
        }
    };
    put("kernel.name", "linux".to_owned());
    put(
        "kernel.version",
        uname.release().to_string_lossy().into_owned(),
    );
    put(
        "kernel.arch",
        uname.machine().to_string_lossy().into_owned(),
    );
    put("cpu.arch", arch().to_owned());
    put("unique.hostname", hostname());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    put("cpu.numcores", cores.to_string());
    put(
        "memory.totalbytes",
        memory_bytes()
            .map(|bytes| bytes.to_string())
            .unwrap_or_default(),
    );
    let os = fs::read_to_string("/etc/os-release").unwrap_or_default();
    put("os.name", os_release(&os, "ID"));
    put("os.version", os_release(&os, "VERSION_ID"));
    facts
}

/// The host's name.
pub fn hostname() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Random bits from the machine, for the core's seed and the node's id.
pub fn random() -> u128 {
    let mut bytes = [0_u8; 16];
    // Fails only before the machine has any randomness at all, long before agents run; the boot
    // clock is the best that is left then.
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(16) => u128::from_ne_bytes(bytes),
        Ok(_) | Err(_) => u128::from(crate::clock::now().at.0),
    }
}

/// The architecture by the name that job files use.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn os_release(text: &str, key: &str) -> String {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_default().trim_matches('"').to_owned()
}
