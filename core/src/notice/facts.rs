//! What the record of an allocation says of things that operators are told. It says them for as long as it is
//! kept, so what is new is what it did not say before.

use std::collections::BTreeMap;

use crate::ids::{AllocId, TaskName};
use crate::model::alloc::{ClientStatus, DesiredStatus, TaskLife, TaskState};
use crate::model::event::{EventType, HEALTHCHECK, TaskEvent};
use crate::model::notice::{Event, Exit, Notice};
use crate::store::record::AllocRecord;
use crate::text::quote;
use crate::time::Timestamp;

/// One thing that happened to an allocation or a task of it. Two that are equal are the same thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fact {
    /// The task failed then.
    TaskFailed(TaskName, Timestamp),
    /// The allocation failed, and no task of it is why.
    AllocFailed,
    /// The task was killed for its memory then.
    OomKilled(TaskName, Timestamp),
    /// It did not become healthy.
    Unhealthy(Timestamp),
    /// A check of the task failed too often then.
    CheckFailed(TaskName, Timestamp),
    /// It ends for another one.
    Preempted(Option<AllocId>),
    /// What it ran was lost.
    Lost,
}

/// An allocation's record with the states of its tasks.
#[derive(Clone, Debug)]
pub(super) struct Told<'a> {
    pub(super) alloc: &'a AllocRecord,
    pub(super) tasks: Vec<(&'a TaskName, &'a TaskState)>,
}

impl Told<'_> {
    /// Everything that it says, with the notice that is made of it.
    pub(super) fn facts(&self) -> BTreeMap<Fact, Notice> {
        let mut facts = Vec::new();
        for (name, state) in &self.tasks {
            facts.extend(of_task(name, state));
        }
        let of_task = |fact: &Fact| matches!(fact, Fact::TaskFailed(..));
        if self.alloc.status == ClientStatus::Failed && !facts.iter().any(of_task) {
            facts.push(Fact::AllocFailed);
        }
        if let Some(health) = self.alloc.health.filter(|health| !health.healthy) {
            facts.push(Fact::Unhealthy(health.timestamp));
        }
        if self.alloc.desired == DesiredStatus::Evict {
            facts.push(Fact::Preempted(self.alloc.preempted_by));
        }
        if self.alloc.status == ClientStatus::Lost {
            facts.push(Fact::Lost);
        }
        let told = facts.into_iter().map(|fact| {
            let notice = self.notice(&fact);
            (fact, notice)
        });
        told.collect()
    }

    fn notice(&self, fact: &Fact) -> Notice {
        let alloc = self.alloc;
        let (event, task, time, reason) = match fact {
            Fact::TaskFailed(task, at) => (Event::Failed, Some(task), *at, self.why_failed(task)),
            Fact::AllocFailed => (Event::Failed, None, self.ended(), self.why_alloc_failed()),
            Fact::OomKilled(task, at) => {
                let reason = "the kernel killed it for its memory".to_owned();
                (Event::OomKilled, Some(task), *at, reason)
            }
            Fact::Unhealthy(at) => (Event::Unhealthy, None, *at, self.why_unhealthy()),
            Fact::CheckFailed(task, at) => {
                let reason = "a check failed too often, and it is restarted".to_owned();
                (Event::Unhealthy, Some(task), *at, reason)
            }
            Fact::Preempted(by) => {
                let reason = match by {
                    Some(by) => format!("allocation {by} of higher priority takes its place"),
                    None => "another of higher priority takes its place".to_owned(),
                };
                (Event::Preempted, None, alloc.modify_time, reason)
            }
            Fact::Lost => {
                let reason = "what it ran is gone".to_owned();
                (Event::Lost, None, alloc.modify_time, reason)
            }
        };
        let exit = task.filter(|_| event != Event::Unhealthy);
        let exit =
            exit.and_then(|task| self.exit(task, (event == Event::OomKilled).then_some(time)));
        let who = match task {
            Some(task) => format!("Task {} of {}", quote(task.as_str()), alloc.name),
            None => format!("Allocation {}", alloc.name),
        };
        Notice {
            id: id(alloc.id, fact, event),
            event,
            time,
            subject: alloc.subject(task.cloned()),
            exit,
            text: format!("{who} {}: {reason}", event.happened()),
            reason,
        }
    }

    fn state(&self, task: &TaskName) -> Option<&TaskState> {
        let found = self.tasks.iter().find(|(name, _)| *name == task);
        found.map(|(_, state)| *state)
    }

    /// How the task's last run ended, or the one that ended then.
    fn exit(&self, task: &TaskName, then: Option<Timestamp>) -> Option<Exit> {
        let mut events = self.state(task)?.events.iter().rev();
        let end = events.find(|event| {
            let meant = then.is_none_or(|then| event.time == then);
            meant && event.kind == EventType::Terminated
        })?;
        let number = |key: &str| end.details.get(key)?.parse::<i64>().ok();
        Some(Exit {
            code: number("exit_code"),
            signal: number("signal").unwrap_or(0),
        })
    }

    fn why_failed(&self, task: &TaskName) -> String {
        let events = self.state(task).map(|state| state.events.as_slice());
        let mut newest_first = events.unwrap_or_default().iter().rev();
        let cause = newest_first.find_map(|event| match event.kind == EventType::Terminated {
            true => Some(self.exit(task, None).map_or_else(String::new, in_words)),
            false if event.kind == EventType::Killing && !event.fails_task => None,
            false => words(event.kind).map(str::to_owned),
        });
        let cause = cause.unwrap_or_else(|| "it failed".to_owned());
        match events.and_then(last_decision) {
            Some(decision) => format!("{cause}; {decision}"),
            None => cause,
        }
    }

    fn why_alloc_failed(&self) -> String {
        let mut failed = self.tasks.iter().flat_map(|(_, state)| &state.events);
        let failed = failed.rfind(|event| event.fails_task);
        failed
            .map_or("it could not be set up, or was ended", |event| {
                words(event.kind).unwrap_or("it failed")
            })
            .to_owned()
    }

    fn why_unhealthy(&self) -> String {
        let failed = self.tasks.iter().any(|(_, state)| state.failed);
        match failed {
            true => "a task of it failed".to_owned(),
            false => "it did not become healthy in time".to_owned(),
        }
    }

    fn ended(&self) -> Timestamp {
        let ends = self.tasks.iter().filter_map(|(_, state)| state.finished_at);
        ends.max().unwrap_or(self.alloc.modify_time)
    }
}

