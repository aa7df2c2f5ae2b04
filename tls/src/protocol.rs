//! Versions and cipher suites, by the names that Nomad's settings have.

use rustls::crypto::ring;
use rustls::crypto::{CryptoProvider, ring::cipher_suite};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// Versions by name: whether ours begin there. What is older is never spoken.
const VERSIONS: [(&str, bool); 4] = [
    ("tls10", false),
    ("tls11", false),
    ("tls12", true),
    ("tls13", true),
];

/// The suites of TLS 1.2 that are spoken.
const SUITES: [(&str, SupportedCipherSuite); 6] = [
    (
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
        cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
];

/// Suites that Nomad knows and that are too weak to be spoken here.
const WEAK: [&str; 8] = [
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
];

/// Which versions and suites are spoken. The default is TLS 1.2 and 1.3 with all suites.
#[derive(Clone, Debug, Default)]
pub struct Protocol {
    only_tls13: bool,
    /// Of TLS 1.2; all if none.
    suites: Option<Vec<SupportedCipherSuite>>,
}

impl Protocol {
    /// By the settings `tls_min_version` (`tls12`) and `tls_cipher_suites` (names with commas between them). Suites
    /// are chosen for TLS 1.2 alone; those of 1.3 are all good.
    ///
    /// # Errors
    /// One of them names nothing that is known, or leaves nothing that can be spoken.
    pub fn new(min_version: Option<&str>, suites: Option<&str>) -> Result<Protocol, String> {
        let min_version = min_version.filter(|it| !it.is_empty()).unwrap_or("tls12");
        if !VERSIONS.iter().any(|(name, _)| *name == min_version) {
            let known = VERSIONS.map(|(name, _)| name).join(", ");
            return Err(format!(
                "tls_min_version: unknown version {min_version:?}; known are {known}"
            ));
        }
        let named = suites.filter(|names| !names.trim().is_empty());
        Ok(Protocol {
            only_tls13: min_version == "tls13",
            suites: named.map(chosen).transpose()?,
        })
    }

    /// Whether a version is older than all that are spoken: as the least one it has no effect.
    pub fn is_older(version: &str) -> bool {
        VERSIONS.contains(&(version, false))
    }

    /// What rustls is to do it with.
    pub(crate) fn provider(&self) -> CryptoProvider {
        provider(self.suites.as_deref())
    }

    pub(crate) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match self.only_tls13 {
            true => &BOTH[..1],
            false => &BOTH,
        }
    }
}

/// The suites with these names.
fn chosen(names: &str) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut chosen = Vec::new();
    for name in names.split(',').map(str::trim) {
        match SUITES.iter().find(|(known, _)| *known == name) {
            Some((_, suite)) => chosen.push(*suite),
            None if WEAK.contains(&name) => {}
            None => {
                let known = SUITES.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "tls_cipher_suites: unknown suite {name:?}; known are {known}"
                ));
            }
        }
    }
    match chosen.is_empty() {
        false => Ok(chosen),
        true => Err(format!(
            "tls_cipher_suites: all of them are too weak; spoken are {}",
            SUITES.map(|(name, _)| name).join(", ")
        )),
    }
}

/// ring, with these suites of TLS 1.2.
pub(crate) fn provider(suites: Option<&[SupportedCipherSuite]>) -> CryptoProvider {
    let mut provider = ring::default_provider();
    if let Some(suites) = suites {
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || suites.contains(suite));
    }
    provider
}
