//! Which network an allocation gets: whether the node has such networks, and the address behind its bridge.

use std::collections::BTreeSet;

use crate::fnv::fnv1a;
use crate::ids::AllocId;
use crate::model::group::TaskGroup;
use crate::model::network::{Ipv4, NetworkMode, Subnet};
use crate::model::node::Node;
use crate::model::placement::PlacementFailure;
use crate::store::record::AllocNetwork;

/// What kind of network a group wants.
pub fn mode_of(group: &TaskGroup) -> NetworkMode {
    let network = group.networks.first();
    network.map_or(NetworkMode::Host, |network| network.mode())
}

/// Whether a node offers the network that a group wants.
///
/// # Errors
/// It does not.
pub fn admits(node: &Node, group: &TaskGroup) -> Result<(), PlacementFailure> {
    let mode = mode_of(group);
    let name = mode.to_string();
    match mode.is_own() && !node.network_modes.contains(&name) {
        true => Err(PlacementFailure::NetworkMode(name)),
        false => Ok(()),
    }
}

/// The network of a new allocation, none if it is the host's; `held` are the addresses of all allocations of the
/// node that are not gone.
///
/// # Errors
/// No address is left.
pub fn assign(
    node: &Node,
    id: AllocId,
    group: &TaskGroup,
    held: &BTreeSet<Ipv4>,
) -> Result<Option<AllocNetwork>, PlacementFailure> {
    let address = match mode_of(group) {
        // Of the host's only the files are made that say how names are resolved.
        NetworkMode::Host if !group.networks.iter().any(|it| it.dns.is_some()) => return Ok(None),
        NetworkMode::Host => None,
        NetworkMode::Bridge => Some(address(node.bridge_subnet, id, held)?),
        NetworkMode::None | NetworkMode::Cni(_) => None,
    };
    Ok(Some(AllocNetwork {
        address,
        ..AllocNetwork::default()
    }))
}

/// A free address. Where the search begins depends on who asks, so that an address is seldom somebody else's soon
/// after it was free: others may still know it by the hardware address of who had it.
fn address(subnet: Subnet, id: AllocId, held: &BTreeSet<Ipv4>) -> Result<Ipv4, PlacementFailure> {
    let capacity = subnet.capacity();
    let begin = fnv1a(id.0.to_be_bytes().iter()) % u64::from(capacity.max(1));
    let begin = u32::try_from(begin).unwrap_or(0);
    // One more than are held is enough to find one that is not.
    let tries = u32::try_from(held.len())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    (0..tries.min(capacity))
        .map(|at| subnet.address(begin.saturating_add(at)))
        .find(|address| !held.contains(address))
        .ok_or(PlacementFailure::NoAddressLeft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_distinct_until_none_is_left() {
        let subnet: Subnet = "10.0.0.0/29".parse().unwrap_or_default();
        let mut held = BTreeSet::new();
        for id in 0..subnet.capacity() {
            let given = address(subnet, AllocId(id.into()), &held).unwrap_or_default();
            assert!(held.insert(given), "{given} is given twice");
        }
        assert!(!held.contains(&subnet.gateway()));
        let none = address(subnet, AllocId(9), &held);
        assert_eq!(none, Err(PlacementFailure::NoAddressLeft));
    }
}
