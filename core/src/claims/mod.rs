//! Claims: what of a node has a bounded number of owners, which allocation holds it, and who waits for whom.
//!
//! Each of these has one holder: the *slot* of a copy (job, group, index), a *port* of an address of the host, an
//! *address* behind the node's bridge, an instance of a *device*, a *core*. CPU, memory and disk space have as many
//! as fit ([`resources`]).
//!
//! An allocation claims all of its own when it is placed, and holds them until it is *gone*: its run is over,
//! nothing of it can be alive, and its network is removed. One that is told to end holds on until then, and so does what could not be
//! killed.
//!
//! **An allocation starts when all its claims are granted, and nothing else decides that.** Who is older is
//! served first, by the index at which it was placed: a claim is granted when every older holder of it is
//! gone; a counted resource when what the older ones hold leaves enough, or none of them is to end. So nobody
//! waits for younger ones, there is no circle of waiting, and a node that came to have less than it gave
//! keeps nobody waiting. What is granted is not taken back; only one whose disk turns out to lie with another allocation than
//! its servers named claims all anew. [`ungranted`] is the whole rule; `agent/granting.rs` applies it, and reports show what it says.
//!
//! Age orders the queue and not priority, which decides before: one plan places the important first, and a later one
//! that matters more preempts whoever holds what it needs, those that only wait for it included. It is older than
//! nobody then, and waits for no longer than these take to end. Were the queue in order of priority, what is granted
//! could be taken back, and two could wait for each other.
//!
//! An allocation that the servers of a cluster placed has a slot of its own, which nobody else claims: servers may
//! place two of one name, such as a canary. It awaits the one that it replaces and those that end for it, as its
//! record names them.
//!
//! Waiting for the previous allocation on another node is the same: a claim on the slot whose holder is elsewhere,
//! as the record of the slot's disk says ([`crate::store::disk`]).
//!
//! The scheduler gives an allocation what another holds only if that one is told to end: the ones before it
//! in its slot, and those that it preempts ([`Held`] is what it may not give).
//!
//! What an allocation claims stands in its record, and where the disk of its slot lies in that of the slot.

pub mod resources;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use self::resources::{Amounts, Capacity};
use crate::device::choose;
use crate::ids::{AllocId, Slot};
use crate::model::device::GroupId;
use crate::model::network::Ipv4;
use crate::model::remote::RemotePrevious;
use crate::store::record::{AllocRecord, AssignedPort};

/// Something with one owner at a time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Claim {
    /// The place of one copy of a group.
    Slot(Slot),
    /// A port of an address of the host.
    Port(Arc<str>, u16),
    /// An address behind the node's bridge.
    Address(Ipv4),
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

impl Claim {
    /// Whether several hold some of it, as much as there is.
    pub fn is_counted(&self) -> bool {
        match self {
            Claim::Slot(..)
            | Claim::Port(..)
            | Claim::Address(_)
            | Claim::Device(..)
            | Claim::Core(_) => false,
            Claim::Cpu | Claim::Memory | Claim::Disk => true,
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Claim::Slot(slot) => write!(f, "slot {slot}"),
            Claim::Port(_, port) => write!(f, "port {port}"),
            Claim::Address(address) => write!(f, "address {address}"),
            Claim::Device(group, id) => write!(f, "device {group} {id}"),
            Claim::Core(id) => write!(f, "core {id}"),
            Claim::Cpu => f.write_str("CPU"),
            Claim::Memory => f.write_str("memory"),
            Claim::Disk => f.write_str("disk space"),
        }
    }
}

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Holder {
    /// An allocation of this node.
    Alloc(AllocId),
    /// An allocation of another node, and where that answers; empty if servers know it.
    Elsewhere(AllocId, Arc<str>),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Alloc(id) => id.short().fmt(f),
            Holder::Elsewhere(id, address) if address.is_empty() => {
                write!(f, "{} on another node of the cluster", id.short())
            }
            Holder::Elsewhere(id, address) => write!(f, "{} at {address}", id.short()),
        }
    }
}

/// A claim that an allocation does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ungranted {
    /// What it waits for.
    pub claim: Claim,
    /// Who holds it.
    pub holder: Holder,
}

