//! `drover up`: follows one job on the terminal until it is over or somebody ends it.

use std::collections::BTreeSet;

use drover_core::agent::View;
use drover_core::ids::{AllocId, JobKey};
use drover_core::input::TaskKey;
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::TaskEvent;
use drover_io_real::door::{Door, Gone};
use tokio::sync::broadcast::error::RecvError;

use super::Signals;

/// How following a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything of it ended well.
    Complete,
    /// Everything of it ended, and something failed.
    Failed,
    /// There is no place for it on this node.
    Blocked,
    /// Somebody ended it.
    Interrupted,
    /// The agent is gone.
    Gone,
}

/// What is shown of a job's life.
pub trait Screen {
    /// An allocation that was not seen before.
    fn alloc(&mut self, id: AllocId, name: &str, tasks: &[String], running: bool);
    /// Something happened to a task.
    fn event(&mut self, alloc: &str, task: &str, event: &TaskEvent);
    /// There is no place for a group.
    fn blocked(&mut self, group: &str, why: &str);
}

/// What a look at a job finds.
struct Look {
    allocs: Vec<Seen>,
    blocked: Vec<(String, String)>,
    status: &'static str,
    failed: bool,
}

struct Seen {
    id: AllocId,
    name: String,
    tasks: Vec<String>,
    running: bool,
}

/// Shows a job until it is over or a signal comes.
pub async fn follow(
    door: &Door,
    job: &JobKey,
    signals: &mut Signals,
    screen: &mut (dyn Screen + Send),
) -> Followed {
    let mut events = door.events();
    let mut index = door.index();
    let mut known = Known::default();
    loop {
        let seen_index = *index.borrow_and_update();
        let Ok(look) = look(door, job.clone()).await else {
            return Followed::Gone;
        };
        if let Some(end) = known.show(&look, screen) {
            drain(&mut events, &known, screen);
            return end;
        }
        let _ = seen_index;
        loop {
            tokio::select! {
                biased;
                () = signals.next() => return Followed::Interrupted,
                event = events.recv() => match event {
                    Ok((task, event)) if known.has(&task) => known.event(&task, &event, screen),
                    // Of an allocation that the next look will find.
                    Ok((task, event)) => {
                        let Ok(look) = self::look(door, job.clone()).await else {
                            return Followed::Gone;
                        };
                        known.show_allocs(&look, screen);
                        known.event(&task, &event, screen);
                    }
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Followed::Gone,
                },
                changed = index.changed() => {
                    if changed.is_err() {
                        return Followed::Gone;
                    }
                    break;
                }
            }
        }
    }
}

fn drain(
    events: &mut tokio::sync::broadcast::Receiver<(TaskKey, TaskEvent)>,
    known: &Known,
    screen: &mut (dyn Screen + Send),
) {
    while let Ok((task, event)) = events.try_recv() {
        known.event(&task, &event, screen);
    }
}

async fn look(door: &Door, job: JobKey) -> Result<Look, Gone> {
    door.ask(move |view| look_at(view, &job)).await
}

fn look_at(view: View<'_>, job: &JobKey) -> Look {
    let allocs = view.allocs_of(job).map(|alloc| Seen {
        id: alloc.record().id,
        name: alloc.record().name.clone(),
        tasks: alloc
            .tasks()
            .iter()
            .map(|task| task.spec().key.task.to_string())
            .collect(),
        running: alloc.is_running(),
    });
    let latest = view
        .allocs_of(job)
        .filter(|alloc| alloc.record().next.is_none());
    Look {
        failed: latest
            .clone()
            .any(|alloc| alloc.record().status == ClientStatus::Failed),
        allocs: allocs.collect(),
        blocked: view.blocked(job).to_vec(),
        status: view.job_status(job),
    }
}

/// What was shown already.
#[derive(Default)]
struct Known {
    allocs: Vec<(AllocId, String)>,
    blocked: BTreeSet<(String, String)>,
}

impl Known {
    fn has(&self, task: &TaskKey) -> bool {
        self.allocs.iter().any(|(id, _)| *id == task.alloc)
    }

    fn show_allocs(&mut self, look: &Look, screen: &mut (dyn Screen + Send)) {
        for seen in &look.allocs {
            if self.allocs.iter().all(|(id, _)| *id != seen.id) {
                screen.alloc(seen.id, &seen.name, &seen.tasks, seen.running);
                self.allocs.push((seen.id, seen.name.clone()));
            }
        }
    }

    /// Shows what is new. Returns how it ended, if it did.
    fn show(&mut self, look: &Look, screen: &mut (dyn Screen + Send)) -> Option<Followed> {
        self.show_allocs(look, screen);
        for (group, why) in &look.blocked {
            if self.blocked.insert((group.clone(), why.clone())) {
                screen.blocked(group, why);
            }
        }
        if look.allocs.is_empty() && !look.blocked.is_empty() {
            return Some(Followed::Blocked);
        }
        match (look.status, look.allocs.is_empty(), look.failed) {
            ("dead", false, true) => Some(Followed::Failed),
            ("dead", false, false) => Some(Followed::Complete),
            _ => None,
        }
    }

    fn event(&self, task: &TaskKey, event: &TaskEvent, screen: &mut (dyn Screen + Send)) {
        if let Some((_, name)) = self.allocs.iter().find(|(id, _)| *id == task.alloc) {
            screen.event(name, task.task.as_str(), event);
        }
    }
}
