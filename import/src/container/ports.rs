//! Published ports: `[[ADDRESS:]HOST:]INSIDE[/PROTOCOL]`, with ranges.

use super::Container;
use crate::error::quote;
use crate::hcl::Expr;
use crate::job::{Port, service_name};

/// The most ports of a range.
const MAX_RANGE: u16 = 100;
/// The most ports of a container.
const MAX_PORTS: usize = 500;

/// A port that is published, or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Publication {
    pub address: String,
    /// The number or the range at the host; any if empty.
    pub host: String,
    /// What is written for the number at the host instead of it.
    pub host_expr: Option<String>,
    /// The number or the range inside.
    pub inside: String,
    pub protocol: String,
    pub line: usize,
}

impl Publication {
    /// Reads the short form.
    pub(crate) fn short(text: &str, line: usize) -> Result<Publication, String> {
        let (rest, protocol) = match text.rsplit_once('/') {
            Some((rest, protocol)) => (rest, protocol),
            None => (text, "tcp"),
        };
        let (address, rest) = match rest.strip_prefix('[') {
            Some(inner) => match inner.split_once("]:") {
                Some((address, rest)) => (address, rest),
                None => return Err(format!("{} is no port with an address", quote(text))),
            },
            None => match rest.split(':').count() {
                3 => rest.split_once(':').unwrap_or(("", rest)),
                1 | 2 => ("", rest),
                _ => return Err(format!("{} is no port", quote(text))),
            },
        };
        let (host, inside) = rest.rsplit_once(':').unwrap_or(("", rest));
        Ok(Publication {
            address: address.to_owned(),
            host: host.to_owned(),
            host_expr: None,
            inside: inside.to_owned(),
            protocol: protocol.to_ascii_lowercase(),
            line,
        })
    }

    /// Adds the ports to a container's group.
    ///
    /// # Errors
    /// A number is none, or there are too many.
    pub(crate) fn add(self, container: &mut Container) -> Result<(), String> {
        let line = self.line;
        if !matches!(self.protocol.as_str(), "tcp" | "udp") {
            let what = format!("port {} of protocol {}", self.inside, self.protocol);
            let advice = "only TCP and UDP are published";
            container.group.network.lost(line, &what, advice);
            return Ok(());
        }
        let (first, last) = range(&self.inside)?;
        let hosts = match self.host.as_str() {
            "" | "0" => None,
            host => Some(range(host)?),
        };
        if usize::from(last - first) + 1 + container.group.ports.len() > MAX_PORTS {
            return Err(format!("more than {MAX_PORTS} ports"));
        }
        for inside in first..=last {
            let mut comments = Vec::new();
            let host = match hosts {
                None => None,
                Some((from, to)) if to - from == last - first => Some(from + (inside - first)),
                Some((from, to)) if first == last => {
                    comments.push(format!(
                        "Line {line}: any port from {from} to {to} was asked for; here it is any that is free."
                    ));
                    None
                }
                Some(_) => {
                    let (host, inside) = (quote(&self.host), quote(&self.inside));
                    return Err(format!(
                        "{host} and {inside} are ranges of different lengths"
                    ));
                }
            };
            let host = match (&self.host_expr, host) {
                (Some(expr), Some(_)) => Some(Expr::Raw(expr.clone())),
                (_, host) => host.map(|host| Expr::Number(host.into())),
            };
            self.one(container, inside, host, comments);
        }
        Ok(())
    }

    fn one(
        &self,
        container: &mut Container,
        inside: u16,
        host: Option<Expr>,
        mut comments: Vec<String>,
    ) {
        let host_network = host_network(&self.address);
        // TCP and UDP of a port are one port here.
        let same = |port: &&mut Port| {
            port.inside == inside && port.host == host && port.host_network == host_network
        };
        if let Some(twin) = container.group.ports.iter_mut().find(same) {
            twin.comments.retain(|it| !it.ends_with(BOTH));
            return;
        }
        if self.protocol == "udp" {
            comments.push(format!("Line {}: {BOTH}", self.line));
        }
        if let Some(network) = &host_network {
            let cidr = cidr(&self.address);
            comments.push(format!(
                "Line {}: published at {} only, which the agent's configuration has to know:\n  client {{\n    \
                 host_network \"{network}\" {{\n      cidr = \"{cidr}\"\n    }}\n  }}",
                self.line, self.address
            ));
        }
        let label = container
            .labels
            .give(format!("{}p{inside}", container.prefix));
        container.published.push(label.as_str().into());
        container.group.ports.push(Port {
            label,
            host,
            inside,
            host_network,
            comments,
        });
    }
}

const BOTH: &str = "of UDP; here both TCP and UDP are published.";

/// The first and the last port of a range, or of a number alone.
fn range(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| {
        let number = text.trim().parse::<u16>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("{} is no port: a number from 1 to 65535 is", quote(text)))
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    if last < first || last - first >= MAX_RANGE {
        let text = quote(text);
        return Err(format!("{text} is no range of at most {MAX_RANGE} ports"));
    }
    Ok((first, last))
}

/// The name of a network of the host for an address of it.
fn host_network(address: &str) -> Option<String> {
    match address {
        "" | "0.0.0.0" | "::" | "*" => None,
        "127.0.0.1" | "localhost" => Some("loopback".to_owned()),
        "::1" => Some("loopback6".to_owned()),
        other => Some(format!("at-{}", service_name(other))),
    }
}

fn cidr(address: &str) -> String {
    match address {
        "localhost" => "127.0.0.1/32".to_owned(),
        address if address.contains(':') => format!("{address}/128"),
        address => format!("{address}/32"),
    }
}

/// What a job does not see of a number that stands in a variable.
pub(crate) fn default_words(names: &[String]) -> String {
    format!(
        "it is read with the default of {}; whoever gives another value must change it here, too",
        names.join(", ")
    )
}