/// An allocation that is not gone, and what it has of counted resources.
pub type Holding<'a> = (&'a AllocRecord, Amounts);

/// Whether an allocation comes before another: it was placed earlier.
pub fn is_older(one: &AllocRecord, other: &AllocRecord) -> bool {
    (one.create_index, one.id) < (other.create_index, other.id)
}

/// Whether two allocations are for the same copy of a group.
pub fn is_same_slot(one: &AllocRecord, other: &AllocRecord) -> bool {
    one.of_servers == other.of_servers
        && (!one.of_servers || one.id == other.id)
        && one.index == other.index
        && one.lane == other.lane
        && one.group == other.group
        && one.job == other.job
}

/// Whether an allocation that servers placed starts when another of theirs is gone: the one that it replaces, or one
/// that ends for it. Of this node's own, slots and claims say so.
fn replaces(one: &AllocRecord, other: &AllocRecord) -> bool {
    let names = one.previous == Some(other.id) || one.preempts.contains(&other.id);
    one.of_servers && other.of_servers && names
}

/// Everything that an allocation claims of which there is one.
pub fn of(alloc: &AllocRecord) -> impl Iterator<Item = Claim> {
    let slot = Claim::Slot(alloc.slot());
    let ports = alloc.ports.iter().map(port);
    let address = alloc.address().map(Claim::Address);
    let devices = alloc.devices.iter().flat_map(|assigned| {
        let of_group = |id: &String| Claim::Device(assigned.group.clone(), id.clone());
        assigned.ids.iter().map(of_group)
    });
    let cores = alloc.cores.iter().flat_map(|assigned| &assigned.ids);
    let cores = cores.map(|id| Claim::Core(*id));
    core::iter::once(slot)
        .chain(ports)
        .chain(address)
        .chain(devices)
        .chain(cores)
}

/// The claim of a port that an allocation holds.
pub fn port(port: &AssignedPort) -> Claim {
    Claim::Port(port.host_ip.as_str().into(), port.value)
}

/// What two allocations claim both, of which there is one.
pub fn in_common(one: &AllocRecord, other: &AllocRecord) -> Vec<Claim> {
    let holds = |claim: &Claim| match claim {
        Claim::Slot(..) => is_same_slot(one, other),
        Claim::Port(address, port) => {
            let mut held = other.ports.iter();
            held.any(|held| held.value == *port && *held.host_ip == **address)
        }
        Claim::Address(address) => other.address() == Some(*address),
        Claim::Device(group, id) => {
            let mut held = other.devices.iter();
            held.any(|held| held.group == *group && held.ids.contains(id))
        }
        Claim::Core(id) => other.cores.iter().any(|held| held.ids.contains(id)),
        Claim::Cpu | Claim::Memory | Claim::Disk => false,
    };
    let has_some = is_same_slot(one, other)
        || !one.ports.is_empty() && !other.ports.is_empty()
        || one.network.is_some() && other.network.is_some()
        || !one.devices.is_empty() && !other.devices.is_empty()
        || !one.cores.is_empty() && !other.cores.is_empty();
    match has_some {
        true => of(one).filter(holds).collect(),
        false => Vec::new(),
    }
}

/// The claims of an allocation that are not granted yet, and who holds each. `holders` are all allocations of
/// this node that are not gone; younger ones among them do not count. `elsewhere` is the previous allocation on
/// another node, and `sources` are those whose disk it gets.
pub fn ungranted<'a>(
    (alloc, amounts): Holding<'_>,
    elsewhere: Option<&RemotePrevious>,
    sources: &[AllocId],
    capacity: &Capacity,
    holders: impl Iterator<Item = Holding<'a>>,
) -> Vec<Ungranted> {
    let older: Vec<Holding<'_>> = holders
        .filter(|(other, _)| is_older(other, alloc))
        .collect();
    let mut held = Amounts::default();
    older.iter().for_each(|(_, theirs)| held.add(*theirs));
    let missing = capacity.missing(held, amounts);
    let of_one = |(other, theirs): &Holding<'_>| {
        // Of this node's own they have one slot.
        let writes = alloc.of_servers && sources.contains(&other.id);
        let replaced = (writes || replaces(alloc, other)).then(|| Claim::Slot(other.slot()));
        let single = in_common(alloc, other).into_iter().chain(replaced);
        let ends = other.is_terminal();
        let all = single.chain(both_of(missing, *theirs).filter(|_| ends));
        let holder = Holder::Alloc(other.id);
        all.map(move |claim| (claim, holder.clone()))
            .collect::<Vec<_>>()
    };
    let elsewhere = elsewhere.into_iter().filter(|previous| !previous.ended);
    let elsewhere = elsewhere.map(|previous| {
        let slot = Claim::Slot(alloc.slot());
        let holder = Holder::Elsewhere(previous.alloc, previous.address.clone());
        (slot, holder)
    });
    let all = older.iter().flat_map(of_one).chain(elsewhere);
    all.map(|(claim, holder)| Ungranted { claim, holder })
        .collect()
}

