//! Placement of new allocations: with which ports and devices, which allocation they replace, and whose
//! disks they take over.
//!
//! A copy gets what is free, and what the allocations before it in its slot hold: those end, or end for it.
//! All others keep what they hold until they are gone, unless they are preempted. When it starts is not
//! decided here ([`crate::claims`]).

use std::collections::{BTreeMap, BTreeSet};

use super::feasibility::{admits, unless_unknown};
use super::reconcile::Placement;
use super::{Action, AllocState, NewAlloc, NotPlaced, Plan, Snapshot, network, ports};
use crate::claims::resources::{Amounts, Capacity};
use crate::claims::{Held, Holding};
use crate::cx::Rng;
use crate::device::choose::{self, Offer, choose};
use crate::ids::{AllocId, GroupName, JobKey, Slot};
use crate::model::alloc::DesiredStatus;
use crate::model::device::AssignedDevices;
use crate::model::group::TaskGroup;
use crate::model::network::Ipv4;
use crate::model::placement::{PlacementFailure, Shortage};
use crate::store::disk::Disk;
use crate::store::record::{AllocRecord, AssignedCores, AssignedPort, JobRecord};

/// What of this machine an allocation gets for itself alone, and who ends for that.
pub(super) struct Claim {
    pub(super) ports: Vec<AssignedPort>,
    pub(super) devices: Vec<AssignedDevices>,
    pub(super) cores: Vec<AssignedCores>,
    pub(super) preempts: Vec<AllocId>,
}

/// A plan in the making: the snapshot, and what was decided so far.
pub(super) struct Pass<'a> {
    pub(super) snapshot: &'a Snapshot<'a>,
    pub(super) rng: Rng,
    pub(super) actions: Vec<Action>,
    /// The records of those that are told to end, as they are then.
    ending: BTreeMap<AllocId, AllocRecord>,
    /// What is made, with what it holds of counted resources.
    placed: Vec<(AllocRecord, Amounts)>,
    /// The groups of which a copy lacked counted resources. What is placed only takes more of them.
    short: BTreeMap<(JobKey, GroupName), Short>,
}

