//! The block `tls`: what is encrypted, and with which certificates.
//!
//! ```hcl
//! tls {
//!   http = true                       # the agent's own API
//!   rpc  = true                       # to the servers of the cluster
//!   ca_file   = "/etc/drover/ca.pem"
//!   cert_file = "/etc/drover/client.pem"
//!   key_file  = "/etc/drover/client-key.pem"
//!   verify_server_hostname = true     # servers are named server.REGION.nomad
//!   verify_https_client    = true     # whoever uses the API needs a certificate
//!   tls_min_version   = "tls12"
//!   tls_cipher_suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
//! }
//! ```
//!
//! The files are read when the agent starts and at `SIGHUP`, not here.

use std::path::PathBuf;

use drover_tls::Protocol;
use hcl_edit::structure::Block;

use super::literal::fields;
use super::unknown;

/// Settings of Nomad's block that have no effect here: they are about servers, or of no importance.
const WITHOUT_EFFECT: &[&str] = &["rpc_upgrade_mode", "tls_prefer_server_cipher_suites"];

/// What the block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Whether the API speaks TLS.
    pub http: bool,
    /// Whether servers are spoken to over TLS.
    pub rpc: bool,
    /// The authorities that are believed.
    pub ca_file: Option<PathBuf>,
    /// The agent's certificate, with its chain.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
    /// Whether a server must have the name of one in this region.
    pub verify_server_hostname: bool,
    /// Whether users of the API must have a certificate.
    pub verify_https_client: bool,
    /// The least version.
    pub min_version: Option<String>,
    /// The suites of TLS 1.2, with commas between them.
    pub cipher_suites: Option<String>,
    /// What is given and has no effect here.
    pub(super) ignored: Vec<String>,
}

impl TlsConfig {
    /// Which versions and suites are spoken.
    ///
    /// # Errors
    /// One is not known.
    pub fn protocol(&self) -> Result<Protocol, String> {
        Protocol::new(self.min_version.as_deref(), self.cipher_suites.as_deref())
    }

    /// What must be there for what is switched on.
    fn check(&self) -> Result<(), String> {
        let missing = |what: &str, why: &str| Err(format!("{what} is missing: {why}"));
        if self.rpc && self.ca_file.is_none() {
            return missing(
                "ca_file",
                "rpc = true, and it says which servers are believed",
            );
        }
        if self.cert_file.is_some() != self.key_file.is_some() {
            return Err("cert_file and key_file belong together, and one is missing".to_owned());
        }
        if self.http && self.cert_file.is_none() {
            let why = "http = true, and the API needs a certificate (cert_file, key_file)";
            return missing("cert_file", why);
        }
        if self.http && self.verify_https_client && self.ca_file.is_none() {
            let why = "verify_https_client = true, and it says which clients are believed";
            return missing("ca_file", why);
        }
        self.protocol().map(|_| ())
    }
}

/// Reads the block.
pub(super) fn tls(block: &Block) -> Result<TlsConfig, String> {
    let mut given = fields(&block.body)?;
    let mut path = |name| Ok::<_, String>(given.text(name)?.filter(|it| !it.is_empty()));
    let [ca_file, cert_file, key_file] = [path("ca_file")?, path("cert_file")?, path("key_file")?];
    let mut flag = |name| Ok::<_, String>(given.flag(name)?.unwrap_or(false));
    let mut config = TlsConfig {
        http: flag("http")?,
        rpc: flag("rpc")?,
        verify_server_hostname: flag("verify_server_hostname")?,
        verify_https_client: flag("verify_https_client")?,
        ca_file: ca_file.map(PathBuf::from),
        cert_file: cert_file.map(PathBuf::from),
        key_file: key_file.map(PathBuf::from),
        min_version: given.text("tls_min_version")?,
        cipher_suites: given.text("tls_cipher_suites")?,
        ignored: Vec::new(),
    };
    let mut ignored = given.ignore(WITHOUT_EFFECT);
    given.nothing_else("tls")?;
    if let Some(inner) = block.body.blocks().next() {
        return Err(format!(
            "tls: {}",
            unknown("block", inner.ident.as_str(), &[])
        ));
    }
    config.check().map_err(|why| format!("tls: {why}"))?;
    let older = (config.min_version.as_deref()).is_some_and(Protocol::is_older);
    if older {
        ignored.push("tls_min_version".to_owned());
    }
    config.ignored = match config.http || config.rpc {
        true => ignored.iter().map(|name| format!("tls.{name}")).collect(),
        false => vec!["tls".to_owned()],
    };
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::parse;

    const FILES: &str = "ca_file = \"ca\"\n cert_file = \"cert\"\n key_file = \"key\"";

    #[test]
    fn block_is_read_as_in_nomad() {
        let text = format!(
            "tls {{\n http = true\n rpc = true\n {FILES}\n verify_server_hostname = true\n \
             verify_https_client = true\n tls_min_version = \"tls13\"\n rpc_upgrade_mode = true\n}}"
        );
        let config = parse(&text).unwrap();
        let tls = &config.tls;
        assert!(tls.http && tls.rpc && tls.verify_server_hostname && tls.verify_https_client);
        assert_eq!(tls.ca_file.as_deref(), Some(Path::new("ca")));
        assert_eq!(tls.key_file.as_deref(), Some(Path::new("key")));
        assert_eq!(config.ignored, ["tls.rpc_upgrade_mode"]);
        let old = format!("tls {{\n rpc = true\n {FILES}\n tls_min_version = \"tls10\"\n}}");
        assert_eq!(parse(&old).unwrap().ignored, ["tls.tls_min_version"]);
        assert_eq!(
            parse("tls {\n ca_file = \"ca\"\n}").unwrap().ignored,
            ["tls"]
        );
    }

    #[test]
    fn setting_that_would_leave_something_open_is_refused() {
        for (settings, words) in [
            ("rpc = true", "ca_file is missing"),
            ("http = true", "cert_file is missing"),
            (
                "rpc = true\n ca_file = \"a\"\n cert_file = \"b\"",
                "belong together",
            ),
            (
                "http = true\n verify_https_client = true\n cert_file = \"b\"\n key_file = \"c\"",
                "which clients are believed",
            ),
            (
                "verify_https_clients = true",
                "did you mean verify_https_client?",
            ),
            ("tls_min_version = \"ssl3\"", "unknown version"),
            ("tls_cipher_suites = \"TLS_NULL\"", "unknown suite"),
            ("http = \"yes\"", "true or false is needed"),
        ] {
            let why = parse(&format!("tls {{\n {settings}\n}}")).unwrap_err();
            assert!(why.starts_with("tls: ") || why.starts_with("http"), "{why}");
            assert!(why.contains(words), "{settings}: {why}");
        }
    }
}
