//! Which ports of the host an allocation gets.

use std::sync::Arc;

use crate::claims::Ports;
use crate::cx::Rng;
use crate::model::group::{Port, TaskGroup};
use crate::model::network::DEFAULT_HOST_NETWORK;
use crate::model::node::Node;
use crate::model::placement::PlacementFailure;
use crate::store::record::AssignedPort;

/// How many random numbers are tried before the range is searched from its beginning.
const RANDOM_TRIES: usize = 20;

/// Gives a group its ports. `held` are those that other allocations hold or that end only now;
/// a port is given away again only when its holder is gone. `ending` are those of allocations that
/// end for this group, which awaits that: only what is asked for by number is taken of them.
///
/// # Errors
/// Names the port that is taken or kept for others, or says that the range is used up.
pub fn assign(
    node: &Node,
    rng: &mut Rng,
    group: &TaskGroup,
    held: &Ports,
    ending: &Ports,
) -> Result<Vec<AssignedPort>, PlacementFailure> {
    let mut own = Ports::new();
    let mut ports = Vec::new();
    let Some(network) = group.networks.first() else {
        return Ok(ports);
    };
    for port in &network.reserved_ports {
        let taken = || PlacementFailure::PortTaken {
            label: port.label.clone(),
            value: port.value,
        };
        let value = number(port.value).filter(|value| *value != 0);
        let value = value.ok_or_else(taken)?;
        let given = assigned(node, port, value)?;
        if node.reserves(port.host_network(), value) {
            return Err(PlacementFailure::PortReserved {
                label: port.label.clone(),
                value,
                network: port.host_network().to_owned(),
            });
        }
        let key = (given.host_ip.as_str().into(), value);
        if held.contains(&key) || !own.insert(key) {
            return Err(taken());
        }
        ports.push(given);
    }
    for port in &network.dynamic_ports {
        let mut given = assigned(node, port, 0)?;
        let address: Arc<str> = given.host_ip.as_str().into();
        let taken = |value| {
            let key = (address.clone(), value);
            let all = [held, ending, &own];
            all.iter().any(|ports| ports.contains(&key))
                || node.reserves(port.host_network(), value)
        };
        given.value = pick(node, rng, taken).ok_or(PlacementFailure::NoPortLeft)?;
        if port.to == -1 {
            given.to = given.value;
        }
        own.insert((address, given.value));
        ports.push(given);
    }
    Ok(ports)
}

fn pick(node: &Node, rng: &mut Rng, taken: impl Fn(u16) -> bool) -> Option<u16> {
    let (first, last) = node.dynamic_ports;
    if first == 0 || first > last {
        return None;
    }
    let range = u64::from(last - first) + 1;
    for _ in 0..RANDOM_TRIES {
        let offset = u16::try_from(rng.next_u64() % range).unwrap_or(0);
        if !taken(first + offset) {
            return Some(first + offset);
        }
    }
    (first..=last).find(|port| !taken(*port))
}

/// The attribute of a node that carries its address in a network of the host.
pub fn host_network_attribute(name: &str) -> String {
    format!("unique.network.host_network.{name}")
}

/// The node's address in the network that the port is to be reached through.
fn host_address(node: &Node, port: &Port) -> Result<String, PlacementFailure> {
    if port.host_network() == DEFAULT_HOST_NETWORK {
        return Ok(node.address.clone());
    }
    let known = node
        .attributes
        .get(&host_network_attribute(&port.host_network));
    known.cloned().ok_or_else(|| PlacementFailure::HostNetwork {
        network: port.host_network.clone(),
        label: port.label.clone(),
    })
}

fn assigned(node: &Node, port: &Port, value: u16) -> Result<AssignedPort, PlacementFailure> {
    let to = match port.to {
        -1 => value,
        to => number(to).unwrap_or(0),
    };
    let host_network = match port.host_network() {
        DEFAULT_HOST_NETWORK => String::new(),
        name => name.to_owned(),
    };
    Ok(AssignedPort {
        label: port.label.clone(),
        value,
        to,
        host_ip: host_address(node, port)?,
        host_network,
    })
}

fn number(value: i64) -> Option<u16> {
    u16::try_from(value).ok()
}
