//! What a more important group takes from others: the ports and devices of allocations that end
//! for it. Which types of jobs may do so is a setting; nobody is preempted for what is free.

use std::collections::BTreeSet;

use super::Agent;
use super::placing::Claim;
use crate::agent::cx;
use crate::ids::{AllocId, JobKey};
use crate::model::alloc::DesiredStatus;
use crate::model::device::AssignedDevices;
use crate::model::eval::Trigger;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::store::record::AllocRecord;
use crate::time::Now;

/// How much more important a job must be than those whose place it takes, as in the field: 10 of the
/// 100 steps.
pub const PREEMPTION_MARGIN: i64 = 10;

/// A group takes the place of no more allocations than this.
const MAX_PREEMPTED: usize = 64;

impl Agent {
    /// What the group needs and does not get because less important allocations hold it: taken from
    /// as few of them as it can be, of the least important ones. None if that is not enough.
    pub(super) fn claim_from_others(
        &mut self,
        now: Now,
        job: &Job,
        group: &TaskGroup,
        awaited: Option<AllocId>,
    ) -> Option<Claim> {
        if !self.config.preemption.is_allowed(job.job_type) {
            return None;
        }
        let (mut given, mut claim) = (Vec::new(), None);
        for id in self.who_yields(job, group, awaited) {
            given.push(id);
            claim = self.claim(now, group, awaited, &given).ok();
            if claim.is_some() {
                break;
            }
        }
        // Some may have been taken in vain, before the one that mattered.
        for id in given.clone().into_iter().rev() {
            let fewer: Vec<AllocId> = given.iter().copied().filter(|one| *one != id).collect();
            if claim.is_some()
                && let Ok(enough) = self.claim(now, group, awaited, &fewer)
            {
                (given, claim) = (fewer, Some(enough));
            }
        }
        claim.map(|claim| Claim {
            preempts: given,
            ..claim
        })
    }

    /// Who would make room: first those that end anyway, then the least important, and of those the
    /// youngest, which have the least to lose.
    fn who_yields(&self, job: &Job, group: &TaskGroup, awaited: Option<AllocId>) -> Vec<AllocId> {
        let less_important = |alloc: &AllocRecord| {
            let holder = self.local.jobs.get(&alloc.job);
            let priority = holder.map(|holder| holder.job.priority);
            priority.filter(|priority| *priority <= job.priority - PREEMPTION_MARGIN)
        };
        let lives = |alloc: &&AllocRecord| !alloc.finished && holds_some_of(alloc, group);
        let mut all: Vec<_> = (self.holders(awaited).filter(lives))
            .filter_map(|alloc| {
                let youngest = core::cmp::Reverse(alloc.create_index);
                let place = (!alloc.is_terminal(), less_important(alloc)?, youngest);
                Some((place, alloc.id))
            })
            .collect();
        all.sort_unstable();
        all.truncate(MAX_PREEMPTED);
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// Ends those whose place `by` takes. Returns them.
    pub(super) fn preempt(&mut self, now: Now, by: AllocId) -> Vec<AllocId> {
        let preempts = self.allocs.get(&by).map(|by| by.record().preempts.clone());
        let mut jobs: BTreeSet<JobKey> = BTreeSet::new();
        let preempts = preempts.unwrap_or_default();
        for id in &preempts {
            let Some(alloc) = self.allocs.get_mut(id) else {
                continue;
            };
            // What ends anyway, or did what it was to do, is awaited and stays what it was.
            if alloc.record().is_terminal() {
                continue;
            }
            let cx = &mut cx(&self.config, &mut self.shared, now);
            alloc.edit(cx, |record| {
                record.desired = DesiredStatus::Evict;
                record.desired_description = format!("Preempted by alloc ID {by}").into();
                record.preempted_by = Some(by);
            });
            alloc.stop(cx);
            jobs.insert(alloc.job_key().clone());
        }
        for job in jobs {
            self.evaluate(now, &job, Trigger::Preemption);
        }
        preempts
    }
}

/// Whether an allocation holds a port that the group wants by its number, or a device of a kind that
/// it wants.
fn holds_some_of(alloc: &AllocRecord, group: &TaskGroup) -> bool {
    let wanted = group.networks.first().into_iter();
    let wanted = wanted.flat_map(|network| &network.reserved_ports);
    let mut ports = wanted.filter_map(|port| u16::try_from(port.value).ok());
    let requests = group.tasks.iter().flat_map(|task| &task.resources.devices);
    let mut devices = requests.flat_map(|request| {
        let answers = move |held: &&AssignedDevices| held.group.answers_to(&request.name);
        alloc.devices.iter().filter(answers)
    });
    ports.any(|port| alloc.ports.iter().any(|held| held.value == port)) || devices.next().is_some()
}
