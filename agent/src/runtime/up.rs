//! `drover up`: follows one job on the terminal, its events and its output, until it is over or
//! somebody ends it. Of a parameterized job that are the jobs which are dispatched of it.

use drover_core::model::job::JobStatus;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use drover_core::agent::View;
use drover_core::ids::{AllocId, JobKey, TaskKey, TaskName};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::event::TaskEvent;
use drover_core::model::job::Job;
use drover_core::model::placement::PlacementFailure;
use drover_io_real::transfers::{Amount, Transfers};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{mpsc, watch};

use super::output::{self, Line};
use super::terminal::Terminal;
use crate::agent_handle::{AgentHandle, AgentStopped};
use crate::signals::Signals;

/// How many lines of output may wait to be shown.
const LINES: usize = 256;

/// How following a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Followed {
    /// Everything of it ended well.
    Complete,
    /// Everything of it ended, and something failed.
    Failed,
    /// There is no place for it on this node.
    Blocked,
    /// Somebody ended it.
    Interrupted,
    /// The agent is gone.
    AgentStopped,
}

/// How long a machine that is still being found out is left alone between two looks.
const LEARNING: Duration = Duration::from_millis(100);

/// What a query of a job finds.
#[derive(Clone, Debug)]
struct JobCheck {
    allocs: Vec<JobSnapshot>,
    blocked: Vec<(String, PlacementFailure)>,
    status: JobStatus,
    failed: bool,
    /// Whether something of the machine is still being found out, so that there may be a place soon.
    learning: bool,
}

#[derive(Clone, Debug)]
struct JobSnapshot {
    id: AllocId,
    name: String,
    tasks: Vec<TaskName>,
    running: bool,
    finished: bool,
}

/// Who follows a job. Made before the job is registered, so that nothing is missed.
pub(super) struct Follower {
    agent_handle: AgentHandle,
    job: JobKey,
    events: broadcast::Receiver<(TaskKey, Arc<TaskEvent>)>,
    index: watch::Receiver<u64>,
    transfers: Transfers,
    comes: watch::Receiver<()>,
    lines: mpsc::Receiver<Line>,
    lines_in: Option<mpsc::Sender<Line>>,
    shown: Vec<JobSnapshot>,
    blocked: BTreeSet<(String, PlacementFailure)>,
    /// Allocations that were over before: nobody asks for their story again.
    earlier: BTreeSet<AllocId>,
    /// Allocations of which a task failed.
    failed: BTreeSet<AllocId>,
}

enum Next {
    Event(TaskKey, Arc<TaskEvent>),
    Line(Line),
    Changed,
    Comes,
    Interrupted,
    Missed,
    AgentStopped,
}

