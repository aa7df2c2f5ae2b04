//! Questions that scenarios ask of a simulated agent, and what they ask of it and wait for.

use drover_core::agent::requests::{
    Deregister, Register, Request, Restart, RestartScope, Signal, StopAlloc,
};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Refusal, Reply};
use drover_core::ids::{AllocId, RequestId};
use drover_core::model::alloc::{ClientStatus, TaskLife};
use drover_core::model::eval::Deployment;
use drover_core::model::event::EventType;
use drover_core::model::job::Job;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::Span;
use drover_io_sim::{Sim, Violation};

use crate::Scenario;
use crate::build::arc;

/// A minute: long enough for whatever is expected to happen soon.
pub const SOON: Span = Span::secs(60);

/// The seed of a world without faults.
pub const BENIGN: u64 = 0;

/// Words for a world under test.
pub trait Inspect {
    /// Hands in a job.
    fn register(&mut self, job: &Job) -> RequestId;
    /// Stops a job.
    fn deregister(&mut self, id: &str, purge: bool) -> RequestId;
    /// Asks for a restart of the first allocation that is not over.
    fn restart_tasks(&mut self, job: &str, tasks: RestartScope) -> Option<RequestId>;
    /// Stops the first allocation that is not over.
    fn stop_alloc(&mut self, job: &str) -> Option<RequestId>;
    /// Sends a signal to the first allocation that is not over.
    fn signal(&mut self, job: &str) -> Option<RequestId>;
    /// The allocations of a job, oldest first.
    fn allocs(&self, job: &str) -> Vec<&AllocRunner>;
    /// The latest allocation of a job that is not over.
    fn live(&self, job: &str) -> Option<&AllocRunner>;
    /// The task of the latest allocation that has it.
    fn task(&self, job: &str, task: &str) -> Option<&TaskRunner>;
    /// Whether that task runs.
    fn runs(&self, job: &str, task: &str) -> bool;
    /// Whether that task is over.
    fn dead(&self, job: &str, task: &str) -> bool;
    /// Whether every allocation of the job has this status and is over.
    fn all_over(&self, job: &str, status: ClientStatus) -> bool;
    /// How often something of this kind happened to that task, as far as its events reach back.
    fn task_events(&self, job: &str, task: &str, kind: EventType) -> usize;
    /// How often that task was restarted.
    fn restarts(&self, job: &str, task: &str) -> u64;
    /// The version of its first template that that task knows.
    fn knows(&self, job: &str, task: &str) -> Option<u32>;
    /// The latest version of a job.
    fn version(&self, job: &str) -> Option<u64>;
    /// The roll-out of the latest version of a job.
    fn rollout(&self, job: &str) -> Option<&Deployment>;
    /// How many allocations wrote to one and the same disk, at most.
    fn writers(&self) -> usize;
    /// The processes of this task that live now.
    fn living(&self, task: &str) -> usize;
    /// `Ok` if `holds`.
    ///
    /// # Errors
    /// Says what was expected.
    fn expect_that(&self, holds: bool, what: &str) -> Result<(), Violation>;
}

impl Inspect for Sim {
    fn register(&mut self, job: &Job) -> RequestId {
        self.ask(Register {
            job: arc(job),
            expect_index: None,
            submission: None,
        })
    }

    fn deregister(&mut self, id: &str, purge: bool) -> RequestId {
        self.ask(Deregister {
            job: self.key_of(id),
            purge,
            no_shutdown_delay: false,
        })
    }

    fn restart_tasks(&mut self, job: &str, tasks: RestartScope) -> Option<RequestId> {
        let alloc = id_of(self, job)?;
        Some(self.ask(Restart { alloc, tasks }))
    }

    fn stop_alloc(&mut self, job: &str) -> Option<RequestId> {
        let alloc = id_of(self, job)?;
        Some(self.ask(StopAlloc {
            alloc,
            no_shutdown_delay: false,
        }))
    }

    fn signal(&mut self, job: &str) -> Option<RequestId> {
        let alloc = id_of(self, job)?;
        let signal = "SIGHUP".to_owned();
        Some(self.ask(Signal {
            alloc,
            task: None,
            signal,
        }))
    }

    fn allocs(&self, job: &str) -> Vec<&AllocRunner> {
        let key = self.key_of(job);
        let mut allocs: Vec<_> = self
            .view()
            .into_iter()
            .flat_map(|view| view.allocs_of(&key).collect::<Vec<_>>())
            .collect();
        allocs.sort_by_key(|alloc| alloc.record().create_index);
        allocs
    }

    fn live(&self, job: &str) -> Option<&AllocRunner> {
        self.allocs(job)
            .into_iter()
            .rev()
            .find(|alloc| !alloc.record().finished)
    }

    fn task(&self, job: &str, task: &str) -> Option<&TaskRunner> {
        self.allocs(job)
            .into_iter()
            .rev()
            .find_map(|alloc| alloc.task(&task.into()))
    }

    fn runs(&self, job: &str, task: &str) -> bool {
        self.task(job, task)
            .is_some_and(|task| matches!(task.phase(), Phase::Running))
    }

    fn dead(&self, job: &str, task: &str) -> bool {
        self.task(job, task)
            .is_some_and(|task| task.state().state == TaskLife::Dead)
    }

