//! The files by which tasks resolve names: their own name and address, and which servers they ask.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;

use drover_core::model::network::{Dns, Ipv4, is_hostname, is_server, is_word};
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
pub(super) fn hosts(hostname: &str, address: Option<Ipv4>) -> String {
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

/// Text for `/etc/resolv.conf`.
pub(super) fn resolv(dns: &Dns) -> String {
    let mut text = String::new();
    if !dns.searches.is_empty() {
        text.push_str(&format!("search {}\n", dns.searches.join(" ")));
    }
    for server in &dns.servers {
        text.push_str(&format!("nameserver {server}\n"));
    }
    if !dns.options.is_empty() {
        text.push_str(&format!("options {}\n", dns.options.join(" ")));
    }
    text
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
        let text = resolv(&dns("1.1.1.1", "a.example"));
        assert_eq!(
            text,
            "search a.example\nnameserver 1.1.1.1\noptions ndots:2\n"
        );
        assert!(hosts("web", Some(Ipv4(0x0a00_0001))).ends_with("10.0.0.1 web\n"));
    }
}
