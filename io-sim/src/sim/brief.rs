//! Inputs and effects on one line each.

use drover_core::agent::Agent;
use drover_core::effect::{DriverEffect, Effect, HookEffect, StoreEffect, Told};
use drover_core::input::{DriverInput, Input, LocalInput, StoreInput};
use drover_core::store::{Batch, Key, Record};

pub(super) fn input(agent: &Agent, input: Option<&Input>) -> String {
    let Some(input) = input else {
        return match agent.poll_timeout() {
            Some((_, name)) => format!("-> timer {name:?}"),
            None => "-> timer".to_owned(),
        };
    };
    match input {
        Input::Driver(key, said) => {
            let (launch, alloc) = (said.launch().short(), key.alloc.short());
            let what = match said {
                DriverInput::Started { .. } => "started".to_owned(),
                DriverInput::StartFailed { failure, .. } => format!("start failed: {failure:?}"),
                DriverInput::Recovered { found, .. } => format!("recovered: {found:?}"),
                DriverInput::Exited { result, .. } => format!("exited: {:?}", result.code),
                DriverInput::Stopped { result, .. } => format!("stopped: {result:?}"),
                DriverInput::Signaled { result, .. } => format!("signaled: {result:?}"),
                DriverInput::Destroyed { result, .. } => format!("destroyed: {result:?}"),
            };
            format!("-> {alloc}/{} {launch} {what}", key.task)
        }
        Input::Hook(hook) => {
            format!(
                "-> hook of {} {:?}: {:?}",
                hook.alloc.short(),
                hook.task,
                hook.result
            )
        }
        Input::Store(StoreInput::Saved(id)) => format!("-> saved {}", id.0),
        Input::Store(StoreInput::Failed(id, why)) => format!("-> not saved {}: {why}", id.0),
        Input::Local(request, LocalInput::Register { job, .. }) => {
            format!("-> {} register {}", request.0, job.id)
        }
        Input::Local(..) | Input::Operator(..) | Input::Node(_) | Input::Shutdown(_) => {
            format!("-> {input:?}")
        }
    }
}

pub(super) fn effect(effect: &Effect) -> Option<String> {
    Some(match effect {
        Effect::Driver(_, key, effect) => {
            let (what, launch) = match effect {
                DriverEffect::Start { launch, .. } => ("start", launch),
                DriverEffect::Recover { launch, .. } => ("recover", launch),
                DriverEffect::Stop { launch, .. } => ("stop", launch),
                DriverEffect::Signal { launch, .. } => ("signal", launch),
                DriverEffect::Destroy { launch, .. } => ("destroy", launch),
            };
            format!(
                "   <- {what} {}/{} {}",
                key.alloc.short(),
                key.task,
                launch.short()
            )
        }
        Effect::Hook(HookEffect::Run {
            alloc, task, work, ..
        }) => {
            format!("   <- hook {} {task:?} {work:?}", alloc.short())
        }
        Effect::Forget(_, launch) => format!("   <- forget {}", launch.short()),
        Effect::Hook(HookEffect::Cancel { op }) => format!("   <- cancel hook {}", op.0),
        Effect::Store(StoreEffect::Commit(id, batch)) => {
            format!("   <- commit {} {}", id.0, records(batch))
        }
        Effect::Reply(request, reply) => format!("   <- reply {} {reply:?}", request.0),
        Effect::Tell(Told::Event(key, event)) => format!(
            "   <- event {}/{} {}: {}",
            key.alloc.short(),
            key.task,
            event.kind.as_str(),
            event.display_message
        ),
        Effect::Tell(Told::Index(_)) => return None,
        Effect::Stopped => "   <- stopped".to_owned(),
    })
}

fn records(batch: &Batch) -> String {
    let one = |(key, record): (&Key, &Option<Record>)| match (key, record) {
        (Key::Alloc(id), Some(Record::Alloc(alloc))) => format!(
            "alloc {} {}/{}{}{}",
            id.short(),
            alloc.desired.as_str(),
            alloc.status.as_str(),
            if alloc.finished { " finished" } else { "" },
            if alloc.destroying { " destroying" } else { "" },
        ),
        (Key::Task(id, name), Some(Record::Task(task))) => format!(
            "task {}/{name} {} {}",
            id.short(),
            task.state.state.as_str(),
            task.launch
                .as_ref()
                .map(|launch| launch.id.short())
                .unwrap_or_default()
        ),
        (Key::Alloc(id), _) => format!("alloc {} gone", id.short()),
        (Key::Task(id, name), _) => format!("task {}/{name} gone", id.short()),
        (Key::Meta, _) => "meta".to_owned(),
        (Key::Job(job), record) => {
            format!(
                "job {}{}",
                job.id,
                if record.is_some() { "" } else { " gone" }
            )
        }
        (Key::Eval(_), _) => "eval".to_owned(),
        (Key::Deployment(_), _) => "deployment".to_owned(),
    };
    batch.iter().map(one).collect::<Vec<_>>().join(", ")
}
