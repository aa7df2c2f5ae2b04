//! TLS of commands to an agent: whom they believe and who they are, by Nomad's options and variables.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_tls::client::{self, Believes, server_name};
use drover_tls::{Authorities, Identity, Protocol};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::exit_code::Failure;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Where systems keep the authorities that they trust.
const MACHINE: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What options and environment say.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsOptions {
    /// A file of authorities.
    pub(super) ca_cert: Option<PathBuf>,
    /// A directory of such files.
    pub(super) ca_path: Option<PathBuf>,
    /// The command's own certificate, and its key.
    pub(super) client_cert: Option<PathBuf>,
    pub(super) client_key: Option<PathBuf>,
    /// The name that the agent's certificate must have; the address's host if none.
    pub(super) server_name: Option<String>,
    /// Whether any certificate will do.
    pub(super) skip_verify: bool,
}

/// How an agent is spoken to over TLS.
#[derive(Clone, Debug)]
pub(super) struct Secure {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl TlsOptions {
    /// For the agent at this host.
    ///
    /// # Errors
    /// A file cannot be used, or the host has no name that a certificate could have.
    pub(super) fn secure(&self, host: &str) -> Result<Secure, Failure> {
        let believes = match self.skip_verify {
            true => Believes::Anybody,
            false => Believes::Named(self.authorities()?),
        };
        let identity = match (&self.client_cert, &self.client_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(Identity::read(certificate, key).map_err(failure)?)
            }
            (Some(_), None) | (None, Some(_)) => {
                let words = "-client-cert and -client-key belong together, and one is missing";
                return Err(Failure::new(words));
            }
        };
        let config = client::config(believes, identity.as_ref(), &Protocol::default());
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.server_name.as_deref().unwrap_or(bare);
        Ok(Secure {
            name: server_name(name).map_err(failure)?,
            config: config.map_err(failure)?,
        })
    }

    fn authorities(&self) -> Result<Authorities, Failure> {
        if let Some(file) = &self.ca_cert {
            return Authorities::read(file).map_err(failure);
        }
        if let Some(folder) = &self.ca_path {
            return of_folder(folder);
        }
        let mut machine = MACHINE.iter().map(Path::new);
        match machine.find(|path| path.is_file()) {
            Some(file) => Authorities::of_machine(file).map_err(failure),
            None => Err(Failure::new(
                "this machine trusts no authority: name one with -ca-cert",
            )),
        }
    }
}

fn failure(error: impl Display) -> Failure {
    Failure::new(error.to_string())
}

/// The authorities of all files of a directory.
fn of_folder(folder: &Path) -> Result<Authorities, Failure> {
    let failed = |error| Failure::new(format!("cannot read {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Authorities::read_all(&files).map_err(failure)
}

/// A network whose connections are encrypted.
#[derive(Debug)]
pub(super) struct Encrypted {
    pub(super) network: Arc<dyn Connect>,
    pub(super) secure: Secure,
}

impl Connect for Encrypted {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let plain = self.network.connect(authority).await?;
            let Secure { name, config } = self.secure.clone();
            let stream = client::connect(plain, name, config, HANDSHAKE).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
