//! The block `acl`: whether users of the HTTP API need tokens, and for how long one may last.
//!
//! ```hcl
//! acl {
//!   enabled                  = true
//!   token_min_expiration_ttl = "1m"    # the shortest time that a token that expires may last
//!   token_max_expiration_ttl = "24h"   # the longest
//!   token_ttl                = "30s"   # how long what servers say of a token counts; as policy_ttl and role_ttl
//! }
//! ```
//!
//! Without the block the API is open where only this machine reaches it. Where others reach it, somebody has to decide
//! ([`AclConfig::decide`]).

use std::net::SocketAddr;
use std::time::Duration;

use hcl_edit::structure::Block;

use super::literal::{Fields, fields};
use super::unknown;

/// Settings of Nomad's block that have no effect here: there are no other regions.
const WITHOUT_EFFECT: &[&str] = &["replication_token"];

/// For how long a node of a cluster believes what servers said of tokens, roles and policies. They are asked for all of
/// that at once, so the shortest counts.
const OF_SERVERS: [&str; 3] = ["token_ttl", "policy_ttl", "role_ttl"];

/// What the block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclConfig {
    /// Whether tokens are needed, if somebody decided.
    pub enabled: Option<bool>,
    /// The shortest time for which a token that expires may last.
    pub min_expiration: Duration,
    /// The longest.
    pub max_expiration: Duration,
    /// How long what servers say of a token counts.
    pub servers_tokens_last: Duration,
    /// What is given and has no effect here.
    pub(super) ignored: Vec<String>,
}

impl Default for AclConfig {
    fn default() -> AclConfig {
        AclConfig {
            enabled: None,
            min_expiration: Duration::from_secs(60),
            max_expiration: Duration::from_secs(24 * 3600),
            servers_tokens_last: Duration::from_secs(30),
            ignored: Vec::new(),
        }
    }
}

impl AclConfig {
    /// Whether tokens are needed by those who come over the network, where the API listens at this address.
    ///
    /// # Errors
    /// Others than this machine reach it, and nobody decided what they need.
    pub fn decide(&self, addr: SocketAddr, wants_certificates: bool) -> Result<bool, String> {
        match self.enabled {
            Some(enabled) => Ok(enabled),
            None if addr.ip().to_canonical().is_loopback() || wants_certificates => Ok(false),
            None => Err(format!(
                "the HTTP API would listen on {addr}, which other machines may reach, and whoever reaches it may run \
                 programs here. Decide in the configuration file who may use it:\n  \
                 acl {{ enabled = true }}: whoever has a token;\n  \
                 tls {{ … }} with http = true and verify_https_client = true: whoever has a certificate;\n  \
                 acl {{ enabled = false }}: whoever reaches it.\n\
                 Or let it listen on 127.0.0.1 (-http, bind_addr)"
            )),
        }
    }
}

/// Reads the block.
pub(super) fn acl(block: &Block) -> Result<AclConfig, String> {
    let of_block = |why: String| format!("acl: {why}");
    let mut given = fields(&block.body).map_err(of_block)?;
    let unset = AclConfig::default();
    let of_servers = OF_SERVERS.map(|name| time(&mut given, name, unset.servers_tokens_last));
    let of_servers = of_servers.into_iter().collect::<Result<Vec<_>, _>>();
    let of_servers = of_servers.map_err(of_block)?.into_iter().min();
    let config = AclConfig {
        enabled: given.flag("enabled").map_err(of_block)?,
        min_expiration: time(&mut given, "token_min_expiration_ttl", unset.min_expiration)
            .map_err(of_block)?,
        max_expiration: time(&mut given, "token_max_expiration_ttl", unset.max_expiration)
            .map_err(of_block)?,
        servers_tokens_last: of_servers.unwrap_or(unset.servers_tokens_last),
        ignored: (given.ignore(WITHOUT_EFFECT).into_iter())
            .map(|name| format!("acl.{name}"))
            .collect(),
    };
    given.nothing_else("acl")?;
    if let Some(inner) = block.body.blocks().next() {
        return Err(of_block(unknown("block", inner.ident.as_str(), &[])));
    }
    if config.min_expiration > config.max_expiration {
        let words = "token_min_expiration_ttl is longer than token_max_expiration_ttl";
        return Err(of_block(words.to_owned()));
    }
    Ok(config)
}