/// The counted resources of which both amounts are some.
fn both_of(one: Amounts, other: Amounts) -> impl Iterator<Item = Claim> {
    let both = |one: u64, other: u64| one > 0 && other > 0;
    let all = [
        (Claim::Cpu, both(one.cpu, other.cpu)),
        (Claim::Memory, both(one.memory, other.memory)),
        (Claim::Disk, both(one.disk, other.disk)),
    ];
    let shared = all.into_iter().filter(|(_, both)| *both);
    shared.map(|(claim, _)| claim)
}

/// Ports of the host: the address, and the number.
pub type Ports = BTreeSet<(Arc<str>, u16)>;

/// What a number of allocations hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Counted resources.
    pub amounts: Amounts,
    /// Cores.
    pub cores: BTreeSet<u32>,
    /// Ports of the host, by its addresses.
    pub ports: Ports,
    /// Addresses behind the node's bridge.
    pub addresses: BTreeSet<Ipv4>,
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
        let ports = alloc.ports.iter();
        self.ports
            .extend(ports.map(|port| (port.host_ip.as_str().into(), port.value)));
        self.addresses.extend(alloc.address());
        for assigned in &alloc.devices {
            let ids = self.devices.entry(assigned.group.clone()).or_default();
            ids.extend(assigned.ids.iter().cloned());
        }
    }
}

