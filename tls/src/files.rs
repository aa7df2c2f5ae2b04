//! Certificates and keys from files in PEM.

use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::error::SettingsError;
use crate::protocol::provider;

/// The most bytes of a file; the authorities that a system trusts take a quarter of it.
const MAX_BYTES: u64 = 1 << 20;

/// The most certificates of a file of authorities.
const MAX_AUTHORITIES: usize = 1024;

/// The most certificates of a chain.
const MAX_CHAIN: usize = 16;

/// Where systems keep the authorities that they trust.
const MACHINE: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The authorities that are believed.
#[derive(Clone)]
pub struct Authorities(pub(crate) Arc<RootCertStore>);

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authorities({})", self.0.len())
    }
}

impl Authorities {
    /// Those of a file.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn read(path: &Path) -> Result<Authorities, SettingsError> {
        Authorities::from_pem(&read(path)?).map_err(|what| SettingsError::new(path, what))
    }

    /// Those of several files.
    ///
    /// # Errors
    /// One cannot be read, or has none; or there are too many.
    pub fn read_all(paths: &[PathBuf]) -> Result<Authorities, SettingsError> {
        let mut store = RootCertStore::empty();
        for path in paths {
            store.roots.extend(Authorities::read(path)?.0.roots.clone());
            if store.len() > MAX_AUTHORITIES {
                let what = format!("with it there are more than {MAX_AUTHORITIES} certificates");
                return Err(SettingsError::new(path, what));
            }
        }
        Ok(Authorities(Arc::new(store)))
    }

    /// Those of a text.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn from_pem(pem: &[u8]) -> Result<Authorities, String> {
        let mut store = RootCertStore::empty();
        for certificate in certificates(pem, MAX_AUTHORITIES)? {
            let added = store.add(certificate);
            added.map_err(|error| format!("it has a certificate that is none: {error}"))?;
        }
        Ok(Authorities(Arc::new(store)))
    }

    /// Those that this machine trusts; those that browsers trust if it says nothing of that, as small images do.
    ///
    /// # Errors
    /// The machine's cannot be read.
    pub fn trusted() -> Result<Authorities, SettingsError> {
        let mut machine = MACHINE.iter().map(Path::new);
        match machine.find(|path| path.is_file()) {
            Some(file) => Authorities::of_machine(file),
            None => Ok(Authorities(Arc::new(RootCertStore {
                roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
            }))),
        }
    }

    /// Those that this machine trusts: of a file that holds some which nobody can use.
    ///
    /// # Errors
    /// It cannot be read, or has none.
    pub fn of_machine(path: &Path) -> Result<Authorities, SettingsError> {
        let pem = read(path)?;
        let all = certificates(&pem, MAX_AUTHORITIES);
        let all = all.map_err(|what| SettingsError::new(path, what))?;
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(all);
        Ok(Authorities(Arc::new(store)))
    }
}

/// A certificate with its chain and its key: who somebody is.
#[derive(Clone)]
pub struct Identity(pub(crate) Arc<CertifiedKey>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// That of two files.
    ///
    /// # Errors
    /// One cannot be read or has not what it should, or they do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Identity, SettingsError> {
        let chain = certificates(&read(certificate)?, MAX_CHAIN);
        let chain = chain.map_err(|what| SettingsError::new(certificate, what))?;
        let secret = private_key(&read(key)?).map_err(|what| SettingsError::new(key, what))?;
        Identity::new(chain, secret).map_err(|what| SettingsError::new(key, what))
    }

    /// That of two texts.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Identity, String> {
        Identity::new(certificates(certificate, MAX_CHAIN)?, private_key(key)?)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, String> {
        let certified = CertifiedKey::from_der(chain, key, &provider(None));
        match certified {
            Ok(certified) => Ok(Identity(Arc::new(certified))),
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err("it is not the key of the certificate".to_owned())
            }
            Err(rustls::Error::InvalidCertificate(error)) => {
                Err(format!("its certificate is none: {error}"))
            }
            // What the library says of a key does not quote it.
            Err(error) => Err(format!("it cannot be used: {error}")),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SettingsError> {
    let unreadable = |error: std::io::Error| SettingsError::new(path, error.to_string());
    let mut bytes = Vec::new();
    // A pipe would be waited for.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(SettingsError::new(path, "it is no file".to_owned()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        let what = format!("it has more than {MAX_BYTES} bytes");
        return Err(SettingsError::new(path, what));
    }
    Ok(bytes)
}

fn certificates(pem: &[u8], most: usize) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut all = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        all.push(certificate.map_err(|_| "its PEM is broken".to_owned())?);
        if all.len() > most {
            return Err(format!("it has more than {most} certificates"));
        }
    }
    match all.is_empty() {
        false => Ok(all),
        true => Err("there is no certificate in it (PEM, -----BEGIN CERTIFICATE-----)".to_owned()),
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    // An error would quote what it cannot read.
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| "there is no key in it that can be read (PEM, without a password)".to_owned())
}
