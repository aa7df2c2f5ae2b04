//! What is still awaited, and from whom. Nothing awaited means at rest.
//!
//! It is for tests and the simulator; no command shows it.

use serde::Serialize;

use super::Agent;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::claims::Ungranted;
use crate::ids::JobKey;
use crate::model::task::Stage;
use crate::op::Op;
use crate::task::runner::{Phase as TaskPhase, TaskRunner};
use crate::time::Instant;

/// Everything that is awaited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// One line for each who waits.
    pub awaiting: Vec<Awaiting>,
}

/// One who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Awaiting {
    /// Who.
    pub who: String,
    /// For what.
    pub what: &'static str,
    /// Until when; for a named thing outside if none.
    pub until: Option<Instant>,
    /// The claims that are not granted yet, and who holds each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Ungranted>,
}

impl Awaiting {
    fn new(who: impl Into<String>, what: &'static str, until: Option<Instant>) -> Awaiting {
        Awaiting {
            who: who.into(),
            what,
            until,
            claims: Vec::new(),
        }
    }
}

impl Pending {
    /// Whether nothing is awaited.
    pub fn is_empty(&self) -> bool {
        self.awaiting.is_empty()
    }
}

impl Agent {
    /// What is still awaited, and by whom. Tasks that run and allocations that ended wait for
    /// nothing.
    pub fn pending(&self) -> Pending {
        let mut awaiting = Vec::new();
        if !self.shared.ledger.is_clean() {
            let until = self.shared.ledger.deadline();
            awaiting.push(Awaiting::new("store", "a commit", until));
        }
        for op in self.machine.awaited() {
            let what = "what a probe, a driver or a plugin says";
            awaiting.push(Awaiting::new("machine", what, self.until(op)));
        }
        let job = |key: &JobKey| format!("job {key}");
        for (key, at) in &self.local.look_again {
            let what = "the time of a replacement";
            awaiting.push(Awaiting::new(job(key), what, Some(*at)));
        }
        for key in self.local.blocked.keys() {
            awaiting.push(Awaiting::new(job(key), "a place on this node", None));
        }
        for key in &self.local.unknown {
            awaiting.push(Awaiting::new(job(key), "first news of this machine", None));
        }
        for alloc in self.allocs.values() {
            self.of_alloc(alloc, &mut awaiting);
        }
        Pending { awaiting }
    }

    /// When the wait for the answer to `op` ends.
    fn until(&self, op: Op) -> Option<Instant> {
        self.shared.operations.get(op)?.until()
    }

    fn of_alloc(&self, alloc: &AllocRunner, awaiting: &mut Vec<Awaiting>) {
        let until = self.view().next_timer(alloc);
        let who = format!("alloc {}", alloc.record().id.short());
        let what = match alloc.phase() {
            AllocPhase::Prerun(pipeline) if pipeline.awaited().is_some() => Some("its setup"),
            AllocPhase::Prerun(_) if self.shared.unsettled => Some("first news of this machine"),
            AllocPhase::Prerun(_) => Some("claims that others hold"),
            AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => Some("its cleaning away"),
            AllocPhase::Tasks | AllocPhase::Finished | AllocPhase::Destroyed => None,
        };
        if let Some(what) = what {
            awaiting.push(Awaiting {
                claims: self.view().ungranted(alloc),
                ..Awaiting::new(who.clone(), what, until)
            });
        }
        for task in alloc.tasks() {
            if let Some(what) = of_task(task) {
                let answer = task.awaited().and_then(|op| self.until(op));
                let timer = task.deadline().map(|(at, _)| at);
                let until = answer.into_iter().chain(timer).min();
                let who = format!("{who} task {}", task.spec().key.task);
                awaiting.push(Awaiting::new(who, what, until));
            }
        }
        if self.shared.destroys.awaits(alloc.record().id) {
            let what = "others to be cleaned away before it";
            awaiting.push(Awaiting::new(who, what, None));
        }
    }
}

fn of_task(task: &TaskRunner) -> Option<&'static str> {
    match task.phase() {
        // What comes after the end waits for the end; that is rest.
        TaskPhase::Waiting if task.spec().stage() == Stage::Poststop => None,
        TaskPhase::Waiting => Some("its turn in the group's life"),
        TaskPhase::Preparing(_) => Some("its prestart hooks"),
        TaskPhase::Starting(_) => Some("the driver's start"),
        TaskPhase::Recovering(_) => Some("the driver's search"),
        TaskPhase::Delaying(_) => Some("its shutdown delay"),
        TaskPhase::Stopping(_) => Some("its process to end"),
        TaskPhase::Cleaning(_) => Some("the driver to clean up"),
        TaskPhase::Pausing(_) => Some("its restart delay"),
        TaskPhase::Dead(_) if task.has_remains() => Some("the driver to clean up"),
        TaskPhase::Running | TaskPhase::Dead(_) => None,
    }
}
