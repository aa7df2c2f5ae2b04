//! Claims: what of a node has a bounded number of owners, and which allocation holds it.
//!
//! Each of these has one holder: the *slot* of a copy (job, group, index), a *port* of the host, an
//! instance of a *device*, a *core*. CPU, memory and disk space have as many as fit ([`resources`]). An allocation claims all of its own when it is placed. It holds a claim until
//! nothing of it can be alive: one that is told to end holds on until it is gone, and one that could not
//! be killed holds its ports and devices for as long as that is so. Who is placed on what another still
//! holds waits for that one ([`ungranted`]); nobody else is placed on it ([`Held`]).
//!
//! Nothing of this is remembered by itself: what an allocation claims stands in its record.

pub mod resources;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::resources::Amounts;
use crate::device::choose;
use crate::ids::{AllocId, GroupName, JobKey};
use crate::model::device::GroupId;
use crate::store::record::AllocRecord;

/// Something with one owner at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Claim {
    /// The place of one copy of a group.
    Slot(JobKey, GroupName, u32),
    /// A port of the host.
    Port(u16),
    /// An instance of a device.
    Device(GroupId, String),
    /// A core of the processors.
    Core(u32),
    /// Some of the MHz.
    Cpu,
    /// Some of the memory.
    Memory,
    /// Some of the disk space.
    Disk,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Slot(job, group, index) => write!(f, "slot {}.{group}[{index}]", job.id),
            Claim::Port(port) => write!(f, "port {port}"),
            Claim::Device(group, id) => write!(f, "device {group} {id}"),
            Claim::Core(id) => write!(f, "core {id}"),
            Claim::Cpu => f.write_str("CPU"),
            Claim::Memory => f.write_str("memory"),
            Claim::Disk => f.write_str("disk space"),
        }
    }
}

/// A claim that an allocation does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ungranted {
    /// What it waits for.
    pub claim: Claim,
    /// Who holds it.
    pub holder: AllocId,
}

/// Everything that an allocation claims of which there is one.
pub fn of(alloc: &AllocRecord) -> impl Iterator<Item = Claim> {
    let slot = Claim::Slot(alloc.job.clone(), alloc.group.clone(), alloc.index);
    let ports = alloc.ports.iter().map(|port| Claim::Port(port.value));
    let devices = alloc.devices.iter().flat_map(|assigned| {
        let of_group = |id: &String| Claim::Device(assigned.group.clone(), id.clone());
        assigned.ids.iter().map(of_group)
    });
    let cores = alloc.cores.iter().flat_map(|assigned| &assigned.ids);
    let cores = cores.map(|id| Claim::Core(*id));
    core::iter::once(slot)
        .chain(ports)
        .chain(devices)
        .chain(cores)
}

/// What two allocations claim both.
pub fn in_common(one: &AllocRecord, other: &AllocRecord) -> Vec<Claim> {
    let theirs: BTreeSet<Claim> = of(other).collect();
    of(one).filter(|claim| theirs.contains(claim)).collect()
}

/// What an allocation claims and these others hold, which it awaits and of which something may be alive.
/// Each comes with what it holds of counted resources, which are named where nothing else is in common.
pub fn ungranted<'a>(
    alloc: &AllocRecord,
    amounts: Amounts,
    holders: impl Iterator<Item = (&'a AllocRecord, Amounts)>,
) -> Vec<Ungranted> {
    let of_one = |(other, theirs): (&'a AllocRecord, Amounts)| {
        let mut claims = in_common(alloc, other);
        if claims.is_empty() {
            claims = counted_in_common(amounts, theirs);
        }
        claims.into_iter().map(move |claim| Ungranted {
            claim,
            holder: other.id,
        })
    };
    holders.flat_map(of_one).collect()
}

fn counted_in_common(one: Amounts, other: Amounts) -> Vec<Claim> {
    let both = |one: u64, other: u64| one > 0 && other > 0;
    let all = [
        (Claim::Cpu, both(one.cpu, other.cpu)),
        (Claim::Memory, both(one.memory, other.memory)),
        (Claim::Disk, both(one.disk, other.disk)),
    ];
    let shared = all.into_iter().filter(|(_, both)| *both);
    shared.map(|(claim, _)| claim).collect()
}

