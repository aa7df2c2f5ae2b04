//! What is still awaited, and from whom. Nothing awaited means at rest.
//!
//! Tests and the simulator read the types; people, in a replay's debugger, read their words.

use core::fmt;

use serde::Serialize;

use super::Agent;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::claims::Ungranted;
use crate::ids::{AllocId, JobKey, TaskKey};
use crate::model::task::Stage;
use crate::op::Op;
use crate::task::hooks::wait_for::WaitFor;
use crate::task::runner::{Phase as TaskPhase, TaskRunner};
use crate::time::Instant;

/// Everything that is awaited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// One for each that is awaited.
    pub awaiting: Vec<Awaiting>,
}

/// Something that is awaited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Awaiting {
    /// Who waits, and for what.
    pub wait: Wait,
    /// Until when; for a named thing outside if none.
    pub until: Option<Instant>,
}

/// Who waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Wait {
    /// The ledger, for the store's answer to a commit.
    Store,
    /// The node, for a report of a probe, a driver or a plugin.
    Node,
    /// The drain of the node, for the allocations that are left to end.
    Drain,
    /// The node, for the servers of its cluster.
    Servers(ServersWait),
    /// A job.
    Job(JobKey, JobWait),
    /// An allocation.
    Alloc(AllocId, AllocWait),
    /// A task.
    Task(TaskKey, TaskWait),
}

/// What a node waits for of the servers of its cluster. That the next heartbeat comes, and that something is watched,
/// is rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ServersWait {
    /// To be registered as it is.
    Registration,
    /// To be ready in their eyes.
    Heartbeat,
    /// To have the allocations that they placed here, or to know for sure that they dropped some.
    Allocations,
    /// To have told what became of allocations.
    Reports,
    /// To have told which services there are.
    Services,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum JobWait {
    /// The time at which a failed allocation is replaced.
    Reschedule,
    /// A placement on this node.
    Placement,
    /// The first fingerprints of this node.
    Fingerprint,
    /// The local time of its zone.
    TimeZone,
    /// What the tags of its images mean in their registries.
    Images,
}

/// What an allocation waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum AllocWait {
    /// A hook of its setup.
    Setup,
    /// The first fingerprints of this node.
    Fingerprint,
    /// Claims that are not granted yet.
    Claims(Vec<Ungranted>),
    /// The removal of its network.
    Network,
    /// Its removal.
    Removal,
    /// The removal of others, which goes first.
    OtherRemovals,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TaskWait {
    /// The lifecycle stage in which it runs.
    Stage,
    /// Services that are to be healthy.
    Services,
    /// The servers of the cluster, to sign its identities.
    Identities,
    /// Its prestart hooks.
    Prestart,
    /// The driver, to start it.
    Start,
    /// The driver, to find an earlier launch.
    Recovery,
    /// The end of its shutdown delay.
    ShutdownDelay,
    /// The removal of its services at the servers of the cluster.
    Deregistration,
    /// The exit of its process.
    Exit,
    /// The driver, to destroy what is left of a launch.
    Destroy,
    /// The end of its restart delay.
    RestartDelay,
}

impl Pending {
    /// Whether nothing is awaited.
    pub fn is_empty(&self) -> bool {
        self.awaiting.is_empty()
    }

    /// Whether a commit is under way or still to be made.
    pub fn awaits_store(&self) -> bool {
        self.awaiting.iter().any(|one| one.wait == Wait::Store)
    }

    /// Whether a job waits for anything.
    pub fn awaits_job(&self, job: &JobKey) -> bool {
        let is_of = |one: &Awaiting| matches!(&one.wait, Wait::Job(of, _) if of == job);
        self.awaiting.iter().any(is_of)
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::Store => f.write_str("the store waits for a commit"),
            Wait::Node => f.write_str(
                "the node waits for a report of a probe, a driver or a plugin, or for a volume",
            ),
            Wait::Drain => f.write_str("the drain of the node waits for allocations to end"),
            Wait::Servers(wait) => write!(f, "the node waits for {wait}"),
            Wait::Job(key, wait) => write!(f, "job {key} waits for {wait}"),
            Wait::Alloc(id, wait) => write!(f, "alloc {} waits for {wait}", id.short()),
            Wait::Task(key, wait) => {
                let (alloc, task) = (key.alloc.short(), &key.task);
                write!(f, "alloc {alloc} task {task} waits for {wait}")
            }
        }
    }
}

