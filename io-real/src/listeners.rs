//! Which programs of this machine listen at TCP ports, for people who ask why a task cannot.
//!
//! The kernel's tables name the socket, and the directories of processes name whose it is. What another user's
//! process has open is not seen without the right to; then the port is taken by a program without a name.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// How much of a table is read: some 100,000 sockets.
const MAX_TABLE: u64 = 16 << 20;
/// How many open files of processes are looked at.
const MAX_FILES: usize = 1 << 20;
/// The state of a socket that listens.
const LISTENS: &str = "0A";
/// The tables, below the root of the file system.
const TABLES: [&str; 2] = ["proc/self/net/tcp", "proc/self/net/tcp6"];

/// Who listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listener {
    /// Its process, if that is known.
    pub process: Option<u32>,
    /// The name of its program; empty if that is not known.
    pub program: String,
    /// Its control groups, as the kernel lists them.
    pub groups: String,
}

/// Who listens at these ports, at whatever address.
///
/// # Errors
/// The kernel's table cannot be read.
pub fn listeners(ports: &BTreeSet<u16>) -> io::Result<BTreeMap<u16, Listener>> {
    let mut sockets = BTreeMap::new();
    for table in TABLES {
        let mut text = String::new();
        match File::open(Path::new("/").join(table)) {
            Ok(file) => drop(file.take(MAX_TABLE).read_to_string(&mut text)?),
            // A kernel without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let found = text.lines().filter_map(listening);
        sockets.extend(found.filter(|(_, port)| ports.contains(port)));
    }
    let mut found: BTreeMap<u16, Listener> = (sockets.values())
        .map(|port| (*port, Listener::default()))
        .collect();
    if !sockets.is_empty() {
        find_owners(&sockets, &mut found)?;
    }
    Ok(found)
}

/// The socket and the port of a line about one that listens.
fn listening(line: &str) -> Option<(u64, u16)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (address, state) = (fields.next()?, fields.nth(1)?);
    let (_, port) = address.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let socket = fields.nth(5)?.parse().ok()?;
    (state == LISTENS).then_some((socket, port))
}

/// Looks through the open files of all processes. Those that end meanwhile, or that are not ours to look at, are left
/// out.
fn find_owners(
    sockets: &BTreeMap<u64, u16>,
    found: &mut BTreeMap<u16, Listener>,
) -> io::Result<()> {
    let mut left = MAX_FILES;
    for entry in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let dir = entry.path();
        let Ok(files) = fs::read_dir(dir.join("fd")) else {
            continue;
        };
        for file in files.filter_map(Result::ok) {
            left = left.saturating_sub(1);
            let link = fs::read_link(file.path()).unwrap_or_default();
            let port = socket(link.into_os_string()).and_then(|socket| sockets.get(&socket));
            let listener = port.and_then(|port| found.get_mut(port));
            // A parent and what it forked have it both: the first that is found is named.
            if let Some(listener) = listener.filter(|one| one.process.is_none()) {
                let read = |name| fs::read_to_string(dir.join(name)).unwrap_or_default();
                *listener = Listener {
                    process: Some(pid),
                    program: read("comm").trim_end().to_owned(),
                    groups: read("cgroup"),
                };
            }
        }
        if left == 0 || found.values().all(|one| one.process.is_some()) {
            break;
        }
    }
    Ok(())
}

/// The number of the socket that an open file is, if it is one: `socket:[4711]`.
fn socket(link: OsString) -> Option<u64> {
    let link = link.into_string().ok()?;
    link.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn listener_is_named_with_its_process() {
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        let found = listeners(&BTreeSet::from([port])).unwrap();
        let listener = &found[&port];
        assert_eq!(listener.process, Some(std::process::id()));
        assert!(!listener.program.is_empty());
        drop(held);
        assert!(listeners(&BTreeSet::from([port])).unwrap().is_empty());
    }

    #[test]
    fn lines_of_others_are_left_out() {
        let line = |state| {
            format!(
                "   1: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x"
            )
        };
        assert_eq!(listening(&line("0A")), Some((4711, 8080)));
        assert_eq!(listening(&line("01")), None);
        for strange in [
            "",
            "sl local_address",
            "1: x 0A",
            "1: 7F:1F90 0:0 0A 0 0 0 0 0 x",
        ] {
            assert_eq!(listening(strange), None, "{strange}");
        }
    }
}
