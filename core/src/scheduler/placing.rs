//! Placement of new allocations: with which ports and devices, which allocation they replace, and whose
//! disks they take over.
//!
//! A copy gets what is free, and what the allocations before it in its slot hold: those end, or end for it.
//! All others keep what they hold until they are gone, unless they are preempted. When it starts is not
//! decided here ([`crate::claims`]).

use std::collections::{BTreeMap, BTreeSet};

use super::feasibility::{admits, unless_unknown};
use super::reconcile::Placement;
use super::{Action, AllocState, NewAlloc, NotPlaced, Plan, Snapshot, ports};
use crate::claims::resources::{Amounts, Capacity};
use crate::claims::{Held, Holding};
use crate::cx::Rng;
use crate::device::choose::{self, Offer, choose};
use crate::ids::{AllocId, GroupName, JobKey};
use crate::model::alloc::DesiredStatus;
use crate::model::device::AssignedDevices;
use crate::model::group::TaskGroup;
use crate::model::placement::{PlacementFailure, Shortage};
use crate::model::remote::RemotePrevious;
use crate::store::record::{AllocRecord, AssignedCores, AssignedPort, JobRecord};

/// What of this machine an allocation gets for itself alone, and who ends for that.
pub(super) struct Claim {
    pub(super) ports: Vec<AssignedPort>,
    pub(super) devices: Vec<AssignedDevices>,
    pub(super) cores: Vec<AssignedCores>,
    pub(super) preempts: Vec<AllocId>,
}

/// A copy of a group.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    job: &'a JobKey,
    group: &'a GroupName,
    index: u32,
}

impl Slot<'_> {
    /// Whether an allocation is for this copy.
    pub(super) fn is_of(self, alloc: &AllocRecord) -> bool {
        (&alloc.job, &alloc.group, alloc.index) == (self.job, self.group, self.index)
    }
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
}

/// How many that could not take over their disk may follow each other before one between them and the
/// oldest disk is given up.
const MAX_DISKS: usize = 16;

