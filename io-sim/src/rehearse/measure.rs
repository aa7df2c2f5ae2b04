//! What is measured while a job runs: how many copies of each group are up, which allocations fail
//! and why, and what the job waits for when it is late.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::View;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, GroupName, JobKey, LaunchId, TaskName};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::task::Stage;
use drover_core::scheduler::reconcile::copies;
use drover_core::store::record::AllocRecord;
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::Span;

use super::order::Order;
use crate::sim::Sim;

/// What became of one group in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupOutcome {
    /// When all its copies were up first, since the beginning.
    pub first_up: Option<Span>,
    /// The longest time with fewer copies up than wanted, from then on, of those that ended.
    pub worst: Span,
    /// When that began, since the beginning.
    pub worst_at: Span,
    /// How long after the end of the trouble it was whole for good; none if never.
    pub back_after: Option<Span>,
    /// What it waited for, if that took long, or what it waits for in vain.
    pub late: Option<Late>,
}

/// What a group that is not whole waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Late {
    /// The task that it is about, if it is about one.
    pub task: Option<String>,
    /// What it is.
    pub cause: Cause,
}

/// Why a copy is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Its allocation failed, and is replaced later or never.
    Failed,
    /// A task waits between two starts.
    Pause,
    /// A task waits for the rest of its restart interval.
    Interval,
    /// Its placement fails.
    PlacementFailed(String),
    /// Something is under way.
    UnderWay,
}

/// An allocation that failed: which group's, because of which task, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failed {
    /// The place of the group in the job.
    pub group: usize,
    /// The task.
    pub task: String,
    /// Why, as people read it in its events.
    pub reason: String,
    /// Whether its restart policy decided so.
    pub by_policy: bool,
}

/// One group while it is watched.
#[derive(Clone, Debug)]
struct Group {
    name: GroupName,
    copies: u32,
    /// How many main tasks a copy has.
    mains: usize,
    /// Copies of a batch job whose work is done.
    done: BTreeSet<u32>,
    /// The newest allocation of each copy, after the index that it came with.
    newest: BTreeMap<u32, (u64, AllocId)>,
    whole: bool,
    /// When it last became whole or ceased to be.
    since: Span,
    measured: GroupOutcome,
}

