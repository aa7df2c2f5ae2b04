//! The network of the engine in which the services find each other.

use std::collections::{BTreeMap, BTreeSet};

use super::interpolate::Variables;
use crate::container::Container;
use crate::error::Result;
use crate::hcl::Body;
use crate::text::Text;
use crate::yaml::{Key, Kind, Node};

/// Which network the services share.
#[derive(Clone, Debug, Default)]
pub(super) struct Networks {
    /// Its name, unless there is nobody to be found.
    pub shared: Option<String>,
}

impl Networks {
    pub(super) fn read(
        definitions: Option<&Node>,
        services: &[(Key, Node)],
        project: &str,
        variables: &mut Variables,
        notes: &mut Body,
    ) -> Result<Networks> {
        let mut names = BTreeMap::new();
        let mut external = BTreeSet::new();
        for (key, node) in definitions.map_or(Ok(&[][..]), |it| it.map("networks"))? {
            let mut fields = node.fields("a network")?;
            let is_external = match fields.take("external") {
                Some(node) => !matches!(node.kind, Kind::Bool(false)),
                None => false,
            };
            let name = match fields.take("name") {
                Some(name) => variables.resolved(name, "name")?.0,
                None if is_external => key.name.clone(),
                None => format!("{project}_{}", key.name),
            };
            if is_external {
                external.insert(key.name.clone());
            }
            names.insert(key.name.clone(), name);
            for (other, _) in fields.rest() {
                let what = format!("networks.{}.{}", key.name, other.name);
                notes.lost(other.at.line, &what, "give it to `docker network create`");
            }
        }
        let mut used = BTreeSet::new();
        for (_, node) in services {
            used.extend(networks_of(node)?);
        }
        let alone = services.len() == 1 && used.is_disjoint(&external);
        let mut used_names = used.iter();
        let shared = match (used_names.next(), used_names.next()) {
            (None, _) => None,
            _ if alone => None,
            (Some(only), None) => {
                let name = names.get(only).cloned();
                Some(name.unwrap_or_else(|| format!("{project}_{only}")))
            }
            (Some(_), Some(_)) => {
                let list: Vec<&str> = used.iter().map(String::as_str).collect();
                let advice = "a task is in one network of the engine; all services are in the same one here, so those \
                              that were kept apart reach each other";
                let line = definitions.map_or(0, Node::line);
                notes.lost(line, &format!("the networks {}", list.join(", ")), advice);
                Some(format!("{project}_default"))
            }
        };
        // What engines take as a name.
        let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let shared = shared.map(|name| name.chars().filter(fits).take(120).collect());
        Ok(Networks { shared })
    }

    /// Puts a container into the network.
    pub(super) fn join(
        &self,
        container: &mut Container,
        variables: &mut Variables,
        service: &str,
        node: Option<&Node>,
        more: Vec<Text>,
    ) -> Result<()> {
        let mut aliases = vec![Text::from(service)];
        aliases.extend(more);
        let mut config = Body::default();
        if let Some(Node {
            kind: Kind::Map(map),
            ..
        }) = node
        {
            for (key, value) in map {
                let mut fields = value.fields("a network of a service")?;
                if let Some(list) = fields.take("aliases") {
                    for alias in list.list("aliases")? {
                        aliases.push(variables.text(alias, "an alias")?);
                    }
                }
                for name in ["ipv4_address", "ipv6_address"] {
                    if let Some(address) = fields.take(name) {
                        config.set(name, variables.text(address, name)?);
                    }
                }
                for (other, _) in fields.rest() {
                    let what = format!("networks.{}.{}", key.name, other.name);
                    config.lost(other.at.line, &what, "the driver has nothing like it");
                }
            }
        }
        if let Some(name) = &self.shared {
            container.task.config.set("network_mode", name.as_str());
            container.task.config.set_list("network_aliases", aliases);
        }
        container.task.config.append(config);
        Ok(())
    }
}

/// The networks that a service is in.
fn networks_of(node: &Node) -> Result<BTreeSet<String>> {
    let mut fields = node.fields("a service")?;
    if fields.take("network_mode").is_some() {
        return Ok(BTreeSet::new());
    }
    let usual = || BTreeSet::from(["default".to_owned()]);
    let Some(networks) = fields.take("networks") else {
        return Ok(usual());
    };
    let names: BTreeSet<String> = match &networks.kind {
        Kind::List(list) => list.iter().filter_map(Node::scalar).collect(),
        _ => networks
            .map("networks")?
            .iter()
            .map(|(key, _)| key.name.clone())
            .collect(),
    };
    Ok(if names.is_empty() { usual() } else { names })
}
