//! Inputs and effects on one line each, with the column that they belong to.

use std::sync::Arc;

use drover_core::agent::requests::{Request, Subject};
use drover_core::agent::{Agent, Input, TimerName};
use drover_core::effect::{CheckEffect, Effect, HookEffect, Notification, Reply, StoreEffect};
use drover_core::ids::{AllocId, LaunchId, TaskKey, TaskName};
use drover_core::input::{DriverInput, Found, StoreInput};
use drover_core::model::alloc::ExitResult;
use drover_core::operations::Owner;
use drover_core::store::{Batch, Key, Record};

use crate::names::Names;
use crate::trace::Column;
use crate::words::words;

pub(crate) fn input(names: &Names, agent: &Agent, input: Option<&Input>) -> (Column, String) {
    match input {
        None => timer(names, agent),
        Some(Input::Driver(key, reported)) => {
            let launch = run_of(names, reported.launch());
            (
                Column::Of(names.task(key)),
                format!("{} {launch}", driver_input(reported)),
            )
        }
        Some(Input::Hook(hook)) => {
            let result = match &hook.result {
                Ok(_) => "hook done".to_owned(),
                Err(failure) => format!("hook failed: {}", failure.message),
            };
            (of(names, hook.alloc, hook.task.as_ref()), result)
        }
        Some(Input::Check(check)) => {
            let result = match &check.result {
                Ok(answer) => format!("check: {}", words(answer)),
                Err(failure) => format!("check failed: {}", failure.message),
            };
            (Column::Of(names.alloc(check.alloc)), result)
        }
        Some(Input::Store(StoreInput::Saved(id))) => (Column::Store, format!("saved {}", id.0)),
        Some(Input::Store(StoreInput::Failed(id, why))) => {
            (Column::Store, format!("not saved {}: {why}", id.0))
        }
        Some(Input::Request(request, asked)) => (
            Column::People,
            format!("{} {}", request.0, asks(names, asked)),
        ),
        Some(Input::Node(report)) => (Column::Agent, words(report)),
        Some(Input::Server(report)) => (Column::Agent, words(report)),
        Some(Input::Template(key, report)) => (Column::Of(names.task(key)), words(report)),
        Some(Input::Shutdown(mode)) => (Column::People, format!("end: {mode:?}")),
    }
}

fn asks(names: &Names, asked: &Request) -> String {
    let what = asked.get().name();
    match asked.get().subject() {
        Subject::Job(job) => format!("{what} {}", job.id),
        Subject::Alloc(alloc) => format!("{what} {}", names.alloc(alloc)),
        Subject::Deployment(id) => format!("{what} deployment {}", id.short()),
        Subject::Variable(key) => format!("{what} {}", key.path),
        Subject::Namespace(name) => format!("{what} {name}"),
        Subject::Acl | Subject::Node | Subject::Everything => what.to_owned(),
    }
}

fn timer(names: &Names, agent: &Agent) -> (Column, String) {
    match agent.poll_timeout() {
        Some((_, TimerName::Alloc(id, timer))) => {
            (Column::Of(names.alloc(id)), format!("timer {timer:?}"))
        }
        Some((_, TimerName::Acl)) => (Column::Agent, "a token expires".to_owned()),
        Some((_, TimerName::Drain)) => (Column::Agent, "deadline of the drain".to_owned()),
        Some((_, TimerName::Periodic(job))) => (Column::Agent, format!("time of job {}", job.id)),
        Some((_, TimerName::Images(job))) => (
            Column::Agent,
            format!("time of the images of job {}", job.id),
        ),
        Some((_, TimerName::Progress(job))) => {
            (Column::Agent, format!("progress deadline of {}", job.id))
        }
        Some((_, TimerName::Job(job))) => (Column::Agent, format!("timer of job {}", job.id)),
        Some((_, TimerName::Garbage)) => (Column::Agent, "timer of garbage".to_owned()),
        Some((_, TimerName::Store)) => (Column::Store, "timer".to_owned()),
        Some((_, TimerName::Operation(op))) => match agent.view().operations().get(op) {
            Some(one) => (
                owner(names, &one.owner),
                format!("no answer: {:?}", one.purpose),
            ),
            None => (Column::Agent, "timer".to_owned()),
        },
        Some((_, TimerName::Machine)) => (Column::Agent, "timer of the machine".to_owned()),
        Some((_, TimerName::Server(timer))) => (Column::Agent, format!("timer {timer:?}")),
        None => (Column::Agent, "timer".to_owned()),
    }
}