/// A group of which a copy lacked counted resources.
struct Short {
    /// What it lacked.
    why: PlacementFailure,
    /// The slots of the group in which something may be alive, which its next copy need not count: index and lane.
    occupied: BTreeSet<(u32, u8)>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>) -> Pass<'a> {
        Pass {
            snapshot,
            rng: snapshot.rng.clone(),
            actions: Vec::new(),
            ending: BTreeMap::new(),
            placed: Vec::new(),
            short: BTreeMap::new(),
        }
    }

    pub(super) fn into_plan(self, rest: Vec<JobKey>) -> Plan {
        Plan {
            actions: self.actions,
            rest,
            rng: self.rng,
        }
    }

    /// Whether what was decided has to happen before anything else is: an allocation ends, or its job is planned anew
    /// as another version, before those of lower priority.
    pub(super) fn is_over(&self) -> bool {
        let last = self.actions.last();
        let plans_anew =
            last.is_some_and(|last| matches!(last, Action::Promote(..) | Action::Revert(..)));
        plans_anew || !self.ending.is_empty()
    }

    /// An allocation is told to end.
    pub(super) fn stop(&mut self, id: AllocId) {
        self.ends(id, DesiredStatus::Stop);
    }

    fn ends(&mut self, id: AllocId, desired: DesiredStatus) {
        let Some(alloc) = self.snapshot.alloc(id) else {
            return;
        };
        let mut record = self.record(alloc).clone();
        if record.desired == DesiredStatus::Run {
            record.desired = desired;
        }
        self.ending.insert(id, record);
    }

    /// The allocations that it makes so far.
    pub(super) fn placed(&self) -> impl Iterator<Item = &AllocRecord> {
        self.placed.iter().map(|(record, _)| record)
    }

    /// The record of an allocation, as it is after what was decided.
    pub(super) fn record<'b>(&'b self, alloc: &AllocState<'a>) -> &'b AllocRecord {
        self.ending.get(&alloc.record.id).unwrap_or(alloc.record)
    }

    /// Decides how a copy of a group is placed.
    ///
    /// # Errors
    /// Why it cannot be placed now.
    pub(super) fn place(
        &mut self,
        key: &JobKey,
        record: &JobRecord,
        placement: Placement,
        may_preempt: bool,
    ) -> Result<NewAlloc, NotPlaced> {
        let latest = &record.job;
        let job = placement.version.as_ref().unwrap_or(latest);
        let deployment = record.deployment.filter(|_| placement.version.is_none());
        let group = job.group(placement.group.as_str());
        let group = group.ok_or(NotPlaced::Failed(PlacementFailure::NoSuchGroup))?;
        if let Some(refusal) = self.snapshot.node_record.refusal() {
            return Err(NotPlaced::Failed(refusal));
        }
        let unknown = self.snapshot.awaits_first_reports;
        admits(self.snapshot.node, unknown, job, group, placement.index)?;
        let slot = Slot {
            job: key.clone(),
            group: placement.group.clone(),
            index: placement.index,
            lane: placement.lane,
            alloc: None,
        };
        let is_latest = placement.version.is_none();
        let free = match self.known_shortage(&slot, is_latest) {
            Some(why) => Err(why),
            None => self.claim(group, &slot, &[]),
        };
        let from_others = |pass: &mut Pass<'a>| {
            let preempting = may_preempt.then(|| pass.claim_by_preemption(job, group, &slot));
            preempting.flatten()
        };
        let claim = match free {
            Ok(claim) => claim,
            Err(why) => match from_others(self) {
                Some(claim) => claim,
                None => return Err(self.not_placed(group, &slot, is_latest, why)),
            },
        };
        let id = self.rng.alloc_id();
        let network = network::assign(self.snapshot.node, id, group, &self.addresses())
            .map_err(NotPlaced::Failed)?;
        let alloc = AllocRecord {
            id,
            name: format!("{}.{}[{}]", job.id, group.name, placement.index).into(),
            index: placement.index,
            lane: placement.lane,
            canary: placement.canary,
            job: key.clone(),
            job_version: job.version,
            group: placement.group,
            deployment,
            previous: placement.previous,
            reschedules: placement.reschedules,
            status_description: "No tasks have started".into(),
            ports: claim.ports,
            network,
            devices: claim.devices,
            cores: claim.cores,
            preempts: claim.preempts,
            ..AllocRecord::default()
        };
        let disk = self.disk(&alloc, group);
        let evicts = self.evict(&alloc.preempts);
        let outdated = placement.previous.filter(|_| placement.replaces_outdated);
        outdated.into_iter().for_each(|id| self.stop(id));
        let amounts = Amounts::of(group, self.snapshot.capacity.core_mhz);
        self.placed.push((alloc.clone(), amounts));
        Ok(NewAlloc {
            disk,
            record: alloc,
            job: job.clone(),
            evicts,
            outdates: outdated.is_some(),
        })
    }

    /// Why a copy is not placed that gets nothing from others either.
    fn not_placed(
        &mut self,
        group: &TaskGroup,
        slot: &Slot,
        is_latest: bool,
        why: PlacementFailure,
    ) -> NotPlaced {
        if is_latest && matches!(why, PlacementFailure::Shortage(_)) {
            self.note_shortage(slot, &why);
        }
        match needs_devices(group) {
            true => unless_unknown(self.snapshot.awaits_first_reports, why),
            false => NotPlaced::Failed(why),
        }
    }

    /// What a copy lacks of counted resources, if one like it lacked them before: where thousands wait, the first of
    /// them has counted for all. Copies of the latest version are alike, unless something lives in their slot.
    fn known_shortage(&self, slot: &Slot, is_latest: bool) -> Option<PlacementFailure> {
        let short = self.short.get(&(slot.job.clone(), slot.group.clone()))?;
        let is_alike = is_latest && !short.occupied.contains(&(slot.index, slot.lane));
        is_alike.then(|| short.why.clone())
    }

    fn note_shortage(&mut self, slot: &Slot, why: &PlacementFailure) {
        let key = (slot.job.clone(), slot.group.clone());
        if self.short.contains_key(&key) {
            return;
        }
        let ids = self.snapshot.allocs_of.get(&slot.job).into_iter().flatten();
        let allocs = ids.filter_map(|id| self.snapshot.alloc(*id));
        let occupied = allocs.filter(|alloc| !alloc.is_gone() && alloc.record.group == slot.group);
        let short = Short {
            why: why.clone(),
            occupied: occupied
                .map(|alloc| (alloc.record.index, alloc.record.lane))
                .collect(),
        };
        self.short.insert(key, short);
    }

    /// Tells those to end whose claims another gets. Returns who was not told before.
    fn evict(&mut self, preempted: &[AllocId]) -> Vec<AllocId> {
        let runs = |id: &AllocId| {
            let alloc = self.snapshot.alloc(*id);
            // Who was told already is only awaited.
            alloc.is_some_and(|alloc| !self.record(alloc).desired.is_terminal())
        };
        let evicts: Vec<AllocId> = preempted.iter().copied().filter(runs).collect();
        for id in &evicts {
            self.ends(*id, DesiredStatus::Evict);
        }
        evicts
    }

    /// The disk of the slot of a new allocation, as it is from then on.
    fn disk(&self, alloc: &AllocRecord, group: &TaskGroup) -> Option<Disk> {
        let known = self.snapshot.disks.get(&alloc.slot());
        let known = known.map(|disk| Disk::clone(disk));
        let disk = known.unwrap_or_else(|| Disk::of(alloc.previous));
        let keeps = |id: AllocId| {
            let alloc = self.snapshot.alloc(id);
            alloc.is_some_and(|alloc| !alloc.record.destroying)
        };
        let settings = group.ephemeral_disk.unwrap_or_default();
        disk.placed(alloc.id, settings, keeps)
    }

    /// What a copy of a group gets, if all that it needs is free once `preempted` ended.
    ///
    /// # Errors
    /// What there is not enough of.
    pub(super) fn claim(
        &mut self,
        group: &TaskGroup,
        slot: &Slot,
        preempted: &[AllocId],
    ) -> Result<Claim, PlacementFailure> {
        let is_preempted = |(alloc, _): &Holding<'_>| preempted.contains(&alloc.id);
        let holders = self.holders(slot);
        let (ending, holders): (Vec<_>, Vec<_>) = holders.partition(is_preempted);
        let (mut held, ending) = (Held::by(holders), Held::by(ending));
        let Snapshot { node, capacity, .. } = self.snapshot;
        let cores = cores_for(group, capacity, held.cores).map_err(PlacementFailure::Shortage)?;
        let wanted = Amounts::of(group, capacity.core_mhz);
        if let Some(short) = capacity.shortage(held.amounts, wanted) {
            return Err(PlacementFailure::Shortage(short));
        }
        Ok(Claim {
            cores,
            ports: ports::assign(node, &mut self.rng, group, &held.ports, &ending.ports)?,
            devices: devices_for(group, &self.snapshot.offers, &mut held.devices)?,
            preempts: Vec::new(),
        })
    }

    /// The addresses behind the bridge that somebody has, whoever that is.
    fn addresses(&self) -> BTreeSet<Ipv4> {
        let here = self.snapshot.allocs.iter().filter(|it| !it.is_gone());
        let here = here.filter_map(|alloc| alloc.record.address());
        let placed = self.placed.iter();
        here.chain(placed.filter_map(|(record, _)| record.address()))
            .collect()
    }

    /// Who holds what a copy may not be given: all that are not gone but those before it in its slot.
    pub(super) fn holders<'b>(&'b self, slot: &'b Slot) -> impl Iterator<Item = Holding<'b>> {
        let holds = move |alloc: &&AllocState<'_>| !alloc.is_gone() && !alloc.record.is_for(slot);
        let holders = self.snapshot.allocs.iter().filter(holds);
        let holders = holders.map(|alloc| (self.record(alloc), alloc.amounts));
        let placed = self
            .placed
            .iter()
            .map(|(record, amounts)| (record, *amounts));
        holders.chain(placed)
    }
}

