//! What is still awaited, and from whom. Nothing awaited means at rest.
//!
//! It is for tests and the simulator; no command shows it.

use serde::Serialize;

use super::Agent;
use crate::alloc::runner::{AllocRunner, Phase as AllocPhase};
use crate::model::task::Stage;
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
            awaiting.push(Awaiting {
                who: "store".to_owned(),
                what: "a commit",
                until,
            });
        }
        for until in self.machine.awaited() {
            awaiting.push(Awaiting {
                who: "machine".to_owned(),
                what: "what a probe, a driver or a plugin says",
                until: Some(until),
            });
        }
        for (key, at) in &self.local.look_again {
            let what = "the time of a replacement";
            awaiting.push(Awaiting {
                who: format!("job {key}"),
                what,
                until: Some(*at),
            });
        }
        for key in self.local.blocked.keys() {
            let what = "a place on this node";
            awaiting.push(Awaiting {
                who: format!("job {key}"),
                what,
                until: None,
            });
        }
        for key in &self.local.unknown {
            let what = "first news of this machine";
            awaiting.push(Awaiting {
                who: format!("job {key}"),
                what,
                until: None,
            });
        }
        for alloc in self.allocs.values() {
            of_alloc(alloc, &mut awaiting);
            if self.shared.destroys.awaits(alloc.record().id) {
                awaiting.push(Awaiting {
                    who: format!("alloc {}", alloc.record().id.short()),
                    what: "others to be cleaned away before it",
                    until: None,
                });
            }
        }
        Pending { awaiting }
    }
}

fn of_alloc(alloc: &AllocRunner, awaiting: &mut Vec<Awaiting>) {
    let until = alloc.deadline().map(|(at, _)| at);
    let who = format!("alloc {}", alloc.record().id.short());
    let what = match alloc.phase() {
        AllocPhase::Prerun(pipeline) if pipeline.awaited().is_some() => Some("its setup"),
        AllocPhase::Prerun(_) => Some("the end of the allocation that it replaces"),
        AllocPhase::Destroying(_) | AllocPhase::DestroyPause(_) => Some("its cleaning away"),
        AllocPhase::Tasks | AllocPhase::Finished | AllocPhase::Destroyed => None,
    };
    if let Some(what) = what {
        awaiting.push(Awaiting {
            who: who.clone(),
            what,
            until,
        });
    }
    for task in alloc.tasks() {
        if let Some(what) = of_task(task) {
            let until = task.deadline().map(|(at, _)| at);
            let who = format!("{who} task {}", task.spec().key.task);
            awaiting.push(Awaiting { who, what, until });
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
        TaskPhase::Stopping { .. } => Some("its process to end"),
        TaskPhase::Cleaning(_) => Some("the driver to clean up"),
        TaskPhase::Pausing(_) => Some("its restart delay"),
        TaskPhase::Dead(_) if task.has_remains() => Some("the driver to clean up"),
        TaskPhase::Running | TaskPhase::Dead(_) => None,
    }
}
