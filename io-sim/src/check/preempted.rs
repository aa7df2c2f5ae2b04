//! Who takes whose place, and when.

use drover_core::agent::{Agent, PREEMPTION_MARGIN};
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::device::AssignedDevices;
use drover_core::store::record::{AllocRecord, JobRecord};

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// Whose place is taken is less important by the margin, held something of what is taken, and
    /// its end is awaited by who took it.
    pub(super) fn who_is_preempted_matters_less(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
    ) -> Verdict {
        let record = alloc.record();
        // Later each of them may matter more or less than it did.
        let first = (record.id, record.preempted_by);
        if record.desired != DesiredStatus::Evict || !self.lives.evicted.insert(first) {
            return Ok(());
        }
        self.sometimes(Property::SometimesAPlaceIsTaken, true);
        let view = agent.view();
        let by = record.preempted_by.and_then(|id| view.alloc(id));
        let jobs = by.map(|by| [by, alloc].map(|one| view.job(one.job_key())));
        let right = by.zip(jobs).is_some_and(|(by, jobs)| {
            let [Some(more), Some(less)] = jobs.map(|job| job.map(|job| &job.job)) else {
                return false;
            };
            let may = view.preemption().is_allowed(more.job_type);
            let margin = more.priority - less.priority >= PREEMPTION_MARGIN;
            let awaits = by.record().preempts.contains(&record.id);
            may && margin && awaits && in_common(by.record(), record)
        });
        self.holds(Property::WhoIsPreemptedMattersLess, right, || {
            format!("{record:?} by {:?}", by.map(AllocRunner::record))
        })
    }

    /// Whoever takes the place of others starts when nothing of them lives.
    pub(super) fn no_start_beside_whom_it_preempts(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
    ) -> Verdict {
        let own = alloc.record();
        let mut alive = world.alive().map(|(_, process)| process);
        let beside = alive.find(|process| own.preempts.contains(&process.key.alloc));
        self.holds(
            Property::NoStartBesideWhomItPreempts,
            beside.is_none(),
            || {
                let name = beside.map(|process| process.name.to_string());
                format!("{} starts while {name:?} lives", own.name)
            },
        )
    }

    /// No job that may take it waits for a port that a less important one holds.
    pub(super) fn who_matters_more_has_its_ports(
        &mut self,
        agent: &Agent,
        job: &JobRecord,
    ) -> Verdict {
        let view = agent.view();
        if !view.preemption().is_allowed(job.job.job_type) {
            return Ok(());
        }
        let less_important = |alloc: &AllocRunner| {
            let theirs = view.job(alloc.job_key()).map(|theirs| theirs.job.priority);
            theirs.is_some_and(|theirs| theirs <= job.job.priority - PREEMPTION_MARGIN)
        };
        for (name, why) in view.blocked(&job.job.key()) {
            let Some(group) = job.job.group(name) else {
                continue;
            };
            let networks = group.networks.iter();
            let wanted = networks.flat_map(|network| &network.reserved_ports);
            let lacking = wanted.clone().find(|port| {
                let said = format!("reserved port collision {}={}", port.label, port.value);
                *why == said
            });
            let mut holders = view.allocs().filter(|alloc| {
                let mut ports = alloc.record().ports.iter();
                !alloc.record().finished
                    && ports.any(|held| lacking.is_some_and(|it| it.value == i64::from(held.value)))
            });
            // Of several each has to go: one that may stay is enough.
            let all = lacking.is_some() && holders.clone().all(less_important);
            let holder = holders.next().filter(|_| all);
            self.holds(
                Property::WhoMattersMoreHasItsPorts,
                holder.is_none(),
                || {
                    let name = holder.map(|holder| &holder.record().name);
                    format!("{} {why}: {name:?}", job.job.id)
                },
            )?;
        }
        Ok(())
    }
}

/// Whether two allocations have a port or a device in common.
fn in_common(one: &AllocRecord, other: &AllocRecord) -> bool {
    let mut ports = one.ports.iter();
    let meets = |own: &AssignedDevices, theirs: &AssignedDevices| {
        own.group == theirs.group && own.ids.iter().any(|id| theirs.ids.contains(id))
    };
    ports.any(|port| other.ports.iter().any(|theirs| theirs.value == port.value))
        || (one.devices.iter()).any(|own| other.devices.iter().any(|theirs| meets(own, theirs)))
}
