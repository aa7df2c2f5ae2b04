//! `extends` of a service in the same file: what the other one says, unless this one says something else.

use std::collections::BTreeMap;

use crate::error::{Result, quote};
use crate::yaml::{Key, Kind, Node};

/// How long a chain of services that extend each other may be.
const MAX_CHAIN: usize = 20;
/// How many values the services may have when all is put in.
const MAX_VALUES: usize = 100_000;

/// What one service does not inherit.
const OWN: [&str; 2] = ["extends", "depends_on"];

/// The services with what they extend put in. `extends` of other files stays, and is told of later.
pub(super) fn resolve(services: &[(Key, Node)]) -> Result<Vec<(Key, Node)>> {
    let by_name: BTreeMap<&str, &Node> = services
        .iter()
        .map(|(key, node)| (key.name.as_str(), node))
        .collect();
    let mut all = Vec::new();
    let mut values = 0;
    for (key, node) in services {
        let mut whole = node.clone();
        let mut base = base_of(node)?;
        let mut chain = 0;
        while let Some(name) = base {
            let Some(other) = by_name.get(name.as_str()) else {
                let message = format!("there is no service {} to extend", quote(&name));
                return Err(node.mistake(message));
            };
            chain += 1;
            if chain > MAX_CHAIN || name == key.name {
                let message = format!(
                    "service {} extends itself, or too many others",
                    quote(&key.name)
                );
                return Err(node.mistake(message));
            }
            merge(&mut whole, other, true);
            base = base_of(other)?;
        }
        values += size(&whole);
        if values > MAX_VALUES {
            return Err(node.mistake("the services are too large with what they extend"));
        }
        all.push((key.clone(), whole));
    }
    Ok(all)
}

/// The service of this file that a service extends.
fn base_of(node: &Node) -> Result<Option<String>> {
    let Some(extends) = node.fields("a service")?.take("extends") else {
        return Ok(None);
    };
    if let Some(name) = extends.scalar() {
        return Ok(Some(name));
    }
    let mut fields = extends.fields("extends")?;
    if fields.take("file").is_some() {
        return Ok(None);
    }
    Ok(fields.take("service").and_then(Node::scalar))
}

/// Adds to a value what another one has beside it.
fn merge(own: &mut Node, base: &Node, is_service: bool) {
    match (&mut own.kind, &base.kind) {
        (Kind::Map(own), Kind::Map(base)) => {
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            for (at, (key, _)) in own.iter().enumerate() {
                places.insert(key.name.clone(), at);
            }
            for (key, value) in base {
                if is_service && OWN.contains(&key.name.as_str()) {
                    continue;
                }
                match places.get(&key.name).and_then(|at| own.get_mut(*at)) {
                    // Of the command and the like there is one.
                    Some(_) if ["command", "entrypoint", "test"].contains(&key.name.as_str()) => {}
                    Some((_, mine)) => merge(mine, value, false),
                    None => own.push((key.clone(), value.clone())),
                }
            }
        }
        (Kind::List(own), Kind::List(base)) => {
            let mut all = base.clone();
            all.append(own);
            *own = all;
        }
        _ => {}
    }
}

fn size(node: &Node) -> usize {
    match &node.kind {
        Kind::List(list) => 1 + list.iter().map(size).sum::<usize>(),
        Kind::Map(map) => 1 + map.iter().map(|(_, node)| size(node)).sum::<usize>(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 1,
    }
}
