//! Networks of allocations: what hooks make and remove. They outlive the agent, and not the machine.

use std::collections::BTreeMap;

use drover_core::ids::AllocId;
use drover_core::model::network::Ipv4;
use drover_core::work::BuildNetwork;
use serde::Serialize;

/// The networks that exist.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Networks(BTreeMap<AllocId, SimNetwork>);

/// A network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimNetwork {
    /// Its address behind the bridge.
    pub address: Option<Ipv4>,
    /// What leads to it: addresses and ports of the host.
    pub ports: Vec<(String, u16)>,
    /// Whether a part of it is missing.
    pub half: bool,
}

impl Networks {
    /// Makes one, if it is not there, or completes it. Tells who else has something of it, if anybody has.
    pub(crate) fn build(
        &mut self,
        id: AllocId,
        work: &BuildNetwork,
        half: bool,
    ) -> Option<AllocId> {
        let ports = work.ports.iter();
        let new = SimNetwork {
            address: work.address,
            ports: ports
                .map(|port| (port.host_ip.clone(), port.value))
                .collect(),
            half,
        };
        let same = |other: &SimNetwork| {
            let address = new.address.is_some() && new.address == other.address;
            address || new.ports.iter().any(|port| other.ports.contains(port))
        };
        let mut others = self.0.iter().filter(|(other, _)| **other != id);
        let holder = others.find(|(_, other)| same(other)).map(|(id, _)| *id);
        self.0.insert(id, new);
        holder
    }

    /// Removes one. Where none is, nothing happens.
    pub(crate) fn remove(&mut self, id: AllocId) {
        self.0.remove(&id);
    }

    /// The machine starts again.
    pub(crate) fn rebooted(&mut self) {
        self.0.clear();
    }

    /// That of an allocation, if it is there.
    pub fn get(&self, id: AllocId) -> Option<&SimNetwork> {
        self.0.get(&id)
    }

    /// Whose there are.
    pub fn owners(&self) -> impl Iterator<Item = AllocId> {
        self.0.keys().copied()
    }
}
