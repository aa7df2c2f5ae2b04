//! The files by which tasks resolve names: their own name and address, and which servers they ask.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use drover_core::model::network::{Dns, is_hostname, is_server, is_word};
use rustix::fs::{Mode, OFlags, openat, renameat};
use rustix::io::Errno;

/// Names and addresses that are known without asking.
pub(crate) const HOSTS: &str = "hosts";
/// Whom to ask.
pub(crate) const RESOLV: &str = "resolv.conf";

/// Whether what a job says can stand in them, now that its references are replaced.
pub(super) fn check(hostname: &str, dns: Option<&Dns>) -> io::Result<()> {
    let wrong = |what: &str, text: &str| {
        let why = format!("network: {text:?} is no {what}");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    };
    if !hostname.is_empty() && !is_hostname(hostname) {
        return wrong("host name", hostname);
    }
    let dns = dns.cloned().unwrap_or_default();
    for text in &dns.servers {
        if !is_server(text) {
            return wrong("address of a name server", text);
        }
    }
    for text in dns.searches.iter().chain(&dns.options) {
        if !is_word(text) {
            return wrong("domain or option of a resolver", text);
        }
    }
    Ok(())
}

/// Text for `/etc/hosts`.
pub(super) fn hosts(hostname: &str, address: Option<IpAddr>) -> String {
    let mut text = String::from(
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\n\
         ff02::2 ip6-allrouters\n",
    );
    let address = address.map_or_else(|| "127.0.1.1".to_owned(), |address| address.to_string());
    if !hostname.is_empty() {
        text.push_str(&format!("{address} {hostname}\n"));
    }
    text
}

/// Text for `/etc/resolv.conf`; `host` is the host's, whose servers are asked unless others are given.
pub(super) fn resolv(dns: &Dns, host: &str) -> String {
    let mut text = String::new();
    if !dns.searches.is_empty() {
        text.push_str(&format!("search {}\n", dns.searches.join(" ")));
    }
    let given: Vec<&str> = match dns.servers.is_empty() {
        true => servers(host).collect(),
        false => dns.servers.iter().map(String::as_str).collect(),
    };
    for server in given {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if !dns.options.is_empty() {
        text.push_str(&format!("options {}\n", dns.options.join(" ")));
    }
    text
}

/// Where systemd's resolver says which servers it asks.
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";

/// The host's `/etc/resolv.conf`, and whether tasks behind the bridge need a copy of it because it is not what they see.
/// One that leads to a resolver on the host's loopback is of no use to them: that one's own servers are asked then, if it
/// tells them.
pub(super) fn resolv_of_host(behind_bridge: bool) -> (String, bool) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let usual = read("/etc/resolv.conf");
    if behind_bridge && !servers(&usual).any(is_elsewhere) {
        let asked = read(RESOLVED);
        if servers(&asked).any(is_elsewhere) {
            return (asked, true);
        }
    }
    (usual, false)
}

/// The same text for tasks that ask this server first, and those of the host when it does not answer.
pub(super) fn asking_first(server: IpAddr, host: &str) -> String {
    let mut text = format!("nameserver {server}\n");
    for line in host.lines() {
        // What the host asks on its loopback nobody else reaches.
        if !servers(line).any(|server| !is_elsewhere(server)) {
            text.push_str(&in_turn(line));
            text.push('\n');
        }
    }
    text
}

/// A line without the option that servers take turns: the first one is asked first. Resolvers take whatever begins with
/// it for it.
fn in_turn(line: &str) -> Cow<'_, str> {
    let rotates = |word: &&str| word.starts_with("rotate");
    let words = || line.split_whitespace();
    match words().next() == Some("options") && words().any(|word| rotates(&word)) {
        true => words()
            .filter(|word| !rotates(word))
            .collect::<Vec<_>>()
            .join(" ")
            .into(),
        false => line.into(),
    }
}

/// The servers that the host asks, as the agent asks them too.
pub(super) fn servers_of_host() -> Vec<IpAddr> {
    let (text, _) = resolv_of_host(true);
    let servers = servers(&text).filter_map(|server| server.parse().ok());
    servers.collect()
}

