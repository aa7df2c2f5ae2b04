//! TLS of commands to an agent: whom they believe and who they are, by Nomad's options and variables.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use drover_tls::client::{Believes, Secure};
use drover_tls::{Authorities, Identity, Protocol};

use super::exit_code::Failure;

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
        let name = self.server_name.as_deref().unwrap_or(host);
        let secure = Secure::new(name, believes, identity.as_ref(), &Protocol::default());
        secure.map_err(failure)
    }

    fn authorities(&self) -> Result<Authorities, Failure> {
        if let Some(file) = &self.ca_cert {
            return Authorities::read(file).map_err(failure);
        }
        if let Some(folder) = &self.ca_path {
            return of_folder(folder);
        }
        Authorities::trusted().map_err(failure)
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
