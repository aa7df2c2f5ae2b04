//! Where the agent's API listens, and where others reach it.
//!
//! ```hcl
//! addresses { http = "10.0.0.9" }           # where the API listens, in place of bind_addr
//! advertise { http = "203.0.113.7:14646" }  # where others reach it, behind a translation of addresses for one
//! ```

use std::net::{IpAddr, SocketAddr};

use drover_core::text::quote;
use hcl_edit::structure::Block;

use super::literal::{Fields, fields};
use super::{sockaddr, unknown};

/// One of the two blocks.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// What it says of the API.
    pub(super) http: Option<String>,
    /// What it says of what only servers have.
    pub(super) ignored: Vec<String>,
}

/// Reads one of the two blocks.
pub(super) fn named(block: &Block) -> Result<Named, String> {
    let about = block.ident.as_str();
    let mut given = fields(&block.body).map_err(|why| format!("{about}: {why}"))?;
    let http = address(&mut given, "http").map_err(|why| format!("{about}: {why}"))?;
    let ignored = given.ignore(&["rpc", "serf"]);
    given.nothing_else(about)?;
    match block.body.blocks().next() {
        None => Ok(Named {
            http,
            ignored: (ignored.iter())
                .map(|name| format!("{about}.{name}"))
                .collect(),
        }),
        Some(inner) => Err(format!(
            "{about}: {}",
            unknown("block", inner.ident.as_str(), &[])
        )),
    }
}

/// Reads one address.
///
/// # Errors
/// It is more than one, or asks the machine for what it does not have.
pub(super) fn address(given: &mut Fields, name: &'static str) -> Result<Option<String>, String> {
    let Some(text) = given.text(name)? else {
        return Ok(None);
    };
    let text = of_this_machine(name, &text)?;
    match text.contains(char::is_whitespace) {
        false => Ok(Some(text).filter(|text| !text.is_empty())),
        true => Err(format!(
            "{name}: {}: one address is possible; 0.0.0.0 is every one of this machine",
            quote(&text)
        )),
    }
}

/// What a text stands for on this machine, which it may ask for (`{{ GetPrivateIP }}`).
pub(super) fn of_this_machine(name: &str, text: &str) -> Result<String, String> {
    sockaddr::of_this_machine(text).map_err(|why| format!("{name}: {}: {why}", quote(text)))
}

/// The address with this port, unless it has one.
pub(crate) fn with_port(address: &str, port: &str) -> String {
    if address.parse::<SocketAddr>().is_ok() {
        return address.to_owned();
    }
    let bare = address.strip_prefix('[').unwrap_or(address);
    let bare = bare.strip_suffix(']').unwrap_or(bare);
    let has_port = || {
        let port = address.rsplit_once(':').map(|(_, port)| port);
        port.is_some_and(|port| port.parse::<u16>().is_ok())
    };
    match bare.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        Ok(IpAddr::V4(ip)) => format!("{ip}:{port}"),
        Err(_) if has_port() => address.to_owned(),
        Err(_) => format!("{address}:{port}"),
    }
}

/// Where others reach an API that listens, or says that it is reached, at this address: one that is every address of
/// the node stands for the node's own.
pub(crate) fn reached_at(http: &str, node: &str) -> String {
    let at: Option<SocketAddr> = http.parse().ok();
    let at = at.filter(|at| at.ip().is_unspecified());
    match (at, node.parse()) {
        (Some(at), Ok(own)) => SocketAddr::new(own, at.port()).to_string(),
        (Some(_) | None, _) => http.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn agent(text: &str) -> Result<super::super::agent::AgentConfig, String> {
        parse(text).map(|config| config.agent)
    }

    #[test]
    fn address_of_the_api_goes_before_that_of_the_agent() {
        let text =
            "bind_addr = \"10.0.0.1\"\naddresses {\n http = \"10.0.0.2\"\n rpc = \"10.0.0.3\"\n}";
        assert_eq!(agent(text).unwrap().http(None), "10.0.0.2:4646");
        assert_eq!(parse(text).unwrap().ignored, ["addresses.rpc"]);
    }

    #[test]
    fn advertised_address_has_the_port_of_the_listener_unless_it_names_one() {
        for (given, advertised) in [
            ("203.0.113.7", "203.0.113.7:5646"),
            ("203.0.113.7:14646", "203.0.113.7:14646"),
            ("node.example", "node.example:5646"),
            ("node.example:1", "node.example:1"),
            ("fd00::1", "[fd00::1]:5646"),
            ("[fd00::1]", "[fd00::1]:5646"),
            ("[fd00::1]:1", "[fd00::1]:1"),
        ] {
            let agent = agent(&format!("advertise {{\n http = \"{given}\"\n}}")).unwrap();
            assert_eq!(agent.advertised("0.0.0.0:5646"), advertised);
        }
        let none = agent("advertise {\n rpc = \"203.0.113.7\"\n}").unwrap();
        assert_eq!(none.advertised("10.0.0.1:5646"), "10.0.0.1:5646");
        assert_eq!(none.advertised("[::1]:5646"), "[::1]:5646");
    }

    #[test]
    fn address_may_be_asked_of_the_machine() {
        let loopback = "{{ GetAllInterfaces | include `flags` `loopback` | include `type` `ipv4` | limit 1 | attr \
                        `address` }}";
        let text =
            format!("bind_addr = \"{loopback}\"\nadvertise {{\n http = \"{loopback}:1\"\n}}");
        let agent = agent(&text).unwrap();
        assert_eq!(agent.http(None), "127.0.0.1:4646");
        assert_eq!(agent.advertised("0.0.0.0:4646"), "127.0.0.1:1");
    }

    #[test]
    fn address_that_is_every_one_stands_for_that_of_the_node() {
        for (http, node, reached) in [
            ("0.0.0.0:4646", "10.0.0.9", "10.0.0.9:4646"),
            ("[::]:4646", "10.0.0.9", "10.0.0.9:4646"),
            ("[::]:4646", "fd00::9", "[fd00::9]:4646"),
            ("0.0.0.0:4646", "", "0.0.0.0:4646"),
            ("127.0.0.1:4646", "10.0.0.9", "127.0.0.1:4646"),
            ("node.example:4646", "10.0.0.9", "node.example:4646"),
        ] {
            assert_eq!(reached_at(http, node), reached);
        }
    }

    #[test]
    fn invalid_address_is_refused_with_its_setting() {
        for (text, words) in [
            (
                "bind_addr = \"{{ GetPrivatIP }}\"",
                "bind_addr: \"{{ GetPrivatIP }}\": \"GetPrivatIP\" is not evaluated",
            ),
            (
                "advertise {\n http = \"{{ GetInterfaceIP }}\"\n}",
                "advertise: http: ",
            ),
            (
                "addresses {\n http = \"10.0.0.1 10.0.0.2\"\n}",
                "one address is possible",
            ),
            ("addresses {\n htp = \"10.0.0.1\"\n}", "did you mean http?"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
