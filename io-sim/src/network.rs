//! Networks of allocations: what hooks make and remove. They outlive the agent, and not the machine. One may be half
//! there: some part of it was not made, or it was made and has no address, or somebody else removed it. Those of plugins
//! have another address each time that they are made.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::ids::AllocId;
use drover_core::model::network::{Ipv4, NetworkMode, PluginNetwork};
use drover_core::work::BuildNetwork;
use serde::Serialize;

/// The mode of the networks that a plugin makes.
pub const PLUGIN_MODE: &str = "cni/mesh";

/// Where addresses of plugins' networks begin, in `10.200.0.0/16`.
const FIRST_OF_PLUGINS: u32 = 0x0ac8_0001;

/// The networks that exist.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Networks {
    there: BTreeMap<AllocId, SimNetwork>,
    /// Whose somebody else removed, as long as they were not made again.
    taken: BTreeSet<AllocId>,
    /// Whose cannot be removed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    resisting: BTreeSet<AllocId>,
    /// How many addresses plugins gave away.
    given: u32,
}

/// How much of a network is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// All of it.
    Whole,
    /// Not what leads to it.
    Half,
    /// Neither that nor its address.
    Bare,
}

/// A network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimNetwork {
    /// Its address behind the bridge, or wherever its plugin has it.
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
        made: Made,
    ) -> Option<AllocId> {
        self.taken.remove(&id);
        let ports = work.ports.iter();
        let address = self.address_for(id, work);
        let new = SimNetwork {
            address: address.filter(|_| made != Made::Bare),
            ports: ports
                .map(|port| (port.host_ip.clone(), port.value))
                .collect(),
            half: made != Made::Whole,
        };
        let same = |other: &SimNetwork| {
            let address = new.address.is_some() && new.address == other.address;
            address || new.ports.iter().any(|port| other.ports.contains(port))
        };
        let mut others = self.there.iter().filter(|(other, _)| **other != id);
        let holder = others.find(|(_, other)| same(other)).map(|(id, _)| *id);
        self.there.insert(id, new);
        holder
    }

    /// The address that the network of an allocation has from now on.
    fn address_for(&mut self, id: AllocId, work: &BuildNetwork) -> Option<Ipv4> {
        let NetworkMode::Cni(_) = work.mode else {
            return work.address;
        };
        let known = self.there.get(&id).and_then(|it| it.address);
        Some(known.unwrap_or_else(|| {
            self.given += 1;
            Ipv4(FIRST_OF_PLUGINS + self.given)
        }))
    }

    /// What its plugins say of the network of an allocation.
    pub(crate) fn found(&self, id: AllocId, work: &BuildNetwork) -> Option<PluginNetwork> {
        let NetworkMode::Cni(_) = work.mode else {
            return None;
        };
        Some(PluginNetwork {
            interface: "mesh0".to_owned(),
            address: self.there.get(&id)?.address,
            ..PluginNetwork::default()
        })
    }

    /// Removes one. Where none is, nothing happens. `false` if it cannot be removed.
    pub(crate) fn remove(&mut self, id: AllocId) -> bool {
        let goes = !self.resisting.contains(&id);
        if goes {
            self.taken.remove(&id);
            self.there.remove(&id);
        }
        goes
    }

    /// From now on that of an allocation can be removed, or cannot.
    pub fn set_removable(&mut self, id: AllocId, can_be: bool) {
        match can_be {
            true => drop(self.resisting.remove(&id)),
            false => drop(self.resisting.insert(id)),
        }
    }

    /// Somebody else removes one.
    pub fn take_away(&mut self, id: AllocId) {
        if self.there.remove(&id).is_some() {
            self.taken.insert(id);
        }
    }

    /// Whether somebody else removed that of an allocation, and it was not made again.
    pub(crate) fn is_taken(&self, id: AllocId) -> bool {
        self.taken.contains(&id)
    }

    /// The machine starts again.
    pub(crate) fn rebooted(&mut self) {
        self.there.clear();
        self.taken.clear();
    }

    /// That of an allocation, if it is there.
    pub fn get(&self, id: AllocId) -> Option<&SimNetwork> {
        self.there.get(&id)
    }

    /// Whose there are.
    pub fn owners(&self) -> impl Iterator<Item = AllocId> {
        self.there.keys().copied()
    }
}