impl fmt::Display for ServersWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ServersWait::Registration => "its registration at the servers",
            ServersWait::Heartbeat => "an answer of the servers to its heartbeat",
            ServersWait::Allocations => "the allocations that the servers placed on it",
            ServersWait::Reports => "an answer of the servers to what became of allocations",
            ServersWait::Services => "an answer of the servers to which services there are",
        })
    }
}

impl fmt::Display for JobWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobWait::Reschedule => "the time at which it is rescheduled",
            JobWait::Placement => "a placement on this node",
            JobWait::Fingerprint => "the first fingerprints of this node",
            JobWait::TimeZone => "the local time of its zone",
            JobWait::Images => "the registries of its images",
        })
    }
}

impl fmt::Display for AllocWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocWait::Setup => f.write_str("its setup"),
            AllocWait::Fingerprint => f.write_str("the first fingerprints of this node"),
            AllocWait::Claims(claims) => {
                for (nth, Ungranted { claim, holder }) in claims.iter().enumerate() {
                    let comma = if nth == 0 { "" } else { ", " };
                    write!(f, "{comma}{claim} that {holder} holds")?;
                }
                Ok(())
            }
            AllocWait::Network => f.write_str("the removal of its network"),
            AllocWait::Removal => f.write_str("its removal"),
            AllocWait::OtherRemovals => f.write_str("the removal of others"),
        }
    }
}

impl fmt::Display for TaskWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskWait::Stage => "its lifecycle stage",
            TaskWait::Services => "services to be healthy",
            TaskWait::Identities => "the servers to sign its identities",
            TaskWait::Prestart => "its prestart hooks",
            TaskWait::Start => "the driver's start",
            TaskWait::Recovery => "the driver's search for its launch",
            TaskWait::ShutdownDelay => "the end of its shutdown delay",
            TaskWait::Deregistration => "its services to be removed at the servers",
            TaskWait::Exit => "its process to exit",
            TaskWait::Destroy => "the driver to destroy its launch",
            TaskWait::RestartDelay => "the end of its restart delay",
        })
    }
}

impl Agent {
    /// What is still awaited, and by whom. Tasks that run and allocations that ended wait for
    /// nothing.
    pub fn pending(&self) -> Pending {
        let mut pending = Pending::default();
        if !self.shared.ledger.is_clean() {
            pending.add(Wait::Store, self.shared.ledger.deadline());
        }
        for op in self.machine.awaited() {
            pending.add(Wait::Node, self.until(op));
        }
        if self.node_life.record.drain.is_some() {
            pending.add(Wait::Drain, self.node_life.deadline());
        }
        for (wait, until) in self.waits_for_servers() {
            pending.add(Wait::Servers(wait), until);
        }
        for key in self.local.jobs.keys() {
            for (wait, until) in self.waits_of_job(key) {
                pending.add(Wait::Job(key.clone(), wait), until);
            }
        }
        for key in self.launches.awaiting_zone() {
            pending.add(Wait::Job(key.clone(), JobWait::TimeZone), None);
        }
        for key in self.local.jobs.keys() {
            for op in self.images.awaited_of(key) {
                let wait = Wait::Job(key.clone(), JobWait::Images);
                pending.add(wait, self.until(op));
            }
        }
        for alloc in self.allocs.values() {
            self.of_alloc(alloc, &mut pending);
        }
        pending
    }