/// Looks after each step.
pub(super) struct Watcher<'a> {
    job: &'a Job,
    key: JobKey,
    groups: Vec<Group>,
    slots: BTreeMap<AllocId, (usize, u32)>,
    succeeded: BTreeSet<(AllocId, TaskName)>,
    living: BTreeSet<LaunchId>,
    index: u64,
    seen_failed: BTreeSet<AllocId>,
    pub(super) failed: BTreeMap<Failed, u32>,
    pub(super) unhealthy: BTreeSet<usize>,
    pub(super) order: Order,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(job: &'a Job) -> Watcher<'a> {
        let of_group = |group: &TaskGroup| {
            let copies = copies(job, group);
            let mains = group.tasks.iter().filter(|t| t.stage() == Stage::Main);
            Group {
                name: GroupName::from(group.name.as_str()),
                copies,
                mains: mains.count(),
                done: BTreeSet::new(),
                newest: BTreeMap::new(),
                whole: copies == 0,
                since: Span::ZERO,
                measured: GroupOutcome {
                    first_up: (copies == 0).then_some(Span::ZERO),
                    ..GroupOutcome::default()
                },
            }
        };
        Watcher {
            job,
            key: job.key(),
            groups: job.task_groups.iter().map(of_group).collect(),
            slots: BTreeMap::new(),
            succeeded: BTreeSet::new(),
            living: BTreeSet::new(),
            index: 0,
            seen_failed: BTreeSet::new(),
            failed: BTreeMap::new(),
            unhealthy: BTreeSet::new(),
            order: Order::default(),
        }
    }

    /// Looks at the world after a step.
    pub(super) fn observe(&mut self, sim: &Sim) {
        self.order.check_stops(self.job, sim);
        let mut others = false;
        if let Some(view) = sim.view()
            && view.index() != self.index
        {
            self.index = view.index();
            self.find_failures(view);
            others = self.find_replacements(view);
        }
        if self.living == sim.world.processes.living && !others {
            return;
        }
        let before = core::mem::replace(&mut self.living, sim.world.processes.living.clone());
        for launch in before.difference(&self.living) {
            if let Some(process) = sim.world.processes.get(*launch)
                && process.exit.as_ref().is_some_and(|exit| exit.is_success())
            {
                let key = &process.key;
                self.succeeded.insert((key.alloc, key.task.clone()));
            }
        }
        for (_, process) in sim.world.alive() {
            self.learn(sim, process.key.alloc);
        }
        let new: Vec<LaunchId> = self.living.difference(&before).copied().collect();
        for launch in new {
            self.order.check_start(self.job, &self.slots, sim, launch);
        }
        self.count(sim);
    }

    /// Finds out which place an allocation fills.
    fn learn(&mut self, sim: &Sim, id: AllocId) {
        if self.slots.contains_key(&id) {
            return;
        }
        let known = sim.view().and_then(|view| view.alloc(id));
        let record = known.map(|alloc| alloc.record()).or_else(|| {
            match sim.world.disk.records().get(&Key::Alloc(id)) {
                Some(Record::Alloc(record)) => Some(record),
                Some(_) | None => None,
            }
        });
        if let Some(record) = record
            && let Some(group) = self.groups.iter().position(|g| g.name == record.group)
        {
            self.slots.insert(id, (group, record.index));
        }
    }

    /// Counts the copies that are up: those of which every main task runs, or did its work.
    fn count(&mut self, sim: &Sim) {
        let batch = self.job.job_type.runs_to_completion();
        let mut mains: BTreeMap<AllocId, (usize, usize)> = BTreeMap::new();
        for (_, process) in sim.world.alive() {
            if self.stage(process.key.alloc, &process.key.task) == Some(Stage::Main) {
                mains.entry(process.key.alloc).or_default().0 += 1;
            }
        }
        if batch {
            for (alloc, task) in &self.succeeded {
                if self.is_newest(*alloc) && self.stage(*alloc, task) == Some(Stage::Main) {
                    mains.entry(*alloc).or_default().1 += 1;
                }
            }
        }
        let mut up: BTreeSet<(usize, u32)> = BTreeSet::new();
        for (alloc, (alive, succeeded)) in mains {
            let Some((at, index)) = self.slots.get(&alloc).copied() else {
                continue;
            };
            let Some(group) = self.groups.get_mut(at) else {
                continue;
            };
            if succeeded >= group.mains {
                group.done.insert(index);
            }
            if alive + succeeded >= group.mains {
                up.insert((at, index));
            }
        }
        let now = sim.world.elapsed();
        for (at, group) in self.groups.iter_mut().enumerate() {
            let there = |index: &u32| group.done.contains(index) || up.contains(&(at, *index));
            let whole = (0..group.copies).all(|index| there(&index));
            group.note(whole, now);
        }
    }

    /// Whether no other allocation came for its copy since. What one did that came before counts no more.
    fn is_newest(&self, alloc: AllocId) -> bool {
        let newest = |(group, index): &(usize, u32)| self.groups.get(*group)?.newest.get(index);
        let newest = self.slots.get(&alloc).and_then(newest);
        newest.is_none_or(|(_, newest)| *newest == alloc)
    }

    fn stage(&self, alloc: AllocId, task: &TaskName) -> Option<Stage> {
        let (group, _) = self.slots.get(&alloc)?;
        let group = self.job.task_groups.get(*group)?;
        let task = group.tasks.iter().find(|t| t.name == task.as_str())?;
        Some(task.stage())
    }

    fn find_failures(&mut self, view: View<'_>) {
        for alloc in view.allocs_of(&self.key) {
            let record = alloc.record();
            if is_unhealthy(alloc) {
                let group = self.groups.iter().position(|g| g.name == record.group);
                self.unhealthy.extend(group);
            }
            if record.status != ClientStatus::Failed || !self.seen_failed.insert(record.id) {
                continue;
            }
            let group = self.groups.iter().position(|g| g.name == record.group);
            let (Some(group), Some((task, reason, by_policy))) = (group, why_failed(alloc)) else {
                continue;
            };
            let failed = Failed {
                group,
                task,
                reason,
                by_policy,
            };
            *self.failed.entry(failed).or_default() += 1;
        }
    }

    /// Finds out which allocation is the newest of each copy. Returns whether one is another than it was.
    fn find_replacements(&mut self, view: View<'_>) -> bool {
        for group in &mut self.groups {
            let Group { done, newest, .. } = group;
            // What was not saved went with its agent, and its index is given anew.
            newest.retain(|copy, (_, id)| done.contains(copy) || view.alloc(*id).is_some());
        }
        let mut others = false;
        for alloc in view.allocs_of(&self.key) {
            let record = alloc.record();
            if let Some(group) = self.groups.iter_mut().find(|g| g.name == record.group) {
                others |= group.place(record);
            }
        }
        others
    }

    /// Whether every group has all it needs: of services every copy, of batch jobs all work done.
    pub(super) fn content(&self) -> bool {
        let batch = self.job.job_type.runs_to_completion();
        self.groups.iter().all(|group| group.is_content(batch))
    }

    /// Notes what groups wait for that are not whole.
    pub(super) fn ask_why(&mut self, sim: &Sim) {
        let Some(view) = sim.view() else { return };
        let key = &self.key;
        for group in self.groups.iter_mut().filter(|group| !group.whole) {
            group.measured.late = Some(group.waits_for(view, key));
        }
    }

    /// The name of the group that an allocation belongs to.
    pub(super) fn group_of(&self, alloc: AllocId) -> Option<&str> {
        let (group, _) = self.slots.get(&alloc)?;
        let group = self.job.task_groups.get(*group)?;
        Some(&group.name)
    }

    /// What became of each group, now that all is over. `over` is when the trouble was.
    pub(super) fn end(self, over: Span) -> Vec<GroupOutcome> {
        let batch = self.job.job_type.runs_to_completion();
        let end = |mut group: Group| {
            let back = Span((group.since.0 - over.0).max(0));
            group.measured.back_after = group.is_content(batch).then_some(back);
            group.measured
        };
        self.groups.into_iter().map(end).collect()
    }
}