fn time(given: &mut Fields, name: &'static str, unset: Duration) -> Result<Duration, String> {
    let Some(span) = given.span(name)? else {
        return Ok(unset);
    };
    match u64::try_from(span.0) {
        Ok(nanos) if nanos > 0 => Ok(Duration::from_nanos(nanos)),
        Ok(_) | Err(_) => Err(format!("{name}: a time above 0 is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn block_is_read_as_in_nomad() {
        let config = parse(
            "acl {\n enabled = true\n token_ttl = \"20s\"\n replication_token = \"x\"\n \
             token_min_expiration_ttl = \"5m\"\n token_max_expiration_ttl = \"48h\"\n}",
        );
        let config = config.unwrap();
        assert_eq!(config.acl.enabled, Some(true));
        assert_eq!(config.acl.min_expiration, Duration::from_secs(300));
        assert_eq!(config.acl.max_expiration, Duration::from_secs(48 * 3600));
        assert_eq!(config.acl.servers_tokens_last, Duration::from_secs(20));
        assert_eq!(config.ignored, ["acl.replication_token"]);
        assert_eq!(parse("").unwrap().acl, AclConfig::default());
        assert_eq!(parse("acl {}").unwrap().acl.enabled, None);
    }

    #[test]
    fn shortest_time_of_tokens_policies_and_roles_counts() {
        for (settings, seconds) in [
            ("token_ttl = \"10m\"", 30),
            ("policy_ttl = \"10m\"\n role_ttl = \"5m\"", 30),
            ("role_ttl = \"7s\"", 7),
            (
                "token_ttl = \"10m\"\n policy_ttl = \"5m\"\n role_ttl = \"1h\"",
                300,
            ),
        ] {
            let config = parse(&format!("acl {{\n {settings}\n}}")).unwrap();
            let lasts = config.acl.servers_tokens_last;
            assert_eq!(lasts, Duration::from_secs(seconds), "{settings}");
        }
    }

    #[test]
    fn mistake_in_the_block_is_refused_by_name() {
        for (settings, words) in [
            ("enabledd = true", "did you mean enabled?"),
            ("enabled = 1", "acl: enabled: true or false"),
            ("token_max_expiration_ttl = \"soon\"", "a duration such as"),
            ("token_max_expiration_ttl = \"1s\"", "is longer than"),
            ("token_min_expiration_ttl = \"0s\"", "above 0"),
            ("role {}", "unknown block"),
        ] {
            let why = parse(&format!("acl {{\n {settings}\n}}")).unwrap_err();
            assert!(why.contains(words), "{settings}: {why}");
        }
    }

    #[test]
    fn address_that_others_reach_needs_a_decision() {
        let decide = |enabled, addr: &str, certificates| {
            let config = AclConfig {
                enabled,
                ..AclConfig::default()
            };
            config.decide(addr.parse().unwrap(), certificates)
        };
        for local in ["127.0.0.1:4646", "[::1]:4646", "[::ffff:127.0.0.1]:4646"] {
            assert_eq!(decide(None, local, false), Ok(false), "{local}");
            assert_eq!(decide(Some(true), local, false), Ok(true), "{local}");
        }
        for wide in ["0.0.0.0:4646", "[::]:4646", "10.0.0.9:4646"] {
            let why = decide(None, wide, false).unwrap_err();
            for way in [
                wide,
                "enabled = true",
                "verify_https_client",
                "enabled = false",
            ] {
                assert!(why.contains(way), "{why}");
            }
            assert_eq!(decide(None, wide, true), Ok(false), "{wide}");
            assert_eq!(decide(Some(false), wide, false), Ok(false), "{wide}");
            assert_eq!(decide(Some(true), wide, true), Ok(true), "{wide}");
        }
    }
}
