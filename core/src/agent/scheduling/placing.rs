//! Placement of new allocations: whether this node can run them, with which ports and devices, and
//! which allocation they replace.

use super::evaluations::Unplaced;
use super::stop_alloc;
use crate::agent::{Agent, Machine, cx};
use crate::alloc::remote::RemotePrevious;
use crate::alloc::runner::AllocRunner;
use crate::claims::Held;
use crate::device::choose::{self, choose};
use crate::ids::{AllocId, JobKey};
use crate::local::reconcile::{self, Placement};
use crate::local::{constraint, ports};
use crate::model::device::AssignedDevices;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::store::record::{AllocRecord, AssignedPort, JobRecord};
use crate::time::Now;

/// What of this machine an allocation gets for itself alone, and who ends for that.
pub(super) struct Claim {
    pub(super) ports: Vec<AssignedPort>,
    pub(super) devices: Vec<AssignedDevices>,
    pub(super) preempts: Vec<AllocId>,
}

/// Why a copy of a group is not placed.
pub(super) enum NotPlaced {
    /// Something that it lacks may still be found on this machine.
    Unknown,
    /// What it lacks.
    Failed(String),
}

/// How many that could not take over their disk may follow each other before one between them and the
/// oldest disk is given up.
const MAX_DISKS: usize = 16;

impl Agent {
    pub(super) fn place_all(
        &mut self,
        now: Now,
        key: &JobKey,
        record: &JobRecord,
        placements: Vec<Placement>,
    ) -> Vec<AllocId> {
        let mut unplaced = Unplaced::default();
        let mut placed = Vec::new();
        for placement in placements {
            let group = placement.group.clone();
            let renewed = placement.previous.filter(|_| placement.renews);
            // What one copy did not get from others, the next does not get either.
            let first = !unplaced.names(group.as_str());
            match self.place(now, key, record, placement, first) {
                Ok(id) => {
                    placed.push(id);
                    placed.extend(self.preempt(now, id));
                    placed.extend(self.end_renewed(now, renewed));
                }
                Err(why) => unplaced.add(group.as_str(), why),
            }
        }
        self.note_plan(now, key, unplaced);
        placed
    }

    /// The place of this allocation is taken by one of the new version.
    fn end_renewed(&mut self, now: Now, renewed: Option<AllocId>) -> Option<AllocId> {
        let alloc = self.allocs.get_mut(&renewed?)?;
        let cx = &mut cx(&self.config, &mut self.shared, now);
        stop_alloc(cx, alloc, reconcile::UPDATING);
        renewed
    }

    /// What an allocation did not take over from another node, for the one that replaces it. If it
    /// was replaced already, it passed that on then, and what came here since is newer.
    fn passed_on(&self, previous: Option<AllocId>) -> Option<RemotePrevious> {
        let previous = self.allocs.get(&previous?)?.record();
        previous.remote.clone().filter(|_| previous.next.is_none())
    }