/// Something of which there is one, and two of these allocations that claim it.
pub fn doubly_held<'a>(
    holders: impl Iterator<Item = &'a AllocRecord>,
) -> Option<(Claim, [AllocId; 2])> {
    let mut known: BTreeMap<Claim, AllocId> = BTreeMap::new();
    for alloc in holders {
        for claim in of(alloc) {
            if let Some(other) = known.insert(claim.clone(), alloc.id) {
                return Some((claim, [other, alloc.id]));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::JobKey;
    use crate::model::alloc::DesiredStatus;
    use crate::model::device::AssignedDevices;
    use crate::store::record::AssignedCores;

    fn alloc(id: u128, job: &str, ports: &[u16], devices: &[&str]) -> AllocRecord {
        let port = |value: &u16| AssignedPort {
            value: *value,
            ..AssignedPort::default()
        };
        let ids: Vec<String> = devices.iter().map(|id| (*id).to_owned()).collect();
        AllocRecord {
            id: AllocId(id),
            create_index: u64::try_from(id).unwrap_or(0),
            job: JobKey::local(job),
            ports: ports.iter().map(port).collect(),
            devices: vec![AssignedDevices {
                ids,
                ..AssignedDevices::default()
            }],
            ..AllocRecord::default()
        }
    }

    /// The words for what `one` waits for, if these are the others that are not gone.
    fn waits(one: &AllocRecord, memory: u64, others: &[(&AllocRecord, u64)]) -> Vec<String> {
        let capacity = Capacity {
            memory: Some(1000),
            ..Capacity::default()
        };
        let amounts = |memory| Amounts {
            memory,
            ..Amounts::default()
        };
        let holders = others
            .iter()
            .map(|(other, memory)| (*other, amounts(*memory)));
        let waits = ungranted((one, amounts(memory)), None, &[], &capacity, holders);
        let words = |it: &Ungranted| format!("{} of {}", it.claim, it.holder);
        waits.iter().map(words).collect()
    }

    fn of_holder(claim: &str, holder: &AllocRecord) -> String {
        format!("{claim} of {}", holder.id.short())
    }

    #[test]
    fn younger_alloc_waits_for_older_holder() {
        let one = alloc(1, "a", &[80, 81], &["d0", "d1"]);
        let two = alloc(2, "b", &[81], &["d1", "d2"]);
        let named = ["port 81", "device // d1"].map(|claim| of_holder(claim, &one));
        assert_eq!(waits(&two, 0, &[(&one, 0), (&two, 0)]), named);
        assert!(waits(&one, 0, &[(&one, 0), (&two, 0)]).is_empty());
    }

    #[test]
    fn cores_of_older_holder_are_awaited() {
        let with_cores = |id, job, ids: &[u32]| AllocRecord {
            cores: vec![AssignedCores {
                ids: ids.to_vec(),
                ..AssignedCores::default()
            }],
            devices: Vec::new(),
            ..alloc(id, job, &[], &[])
        };
        let one = with_cores(1, "a", &[0, 1]);
        let named = [of_holder("core 1", &one)];
        assert_eq!(waits(&with_cores(2, "b", &[1, 2]), 0, &[(&one, 0)]), named);
        assert!(waits(&with_cores(3, "c", &[2]), 0, &[(&one, 0)]).is_empty());
    }

    #[test]
    fn replacement_waits_for_every_alloc_before_it_in_its_slot() {
        let (one, two) = (alloc(1, "a", &[80], &[]), alloc(2, "a", &[81], &[]));
        let three = alloc(3, "a", &[90], &[]);
        let named = [&one, &two].map(|older| of_holder("slot a.[0]", older));
        assert_eq!(
            waits(&three, 0, &[(&one, 0), (&two, 0), (&three, 0)]),
            named
        );
    }

    #[test]
    fn memory_is_granted_when_older_holders_leave_enough() {
        let (mut one, mut two) = (alloc(1, "a", &[], &[]), alloc(2, "b", &[], &[]));
        let three = alloc(3, "c", &[], &[]);
        one.desired = DesiredStatus::Stop;
        two.desired = DesiredStatus::Evict;
        let named = [of_holder("memory", &one), of_holder("memory", &two)];
        assert_eq!(waits(&three, 500, &[(&one, 400), (&two, 400)]), named);
        assert!(waits(&three, 500, &[(&two, 400)]).is_empty());
        assert!(waits(&two, 400, &[(&one, 600), (&three, 900)]).is_empty());
    }

    #[test]
    fn alloc_does_not_wait_for_memory_of_running_holder() {
        let (one, two) = (alloc(1, "a", &[], &[]), alloc(2, "b", &[], &[]));
        assert!(waits(&two, 800, &[(&one, 500)]).is_empty());
        assert!(waits(&one, 5000, &[(&one, 5000)]).is_empty());
    }

    #[test]
    fn slot_held_on_other_node_is_awaited() {
        let mut previous = RemotePrevious {
            alloc: AllocId(7),
            address: "http://far:4646".into(),
            ..RemotePrevious::default()
        };
        let waits = |previous: &RemotePrevious| {
            let one = (&alloc(1, "a", &[], &[]), Amounts::default());
            ungranted(
                one,
                Some(previous),
                &[],
                &Capacity::default(),
                core::iter::empty(),
            )
        };
        let holder = Holder::Elsewhere(previous.alloc, previous.address.clone());
        let claim = Claim::Slot(alloc(1, "a", &[], &[]).slot());
        assert_eq!(waits(&previous), [Ungranted { claim, holder }]);
        previous.ended = true;
        assert!(waits(&previous).is_empty());
    }

    #[test]
    fn port_with_two_holders_is_reported() {
        let one = alloc(1, "a", &[80], &[]);
        let two = alloc(2, "b", &[80], &[]);
        let found = doubly_held([&one, &two].into_iter());
        assert_eq!(found, Some((Claim::Port("".into(), 80), [one.id, two.id])));
        let three = alloc(3, "b", &[81], &[]);
        assert_eq!(doubly_held([&one, &three].into_iter()), None);
        let mut elsewhere = two;
        elsewhere.ports[0].host_ip = "10.0.0.1".to_owned();
        assert_eq!(doubly_held([&one, &elsewhere].into_iter()), None);
    }
}
