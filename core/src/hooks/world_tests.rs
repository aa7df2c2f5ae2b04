//! A small world for the tests of hooks: an allocation of one group with one task, and what is asked of the outside
//! for it. Hooks are tried at their own doors, and a task's whole table where it matters how often each runs.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{HookOutcome, HookStart};
use crate::alloc::hooks::AllocHook;
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::config::Config;
use crate::cx::{Cx, Shared};
use crate::effect::{Effect, HookEffect, StoreEffect};
use crate::ids::{AllocId, JobKey};
use crate::input::HookOutput;
use crate::ledger::Delays;
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::task::Task;
use crate::op::{Failure, Op};
use crate::store::disk::Disk;
use crate::store::record::AllocRecord;
use crate::task::hooks::TaskHook;
use crate::task::runner::{Scope, TaskRunner};
use crate::task::spec::TaskSpec;
use crate::time::{Instant, Now, Span, Timestamp};
use crate::work::HookWork;

/// The allocation.
pub(crate) const ALLOC: AllocId = AllocId(1);

/// What beginning a hook led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Began {
    /// There is nothing to do.
    Done,
    /// It waits for something of its owner's.
    Waits,
    /// It asks for this work.
    Asks(HookWork),
    /// It cannot be done: whether another try may help, and why.
    Refuses(bool, String),
}

impl Began {
    /// It asks for this work.
    pub(crate) fn asks(work: impl Into<HookWork>) -> Began {
        Began::Asks(work.into())
    }

    /// It fails for good, in these words.
    pub(crate) fn refuses(why: &str) -> Began {
        Began::Refuses(false, why.to_owned())
    }
}

/// Where hooks are tried. Whatever a test wants otherwise it sets before it makes a task or an allocation.
pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) shared: Shared,
    pub(crate) now: Now,
    pub(crate) job: Job,
    pub(crate) record: AllocRecord,
    /// What left and was not looked at.
    left: VecDeque<Effect>,
}

impl World {
    /// With the task `server` of the group `web`, for a driver that takes anything.
    pub(crate) fn new() -> World {
        let task = Task {
            name: "server".to_owned(),
            driver: "plugin".to_owned(),
            ..Task::default()
        };
        let group = TaskGroup {
            name: "web".to_owned(),
            tasks: vec![task],
            ..TaskGroup::default()
        };
        let job = Job {
            id: "shop".to_owned(),
            task_groups: vec![group],
            ..Job::default()
        };
        let record = AllocRecord {
            id: ALLOC,
            name: "shop.web[0]".into(),
            job: JobKey::local("shop"),
            group: "web".into(),
            ..AllocRecord::default()
        };
        World {
            config: Config::new(7, Node::default(), "/allocs"),
            shared: Shared::default(),
            now: Now {
                at: Instant(0) + Span::secs(100),
                wall: Timestamp(0) + Span::secs(100),
            },
            job,
            record,
            left: VecDeque::new(),
        }
    }

    /// With a task that is so.
    pub(crate) fn with(change: impl FnOnce(&mut Task)) -> World {
        let mut world = World::new();
        change(&mut world.group().tasks[0]);
        world
    }

    pub(crate) fn group(&mut self) -> &mut TaskGroup {
        &mut self.job.task_groups[0]
    }

    /// Remembers this of the slot's disk.
    pub(crate) fn with_disk(mut self, disk: Disk) -> World {
        let slot = self.record.slot();
        self.shared.disks.insert(slot, Arc::new(disk));
        self
    }

    /// What is known of the slot's disk.
    pub(crate) fn disk(&self) -> Disk {
        let disk = self.shared.disks.get(&self.record.slot());
        disk.map(|disk| Disk::clone(disk)).unwrap_or_default()
    }

    pub(crate) fn cx(&mut self) -> Cx<'_> {
        Cx {
            now: self.now,
            config: &self.config,
            shared: &mut self.shared,
        }
    }

    /// So much time passes.
    pub(crate) fn pass(&mut self, span: Span) {
        self.now = Now {
            at: self.now.at + span,
            wall: self.now.wall + span,
        };
    }

    /// What left since the last question, everything being saved.
    pub(crate) fn effects(&mut self) -> Vec<Effect> {
        self.gather();
        self.left.drain(..).collect()
    }

    fn gather(&mut self) {
        let (now, out) = (self.now, &mut self.left);
        out.append(&mut self.shared.out);
        self.shared.ledger.settle(now, Delays::NONE, out);
        while let Some(at) = out.iter().position(is_commit) {
            if let Some(Effect::Store(StoreEffect::Commit(id, _))) = out.remove(at) {
                self.shared.ledger.saved(id, out);
            }
            self.shared.ledger.settle(now, Delays::NONE, out);
        }
    }

    /// The next work that was asked for.
    fn next_work(&mut self) -> Option<(Op, HookWork)> {
        self.gather();
        while let Some(effect) = self.left.pop_front() {
            if let Effect::Hook(HookEffect::Run { op, work, .. }) = effect {
                return Some((op, work));
            }
        }
        None
    }

    fn began(&mut self, start: HookStart) -> Began {
        match start {
            HookStart::Done => Began::Done,
            HookStart::Waiting => Began::Waits,
            HookStart::Failed(why) => Began::Refuses(why.recoverable, why.message),
            HookStart::Working(op) => {
                let asked = self.next_work();
                let Some((_, work)) = asked.filter(|(asked, _)| *asked == op) else {
                    panic!("{op:?} is awaited, and that is not what left");
                };
                Began::Asks(work)
            }
        }
    }
}