    /// What a job waits for, and until when.
    pub(super) fn waits_of_job(
        &self,
        key: &JobKey,
    ) -> impl Iterator<Item = (JobWait, Option<Instant>)> {
        let local = &self.local;
        let reschedule = local.re_evaluate_at.get(key).copied();
        let reschedule = reschedule.map(|at| (JobWait::Reschedule, Some(at)));
        let placement = (local.blocked.contains_key(key)).then_some((JobWait::Placement, None));
        let fingerprint = (local.unknown.contains(key)).then_some((JobWait::Fingerprint, None));
        let zone = self.launches.awaits_zone_of(key);
        let zone = zone.then_some((JobWait::TimeZone, None));
        (reschedule.into_iter())
            .chain(placement)
            .chain(fingerprint)
            .chain(zone)
    }

    /// Until when a task waits: for an answer, or for a timer of its own.
    pub(super) fn task_until(&self, task: &TaskRunner) -> Option<Instant> {
        let answer = task.awaited().and_then(|op| self.until(op));
        let timer = task.deadline().map(|(at, _)| at);
        answer.into_iter().chain(timer).min()
    }

    /// When the wait for the answer to `op` ends.
    fn until(&self, op: Op) -> Option<Instant> {
        self.shared.operations.get(op)?.until()
    }

    fn of_alloc(&self, alloc: &AllocRunner, pending: &mut Pending) {
        let id = alloc.record().id;
        let wait = match alloc.phase() {
            AllocPhase::Prerun(setup) => {
                let claims = self.view().ungranted(alloc);
                Some(if !claims.is_empty() {
                    AllocWait::Claims(claims)
                } else if setup.awaited().is_some() {
                    AllocWait::Setup
                } else {
                    AllocWait::Fingerprint
                })
            }
            AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => Some(AllocWait::Removal),
            AllocPhase::Finished if alloc.may_remove_network() => Some(AllocWait::Network),
            AllocPhase::Tasks(_) | AllocPhase::Finished | AllocPhase::Destroyed => None,
        };
        if let Some(wait) = wait {
            let until = self.view().next_timer(alloc);
            pending.add(Wait::Alloc(id, wait), until);
        }
        for task in alloc.tasks() {
            if let Some(wait) = of_task(task) {
                let until = self.task_until(task);
                pending.add(Wait::Task(task.spec().key.clone(), wait), until);
            }
        }
        if self.shared.destroys.awaits(id) {
            pending.add(Wait::Alloc(id, AllocWait::OtherRemovals), None);
        }
    }
}

impl Pending {
    fn add(&mut self, wait: Wait, until: Option<Instant>) {
        self.awaiting.push(Awaiting { wait, until });
    }
}

pub(super) fn of_task(task: &TaskRunner) -> Option<TaskWait> {
    match task.phase() {
        // What comes after the end waits for the end; that is rest.
        TaskPhase::Waiting if task.spec().stage() == Stage::Poststop => None,
        TaskPhase::Waiting => Some(TaskWait::Stage),
        TaskPhase::Preparing(_) if task.prestart_hook() == Some(WaitFor::NAME) => {
            Some(TaskWait::Services)
        }
        TaskPhase::Preparing(_) if task.awaits_signing() => Some(TaskWait::Identities),
        TaskPhase::Preparing(_) => Some(TaskWait::Prestart),
        TaskPhase::Starting(_) => Some(TaskWait::Start),
        TaskPhase::Recovering(_) => Some(TaskWait::Recovery),
        TaskPhase::Delaying(_) => Some(TaskWait::ShutdownDelay),
        TaskPhase::Deregistering(_) => Some(TaskWait::Deregistration),
        TaskPhase::Stopping(_) => Some(TaskWait::Exit),
        TaskPhase::Cleaning(_) => Some(TaskWait::Destroy),
        TaskPhase::Pausing(_) => Some(TaskWait::RestartDelay),
        TaskPhase::Dead(_) if task.has_remains() => Some(TaskWait::Destroy),
        TaskPhase::Running | TaskPhase::Dead(_) => None,
    }
}
