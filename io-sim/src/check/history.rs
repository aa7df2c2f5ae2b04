//! What is remembered of allocations and tasks through all lives of the agent.
//!
//! A crash may forget what was only shown, never what was saved. So what was shown is dropped
//! when the agent dies, and what the disk held once counts for ever.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, GroupName, JobKey, LaunchId, TaskKey, TaskName};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, TaskLife, TaskState};
use drover_core::model::event::EventType;
use drover_core::store::record::{AllocRecord, JobRecord, Loss, TaskRecord};
use drover_core::store::{Key, Record};
use drover_core::time::{Instant, Span, Timestamp};

use super::policy::Restarts;
use crate::process::Process;
use crate::world::World;

/// One copy of one group of one version of one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskPath(JobKey, u64, u64, GroupName, u32);

impl TaskPath {
    /// The job.
    pub(super) fn job(&self) -> &JobKey {
        &self.0
    }

    /// The place that an allocation fills.
    pub(super) fn of(alloc: &AllocRunner) -> TaskPath {
        let record = alloc.record();
        let created = alloc.job().create_index;
        let (job, group) = (record.job.clone(), record.group.clone());
        TaskPath(job, created, record.job_version, group, record.index)
    }

    /// A place of the present version of a job.
    pub(super) fn in_job(job: &JobRecord, group: &GroupName, index: u32) -> TaskPath {
        let (created, version) = (job.job.create_index, job.job.version);
        TaskPath(job.job.key(), created, version, group.clone(), index)
    }
}

/// What of an allocation only goes forward.
#[derive(Clone, Debug)]
pub(super) struct Reported {
    pub(super) status: ClientStatus,
    pub(super) stops: bool,
    pub(super) finished: bool,
    pub(super) destroying: bool,
    pub(super) version: u64,
}

impl From<&AllocRecord> for Reported {
    fn from(record: &AllocRecord) -> Reported {
        Reported {
            status: record.status,
            stops: record.desired.is_terminal(),
            finished: record.finished,
            destroying: record.destroying,
            version: record.job_version,
        }
    }
}

/// What is known of an allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct AllocMemory {
    pub(super) shown: Option<Reported>,
    pub(super) saved: Option<Reported>,
    /// Whether it was placed to renew one of an older version that ran.
    pub(super) renewal: bool,
}

/// What of a task only goes forward, unless somebody asks for another run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TaskReported {
    pub(super) dead: bool,
    pub(super) failed: bool,
}

impl From<&TaskState> for TaskReported {
    fn from(state: &TaskState) -> TaskReported {
        TaskReported {
            dead: state.state == TaskLife::Dead,
            failed: state.failed,
        }
    }
}

/// A restart that was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart {
    /// Its number in the task's state.
    pub(super) number: u64,
    pub(super) at: Instant,
    pub(super) wall: Timestamp,
    /// In which life of the agent, and how far the wall clock was from the boot clock then.
    pub(super) life: u64,
    pub(super) offset: i64,
    /// Whether somebody asked for it, so that it costs nothing.
    pub(super) asked: bool,
    /// Whether the task had no part in it, so that it costs nothing.
    pub(super) free: bool,
    /// Whether it may have cost something after all: a crash forgot how many starts in a row were lost.
    pub(super) uncertain: bool,
    /// The pause that the policy wants before it, where that is known.
    pub(super) least: Option<Span>,
}

/// A pause before a start, as it was told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pause {
    /// The number of the restart in the task's state.
    pub(super) number: u64,
    /// In which life of the agent.
    pub(super) life: u64,
    /// When it began, since the beginning.
    pub(super) began: Span,
    /// How often the wall clock had been set then.
    pub(super) wall_jumps: u32,
    /// How long it is.
    pub(super) whole: Span,
}

/// What ended a launch of which the agent was told that the task had no part in its end. `used` is what
/// of its budget was used then.
#[derive(Clone, Copy, Debug)]
pub(super) enum CutOff {
    /// The machine restarted.
    Reboot { used: u32 },
    /// What was to start it was killed.
    Start { used: u32 },
}