fn owner(names: &Names, owner: &Owner) -> Column {
    match owner {
        Owner::Task(key) => Column::Of(names.task(key)),
        Owner::Alloc(id) => Column::Of(names.alloc(*id)),
        Owner::Machine | Owner::Server | Owner::Job(_) => Column::Agent,
    }
}

fn of(names: &Names, alloc: AllocId, task: Option<&TaskName>) -> Column {
    Column::Of(match task {
        Some(task) => names.task(&TaskKey {
            alloc,
            task: task.clone(),
        }),
        None => names.alloc(alloc),
    })
}

/// The number of a launch, as `#2`.
fn run_of(names: &Names, launch: LaunchId) -> String {
    let name = names.known_launch(launch);
    match name.rsplit_once('#') {
        Some((_, number)) => format!("#{number}"),
        None => name.to_string(),
    }
}

fn driver_input(reported: &DriverInput) -> String {
    let what = reported.name();
    match (reported, reported.failure()) {
        (_, Some(failure)) => format!("{what} ({})", failure.message),
        (DriverInput::Exited { result, .. }, _) => format!("exited {}", ended(result)),
        (
            DriverInput::Recovered {
                found: Found::Exited(exit),
                ..
            },
            _,
        ) => format!("{what} {}", ended(exit)),
        (
            DriverInput::Executed {
                result: Ok(code), ..
            },
            _,
        ) => format!("script ended with {code}"),
        (DriverInput::Event { message, .. }, _) => format!("event: {message}"),
        _ => what.to_owned(),
    }
}

fn ended(exit: &ExitResult) -> String {
    match exit.code {
        Some(code) => format!("with {code}"),
        None => "with an unknown status".to_owned(),
    }
}

/// What leaves the agent; nothing for what nobody wants to read.
pub(crate) fn effect(names: &Names, effect: &Effect) -> Option<(Column, String)> {
    Some(match effect {
        Effect::Driver(_, key, effect) => {
            let what = effect.get().name();
            let launch = run_of(names, effect.launch());
            (Column::Of(names.task(key)), format!("{what} {launch}"))
        }
        Effect::Hook(HookEffect::Run {
            alloc, task, work, ..
        }) => (of(names, *alloc, task.as_ref()), work.words().to_owned()),
        Effect::Check(CheckEffect::Run { alloc, check, .. }) => {
            (Column::Of(names.alloc(*alloc)), format!("check {check}"))
        }
        Effect::Check(CheckEffect::Cancel { op }) => {
            (Column::Agent, format!("cancel check {}", op.0))
        }
        Effect::Node(effect) => (Column::Agent, words(effect)),
        Effect::Server(effect) => (Column::Agent, words(effect)),
        Effect::Forget(_, launch) => {
            let name = names.known_launch(*launch);
            let task = name.rsplit_once('#').map_or(&*name, |(task, _)| task);
            let column = Column::Of(Arc::from(task));
            (column, format!("forget {}", run_of(names, *launch)))
        }
        Effect::Hook(HookEffect::Cancel { op }) => (Column::Agent, format!("cancel hook {}", op.0)),
        Effect::Store(StoreEffect::Commit(id, batch)) => {
            let records = records(names, batch);
            (Column::Store, format!("commit {} {records}", id.0))
        }
        Effect::Reply(request, reply) => {
            let what = match reply {
                Reply::Registered { .. } => "registered".to_owned(),
                Reply::Dispatched { job, .. } => format!("dispatched {}", job.id),
                Reply::Stopping { .. } => "stopping".to_owned(),
                Reply::Done { .. } => "done".to_owned(),
                Reply::NodeChanged { .. } => "node changed".to_owned(),
                Reply::Deployment { .. } => "deployment changed".to_owned(),
                Reply::Volume(id) => format!("volume {}", id.short()),
                Reply::AclToken(token) => format!("token {}", token.token.accessor.short()),
                Reply::Variable(meta) => format!("put at {}", meta.modify_index),
                Reply::HandedOver(slots) => format!("handed over {}", slots.len()),
                Reply::Refused(why) => format!("refused {why:?}"),
            };
            (Column::People, format!("{} {what}", request.0))
        }
        Effect::Notify(Notification::Event(key, event)) => (
            Column::Of(names.task(key)),
            format!("emit {}: {}", event.kind.as_str(), event.display_message),
        ),
        Effect::Notify(Notification::Notice(notice)) => {
            (Column::People, format!("notice: {}", notice.text))
        }
        Effect::Notify(Notification::Index(_)) => return None,
        Effect::Stopped => (Column::Agent, "done".to_owned()),
    })
}