    fn place(
        &mut self,
        now: Now,
        key: &JobKey,
        record: &JobRecord,
        placement: Placement,
        may_preempt: bool,
    ) -> Result<AllocId, NotPlaced> {
        let job = &record.job;
        let group = job.group(placement.group.as_str());
        let group = group.ok_or_else(|| NotPlaced::Failed("no such group".to_owned()))?;
        self.admits(job, group)?;
        let awaited = self.last_that_ran(placement.previous);
        let mut inherits = self.disks_for(group, placement.previous);
        let passed_on = self.passed_on(placement.previous);
        let claim = self.claim(now, group, awaited, &[]);
        // Who is replaced without having had its turn gives back what it has: that may be all it takes.
        let may_preempt = may_preempt && !self.gives_back(placement.previous, awaited);
        let claim = claim.or_else(|why| {
            let from_others = || self.claim_from_others(now, job, group, awaited);
            let claim = may_preempt.then(from_others).flatten();
            claim.ok_or_else(|| match wants_devices(group) {
                true => self.unless_unknown(why),
                false => NotPlaced::Failed(why),
            })
        })?;
        let handed = self.handed_to(key, &placement.group, placement.index);
        let migrates = group.ephemeral_disk.is_some_and(|disk| disk.migrate);
        if migrates {
            // What another node has is newer than what ran here. Who was to get it before may hold it.
            let allocs = &self.allocs;
            let was_to_get_it = |id: &AllocId| {
                let alloc = allocs.get(id);
                alloc
                    .is_some_and(|alloc| alloc.fetches_disk() && alloc.record().remote == passed_on)
            };
            match (&handed, &passed_on) {
                (Some(_), _) => inherits.clear(),
                (None, Some(_)) => inherits.retain(was_to_get_it),
                (None, None) => {}
            }
        }
        let remote = handed.or(passed_on);
        let eval = self.latest_eval(key);
        let mut cx = cx(&self.config, &mut self.shared, now);
        let (id, index) = (cx.alloc_id(), cx.next_index());
        let alloc = AllocRecord {
            id,
            name: format!("{}.{}[{}]", job.id, group.name, placement.index).into(),
            index: placement.index,
            job: key.clone(),
            job_version: job.version,
            group: placement.group,
            eval: eval.unwrap_or_default(),
            deployment: record.deployment,
            previous: awaited,
            inherits,
            remote,
            reschedules: placement.reschedules,
            status_description: "No tasks have started".into(),
            ports: claim.ports,
            devices: claim.devices,
            preempts: claim.preempts,
            create_time: now.wall,
            modify_time: now.wall,
            create_index: index,
            modify_index: index,
            ..AllocRecord::default()
        };
        let runner = AllocRunner::new(&mut cx, alloc, job.clone());
        let previous = placement
            .previous
            .and_then(|previous| self.allocs.get_mut(&previous));
        if let Some(previous) = previous {
            previous.edit(&mut cx, |record| record.next = Some(id));
        }
        self.allocs.insert(id, runner);
        self.local.allocs.entry(key.clone()).or_default().insert(id);
        Ok(id)
    }

    /// The ports and devices of a group, if those that it needs are free once `yielding` ended.
    ///
    /// # Errors
    /// What there is not enough of.
    pub(super) fn claim(
        &mut self,
        now: Now,
        group: &TaskGroup,
        awaited: Option<AllocId>,
        yielding: &[AllocId],
    ) -> Result<Claim, String> {
        let yields = |alloc: &&AllocRecord| yielding.contains(&alloc.id);
        let holders = self.holders(awaited);
        let (ending, holders): (Vec<_>, Vec<_>) = holders.partition(yields);
        let (held, ending) = (Held::by(&holders), Held::by(&ending));
        let cx = &mut cx(&self.config, &mut self.shared, now);
        Ok(Claim {
            ports: ports::assign(cx, group, &held.ports, &ending.ports)?,
            devices: devices_for(group, &self.machine, held.devices)?,
            preempts: Vec::new(),
        })
    }

    /// The allocation whose end a replacement of `previous` awaits. One that never ran may be over
    /// while the one that it was to replace itself still lives.
    fn last_that_ran(&self, previous: Option<AllocId>) -> Option<AllocId> {
        let mut last = previous;
        while let Some(alloc) = last.and_then(|id| self.allocs.get(&id))
            && alloc.never_ran()
            && let Some(before) = alloc.record().previous
            && self
                .allocs
                .get(&before)
                .is_some_and(|alloc| !alloc.record().finished)
        {
            last = Some(before);
        }
        last
    }

    /// Whether `previous` is not the one that is awaited, and still has what it was given though nobody
    /// told it to go so far.
    fn gives_back(&self, previous: Option<AllocId>, awaited: Option<AllocId>) -> bool {
        let previous = previous.filter(|_| previous != awaited);
        let previous = previous.and_then(|id| self.allocs.get(&id));
        let record = previous.map(AllocRunner::record);
        record.is_some_and(|record| !record.finished && !record.desired.is_terminal())
    }

