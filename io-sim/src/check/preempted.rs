//! Preemption: which allocations end for which, and when.

use drover_core::agent::{Agent, PREEMPTION_MARGIN};
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::Run;
use drover_core::model::alloc::DesiredStatus;
use drover_core::model::device::AssignedDevices;
use drover_core::model::event::EventType;
use drover_core::model::group::TaskGroup;
use drover_core::model::placement::{DeviceLack, PlacementFailure};
use drover_core::model::task::Stage;
use drover_core::store::record::{AllocRecord, JobRecord};
use drover_core::task::runner::TaskRunner;

use super::resources::capacity;
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
        // Later each of them may matter more or less than it did: this is looked at once, and not where a
        // job is another one already.
        let first = (record.id, record.preempted_by);
        if record.desired != DesiredStatus::Evict || !self.lives.evicted.insert(first) {
            return Ok(());
        }
        self.sometimes(Property::SometimesAPlaceIsTaken, true);
        let view = agent.view();
        let by = record.preempted_by.and_then(|id| view.alloc(id));
        let placed_in_vain = !self.lives.allocs.contains_key(&record.id);
        let jobs = by.map(|by| [by, alloc].map(|one| view.job(one.job_key())));
        let right = by.zip(jobs).is_some_and(|(by, jobs)| {
            let [Some(more), Some(less)] = jobs.map(|job| job.map(|job| &job.job)) else {
                return false;
            };
            let may = view.preemption().is_allowed(more.job_type);
            let since = by.record().create_index;
            let changed = more.job_modify_index.max(less.job_modify_index) > since;
            let margin = changed || more.priority - less.priority >= PREEMPTION_MARGIN;
            let awaits = by.record().preempts.contains(&record.id);
            // CPU, memory and disk space all have in common.
            let common = in_common(by.record(), record) || capacity(agent).is_some();
            may && margin && awaits && common && !has_done_its_work(alloc)
        });
        let right = right && !placed_in_vain;
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

    /// No job that may take it waits for the one port or device that it needs while a less important
    /// one holds it.
    pub(super) fn who_matters_more_has_its_place(
        &mut self,
        agent: &Agent,
        job: &JobRecord,
    ) -> Verdict {
        let view = agent.view();
        if !view.preemption().is_allowed(job.job.job_type) {
            return Ok(());
        }
        let less_important = |alloc: &&AllocRunner| {
            let theirs = view.job(alloc.job_key()).map(|theirs| theirs.job.priority);
            theirs.is_some_and(|theirs| theirs <= job.job.priority - PREEMPTION_MARGIN)
        };
        for (name, why) in view.blocked(&job.job.key()) {
            let need = job.job.group(name).and_then(only_need);
            let holds = |alloc: &&AllocRunner| match need {
                Some(Need::Port(port)) if matches!(why, PlacementFailure::PortTaken { .. }) => {
                    let mut ports = alloc.record().ports.iter();
                    ports.any(|held| i64::from(held.value) == port)
                }
                Some(Need::Device(name)) if is_taken(why) => {
                    let mut devices = alloc.record().devices.iter();
                    devices.any(|held| held.group.answers_to(name) && works(agent, held))
                }
                Some(_) | None => false,
            };
            let lives = view.allocs().filter(|alloc| !alloc.record().finished);
            let holders: Vec<_> = lives.filter(|alloc| holds(alloc)).collect();
            // Who was told to end already, or ends by itself, is waited for, however long that takes; and
            // nobody goes for what one has that ends by itself.
            let (ending, stay): (Vec<&AllocRunner>, Vec<_>) =
                holders.into_iter().partition(|alloc| goes_anyway(alloc));
            let is_in_vain = |alloc: &AllocRunner| {
                let mut untold = ending.iter().map(|other| other.record());
                untold.any(|other| {
                    other.desired == DesiredStatus::Run && in_common(other, alloc.record())
                })
            };
            let mut stay = stay.into_iter().filter(less_important);
            let holder = stay.find(|alloc| !is_in_vain(alloc));
            self.holds(
                Property::WhoMattersMoreHasItsPlace,
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

fn is_taken(why: &PlacementFailure) -> bool {
    matches!(why, PlacementFailure::Devices { why, .. } if *why == DeviceLack::Taken)
}

/// What others may hold of what a group needs, where that is one thing alone.
#[derive(Clone, Copy)]
enum Need<'a> {
    Port(i64),
    Device(&'a str),
}

fn only_need(group: &TaskGroup) -> Option<Need<'_>> {
    let networks = group.networks.iter();
    let ports = networks.flat_map(|network| &network.reserved_ports);
    let ports = ports.map(|port| Need::Port(port.value));
    let requests = group.tasks.iter().flat_map(|task| &task.resources.devices);
    let devices = requests.flat_map(|request| {
        let count = usize::try_from(request.count).unwrap_or(usize::MAX);
        core::iter::repeat_n(Need::Device(request.name.as_str()), count)
    });
    let mut needs = ports.chain(devices);
    needs.next().filter(|_| needs.next().is_none())
}

/// Whether all of these devices are there and work.
fn works(agent: &Agent, held: &AssignedDevices) -> bool {
    let offers = agent.view().machine().devices().offers();
    let group = offers.iter().find(|(_, id, _)| **id == held.group);
    group.is_some_and(|(_, _, group)| {
        let works = |id| group.devices.get(id).is_some_and(|device| device.healthy);
        held.ids.iter().all(works)
    })
}

/// Whether it is being ended, or nothing but what follows its main tasks is left of it.
pub(super) fn goes_anyway(alloc: &AllocRunner) -> bool {
    let is_main = |task: &&TaskRunner| task.spec().stage() == Stage::Main;
    let mut mains = alloc.tasks().iter().filter(is_main);
    let record = alloc.record();
    record.desired != DesiredStatus::Run
        || record.status.is_terminal()
        || alloc.is_ending()
        || mains.all(TaskRunner::ended_for_good)
}

/// Whether its main tasks ran, and nobody had to end them.
fn has_done_its_work(alloc: &AllocRunner) -> bool {
    let is_main = |task: &&TaskRunner| task.spec().stage() == Stage::Main;
    let mut mains = alloc.tasks().iter().filter(is_main);
    mains.all(|task| {
        let since_start = task.state().events.iter().rev();
        let mut since_start = since_start.take_while(|event| event.kind != EventType::Started);
        let was_told = since_start.any(|event| event.kind == EventType::Killing);
        let ran = task.record().runs != Run::default();
        ran && !was_told && task.state().is_successful()
    })
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