fn records(names: &Names, batch: &Batch) -> String {
    let one = |(key, record): (&Key, &Option<Record>)| match (key, record) {
        (Key::Alloc(id), Some(Record::Alloc(alloc))) => format!(
            "{} {}/{}{}{}",
            names.alloc(*id),
            alloc.desired.as_str(),
            alloc.status.as_str(),
            if alloc.finished { " finished" } else { "" },
            if alloc.destroying { " destroying" } else { "" },
        ),
        (Key::Task(id, name), Some(Record::Task(task))) => {
            let launch = task.launch.as_ref().map(|launch| run_of(names, launch.id));
            let state = task.state.state.as_str();
            let launch = launch.unwrap_or_default();
            format!("{}/{name} {state} {launch}", names.alloc(*id))
        }
        (Key::Collected(id), Some(_)) => format!("record of {}", names.alloc(*id)),
        (Key::Collected(id), None) => format!("record of {} removed", names.alloc(*id)),
        (Key::Node, Some(Record::Node(node))) => {
            let drains = if node.drain.is_some() { " drains" } else { "" };
            format!("node {}{drains}", node.eligibility.as_str())
        }
        (Key::Periodic(job), Some(_)) => format!("launches of {}", job.id),
        (Key::Periodic(job), None) => format!("launches of {} removed", job.id),
        (Key::Disk(slot), Some(_)) => format!("disk of {slot}"),
        (Key::Submission(job, version), Some(_)) => format!("text of {} v{version}", job.id),
        (Key::Submission(job, version), None) => {
            format!("text of {} v{version} removed", job.id)
        }
        (Key::Disk(slot), None) => format!("disk of {slot} removed"),
        (Key::Alloc(id), _) => format!("{} removed", names.alloc(*id)),
        (Key::Task(id, name), _) => format!("{}/{name} removed", names.alloc(*id)),
        (Key::Meta, _) => "meta".to_owned(),
        (Key::Node, _) => "node".to_owned(),
        (Key::Server, _) => "the node in its cluster".to_owned(),
        (Key::Placed(id), _) => format!("placement of {}", names.alloc(*id)),
        (Key::Reported(id), _) => format!("report of {}", names.alloc(*id)),
        (Key::Announced(id), _) => format!("services of {}", names.alloc(*id)),
        (Key::Volume(id), Some(Record::Volume(volume))) => {
            format!("volume {} {}", id.short(), volume.state.as_str())
        }
        (Key::Volume(id), _) => format!("volume {} removed", id.short()),
        (Key::AclPolicy(name), Some(_)) => format!("policy {name}"),
        (Key::AclPolicy(name), None) => format!("policy {name} removed"),
        (Key::AclToken(id), Some(_)) => format!("token {}", id.short()),
        (Key::AclToken(id), None) => format!("token {} removed", id.short()),
        (Key::AclBootstrap, _) => "the first token".to_owned(),
        (Key::Namespace(name), Some(_)) => format!("namespace {name}"),
        (Key::Namespace(name), None) => format!("namespace {name} removed"),
        (Key::Job(job), Some(_)) => format!("job {}", job.id),
        (Key::Job(job), None) => format!("job {} removed", job.id),
        (Key::Eval(_), _) => "eval".to_owned(),
        (Key::Deployment(_), _) => "deployment".to_owned(),
        (Key::Variable(key), Some(_)) => format!("variable {}", key.path),
        (Key::Variable(key), None) => format!("variable {} removed", key.path),
    };
    batch.iter().map(one).collect::<Vec<_>>().join(", ")
}
