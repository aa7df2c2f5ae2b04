//! Inputs and effects in a few words, without anything that may be secret.

use crate::effect::{
    DriverEffect, Effect, HookEffect, NodeEffect, Refusal, Reply, StoreEffect, Told,
};
use crate::ids::TaskKey;
use crate::input::{
    DeviceNews, DriverHealth, DriverInput, DriverNews, Found, HookInput, Input, LocalInput,
    NodeInput, OperatorInput, StoreInput, TemplateInput,
};
use crate::model::alloc::ExitResult;
use crate::store::{Batch, Key, Record};

/// An input in a few words, with the task or allocation that it is of; a timeout if none.
pub fn input(input: Option<&Input>) -> String {
    match input {
        None => "timeout".to_owned(),
        Some(Input::Driver(key, said)) => format!("{} {}", task(key), driver_input(said)),
        Some(Input::Hook(hook)) => {
            let task = hook.task.as_ref().map(|task| format!("/{task}"));
            let alloc = hook.alloc.short();
            format!("{alloc}{} {}", task.unwrap_or_default(), hook_input(hook))
        }
        Some(Input::Template(key, said)) => format!("{} {}", task(key), template(said)),
        Some(input) => said(input),
    }
}

/// What an input says, in a few words.
pub fn said(input: &Input) -> String {
    match input {
        Input::Driver(_, said) => driver_input(said),
        Input::Hook(hook) => hook_input(hook),
        Input::Template(_, said) => template(said),
        Input::Store(StoreInput::Saved(id)) => format!("saved {}", id.0),
        Input::Store(StoreInput::Failed(id, why)) => format!("cannot save {}: {why}", id.0),
        Input::Local(_, asked) => local(asked),
        Input::Operator(_, asked) => operator(asked),
        Input::Node(news) => node_input(news),
        Input::Shutdown(mode) => format!("shut down, {mode:?}"),
    }
}

/// What the node learned, in a few words.
pub fn node_input(news: &NodeInput) -> String {
    match news {
        NodeInput::Probed { probe, result, .. } => match result {
            Ok(found) => format!("probe {probe} found {} facts", found.attributes.len()),
            Err(failure) => format!("probe {probe} failed: {}", failure.message),
        },
        NodeInput::Driver { driver, news, .. } => match news {
            DriverNews::Fingerprint(said) => {
                let health = match said.health {
                    DriverHealth::Undetected => "not there",
                    DriverHealth::Unhealthy => "not healthy",
                    DriverHealth::Healthy => "healthy",
                };
                format!("driver {driver} is {health}")
            }
            DriverNews::Failed(why) => format!("driver {driver} does not know itself: {why}"),
            DriverNews::Ended(why) => format!("driver {driver} says no more: {why}"),
        },
        NodeInput::Room { result, .. } => match result {
            Ok(room) => format!("the disk is {} % full", room.disk_percent),
            Err(failure) => format!("the disk was not measured: {}", failure.message),
        },
        NodeInput::Devices { plugin, news, .. } => match news {
            DeviceNews::Devices(groups) => {
                let devices: usize = groups.iter().map(|group| group.devices.len()).sum();
                format!("plugin {plugin} has {devices} devices")
            }
            DeviceNews::Disabled(why) => format!("plugin {plugin} has nothing to do: {why}"),
            DeviceNews::Ended(why) => format!("plugin {plugin} says no more: {why}"),
        },
    }
}

