//! Preemption: the ports, devices, cores, CPU, memory and disk space that a job of higher priority
//! takes from other allocations, which end for it. Which types of jobs may do so is a setting. Nobody
//! is preempted for what is free.
//!
//! - The candidates are the holders of what is wanted whose jobs have a priority lower by
//!   [`PREEMPTION_MARGIN`] or more. If taking from all of them is not enough, none is preempted.
//!   Otherwise those with a wanted port are taken, then the others one by one until the claim can
//!   be met, and last each is spared that turns out not to be needed.
//! - Each is told to end (`Evict`), in one commit with the new allocation, whose record names them for people
//!   (`preempts`). It starts when its claims are granted, as any other ([`crate::claims`]).
//! - An allocation that was told to end before is awaited too. One that ends by itself is not
//!   preempted: after a crash it might run again, and its work would be done twice.
//! - No two jobs can push each other out, since each step goes down by the margin; and jobs are
//!   placed in the order of their priority, so that nothing is placed only to be preempted at once.
//!
//! See `docs/preemption.md` for what users see.

use core::cmp::Reverse;

use super::AllocState;
use super::placing::{Claim, Pass};
use crate::claims::Held;
use crate::claims::resources::Amounts;
use crate::ids::{AllocId, Slot};
use crate::model::device::DeviceRequest;
use crate::model::group::{Port, TaskGroup};
use crate::model::job::Job;
use crate::model::network::DEFAULT_HOST_NETWORK;
use crate::store::record::AllocRecord;

/// By how much the priority of a job must exceed that of those it preempts, as in Nomad: 10 of the
/// 100 steps.
pub const PREEMPTION_MARGIN: i64 = 10;

/// A copy of a group preempts no more allocations than this.
const MAX_PREEMPTED: usize = 64;

/// An allocation that may be preempted for a group.
struct PreemptionCandidate {
    /// Whom to ask first: those that were told to go, then those of the lowest priority, and of those the youngest,
    /// which have the least to lose.
    order: (bool, i64, Reverse<u64>),
    id: AllocId,
    /// Whether it has a port that the group wants by its number: then it has to go.
    has_port: bool,
}

impl Pass<'_> {
    /// What the group needs and does not get because others hold it that were told to go or are of
    /// lower priority: taken from as few of them as it can be, of the lowest priority. None if
    /// that is not enough.
    pub(super) fn claim_by_preemption(
        &mut self,
        job: &Job,
        group: &TaskGroup,
        slot: &Slot,
    ) -> Option<Claim> {
        if !self.snapshot.preemption.is_allowed(job.job_type) {
            return None;
        }
        let all = self.preemption_candidates(job, group, slot);
        let ids = |all: &[PreemptionCandidate]| all.iter().map(|one| one.id).collect::<Vec<_>>();
        self.claim(group, slot, &ids(&all)).ok()?;
        let (with_port, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| one.has_port);
        let mut given = ids(&with_port);
        let mut claim = self.claim(group, slot, &given).ok();
        let mut others = others.into_iter();
        while claim.is_none() && given.len() < MAX_PREEMPTED {
            given.push(others.next()?.id);
            claim = self.claim(group, slot, &given).ok();
        }
        // Some may have been taken in vain, before the one that mattered.
        for at in (with_port.len()..given.len()).rev() {
            let mut fewer = given.clone();
            fewer.remove(at);
            if claim.is_some()
                && let Ok(enough) = self.claim(group, slot, &fewer)
            {
                (given, claim) = (fewer, Some(enough));
            }
        }
        claim
            .filter(|_| given.len() <= MAX_PREEMPTED)
            .map(|claim| Claim {
                preempts: given,
                ..claim
            })
    }

    /// The candidates for preemption, in the order in which they are taken.
    fn preemption_candidates(
        &self,
        job: &Job,
        group: &TaskGroup,
        slot: &Slot,
    ) -> Vec<PreemptionCandidate> {
        let capacity = &self.snapshot.capacity;
        let held = Held::by(self.holders(slot)).amounts;
        let missing = capacity.missing(held, Amounts::of(group, capacity.core_mhz));
        // Of an earlier version that is placed again, the job's priority now counts: a job preempts nothing of
        // its own.
        let now = self.snapshot.jobs.get(&slot.job);
        let own_priority = now.map_or(job.priority, |now| now.job.priority);
        let as_candidate = |alloc: &AllocState<'_>| {
            let record = self.record(alloc);
            let (has_port, has_device) = holds_some_of(record, group);
            let holder = self.snapshot.jobs.get(&record.job);
            let priority = holder.map_or(i64::MIN, |holder| holder.job.priority);
            // That it goes is remembered; of what ends otherwise, a crash may make something that
            // runs again.
            let was_told = record.desired.is_terminal();
            let goes =
                was_told || (!alloc.is_completing && priority <= own_priority - PREEMPTION_MARGIN);
            let has_some = has_port || has_device || alloc.amounts.overlaps(missing);
            (goes && has_some).then_some(PreemptionCandidate {
                order: (!was_told, priority, Reverse(record.create_index)),
                id: record.id,
                has_port,
            })
        };
        let holders = self.snapshot.allocs.iter().filter(|alloc| {
            let record = alloc.record;
            // What servers placed is not this node's to end.
            !record.finished && !record.is_for(slot) && !record.of_servers
        });
        let mut all: Vec<_> = holders.filter_map(as_candidate).collect();
        all.sort_unstable_by_key(|one| one.order);
        all
    }
}

/// Whether an allocation holds a port that the group wants by its number, and a device of a kind that
/// it wants or a core.
fn holds_some_of(alloc: &AllocRecord, group: &TaskGroup) -> (bool, bool) {
    let wanted = group.networks.first().into_iter();
    let mut ports = wanted.flat_map(|network| &network.reserved_ports);
    let holds = |port: &Port| {
        let name = match port.host_network() {
            DEFAULT_HOST_NETWORK => "",
            name => name,
        };
        let mut held = alloc.ports.iter();
        held.any(|held| i64::from(held.value) == port.value && held.host_network == name)
    };
    let mut requests = group.tasks.iter().flat_map(|task| &task.resources.devices);
    let of_kind = |request: &DeviceRequest| {
        let mut held = alloc.devices.iter();
        held.any(|held| held.group.answers_to(&request.name))
    };
    let wants_cores = (group.tasks.iter()).any(|task| task.resources.cores > 0);
    (
        ports.any(holds),
        requests.any(of_kind) || wants_cores && !alloc.cores.is_empty(),
    )
}
