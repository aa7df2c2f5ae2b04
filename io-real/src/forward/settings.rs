//! Whose logs go where.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::post::PostBox;

/// Somewhere that logs are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardSettings {
    /// Its name: letters, digits, `-` and `_`.
    pub name: String,
    /// Whose jobs' logs, by patterns of their ids; all if none.
    pub jobs: Vec<String>,
    /// What is said with each line besides whose it is.
    pub labels: BTreeMap<String, String>,
    /// Where, and how.
    pub to: Destination,
}

/// Where logs go, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// RFC 5424.
    Syslog(Address, u8),
    /// The journal's own protocol, at this socket.
    Journald(PathBuf),
    /// OTLP over HTTP, as JSON.
    Otlp(PostBox),
    /// Loki's API, as JSON.
    Loki(PostBox),
}

/// Where a syslog daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A datagram socket of this machine.
    Unix(PathBuf),
    /// `HOST:PORT`, a datagram for each line.
    Udp(String),
    /// `HOST:PORT`, a length before each line.
    Tcp(String),
}

/// The facilities of syslog, by their numbers.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

/// The number of a facility of syslog.
///
/// # Errors
/// There is none of this name; the known names.
pub fn facility(name: &str) -> Result<u8, &'static [&'static str]> {
    let at = FACILITIES.iter().position(|known| *known == name);
    at.and_then(|at| u8::try_from(at).ok()).ok_or(&FACILITIES)
}

impl Address {
    /// Reads `unix:///dev/log`, `udp://HOST:PORT` or `tcp://HOST:PORT`.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<Address, String> {
        let host = |rest: &str| {
            let port = rest
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            match port {
                Some(port) if port > 0 && !rest.contains(['/', '@']) => Ok(rest.to_owned()),
                Some(_) | None => Err(format!("{rest:?} is not HOST:PORT")),
            }
        };
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Address::Unix(path.into())),
            Some(("udp", rest)) => host(rest).map(Address::Udp),
            Some(("tcp", rest)) => host(rest).map(Address::Tcp),
            Some(_) | None => {
                Err("an address is unix:///PATH, udp://HOST:PORT or tcp://HOST:PORT".to_owned())
            }
        }
    }
}