fn driver_input(said: &DriverInput) -> String {
    let ok = |well: bool| if well { "" } else { ", failed" };
    match said {
        DriverInput::Started { .. } => "started".to_owned(),
        DriverInput::StartFailed { failure, .. } => {
            let again = if failure.recoverable {
                " (may be tried again)"
            } else {
                ""
            };
            format!("start failed{again}")
        }
        DriverInput::StartLost { .. } => "start lost".to_owned(),
        DriverInput::Recovered { found, .. } => match found {
            Found::Running => "found running".to_owned(),
            Found::Exited(result) => format!("found ended, {}", exit(result)),
            Found::NeverStarted => "found never started".to_owned(),
            Found::Rebooted => "ended by the machine's restart".to_owned(),
            Found::Gone(_) => "not found".to_owned(),
        },
        DriverInput::Exited { result, .. } => format!("exited, {}", exit(result)),
        DriverInput::Stopped { result, .. } => format!("asked to stop{}", ok(result.is_ok())),
        DriverInput::Signaled { result, .. } => format!("signalled{}", ok(result.is_ok())),
        DriverInput::Executed { result, .. } => match result {
            Ok(code) => format!("script ended, code {code}"),
            Err(_) => "script could not be run".to_owned(),
        },
        DriverInput::Destroyed { result, .. } => format!("destroyed{}", ok(result.is_ok())),
        DriverInput::Said { .. } => "says something".to_owned(),
    }
}

fn exit(result: &ExitResult) -> String {
    let code = result
        .code
        .map_or("unknown".to_owned(), |code| format!("code {code}"));
    let memory = if result.oom_killed {
        ", out of memory"
    } else {
        ""
    };
    if result.signal == 0 {
        format!("{code}{memory}")
    } else {
        format!("{code}, signal {}{memory}", result.signal)
    }
}

fn hook_input(hook: &HookInput) -> String {
    let how = if hook.result.is_ok() {
        "done"
    } else {
        "failed"
    };
    format!("hook {} {how}", hook.op.0)
}

fn template(said: &TemplateInput) -> String {
    match said {
        TemplateInput::Missing { missing, .. } => format!("templates lack {}", missing.len()),
        TemplateInput::Rendered { .. } => "templates changed".to_owned(),
        TemplateInput::Failed { .. } => "templates are not rendered anew".to_owned(),
    }
}

fn local(asked: &LocalInput) -> String {
    match asked {
        LocalInput::Register { job, .. } => format!("register job {}", job.id),
        LocalInput::TakeOver { job, .. } => format!("take over job {}", job.id),
        LocalInput::Dispatch { job, .. } => format!("dispatch job {}", job.id),
        LocalInput::Deregister { job, purge: false } => format!("stop job {}", job.id),
        LocalInput::Deregister { job, purge: true } => format!("stop and forget job {}", job.id),
        LocalInput::Evaluate { job } => format!("evaluate job {}", job.id),
        LocalInput::Collect => "collect garbage".to_owned(),
        LocalInput::PutVariable { key, .. } => format!("put variable {}", key.path),
        LocalInput::DeleteVariable { key, .. } => format!("delete variable {}", key.path),
    }
}

fn operator(asked: &OperatorInput) -> String {
    match asked {
        OperatorInput::StopAlloc { alloc } => format!("stop allocation {}", alloc.short()),
        OperatorInput::Collect { alloc } => format!("clean away allocation {}", alloc.short()),
        OperatorInput::Promise { alloc } => format!("keep the disk of {}", alloc.short()),
        OperatorInput::Delivered { alloc } => format!("the disk of {} was read", alloc.short()),
        OperatorInput::Restart { alloc, tasks } => {
            format!("restart {tasks:?} of {}", alloc.short())
        }
        OperatorInput::Signal { alloc, signal, .. } => {
            format!("send {signal} to {}", alloc.short())
        }
    }
}

/// An effect in a few words.
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Driver(_, key, asked) => driver_effect(key, asked),
        Effect::Forget(_, launch) => format!("forget launch {}", launch.short()),
        Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task,
            work,
        }) => {
            let of = task
                .as_ref()
                .map(|task| format!("/{task}"))
                .unwrap_or_default();
            let work = work.words();
            format!("hook {}: {work} of {}{of}", op.0, alloc.short())
        }
        Effect::Hook(HookEffect::Cancel { op }) => format!("cancel hook {}", op.0),
        Effect::Node(effect) => node_effect(effect),
        Effect::Store(StoreEffect::Commit(id, batch)) => {
            format!("commit {}: {}", id.0, records(batch))
        }
        Effect::Reply(request, reply) => format!("reply {}: {}", request.0, reply_word(reply)),
        Effect::Tell(Told::Event(key, event)) => {
            format!("event {}: {}", task(key), event.kind.as_str())
        }
        Effect::Tell(Told::Index(index)) => format!("index {index}"),
        Effect::Stopped => "stopped".to_owned(),
    }
}