impl<'a> Pass<'a> {
    pub(super) fn new(snapshot: &'a Snapshot<'a>) -> Pass<'a> {
        Pass {
            snapshot,
            rng: snapshot.rng.clone(),
            actions: Vec::new(),
            ending: BTreeMap::new(),
            placed: Vec::new(),
        }
    }

    pub(super) fn into_plan(self, rest: Vec<JobKey>) -> Plan {
        Plan {
            actions: self.actions,
            rest,
            rng: self.rng,
        }
    }

    /// Whether an allocation ends for what was decided.
    pub(super) fn ends_something(&self) -> bool {
        !self.ending.is_empty()
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

    /// The record of an allocation, as it is after what was decided.
    pub(super) fn record<'b>(&'b self, alloc: &AllocState<'a>) -> &'b AllocRecord {
        self.ending.get(&alloc.record.id).unwrap_or(alloc.record)
    }

    /// What an allocation did not take over from another node, for the one that replaces it. If it
    /// was replaced already, it passed that on then, and what came here since is newer.
    fn passed_on(&self, previous: Option<AllocId>) -> Option<RemotePrevious> {
        let previous = self.snapshot.alloc(previous?)?.record;
        previous.remote.clone().filter(|_| previous.next.is_none())
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
        let job = &record.job;
        let group = job.group(placement.group.as_str());
        let group = group.ok_or(NotPlaced::Failed(PlacementFailure::NoSuchGroup))?;
        let unknown = self.snapshot.awaits_first_reports;
        admits(self.snapshot.node, unknown, job, group)?;
        let slot = Slot {
            job: key,
            group: &placement.group,
            index: placement.index,
        };
        let claim = self.claim(group, slot, &[]);
        let claim = claim.or_else(|why| {
            let from_others = || self.claim_from_others(job, group, slot);
            let claim = may_preempt.then(from_others).flatten();
            claim.ok_or_else(|| match wants_devices(group) {
                true => unless_unknown(unknown, why),
                false => NotPlaced::Failed(why),
            })
        })?;
        let (inherits, remote, takes_over) = self.disks(record, group, &placement);
        let alloc = AllocRecord {
            id: self.rng.alloc_id(),
            name: format!("{}.{}[{}]", job.id, group.name, placement.index).into(),
            index: placement.index,
            job: key.clone(),
            job_version: job.version,
            group: placement.group,
            deployment: record.deployment,
            previous: placement.previous,
            inherits,
            remote,
            reschedules: placement.reschedules,
            status_description: "No tasks have started".into(),
            ports: claim.ports,
            devices: claim.devices,
            cores: claim.cores,
            preempts: claim.preempts,
            ..AllocRecord::default()
        };
        let evicts = self.evict(&alloc.preempts);
        let outdated = placement.previous.filter(|_| placement.renews);
        outdated.into_iter().for_each(|id| self.stop(id));
        let amounts = Amounts::of(group, self.snapshot.capacity.core_mhz);
        self.placed.push((alloc.clone(), amounts));
        Ok(NewAlloc {
            record: alloc,
            job: job.clone(),
            takes_over,
            evicts,
            outdates: outdated.is_some(),
        })
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

    /// Whose disks a new allocation takes over: on this node, and on another; and whether that other is
    /// the one that the job remembers for it.
    fn disks(
        &self,
        record: &JobRecord,
        group: &TaskGroup,
        placement: &Placement,
    ) -> (Vec<AllocId>, Option<RemotePrevious>, bool) {
        let mut inherits = self.disks_for(group, placement.previous);
        let passed_on = self.passed_on(placement.previous);
        let mut handed = record.handed.iter();
        let handed = handed.find(|handed| handed.is_for(&placement.group, placement.index));
        let handed = handed.map(|handed| handed.from.clone());
        let migrates = group.ephemeral_disk.is_some_and(|disk| disk.migrate);
        if migrates {
            // What another node has is newer than what ran here. Who was to get it before may hold it.
            let was_to_get_it = |id: &AllocId| {
                let alloc = self.snapshot.alloc(*id);
                alloc.is_some_and(|alloc| alloc.fetches_disk && alloc.record.remote == passed_on)
            };
            match (&handed, &passed_on) {
                (Some(_), _) => inherits.clear(),
                (None, Some(_)) => inherits.retain(was_to_get_it),
                (None, None) => {}
            }
        }
        let takes_over = handed.is_some();
        (inherits, handed.or(passed_on), takes_over)
    }

    /// What a copy of a group gets, if all that it needs is free once `yielding` ended.
    ///
    /// # Errors
    /// What there is not enough of.
    pub(super) fn claim(
        &mut self,
        group: &TaskGroup,
        slot: Slot<'_>,
        yielding: &[AllocId],
    ) -> Result<Claim, PlacementFailure> {
        let yields = |(alloc, _): &Holding<'_>| yielding.contains(&alloc.id);
        let holders = self.holders(slot);
        let (ending, holders): (Vec<_>, Vec<_>) = holders.partition(yields);
        let (held, ending) = (Held::by(holders), Held::by(ending));
        let Snapshot { node, capacity, .. } = self.snapshot;
        let cores = cores_for(group, capacity, held.cores).map_err(PlacementFailure::Shortage)?;
        let wanted = Amounts::of(group, capacity.core_mhz);
        if let Some(short) = capacity.shortage(held.amounts, wanted) {
            return Err(PlacementFailure::Shortage(short));
        }
        Ok(Claim {
            cores,
            ports: ports::assign(node, &mut self.rng, group, &held.ports, &ending.ports)?,
            devices: devices_for(group, &self.snapshot.offers, held.devices)?,
            preempts: Vec::new(),
        })
    }

    /// Whose disks a replacement of `previous` takes over. One that could not take over what it
    /// was to get passes that on; what is being cleaned away is nobody's.
    fn disks_for(&self, group: &TaskGroup, previous: Option<AllocId>) -> Vec<AllocId> {
        let disk = group.ephemeral_disk.unwrap_or_default();
        let keeps = disk.sticky || disk.migrate;
        let Some(previous) = previous
            .filter(|_| keeps)
            .and_then(|id| self.snapshot.alloc(id))
        else {
            return Vec::new();
        };
        let stays = |id: &AllocId| {
            let alloc = self.snapshot.alloc(*id);
            alloc.is_some_and(|alloc| !alloc.record.destroying)
        };
        let record = previous.record;
        let passed_on = record.inherits.iter().copied();
        let all = core::iter::once(record.id).chain(passed_on);
        let mut disks: Vec<AllocId> = all.filter(stays).collect();
        // Of too many the oldest stays: those between came to nothing, and it had a task.
        if disks.len() > MAX_DISKS {
            disks.remove(MAX_DISKS - 1);
        }
        disks
    }

    /// Who holds what a copy may not be given: all that are not gone but those before it in its slot.
    pub(super) fn holders(&self, slot: Slot<'_>) -> impl Iterator<Item = Holding<'_>> {
        let holds = move |alloc: &&AllocState<'_>| !alloc.is_gone() && !slot.is_of(alloc.record);
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
fn wants_devices(group: &TaskGroup) -> bool {
    let mut tasks = group.tasks.iter();
    tasks.any(|task| !task.resources.devices.is_empty())
}

/// The devices that the tasks of a group get.
fn devices_for(
    group: &TaskGroup,
    offers: &[Offer<'_>],
    mut held: choose::Held,
) -> Result<Vec<AssignedDevices>, PlacementFailure> {
    if !wants_devices(group) {
        return Ok(Vec::new());
    }
    let mut assigned = Vec::new();
    for task in &group.tasks {
        for request in &task.resources.devices {
            assigned.push(choose(task.name.as_str(), request, offers, &mut held)?);
        }
    }
    Ok(assigned)
}