    /// Whose disks a replacement of `previous` takes over. One that could not take over what it
    /// was to get passes that on; what is being cleaned away is nobody's.
    fn disks_for(&self, group: &TaskGroup, previous: Option<AllocId>) -> Vec<AllocId> {
        let disk = group.ephemeral_disk.unwrap_or_default();
        let keeps = disk.sticky || disk.migrate;
        let Some(previous) = previous
            .filter(|_| keeps)
            .and_then(|id| self.allocs.get(&id))
        else {
            return Vec::new();
        };
        let stays = |id: &AllocId| {
            let alloc = self.allocs.get(id).map(|alloc| alloc.record());
            alloc.is_some_and(|alloc| !alloc.destroying)
        };
        let record = previous.record();
        let passed_on = record.inherits.iter().copied();
        let all = core::iter::once(record.id).chain(passed_on);
        let mut disks: Vec<AllocId> = all.filter(stays).collect();
        // Of too many the oldest stays: those between came to nothing, and it had a task.
        if disks.len() > MAX_DISKS {
            disks.remove(MAX_DISKS - 1);
        }
        disks
    }

    /// Whether this node can run the group, in words for whoever asks before placing anything.
    pub(in crate::agent) fn check_admission(
        &self,
        job: &Job,
        group: &TaskGroup,
    ) -> Result<(), String> {
        self.admits(job, group).map_err(|why| match why {
            NotPlaced::Unknown => {
                "the node does not know yet what it has; try again soon".to_owned()
            }
            NotPlaced::Failed(why) => why,
        })
    }

    /// Whether this node can run the group.
    fn admits(&self, job: &Job, group: &TaskGroup) -> Result<(), NotPlaced> {
        let node = &self.config.node;
        if !constraint::datacenter_matches(&job.datacenters, &node.datacenter) {
            return Err(NotPlaced::Failed(format!(
                "no node in datacenters {}",
                job.datacenters.join(", ")
            )));
        }
        for task in &group.tasks {
            let known = node.drivers.get(&task.driver);
            if !known.is_some_and(|driver| driver.detected && driver.healthy) {
                let (driver, name) = (&task.driver, &task.name);
                return Err(match known {
                    Some(_) => NotPlaced::Failed(format!(
                        "driver \"{driver}\" of task \"{name}\" does not work now"
                    )),
                    None => self.unless_unknown(format!(
                        "driver \"{driver}\" of task \"{name}\" is not there"
                    )),
                });
            }
        }
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let constraints = job
            .constraints
            .iter()
            .chain(&group.constraints)
            .chain(of_tasks);
        constraint::check_node(node, constraints)
            .map_err(|why| self.unless_unknown(format!("Constraint \"{why}\" failed")))
    }

    /// This is why a group is not placed, if nobody may still tell of what it lacks.
    fn unless_unknown(&self, why: String) -> NotPlaced {
        match self.machine.awaits_first_news() {
            true => NotPlaced::Unknown,
            false => NotPlaced::Failed(why),
        }
    }

    /// Whose ports and devices may not be given away: their holders are not gone yet. The
    /// allocation that is replaced does not count, because its replacement awaits its end; what it
    /// could not clean away does.
    pub(super) fn holders(&self, except: Option<AllocId>) -> impl Iterator<Item = &AllocRecord> {
        let holds = move |alloc: &&AllocRunner| {
            let record = alloc.record();
            (!record.finished && Some(record.id) != except) || alloc.has_remains()
        };
        let holders = self.allocs.values().filter(holds);
        holders.map(|alloc| &**alloc.record())
    }
}

/// Whether a task of a group asks for devices.
fn wants_devices(group: &TaskGroup) -> bool {
    let mut tasks = group.tasks.iter();
    tasks.any(|task| !task.resources.devices.is_empty())
}

/// The devices that the tasks of a group get.
fn devices_for(
    group: &TaskGroup,
    machine: &Machine,
    mut held: choose::Held,
) -> Result<Vec<AssignedDevices>, String> {
    if !wants_devices(group) {
        return Ok(Vec::new());
    }
    let offers = machine.devices().offers();
    let mut assigned = Vec::new();
    for task in &group.tasks {
        for request in &task.resources.devices {
            assigned.push(choose(task.name.as_str(), request, &offers, &mut held)?);
        }
    }
    Ok(assigned)
}