/// The cores that the tasks of a group get for themselves.
fn cores_for(
    group: &TaskGroup,
    capacity: &Capacity,
    mut held: BTreeSet<u32>,
) -> Result<Vec<AssignedCores>, Shortage> {
    let mut assigned = Vec::new();
    for task in &group.tasks {
        let wanted = usize::try_from(task.resources.cores).unwrap_or(0);
        if wanted > 0 && capacity.cpu.is_some() {
            let ids = capacity.cores(wanted, &held)?;
            held.extend(&ids);
            let task = task.name.clone();
            assigned.push(AssignedCores { task, ids });
        }
    }
    Ok(assigned)
}

/// Whether a task of a group asks for devices.
fn needs_devices(group: &TaskGroup) -> bool {
    let mut tasks = group.tasks.iter();
    tasks.any(|task| !task.resources.devices.is_empty())
}

/// The devices that the tasks of a copy of a group get; they are held then.
///
/// # Errors
/// There are too few.
pub(crate) fn devices_for(
    group: &TaskGroup,
    offers: &[Offer<'_>],
    held: &mut choose::Held,
) -> Result<Vec<AssignedDevices>, PlacementFailure> {
    if !needs_devices(group) {
        return Ok(Vec::new());
    }
    let mut assigned = Vec::new();
    for task in &group.tasks {
        for request in &task.resources.devices {
            assigned.push(choose(task.name.as_str(), request, offers, held)?);
        }
    }
    Ok(assigned)
}