fn of_task(name: &TaskName, state: &TaskState) -> Vec<Fact> {
    let mut facts = Vec::new();
    for event in &state.events {
        let is = |key: &str| event.details.get(key).is_some_and(|value| value == "true");
        if event.kind == EventType::Terminated && is("oom_killed") {
            facts.push(Fact::OomKilled(name.clone(), event.time));
        }
        let by_check = event.display_message.starts_with(HEALTHCHECK);
        if event.kind == EventType::RestartSignaled && by_check {
            facts.push(Fact::CheckFailed(name.clone(), event.time));
        }
    }
    if state.failed && state.state == TaskLife::Dead {
        // A task that all are asked to run again may fail again.
        let last = state.events.iter().rev().find(|event| event.fails_task);
        let at = last.map(|event| event.time).or(state.finished_at);
        facts.push(Fact::TaskFailed(name.clone(), at.unwrap_or_default()));
    }
    facts
}

/// The name of a fact in messages.
fn id(alloc: AllocId, fact: &Fact, event: Event) -> String {
    match fact {
        Fact::TaskFailed(task, at) | Fact::OomKilled(task, at) | Fact::CheckFailed(task, at) => {
            format!("{event}/{alloc}/{task}/{}", at.0)
        }
        Fact::Unhealthy(at) => format!("{event}/{alloc}/{}", at.0),
        Fact::AllocFailed | Fact::Preempted(_) | Fact::Lost => format!("{event}/{alloc}"),
    }
}

fn in_words(exit: Exit) -> String {
    match (exit.signal, exit.code) {
        (0, Some(code)) => format!("exit code {code}"),
        (0, None) => "nobody knows how it ended".to_owned(),
        (signal, _) => format!("signal {signal}"),
    }
}

/// The restart policy's reason, which is the core's own sentence.
fn last_decision(events: &[std::sync::Arc<TaskEvent>]) -> Option<&str> {
    let mut events = events.iter().rev();
    let decision = events.find(|event| event.kind == EventType::NotRestarting)?;
    Some(decision.details.get("restart_reason")?.as_str())
}

/// Why a task failed, where an event of this kind can be the reason and says it without its end.
fn words(kind: EventType) -> Option<&'static str> {
    match kind {
        EventType::SetupFailure => Some("its allocation could not be set up"),
        EventType::DriverFailure => Some("its driver could not start it"),
        EventType::FailedValidation => Some("its configuration is not accepted"),
        EventType::FailedArtifactDownload => Some("an artifact could not be fetched"),
        EventType::HookFailed => Some("a step around its life failed"),
        EventType::FailedRestoring => Some("it could not be found again when the agent started"),
        EventType::Killing => Some("it was ended"),
        EventType::Received
        | EventType::Started
        | EventType::Terminated
        | EventType::Killed
        | EventType::Restarting
        | EventType::NotRestarting
        | EventType::RestartSignaled
        | EventType::Signaling
        | EventType::TaskSetup
        | EventType::DownloadingArtifacts
        | EventType::SiblingFailed
        | EventType::Driver
        | EventType::LeaderDead
        | EventType::MainDead
        | EventType::HookMessage
        | EventType::WaitingShutdownDelay
        | EventType::AllocUnhealthy
        | EventType::Template
        | EventType::DiskExceeded => None,
    }
}