fn servers(resolv: &str) -> impl Iterator<Item = &str> {
    let words = resolv.lines().map(str::split_whitespace);
    words.filter_map(|mut words| {
        words.next().filter(|word| *word == "nameserver")?;
        words.next()
    })
}

/// Whether a server is reached from a network of its own.
fn is_elsewhere(server: &str) -> bool {
    let address: Option<IpAddr> = server.split('%').next().and_then(|it| it.parse().ok());
    address.is_some_and(|address| !address.is_loopback())
}

/// Writes a file of a directory, whole.
pub(super) fn write(dir: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let new = format!("{name}.new");
    let flags =
        OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, new.as_str(), flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(text.as_bytes())?;
    renameat(dir, new.as_str(), dir, name)?;
    Ok(())
}

/// Reads a small file of a directory, if it is there.
pub(super) fn read(dir: BorrowedFd<'_>, name: &str) -> io::Result<Option<String>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        file => File::from(file?),
    };
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_values_never_reach_a_file() {
        let dns = |servers: &str, searches: &str| {
            let words = |text: &str| vec![text.to_owned()];
            Dns {
                servers: words(servers),
                searches: words(searches),
                options: vec!["ndots:2".to_owned()],
            }
        };
        assert!(check("web", Some(&dns("1.1.1.1", "a.example"))).is_ok());
        assert!(check("web\n6.6.6.6 bank", None).is_err());
        assert!(check("web", Some(&dns("1.1.1.1\nnameserver 6.6.6.6", "a"))).is_err());
        assert!(check("web", Some(&dns("1.1.1.1", "a\noptions x"))).is_err());
        let text = resolv(&dns("1.1.1.1", "a.example"), "nameserver 10.0.0.1");
        assert_eq!(
            text,
            "search a.example\nnameserver 1.1.1.1\noptions ndots:2\n"
        );
        let address = "10.0.0.1".parse().ok();
        assert!(hosts("web", address).ends_with("10.0.0.1 web\n"));
    }

    #[test]
    fn servers_of_host_are_asked_unless_others_are_given() {
        let searches = Dns {
            searches: vec!["a.example".to_owned()],
            ..Dns::default()
        };
        let host =
            "# nameserver 10.0.0.9\nnameserver 10.0.0.1\noptions edns0\nnameserver 10.0.0.2 # x\n";
        let text = resolv(&searches, host);
        assert_eq!(
            text,
            "search a.example\nnameserver 10.0.0.1\nnameserver 10.0.0.2\n"
        );
    }

    #[test]
    fn resolver_of_bridge_is_asked_before_servers_of_host() {
        let host = "search a.example\nnameserver 127.0.0.1\nnameserver 10.0.0.1\noptions edns0\n";
        let text = asking_first(IpAddr::from([172, 26, 64, 1]), host);
        let expected =
            "nameserver 172.26.64.1\nsearch a.example\nnameserver 10.0.0.1\noptions edns0\n";
        assert_eq!(text, expected);
        let searches = Dns {
            searches: vec!["b.example".to_owned()],
            ..Dns::default()
        };
        let both = "search b.example\nnameserver 172.26.64.1\nnameserver 10.0.0.1\n";
        assert_eq!(resolv(&searches, &text), both);
        // Servers that take turns would be asked for names that they do not have.
        let turns = asking_first(
            IpAddr::from([172, 26, 64, 1]),
            "search rotate.example\noptions edns0 rotate\tndots:2\noptions rotate\nnameserver 10.0.0.1\n",
        );
        let expected = "nameserver 172.26.64.1\nsearch rotate.example\noptions edns0 ndots:2\noptions\n\
                        nameserver 10.0.0.1\n";
        assert_eq!(turns, expected);
        let given = Dns {
            servers: vec!["10.0.0.9".to_owned()],
            ..Dns::default()
        };
        assert_eq!(resolv(&given, &text), "nameserver 10.0.0.9\n");
    }

    #[test]
    fn servers_on_loopback_are_not_reached_from_elsewhere() {
        for (server, expected) in [
            ("127.0.0.53", false),
            ("::1", false),
            ("10.0.0.1", true),
            ("fe80::1%eth0", true),
            ("name", false),
        ] {
            assert_eq!(is_elsewhere(server), expected, "{server}");
        }
    }
}