/// What a number of allocations hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Counted resources.
    pub amounts: Amounts,
    /// Cores.
    pub cores: BTreeSet<u32>,
    /// Ports of the host.
    pub ports: BTreeSet<u16>,
    /// Instances of devices.
    pub devices: choose::Held,
}

impl Held {
    /// What these hold, each with the amounts that it holds.
    pub fn by<'a>(holders: impl IntoIterator<Item = (&'a AllocRecord, Amounts)>) -> Held {
        let mut held = Held::default();
        for (alloc, amounts) in holders {
            held.add(alloc, amounts);
        }
        held
    }

    fn add(&mut self, alloc: &AllocRecord, amounts: Amounts) {
        self.amounts.add(amounts);
        let cores = alloc.cores.iter().flat_map(|assigned| &assigned.ids);
        self.cores.extend(cores);
        self.ports.extend(alloc.ports.iter().map(|port| port.value));
        for assigned in &alloc.devices {
            let ids = self.devices.entry(assigned.group.clone()).or_default();
            ids.extend(assigned.ids.iter().cloned());
        }
    }
}

/// A port, a device or a core that two of these claim of which neither awaits the other.
pub fn doubly_held<'a>(
    holders: impl Iterator<Item = &'a AllocRecord>,
) -> Option<(Claim, [AllocId; 2])> {
    let mut known: BTreeMap<Claim, Vec<&AllocRecord>> = BTreeMap::new();
    for alloc in holders {
        for claim in of(alloc).filter(|claim| !matches!(claim, Claim::Slot(..))) {
            let others = known.entry(claim.clone()).or_default();
            let awaits = |one: &AllocRecord, other: AllocId| one.awaited().any(|id| id == other);
            let mut apart = others.iter();
            let other = apart.find(|one| !awaits(one, alloc.id) && !awaits(alloc, one.id));
            if let Some(other) = other {
                return Some((claim, [other.id, alloc.id]));
            }
            others.push(alloc);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::device::AssignedDevices;
    use crate::store::record::AssignedPort;

    fn alloc(id: u128, job: &str, ports: &[u16], devices: &[&str]) -> AllocRecord {
        let port = |value: &u16| AssignedPort {
            value: *value,
            ..AssignedPort::default()
        };
        let ids: Vec<String> = devices.iter().map(|id| (*id).to_owned()).collect();
        AllocRecord {
            id: AllocId(id),
            job: JobKey::local(job),
            ports: ports.iter().map(port).collect(),
            devices: vec![AssignedDevices {
                ids,
                ..AssignedDevices::default()
            }],
            ..AllocRecord::default()
        }
    }

    #[test]
    fn claims_in_common_are_named_with_who_holds_them() {
        let one = alloc(1, "a", &[80, 81], &["d0", "d1"]);
        let two = alloc(2, "b", &[81], &["d1", "d2"]);
        let none = Amounts::default();
        let waits = ungranted(&two, none, [(&one, none)].into_iter());
        let words: Vec<String> = waits.iter().map(|it| it.claim.to_string()).collect();
        assert_eq!(words, ["port 81", "device // d1"]);
        assert!(waits.iter().all(|it| it.holder == one.id));
    }

    #[test]
    fn replacement_claims_the_slot_of_the_previous_alloc() {
        let one = alloc(1, "a", &[80], &[]);
        let two = alloc(2, "a", &[90], &[]);
        let slot = Claim::Slot(JobKey::local("a"), GroupName::default(), 0);
        assert_eq!(in_common(&one, &two), [slot]);
    }

    #[test]
    fn port_of_two_allocations_is_doubly_held_unless_one_awaits_the_other() {
        let one = alloc(1, "a", &[80], &[]);
        let mut two = alloc(2, "b", &[80], &[]);
        let found = doubly_held([&one, &two].into_iter());
        assert_eq!(found, Some((Claim::Port(80), [one.id, two.id])));
        two.preempts = vec![one.id];
        assert_eq!(doubly_held([&one, &two].into_iter()), None);
    }
}