fn is_commit(effect: &Effect) -> bool {
    matches!(effect, Effect::Store(StoreEffect::Commit(..)))
}

/// Of tasks.
impl World {
    fn spec(&self) -> TaskSpec {
        let job = Arc::new(self.job.clone());
        let specs = TaskSpec::of_group(ALLOC, &job, "web", self.record.authority());
        let Some(spec) = specs.into_iter().next() else {
            panic!("the group has a task");
        };
        spec
    }

    /// The task, as if it came just now.
    pub(crate) fn task(&mut self) -> TaskRunner {
        let spec = self.spec();
        TaskRunner::new(&mut self.cx(), spec)
    }

    /// The task of the same allocation in the next life of the agent, when it is to be started again.
    pub(crate) fn restarted(&mut self, task: &TaskRunner) -> TaskRunner {
        self.shared = Shared::default();
        self.left.clear();
        let (spec, mut record) = (self.spec(), task.record().clone());
        let last = Arc::make_mut(&mut record);
        (last.launch, last.paused_until) = (None, None);
        TaskRunner::restore(&mut self.cx(), spec, record)
    }

    /// The task takes what the job says by now, without a new start.
    pub(crate) fn update(&mut self, task: &mut TaskRunner) {
        let spec = self.spec();
        task.update(&mut self.cx(), spec);
    }

    /// Begins a hook of the task.
    pub(crate) fn begin(&mut self, task: &mut TaskRunner, hook: &dyn TaskHook) -> Began {
        let record = self.record.clone();
        let start = hook.begin(task, &mut self.cx(), scope(&record));
        self.began(start)
    }

    /// Whether what a hook did once is lost.
    pub(crate) fn is_lost(&mut self, task: &TaskRunner, hook: &dyn TaskHook) -> bool {
        let record = self.record.clone();
        hook.is_lost(task, &self.cx(), scope(&record))
    }

    /// Takes the task through its table to its start, or until it goes no further, and answers all that is asked for.
    /// Returns that.
    pub(crate) fn start(
        &mut self,
        task: &mut TaskRunner,
        mut answer: impl FnMut(&HookWork) -> Result<HookOutput, Failure>,
    ) -> Vec<HookWork> {
        let record = self.record.clone();
        let mut asked = Vec::new();
        loop {
            task.advance(&mut self.cx(), scope(&record));
            let Some((op, work)) = self.next_work() else {
                return asked;
            };
            let result = answer(&work);
            asked.push(work);
            task.on_hook(&mut self.cx(), op, result);
        }
    }

    /// The same, where the work of these words is answered so, and all else goes well.
    pub(crate) fn start_with(
        &mut self,
        task: &mut TaskRunner,
        words: &str,
        result: &Result<HookOutput, Failure>,
    ) -> Vec<HookWork> {
        self.start(task, |work| match work.words() == words {
            true => result.clone(),
            false => Ok(HookOutput::default()),
        })
    }

    /// The same, in the words of the work, where all goes well.
    pub(crate) fn start_well(&mut self, task: &mut TaskRunner) -> Vec<&'static str> {
        let asked = self.start(task, |_| Ok(HookOutput::default()));
        asked.iter().map(HookWork::words).collect()
    }

    /// The same, where its directory had to be made anew.
    pub(crate) fn start_in_new_dir(&mut self, task: &mut TaskRunner) -> Vec<&'static str> {
        let rebuilt = HookOutput {
            rebuilt: true,
            ..HookOutput::default()
        };
        let asked = self.start_with(task, "make directory", &Ok(rebuilt));
        asked.iter().map(HookWork::words).collect()
    }
}

fn scope(alloc: &AllocRecord) -> Scope<'_> {
    Scope {
        alloc,
        gate_open: true,
    }
}

/// What people were told of a task last.
pub(crate) fn last_words(task: &TaskRunner) -> &str {
    let last = task.state().events.last();
    last.map_or("", |event| event.display_message.as_str())
}

/// Of allocations.
impl World {
    /// The allocation, which has done nothing so far.
    pub(crate) fn alloc(&mut self) -> AllocRunner {
        let (record, job) = (self.record.clone(), Arc::new(self.job.clone()));
        AllocRunner::new(&mut self.cx(), record, job)
    }

    /// Begins a hook before the tasks.
    pub(crate) fn prerun(
        &mut self,
        alloc: &AllocRunner,
        hook: &dyn AllocHook,
        asking: &mut Asking,
    ) -> Began {
        let start = hook.prerun(alloc, asking, &mut self.cx());
        self.began(start)
    }

    /// Begins a hook when the allocation is garbage-collected.
    pub(crate) fn destroy(&mut self, alloc: &AllocRunner, hook: &dyn AllocHook) -> Began {
        let start = hook.destroy(alloc, &mut self.cx());
        self.began(start)
    }

    /// The work of a hook before the tasks is over.
    pub(crate) fn answered(
        &mut self,
        alloc: &mut AllocRunner,
        hook: &dyn AllocHook,
        asking: &mut Asking,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        hook.answered(alloc, asking, &mut self.cx(), result)
    }

    /// What a hook says that it does or awaits.
    pub(crate) fn words(
        &self,
        alloc: &AllocRunner,
        hook: &dyn AllocHook,
        asking: &Asking,
    ) -> String {
        let disk = self.disk();
        hook.words(alloc, asking, Some(&disk)).unwrap_or_default()
    }
}
