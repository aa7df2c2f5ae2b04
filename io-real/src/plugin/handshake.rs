//! The one line with which a plugin says where it listens:
//! `core version | protocol version | network | address | transport | certificate`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A line is never longer; with a certificate it has about two thousand bytes.
pub const MAX_LINE: usize = 8192;

/// The version of plugins' own protocol that is spoken.
pub const PROTOCOL: &str = "2";

/// The version of the line itself.
const CORE: &str = "1";

/// A socket's path has no room for more.
const MAX_PATH: usize = 107;

/// Where a plugin listens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Address {
    /// At a socket in the file system.
    Unix(PathBuf),
    /// At a port of this machine.
    Tcp(SocketAddr),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// It has more than [`MAX_LINE`] bytes.
    TooLong,
    /// It is no such line at all: what it is instead.
    Garbage(String),
    /// The line's own version is another.
    CoreVersion(String),
    /// The plugin speaks another version of the protocol.
    Protocol(String),
    /// It listens in a way that is not known.
    Network(String),
    /// Nobody can listen there, or it is not on this machine.
    Address(String),
    /// It does not speak gRPC; nothing said means `netrpc`.
    Transport(String),
    /// It wants to encrypt, which nobody asked for.
    Encrypted,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "its first line has more than {MAX_LINE} bytes"),
            Self::Garbage(line) => write!(
                f,
                "its first line is no handshake but {line:?}: is it a plugin?"
            ),
            Self::CoreVersion(version) => write!(
                f,
                "its handshake has version {version:?}, known is {CORE:?}: it was built with \
                 another plugin library"
            ),
            Self::Protocol(version) => write!(
                f,
                "it speaks version {version:?} of the plugin protocol, known is {PROTOCOL:?}"
            ),
            Self::Network(network) => write!(f, "it listens on an unknown network {network:?}"),
            Self::Address(address) => write!(f, "it cannot be reached at {address:?}"),
            Self::Transport(transport) => {
                write!(f, "it speaks {transport:?}, and only grpc is supported")
            }
            Self::Encrypted => f.write_str("it requires TLS, which was not offered"),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Reads the line, with or without its end.
///
/// # Errors
/// See [`HandshakeError`].
pub fn parse(line: &[u8]) -> Result<Address, HandshakeError> {
    if line.len() > MAX_LINE {
        return Err(HandshakeError::TooLong);
    }
    let garbage = || HandshakeError::Garbage(excerpt(line));
    let text = std::str::from_utf8(line).map_err(|_| garbage())?.trim();
    let mut fields = text.split('|').map(str::trim);
    let mut field = || fields.next();
    let (Some(core), Some(protocol), Some(network), Some(address)) =
        (field(), field(), field(), field())
    else {
        return Err(garbage());
    };
    let transport = field().filter(|transport| !transport.is_empty());
    // Shorter ones are no certificates: some libraries put other things there.
    let encrypted = field().is_some_and(|certificate| certificate.len() > 50);
    if core.parse::<u32>().is_err() {
        return Err(garbage());
    }
    if core != CORE {
        return Err(HandshakeError::CoreVersion(excerpt(core.as_bytes())));
    }
    if protocol != PROTOCOL {
        return Err(HandshakeError::Protocol(excerpt(protocol.as_bytes())));
    }
    let address = parse_address(network, address)?;
    match transport {
        Some("grpc") if encrypted => Err(HandshakeError::Encrypted),
        Some("grpc") => Ok(address),
        other => {
            let other = other.unwrap_or("netrpc");
            Err(HandshakeError::Transport(excerpt(other.as_bytes())))
        }
    }
}

fn parse_address(network: &str, address: &str) -> Result<Address, HandshakeError> {
    let wrong = || HandshakeError::Address(excerpt(address.as_bytes()));
    match network {
        "unix" => {
            let fits = address.starts_with('/') && address.len() <= MAX_PATH;
            let plain = !address.contains('\0');
            (fits && plain)
                .then(|| Address::Unix(PathBuf::from(address)))
                .ok_or_else(wrong)
        }
        "tcp" => {
            let address: SocketAddr = address.parse().map_err(|_| wrong())?;
            let near = address.ip().is_loopback() && address.port() != 0;
            near.then_some(Address::Tcp(address)).ok_or_else(wrong)
        }
        other => Err(HandshakeError::Network(excerpt(other.as_bytes()))),
    }
}

/// So much of it as people want to see.
fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim().chars().take(80).collect()
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
