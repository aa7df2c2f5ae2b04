//! Where an agent is: at an address of the network, or behind a socket of this machine.

use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use drover_io_real::connect::{Connect, Connecting, Connection, Encrypted};
use drover_io_real::http_client;
use drover_tls::client::Secure;
use rustix::fs::{Mode, OFlags, open};
use tokio::net::UnixStream;

use super::exit_code::Failure;
use super::secure::TlsOptions;

/// What an address of a socket begins with.
const SOCKET: &str = "unix://";
/// The host of requests over a socket, which agents know as their own.
const OWN_HOST: &str = "localhost";

/// Where an agent is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// At `host:port`.
    Network {
        authority: String,
        /// How it is spoken to with https.
        secure: Option<Secure>,
    },
    /// Behind this socket, which only who may open it can use.
    Socket(PathBuf),
}

impl Place {
    /// What an address means: `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT` or `unix:///PATH`.
    ///
    /// # Errors
    /// It means nothing, or what TLS needs cannot be read.
    pub(super) fn of(address: &str, tls: &TlsOptions) -> Result<Place, Failure> {
        if let Some(path) = address.strip_prefix(SOCKET) {
            let path = PathBuf::from(path);
            let words = format!("{address}: a socket is unix:// and a path from the root on");
            return match path.is_absolute() {
                true => Ok(Place::Socket(path)),
                false => Err(Failure::new(words)),
            };
        }
        let (authority, secure) = authority(address)?;
        let host = authority
            .rsplit_once(':')
            .map_or(&*authority, |(host, _)| host);
        let secure = secure.then(|| tls.secure(host)).transpose()?;
        Ok(Place::Network { authority, secure })
    }

    /// The address, for people and for other commands.
    pub(super) fn url(&self) -> String {
        match self {
            Place::Network { authority, secure } => {
                let scheme = if secure.is_some() { "https" } else { "http" };
                format!("{scheme}://{authority}")
            }
            Place::Socket(path) => format!("{SOCKET}{}", path.display()),
        }
    }

    /// The host that requests name.
    pub(super) fn authority(&self) -> &str {
        match self {
            Place::Network { authority, .. } => authority,
            Place::Socket(_) => OWN_HOST,
        }
    }

    /// What connects to it.
    pub(super) fn way(&self, network: &Arc<dyn Connect>) -> Arc<dyn Connect> {
        let network = network.clone();
        match self {
            Place::Network { secure: None, .. } => network,
            Place::Network {
                secure: Some(secure),
                ..
            } => Arc::new(Encrypted {
                network,
                secure: secure.clone(),
            }),
            Place::Socket(path) => Arc::new(Socket(path.clone())),
        }
    }
}

/// Connects to a socket of this machine, whatever host is asked for.
#[derive(Debug)]
struct Socket(PathBuf);

impl Connect for Socket {
    fn connect<'a>(&'a self, _authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let (Some(dir), Some(name)) = (self.0.parent(), self.0.file_name()) else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            // A path of a socket has about a hundred bytes at most, and one of a directory does not.
            let dir = open(
                dir,
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
            let stream = UnixStream::connect(path).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// The host and port of an address, which may have no scheme, and whether it is encrypted.
fn authority(address: &str) -> Result<(String, bool), Failure> {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let secure = match scheme {
        "http" => false,
        "https" => true,
        other => {
            return Err(Failure::new(format!(
                "{address}: an agent speaks http and https, or is behind a socket (unix), not {other}"
            )));
        }
    };
    let unusable = || Failure::new(format!("{address}: an address is {scheme}://HOST:PORT"));
    let found = http_client::authority_of(scheme, &format!("{scheme}://{rest}"));
    Ok((found.ok_or_else(unusable)?, secure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_address_is_refused() {
        for (address, host, secure) in [
            ("http://127.0.0.1:4646/", "127.0.0.1:4646", false),
            ("localhost:4646", "localhost:4646", false),
            ("http://[::1]:4646", "[::1]:4646", false),
            ("http://box", "box:80", false),
            ("https://box:4646", "box:4646", true),
            ("https://box", "box:443", true),
        ] {
            assert_eq!(authority(address), Ok((host.to_owned(), secure)));
        }
        assert!(authority("ftp://box").is_err_and(|e| e.message.contains("http and https")));
        assert!(authority("http://").is_err());
        assert!(authority("http://a@b").is_err());
    }

    #[test]
    fn socket_is_named_by_its_path() {
        let of = |address| Place::of(address, &TlsOptions::default());
        let socket = of("unix:///run/drover/api.sock").unwrap();
        assert_eq!(socket.url(), "unix:///run/drover/api.sock");
        assert_eq!(socket.authority(), "localhost");
        let relative = of("unix://api.sock");
        assert!(relative.is_err_and(|why| why.message.contains("from the root")));
    }
}