    fn all_over(&self, job: &str, status: ClientStatus) -> bool {
        let allocs = self.allocs(job);
        let over =
            |alloc: &&AllocRunner| alloc.record().finished && alloc.record().status == status;
        !allocs.is_empty() && allocs.iter().all(over)
    }

    fn task_events(&self, job: &str, task: &str, kind: EventType) -> usize {
        let task = self.task(job, task).into_iter();
        let events = task.flat_map(|task| &task.state().events);
        events.filter(|event| event.kind == kind).count()
    }

    fn restarts(&self, job: &str, task: &str) -> u64 {
        self.task(job, task).map_or(0, |task| task.state().restarts)
    }

    fn knows(&self, job: &str, task: &str) -> Option<u32> {
        let task = self.task(job, task)?;
        task.record().templates.first()?.parse().ok()
    }

    fn version(&self, job: &str) -> Option<u64> {
        Some(self.view()?.job(&self.key_of(job))?.job.version)
    }

    fn rollout(&self, job: &str) -> Option<&Deployment> {
        let view = self.view()?;
        let id = view.job(&self.key_of(job))?.deployment?;
        Some(view.deployment(id)?)
    }

    fn writers(&self) -> usize {
        let disks = self.world.dirs.disks.values();
        disks.map(|disk| disk.len()).max().unwrap_or(0)
    }

    fn living(&self, task: &str) -> usize {
        self.world
            .alive()
            .filter(|(_, process)| process.key.task.as_str() == task)
            .count()
    }

    fn expect_that(&self, holds: bool, what: &str) -> Result<(), Violation> {
        if holds {
            return Ok(());
        }
        let jobs: Vec<_> = self
            .view()
            .into_iter()
            .flat_map(|view| view.allocs().collect::<Vec<_>>())
            .collect();
        let seen: Vec<String> = jobs
            .iter()
            .map(|alloc| {
                let record = alloc.record();
                let tasks: Vec<_> = alloc
                    .tasks()
                    .iter()
                    .map(|task| format!("{}: {:?}", task.spec().key.task, task.phase()))
                    .collect();
                format!(
                    "{} {:?} {:?} {tasks:?}",
                    record.name, record.desired, record.status
                )
            })
            .collect();
        Err(Violation::new(
            "scenario_expectation_holds",
            format!("{what}; {seen:#?}"),
        ))
    }
}

fn id_of(sim: &Sim, job: &str) -> Option<AllocId> {
    sim.live(job).map(|alloc| alloc.record().id)
}

/// How often something of this kind happened to any task, as far as their events reach back.
pub fn events(sim: &Sim, kind: EventType) -> usize {
    let tasks = (sim.view().into_iter())
        .flat_map(|view| view.allocs())
        .flat_map(|alloc| alloc.tasks());
    let events = tasks.flat_map(|task| &task.state().events);
    events.filter(|event| event.kind == kind).count()
}

/// How often this property had something to look at.
pub fn times_checked(sim: &Sim, property: &str) -> u64 {
    let reached = sim.checker.reached();
    let times = reached.filter(|(name, _)| *name == property);
    times.map(|(_, times)| times).sum()
}

/// Asks, and waits for the answer.
///
/// # Errors
/// What is violated meanwhile.
pub fn ask(sim: &mut Sim, what: impl Into<Request>) -> Result<Option<Reply>, Violation> {
    let request = sim.ask(what);
    sim.until(SOON, |sim| sim.reply(request).is_some())?;
    Ok(sim.reply(request).cloned())
}

/// Asks, and lets a minute pass, in which what is answered may be done.
///
/// # Errors
/// What is violated meanwhile.
pub fn ask_and_wait(sim: &mut Sim, what: impl Into<Request>) -> Result<Option<Reply>, Violation> {
    let request = sim.ask(what);
    sim.run(SOON)?;
    Ok(sim.reply(request).cloned())
}

/// The answer to this.
///
/// # Errors
/// What is violated meanwhile.
pub fn answered(sim: &mut Sim, asked: impl Into<Request>) -> Result<Reply, Violation> {
    let reply = ask(sim, asked)?;
    reply.ok_or_else(|| Violation::new("scenario_expectation_holds", "an answer"))
}

/// This is done.
///
/// # Errors
/// It is refused.
pub fn accepts(sim: &mut Sim, asked: impl Into<Request>) -> Scenario {
    let asked = asked.into();
    let reply = answered(sim, asked.clone())?;
    let accepted = !matches!(reply, Reply::Refused(_));
    sim.expect_that(accepted, &format!("{asked:?}: {reply:?}"))
}

/// This is refused, in words that name that.
///
/// # Errors
/// It is done, or refused in others.
pub fn refuses(sim: &mut Sim, asked: impl Into<Request>, word: &str) -> Scenario {
    let asked = asked.into();
    let reply = answered(sim, asked.clone())?;
    let Reply::Refused(Refusal::Conflict(why) | Refusal::Invalid(why) | Refusal::NotFound(why)) =
        &reply
    else {
        return sim.expect_that(false, &format!("{asked:?}: {reply:?}"));
    };
    sim.expect_that(why.contains(word), why)
}