impl Follower {
    /// Follows `job` from now on.
    pub(super) fn new(agent_handle: &AgentHandle, transfers: Transfers, job: JobKey) -> Follower {
        let (lines_in, lines) = mpsc::channel(LINES);
        Follower {
            agent_handle: agent_handle.clone(),
            job,
            events: agent_handle.events(),
            index: agent_handle.index(),
            comes: transfers.changes(),
            transfers,
            lines,
            lines_in: Some(lines_in),
            shown: Vec::new(),
            blocked: BTreeSet::new(),
            earlier: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }

    /// Looks at what the job left before it is registered again. What comes from now on is shown,
    /// however soon it is over.
    pub(super) async fn begin(&mut self) {
        if let Ok(check_job) = self.check_job().await {
            let over = check_job.allocs.iter().filter(|seen| seen.finished);
            self.earlier = over.map(|seen| seen.id).collect();
        }
    }

    /// Shows the job until it is over or a signal comes.
    pub(super) async fn until_over(
        &mut self,
        signals: &mut Signals,
        terminal: &mut Terminal,
    ) -> Followed {
        loop {
            self.index.borrow_and_update();
            let Ok(check_job) = self.check_job().await else {
                return Followed::AgentStopped;
            };
            self.show(&check_job, terminal);
            if let Some(end) = self.end(&check_job) {
                return end;
            }
            loop {
                match self.next(signals, check_job.learning).await {
                    Next::Event(task, event) => {
                        if self.name(task.alloc).is_none() {
                            let Ok(check_job) = self.check_job().await else {
                                return Followed::AgentStopped;
                            };
                            self.show(&check_job, terminal);
                        }
                        self.show_event(&task, &event, terminal);
                    }
                    Next::Line(line) => terminal.line(&line),
                    Next::Comes => terminal.coming(self.coming()),
                    Next::Missed => {}
                    Next::Changed => break,
                    Next::Interrupted => return Followed::Interrupted,
                    Next::AgentStopped => return Followed::AgentStopped,
                }
            }
        }
    }

    /// Shows what still comes, until all tasks' output is read, or until a further signal ends
    /// that. Whether it came to its end.
    pub(super) async fn rest(&mut self, signals: &mut Signals, terminal: &mut Terminal) -> bool {
        // With the last of its senders, the way of lines ends.
        self.lines_in = None;
        let mut events_over = false;
        loop {
            tokio::select! {
                biased;
                () = signals.next() => return false,
                event = self.events.recv(), if !events_over => match event {
                    Ok((task, event)) => self.show_event(&task, &event, terminal),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => events_over = true,
                },
                line = self.lines.recv() => match line {
                    Some(line) => terminal.line(&line),
                    None => break,
                },
            }
        }
        while let Ok((task, event)) = self.events.try_recv() {
            self.show_event(&task, &event, terminal);
        }
        true
    }

    async fn next(&mut self, signals: &mut Signals, learning: bool) -> Next {
        tokio::select! {
            biased;
            () = signals.next() => Next::Interrupted,
            // That nothing new was found out is told to nobody.
            () = tokio::time::sleep(LEARNING), if learning => Next::Changed,
            event = self.events.recv() => match event {
                Ok((task, event)) => Next::Event(task, event),
                Err(RecvError::Lagged(_)) => Next::Missed,
                Err(RecvError::Closed) => Next::AgentStopped,
            },
            Some(line) = self.lines.recv() => Next::Line(line),
            Ok(()) = self.comes.changed() => Next::Comes,
            changed = self.index.changed() => match changed {
                Ok(()) => Next::Changed,
                Err(_) => Next::AgentStopped,
            },
        }
    }

    /// What is on its way to the job's allocations.
    fn coming(&self) -> Option<Amount> {
        let all = self.shown.iter();
        all.filter_map(|seen| self.transfers.of(seen.id))
            .reduce(Amount::and)
    }

    async fn check_job(&self) -> Result<JobCheck, AgentStopped> {
        let job = self.job.clone();
        self.agent_handle
            .ask(move |view| inspect_job(view, &job))
            .await
    }

    fn name(&self, alloc: AllocId) -> Option<&str> {
        self.shown
            .iter()
            .find(|seen| seen.id == alloc)
            .map(|seen| seen.name.as_str())
    }

    fn show(&mut self, check_job: &JobCheck, terminal: &mut Terminal) {
        for seen in &check_job.allocs {
            let known = self.shown.iter().any(|known| known.id == seen.id);
            if !known && !self.earlier.contains(&seen.id) {
                terminal.alloc(seen.id, &seen.name, seen.running);
                self.follow_output(seen);
                self.shown.push(seen.clone());
            }
        }
        for (group, why) in check_job.blocked.iter().filter(|_| !check_job.learning) {
            if self.blocked.insert((group.clone(), why.clone())) {
                terminal.blocked(group, &why.to_string());
            }
        }
        let running = check_job.allocs.iter().filter(|seen| seen.running).count();
        let waiting = check_job
            .allocs
            .iter()
            .filter(|seen| !seen.running && !seen.finished)
            .count();
        terminal.status(&self.job.id, running, waiting);
    }

    fn follow_output(&self, seen: &JobSnapshot) {
        let Some(lines) = &self.lines_in else { return };
        for task in &seen.tasks {
            for stream in ["stdout", "stderr"] {
                let chunks = crate::http::logs::follow(
                    self.agent_handle.clone(),
                    seen.id,
                    task.clone(),
                    stream,
                    seen.running,
                );
                let label = task.as_str().to_owned();
                tokio::spawn(output::lines(
                    chunks,
                    label,
                    stream == "stderr",
                    lines.clone(),
                ));
            }
        }
    }

    fn show_event(&mut self, task: &TaskKey, event: &TaskEvent, terminal: &mut Terminal) {
        if event.fails_task {
            self.failed.insert(task.alloc);
        }
        if let Some(name) = self.name(task.alloc) {
            terminal.event(name, task.task.as_str(), event);
        }
    }

    fn end(&self, check_job: &JobCheck) -> Option<Followed> {
        // Nothing is placed yet: what ended is of an earlier run.
        if check_job.learning {
            return None;
        }
        if check_job.allocs.is_empty() && !check_job.blocked.is_empty() {
            return Some(Followed::Blocked);
        }
        match (
            check_job.status,
            check_job.allocs.is_empty(),
            check_job.failed,
        ) {
            (JobStatus::Dead, false, true) => Some(Followed::Failed),
            (JobStatus::Dead, false, false) => Some(Followed::Complete),
            // On a full disk what ended is garbage-collected at once.
            (JobStatus::Dead, true, _) => {
                let last = self.shown.last()?;
                Some(match self.failed.contains(&last.id) {
                    true => Followed::Failed,
                    false => Followed::Complete,
                })
            }
            (JobStatus::Pending | JobStatus::Running, _, _) => None,
        }
    }
}

/// The jobs that were made of a parameterized one, if it is one.
fn children(view: View<'_>, job: &JobKey) -> Vec<JobKey> {
    let Some(parent) = view.job(job).filter(|it| it.job.is_parameterized()) else {
        return Vec::new();
    };
    let parent = &parent.job;
    let is_child = |job: &Job| job.parent_id == parent.id && job.namespace == parent.namespace;
    let children = view.jobs().filter(|record| is_child(&record.job));
    children.map(|record| record.job.key()).collect()
}

fn inspect_job(view: View<'_>, job: &JobKey) -> JobCheck {
    let children = children(view, job);
    let jobs = core::iter::once(job).chain(&children);
    let allocs = jobs.clone().flat_map(|job| view.allocs_of(job));
    let allocs = allocs.map(|alloc| JobSnapshot {
        id: alloc.record().id,
        name: alloc.record().name.to_string(),
        tasks: alloc
            .tasks()
            .iter()
            .map(|task| task.spec().key.task.clone())
            .collect(),
        running: alloc.is_running(),
        finished: alloc.record().finished,
    });
    let latest = view
        .shown_allocs_of(job)
        .filter(|alloc| alloc.record().next.is_none());
    JobCheck {
        failed: latest
            .clone()
            .any(|alloc| alloc.record().status == ClientStatus::Failed),
        allocs: allocs.collect(),
        blocked: jobs.flat_map(|job| view.blocked(job)).cloned().collect(),
        learning: view.machine().is_learning(),
        status: view.job_status(job),
    }
}