/// How many starts in a row were lost. A crash may forget some.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LostStarts {
    pub(super) at_least: u32,
    pub(super) at_most: u32,
}

/// What is known of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskMemory {
    /// The launches whose start left the agent, oldest first.
    pub(super) launches: Vec<LaunchId>,
    /// How many of them are known to have never started.
    pub(super) never_started: usize,
    pub(super) shown: TaskReported,
    pub(super) saved: TaskReported,
    /// Whether any life saved it as over, and nobody asked for another run since.
    pub(super) over: bool,
    /// The end after which somebody asked for another run.
    pub(super) forgiven: Option<Timestamp>,
    pub(super) restarts: Vec<Restart>,
    pub(super) rules: Option<Restarts>,
    /// Whether its policy was another one once: what was used of that is not known.
    pub(super) rules_changed: bool,
    /// Restarts that were told while another policy held.
    pub(super) by_older_rules: usize,
    /// The pauses that were told.
    pub(super) pauses: Vec<Pause>,
    /// The launch whose start the driver called hopeless.
    pub(super) hopeless: Option<LaunchId>,
    /// What kind of event was told last.
    pub(super) last_event: Option<EventType>,
    /// Whether the task was asked to end for good.
    pub(super) killed: bool,
    /// How often somebody asked for a restart.
    pub(super) asks: usize,
    /// What ended its launch, until what follows was told. A crash may make that be told again.
    pub(super) cut_off: Option<CutOff>,
    pub(super) lost_starts: LostStarts,
}

/// Everything that is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) allocs: BTreeMap<AllocId, AllocMemory>,
    pub(super) tasks: BTreeMap<TaskKey, TaskMemory>,
    /// Launches that were said to have failed to start.
    pub(super) start_failed: BTreeSet<LaunchId>,
    /// Allocations of which an operator asked to run anything again, and those of which also
    /// tasks that ended.
    pub(super) asked_again: BTreeSet<AllocId>,
    pub(super) rerun: BTreeSet<AllocId>,
    /// Allocations that gave their place to another, and to which.
    pub(super) evicted: BTreeSet<(AllocId, Option<AllocId>)>,
    /// Places of batch jobs that are done: by which allocation, and its index.
    pub(super) completed: BTreeMap<TaskPath, (AllocId, u64)>,
    /// Places in which an allocation ended that was to run.
    pub(super) ended: BTreeSet<TaskPath>,
    /// Latest versions of jobs, by when they were made.
    pub(super) versions: BTreeMap<(JobKey, u64), u64>,
    /// Launches that a new agent has to look for.
    pub(super) to_find: BTreeSet<LaunchId>,
    /// What is garbage, since when, as far as is known; and when the disk changed last.
    pub(super) garbage: BTreeMap<String, Span>,
    pub(super) saved_at: Span,
    /// When this life of the agent began, by its clock and since the beginning.
    pub(super) began: Instant,
    pub(super) began_after: Span,
    /// The wall clock as it was seen last, the latest time that it ever showed, and whether it ever went back.
    pub(super) wall: Timestamp,
    pub(super) latest_wall: Timestamp,
    pub(super) clock_went_back: bool,
    /// How many answers this life of the agent dropped.
    pub(super) stale: u64,
}

impl History {
    pub(super) fn agent_died(&mut self) {
        self.versions.clear();
        for alloc in self.allocs.values_mut() {
            alloc.shown = None;
        }
        for task in self.tasks.values_mut() {
            task.shown = TaskReported::default();
            task.lost_starts.at_least = 0;
        }
    }

    /// A new life begins with what the disk holds: what was not saved did not happen.
    pub(super) fn agent_restored(&mut self, world: &World) {
        self.began = world.scene.at;
        self.began_after = world.elapsed();
        self.stale = 0;
        self.to_find.clear();
        for (key, record) in world.disk.records() {
            match (key, record) {
                (Key::Alloc(id), Record::Alloc(record)) => self.note_saved_alloc(*id, record),
                (Key::Task(alloc, name), Record::Task(record)) => {
                    self.task_restored(world, *alloc, name, record);
                }
                _ => {}
            }
        }
        self.allocs.retain(|_, alloc| alloc.saved.is_some());
    }