/// What is asked about the machine, in a few words.
pub fn node_effect(effect: &NodeEffect) -> String {
    match effect {
        NodeEffect::Probe { op, probe } => format!("probe {}: {probe}", op.0),
        NodeEffect::MeasureRoom { op } => format!("measure {}: room", op.0),
        NodeEffect::WatchDriver { op, driver } => format!("listen {}: driver {driver}", op.0),
        NodeEffect::WatchDevices { op, plugin } => format!("listen {}: plugin {plugin}", op.0),
    }
}

fn task(key: &TaskKey) -> String {
    format!("{}/{}", key.alloc.short(), key.task)
}

fn driver_effect(key: &TaskKey, asked: &DriverEffect) -> String {
    let launch = match asked {
        DriverEffect::Start { launch, .. }
        | DriverEffect::Recover { launch, .. }
        | DriverEffect::Stop { launch, .. }
        | DriverEffect::Signal { launch, .. }
        | DriverEffect::Exec { launch, .. }
        | DriverEffect::Destroy { launch, .. } => launch,
    };
    let what = driver_word(asked);
    format!("{what} {}, launch {}", task(key), launch.short())
}

/// What a driver is asked, in a word.
pub fn driver_word(asked: &DriverEffect) -> &'static str {
    match asked {
        DriverEffect::Start { .. } => "start",
        DriverEffect::Recover { .. } => "look for",
        DriverEffect::Stop { .. } => "stop",
        DriverEffect::Signal { .. } => "signal",
        DriverEffect::Exec { .. } => "run a script beside",
        DriverEffect::Destroy { .. } => "destroy",
    }
}

fn reply_word(reply: &Reply) -> &'static str {
    match reply {
        Reply::Registered { .. } => "registered",
        Reply::Dispatched { .. } => "dispatched",
        Reply::Stopping { .. } => "stopping",
        Reply::Variable(_) => "put",
        Reply::Done { .. } => "done",
        Reply::Refused(Refusal::NotFound(_)) => "not found",
        Reply::Refused(Refusal::Conflict(_) | Refusal::Invalid(_)) => "refused",
    }
}

fn records(batch: &Batch) -> String {
    let words: Vec<String> = batch
        .iter()
        .map(|(key, record)| record_word(key, record))
        .collect();
    words.join(", ")
}

fn record_word(key: &Key, record: &Option<Record>) -> String {
    let gone = if record.is_none() { " gone" } else { "" };
    match (key, record) {
        (Key::Alloc(id), Some(Record::Alloc(alloc))) => format!(
            "allocation {} {}, wanted {}{}",
            id.short(),
            alloc.status.as_str(),
            alloc.desired.as_str(),
            if alloc.finished { ", finished" } else { "" },
        ),
        (Key::Task(id, name), Some(Record::Task(task))) => {
            format!("task {}/{name} {}", id.short(), task.state.state.as_str())
        }
        (Key::Meta, _) => "node".to_owned(),
        (Key::Job(job), _) => format!("job {}{gone}", job.id),
        (Key::Eval(id), _) => format!("evaluation {}{gone}", id.short()),
        (Key::Deployment(id), _) => format!("roll-out {}{gone}", id.short()),
        (Key::Alloc(id), _) => format!("allocation {}{gone}", id.short()),
        (Key::Task(id, name), _) => format!("task {}/{name}{gone}", id.short()),
        (Key::Collected(id), _) => format!("record of allocation {}{gone}", id.short()),
        (Key::Variable(key), _) => format!("variable {}{gone}", key.path),
    }
}
