//! Authorities and certificates for tests, as a cluster has them.

#![allow(
    dead_code,
    clippy::expect_used,
    reason = "a test may panic, and uses a part"
)]

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Valid {
    Now,
    Once,
    Later,
}

/// Somebody who signs certificates.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate, in PEM.
    pub(crate) pem: String,
}

/// A certificate with its key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let (params, key) = Authority::params("Cluster CA");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        Authority { issuer, pem }
    }

    /// An authority whose certificate this one has signed.
    pub(crate) fn intermediate(&self) -> Authority {
        let (params, key) = Authority::params("Intermediate CA");
        let pem = params.signed_by(&key, &self.issuer).expect("signed").pem();
        let issuer = Issuer::new(params, key);
        Authority { issuer, pem }
    }

    fn params(name: &str) -> (CertificateParams, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params, key)
    }

    /// A certificate for these names, for both sides of a connection.
    pub(crate) fn sign(&self, names: &[&str]) -> Signed {
        self.sign_for(names, Valid::Now)
    }

    /// One of the member of a cluster with this role (`server.global`).
    pub(crate) fn member(&self, role: &str) -> Signed {
        self.sign(&[&format!("{role}.nomad"), "localhost", "127.0.0.1"])
    }

    pub(crate) fn sign_for(&self, names: &[&str], valid: Valid) -> Signed {
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let common = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        (params.not_before, params.not_after) = match valid {
            Valid::Now => (date_time_ymd(2020, 1, 1), date_time_ymd(2120, 1, 1)),
            Valid::Once => (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1)),
            Valid::Later => (date_time_ymd(2119, 1, 1), date_time_ymd(2120, 1, 1)),
        };
        let certificate = params.signed_by(&key, &self.issuer).expect("signed").pem();
        let key = key.serialize_pem();
        Signed { certificate, key }
    }
}