    fn task_restored(
        &mut self,
        world: &World,
        alloc: AllocId,
        name: &TaskName,
        record: &TaskRecord,
    ) {
        let key = TaskKey {
            alloc,
            task: name.clone(),
        };
        self.note_saved_task(&key, record);
        let memory = self.tasks.entry(key).or_default();
        let kept = record.state.restarts;
        memory.restarts.retain(|restart| restart.number <= kept);
        memory.pauses.retain(|pause| pause.number <= kept);
        // Decided once more if the disk holds what ended the launch and not what followed.
        let ended = record.launch.as_ref().and_then(|launch| launch.lost);
        // That a start ended a row of lost ones may have been lost itself.
        let row = &mut memory.lost_starts;
        row.at_most = row.at_most.max(record.budget.lost_starts);
        let used = record.budget.used;
        memory.cut_off = ended.map(|ended| match ended {
            Loss::Reboot => CutOff::Reboot { used },
            Loss::Start => CutOff::Start { used },
        });
        let open = record
            .launch
            .as_ref()
            .filter(|launch| launch.exit.is_none() && launch.start_failed.is_none());
        if open.is_some() {
            // What the driver said of this launch was not saved.
            memory.hopeless = None;
        }
        if let Some(launch) = open
            && record.state.state != TaskLife::Dead
            && is_restorable(world, alloc, name)
        {
            self.to_find.insert(launch.id);
        }
    }

    pub(super) fn note_saved_alloc(&mut self, id: AllocId, record: &AllocRecord) {
        self.allocs.entry(id).or_default().saved = Some(record.into());
    }

    pub(super) fn note_saved_task(&mut self, key: &TaskKey, record: &TaskRecord) {
        let memory = self.task(key);
        memory.saved = (&record.state).into();
        memory.over |= memory.saved.dead && record.state.finished_at != memory.forgiven;
    }

    /// What is known of a task, to add to it.
    pub(super) fn task(&mut self, key: &TaskKey) -> &mut TaskMemory {
        self.tasks.entry(key.clone()).or_default()
    }
}

/// Whether anything of the task lives.
pub(super) fn lives(world: &World, key: &TaskKey) -> bool {
    world.launches_of(key).any(|(_, process)| process.alive)
}

/// What lives of an allocation, whether the agent knows it or not.
pub(super) fn alive_in(world: &World, alloc: AllocId) -> Option<&Process> {
    let mut alive = world.alive().map(|(_, process)| process);
    alive.find(|process| process.key.alloc == alloc)
}

/// Whether the disk holds the job that an allocation and its task need to go on.
fn is_restorable(world: &World, alloc: AllocId, task: &TaskName) -> bool {
    let Some(record) = saved_alloc(world, alloc) else {
        return false;
    };
    let job = saved_job(world, &record.job).and_then(|job| job.version(record.job_version));
    let group = job.and_then(|job| job.group(record.group.as_str()));
    group.is_some_and(|group| group.tasks.iter().any(|one| one.name == task.as_str()))
}

pub(super) fn saved_task<'a>(world: &'a World, key: &TaskKey) -> Option<&'a TaskRecord> {
    let key = Key::Task(key.alloc, key.task.clone());
    match world.disk.records().get(&key) {
        Some(Record::Task(task)) => Some(task),
        _ => None,
    }
}

pub(super) fn saved_alloc(world: &World, id: AllocId) -> Option<&AllocRecord> {
    match world.disk.records().get(&Key::Alloc(id)) {
        Some(Record::Alloc(alloc)) => Some(alloc),
        _ => None,
    }
}

pub(super) fn saved_job<'a>(world: &'a World, key: &JobKey) -> Option<&'a JobRecord> {
    match world.disk.records().get(&Key::Job(key.clone())) {
        Some(Record::Job(job)) => Some(job),
        _ => None,
    }
}

/// Whether this allocation did what a batch job wants of it.
pub(super) fn is_done(alloc: &AllocRunner) -> bool {
    let record = alloc.record();
    record.finished
        && record.status == ClientStatus::Complete
        && record.desired == DesiredStatus::Run
        && alloc.job().job_type.runs_to_completion()
}
