//! The block `limits`: how much one client address may have of the HTTP API.
//!
//! ```hcl
//! limits {
//!   http_max_conns_per_client = 512     # open connections of one address; 0: as many as there are
//! }
//! ```

use hcl_edit::structure::Block;

use super::literal::fields;

/// Settings of Nomad's block that have no effect here: they are about servers, or not to be chosen.
const WITHOUT_EFFECT: &[&str] = &[
    "https_handshake_timeout",
    "rpc_handshake_timeout",
    "rpc_max_conns_per_client",
];

/// More than any process may have open.
const MOST: u64 = 1 << 20;

/// How many connections one client address may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionsPerClient {
    /// So many.
    AtMost(usize),
    /// As many as there are for all together.
    All,
}

/// What the block says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitsConfig {
    /// How many connections one client address may have; a default if none.
    pub connections: Option<ConnectionsPerClient>,
    /// What is given and has no effect here.
    pub ignored: Vec<String>,
}

/// Reads the block.
pub(super) fn limits(block: &Block) -> Result<LimitsConfig, String> {
    let mut given = fields(&block.body)?;
    let number = given.number("http_max_conns_per_client")?;
    let ignored = given.ignore(WITHOUT_EFFECT);
    given.nothing_else("limits")?;
    let connections = number.map(|number| match u64::try_from(number) {
        Ok(0) => Ok(ConnectionsPerClient::All),
        Ok(number) => {
            let number = usize::try_from(number.min(MOST)).unwrap_or(usize::MAX);
            Ok(ConnectionsPerClient::AtMost(number))
        }
        Err(_) => Err(format!(
            "limits: http_max_conns_per_client: {number} is no number of connections; 0 is as many as there are"
        )),
    });
    Ok(LimitsConfig {
        connections: connections.transpose()?,
        ignored: (ignored.into_iter())
            .map(|name| format!("limits.{name}"))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::ConnectionsPerClient;

    #[test]
    fn connections_of_one_client_are_configurable() {
        for (text, connections) in [
            ("limits {}", None),
            (
                "limits { http_max_conns_per_client = 100 }",
                Some(ConnectionsPerClient::AtMost(100)),
            ),
            (
                "limits { http_max_conns_per_client = 0 }",
                Some(ConnectionsPerClient::All),
            ),
        ] {
            assert_eq!(parse(text).unwrap().limits, connections, "{text}");
        }
        let why = parse("limits { http_max_conns_per_client = -1 }").unwrap_err();
        assert!(why.contains("-1 is no number of connections"), "{why}");
    }

    #[test]
    fn limits_of_servers_have_no_effect_and_are_named() {
        let text = "limits { rpc_max_conns_per_client = 100 }";
        assert_eq!(
            parse(text).unwrap().ignored,
            ["limits.rpc_max_conns_per_client"]
        );
        assert!(parse("limits { http_max_conns = 5 }").is_err());
    }
}