impl Group {
    /// Returns whether this allocation is the newest of its copy from now on. It has all its work
    /// before it, whatever others did.
    fn place(&mut self, record: &AllocRecord) -> bool {
        let newest = self.newest.get(&record.index);
        if newest.is_some_and(|(index, _)| *index >= record.create_index) {
            return false;
        }
        let placed = (record.create_index, record.id);
        self.newest.insert(record.index, placed);
        self.done.remove(&record.index);
        true
    }

    fn is_content(&self, batch: bool) -> bool {
        match batch {
            true => (0..self.copies).all(|index| self.done.contains(&index)),
            false => self.whole,
        }
    }

    fn note(&mut self, whole: bool, now: Span) {
        if whole == self.whole {
            return;
        }
        self.close(now);
        self.whole = whole;
        self.since = now;
        if whole {
            self.measured.first_up.get_or_insert(now);
        }
    }

    /// What was until now counts.
    fn close(&mut self, now: Span) {
        let down = Span(now.0 - self.since.0);
        let counts = !self.whole && self.measured.first_up.is_some();
        if counts && down > self.measured.worst {
            self.measured.worst = down;
            self.measured.worst_at = self.since;
        }
    }

    /// What the first copy waits for that is not there.
    fn waits_for(&self, view: View<'_>, key: &JobKey) -> Late {
        let waits = |cause| Late { task: None, cause };
        for index in (0..self.copies).filter(|index| !self.done.contains(index)) {
            let of_place = |alloc: &&AllocRunner| {
                alloc.record().group == self.name && alloc.record().index == index
            };
            let allocs = view.allocs_of(key).filter(of_place);
            let Some(alloc) = allocs.max_by_key(|alloc| alloc.record().create_index) else {
                let mut blocked = view.blocked(key).iter();
                let why = blocked.find(|(group, _)| *group == self.name.as_str());
                return waits(match why {
                    Some((_, why)) => Cause::PlacementFailed(why.to_string()),
                    None => Cause::UnderWay,
                });
            };
            if alloc.record().status == ClientStatus::Failed {
                let task = why_failed(alloc).map(|(task, ..)| task);
                let cause = Cause::Failed;
                return Late { task, cause };
            }
            if let Some(late) = alloc.tasks().iter().find_map(pauses) {
                return late;
            }
        }
        waits(Cause::UnderWay)
    }
}

/// Whether a copy was not healthy in time though nothing of it failed.
fn is_unhealthy(alloc: &AllocRunner) -> bool {
    let health = alloc.record().health;
    let failed = || alloc.tasks().iter().any(|task| task.state().failed);
    health.is_some_and(|health| !health.healthy) && !failed()
}

/// The pause that a task is in.
fn pauses(task: &TaskRunner) -> Option<Late> {
    if !matches!(task.phase(), Phase::Pausing { .. }) {
        return None;
    }
    let spent = task.record().budget.used > task.spec().restart_rules().attempts;
    let cause = if spent { Cause::Interval } else { Cause::Pause };
    let name = task.spec().key.task.as_str().to_owned();
    Some(Late {
        task: Some(name),
        cause,
    })
}

/// The task that made an allocation fail, why, and whether its restart policy decided so.
fn why_failed(alloc: &AllocRunner) -> Option<(String, String, bool)> {
    let failed = || alloc.tasks().iter().filter(|task| task.state().failed);
    let find_event = |task: &TaskRunner, what: &dyn Fn(&TaskEvent) -> bool| {
        let mut events = task.state().events.iter().rev();
        let event = events.find(|event| what(event))?;
        let name = task.spec().key.task.as_str().to_owned();
        Some((name, event.display_message.clone()))
    };
    let by_policy = |event: &TaskEvent| event.kind == EventType::NotRestarting;
    let otherwise = |event: &TaskEvent| event.fails_task;
    let of_policy = failed().find_map(|task| find_event(task, &by_policy));
    let decided = of_policy.is_some();
    let found = of_policy.or_else(|| failed().find_map(|task| find_event(task, &otherwise)));
    found.map(|(task, reason)| (task, reason, decided))
}
