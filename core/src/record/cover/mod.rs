//! What a fingerprint covers of an effect: everything that [`super::redact`] shows, but for what
//! stands in it a second time and what is long. Of a task's configuration and environment, of what is
//! reserved for it, of a hook's work and of an event the kind, the plain numbers and the counts of
//! what is in them are covered; of a job's record its versions and indices; of the other [`records`],
//! next to everything, of names and descriptions that stand elsewhere their lengths.
//!
//! Nothing that is hidden is covered, nor how long it is: it is another thing when it is replayed.

mod records;

use super::fold::{Fold, count, high, low};
use crate::effect::{DriverEffect, NodeEffect, Program, Refusal, Reply, TaskConfig};
use crate::ids::{AllocId, LaunchId, RequestId, TaskKey, TaskName};
use crate::model::event::TaskEvent;
use crate::model::remote::RemotePrevious;
use crate::model::task::LogConfig;
use crate::op::Op;
use crate::time::Timestamp;
use crate::work::HookWork;

pub(super) use records::commit;

/// A number alone.
#[inline]
pub(super) fn number(number: u64) -> u64 {
    let mut fold = Fold::new(0);
    fold.row([number, 0, 0, 0]);
    fold.finish()
}

/// What a driver is asked.
#[inline]
pub(super) fn driver(name: &str, key: &TaskKey, asked: &DriverEffect) -> u64 {
    let TaskKey { alloc, task } = key;
    let mut fold = Fold::new(1);
    let mut common = |kind: u64, op: &Op, launch: &LaunchId| {
        let kind = kind | count(name.len()) << 8;
        fold.row([kind, op.0, low(launch.0), high(launch.0)]);
        of_task(&mut fold, *alloc, task.as_str());
    };
    match asked {
        DriverEffect::Start { op, launch, config } => {
            common(0, op, launch);
            start(&mut fold, config);
        }
        DriverEffect::Recover { op, launch, logs } => {
            common(1, op, launch);
            fold.row(of_logs(logs));
        }
        DriverEffect::Stop {
            op,
            launch,
            signal,
            grace,
        } => {
            common(2, op, launch);
            fold.text(signal);
            fold.row([grace.0.cast_unsigned(), 0, 0, 0]);
        }
        DriverEffect::Signal { op, launch, signal } => {
            common(3, op, launch);
            fold.text(signal);
        }
        DriverEffect::Exec {
            op,
            launch,
            program,
        } => {
            common(5, op, launch);
            exec(&mut fold, program);
        }
        DriverEffect::Destroy { op, launch } => common(4, op, launch),
    }
    fold.finish()
}

#[cold]
fn exec(fold: &mut Fold, program: &Program) {
    let Program {
        command: _,
        args,
        timeout,
        task,
    } = program;
    fold.row([timeout.0.cast_unsigned(), count(args.len()), 0, 0]);
    start(fold, task);
}

fn start(fold: &mut Fold, config: &TaskConfig) {
    let TaskConfig {
        run,
        // Both are the allocation's, which is named.
        job: _,
        group: _,
        config,
        env,
        user,
        cpu_shares,
        memory_limit,
        memory_reserved,
        logs,
        reserved,
        device_env,
    } = config;
    let sizes = count(config.len()) | count(env.len()) << 16 | count(device_env.len()) << 48;
    fold.row([
        u64::from(run.0),
        sizes,
        count(reserved.mounts.len()),
        count(reserved.nodes.len()),
    ]);
    fold.row([*cpu_shares, *memory_limit, *memory_reserved, 0]);
    fold.row(of_logs(logs));
    fold.text(user);
}

fn of_logs(logs: &LogConfig) -> [u64; 4] {
    let LogConfig {
        max_files,
        max_file_size_mb,
        disabled,
    } = logs;
    [
        max_files.cast_unsigned(),
        max_file_size_mb.cast_unsigned(),
        u64::from(*disabled),
        0,
    ]
}

/// What is forgotten.
#[inline]
pub(super) fn forget(driver: &str, launch: LaunchId) -> u64 {
    let mut fold = Fold::new(2);
    fold.row([low(launch.0), high(launch.0), 0, 0]);
    fold.text(driver);
    fold.finish()
}

/// A hook's work.
pub(super) fn hook(op: Op, alloc: AllocId, task: Option<&TaskName>, work: &HookWork) -> u64 {
    let mut fold = Fold::new(3);
    let (kind, size, text) = match work {
        HookWork::BuildAllocDir(_) => (0, 0, ""),
        HookWork::InheritDisk(work) => {
            for id in &work.from {
                fold.row([low(id.0), high(id.0), 0, 0]);
            }
            for task in &work.tasks {
                fold.text(task.as_str());
            }
            (
                1,
                count(work.from.len()) << 32 | count(work.tasks.len()),
                "",
            )
        }
        HookWork::BuildTaskDir(work) => (
            2,
            work.secrets_mb << 1 | u64::from(work.made),
            work.user.as_str(),
        ),
        HookWork::Reserve(work) => (3, count(work.devices.len()), ""),
        HookWork::RemoveAllocDir(_) => (4, 0, ""),
        HookWork::FetchArtifacts(work) => (5, count(work.artifacts.len()), work.user.as_str()),
        HookWork::RenderTemplates(work) => {
            let runs = u64::from(work.runs);
            let size = count(work.templates.len()) << 1 | count(work.env.len()) << 32;
            (6, size | runs, "")
        }
        HookWork::AskRemote(work) => {
            remote(&mut fold, &work.previous);
            (7, work.index, "")
        }
        HookWork::FetchDisk(work) => {
            remote(&mut fold, &work.previous);
            for task in &work.tasks {
                fold.text(task.as_str());
            }
            (8, count(work.tasks.len()), "")
        }
        HookWork::WritePayload(_) => (9, 0, ""),
        HookWork::IssueIdentities(asked) => (10, count(asked.identities.len()), ""),
    };
    fold.row([op.0, kind, size, u64::from(task.is_some())]);
    fold.text(text);
    of_task(&mut fold, alloc, task.map_or("", TaskName::as_str));
    fold.finish()
}

/// An allocation of another node. Its token is hidden, and says nothing that its id does not.
fn remote(fold: &mut Fold, remote: &RemotePrevious) {
    let RemotePrevious {
        alloc,
        address,
        token: _,
        ended,
    } = remote;
    fold.row([low(alloc.0), high(alloc.0), u64::from(*ended), 0]);
    fold.text(address);
}

/// What is asked about the machine.
#[cold]
pub(super) fn node(asked: &NodeEffect) -> u64 {
    let (kind, name) = match asked {
        NodeEffect::Probe { probe, .. } => (0, &**probe),
        NodeEffect::WatchDriver { driver, .. } => (1, &**driver),
        NodeEffect::MeasureRoom { .. } => (2, ""),
        NodeEffect::WatchDevices { plugin, .. } => (3, &**plugin),
    };
    let mut fold = Fold::new(4);
    fold.row([asked.op().0, kind, 0, 0]);
    fold.text(name);
    fold.finish()
}

/// An answer to who asked.
#[cold]
pub(super) fn reply(request: RequestId, reply: &Reply) -> u64 {
    let mut fold = Fold::new(5);
    let (kind, numbers) = match reply {
        Reply::Registered {
            eval,
            index,
            job_index,
            deployment,
        } => {
            fold.row(of_two(eval.map_or(0, |id| id.0), deployment.map(|id| id.0)));
            (0, [*index, *job_index])
        }
        Reply::Dispatched {
            job,
            eval,
            index,
            job_index,
        } => {
            fold.row(of_two(0, eval.map(|id| id.0)));
            fold.text(&job.namespace);
            fold.text(&job.id);
            (6, [*index, *job_index])
        }
        Reply::Stopping { eval, index } => {
            fold.row(of_two(0, eval.map(|id| id.0)));
            (1, [*index, 0])
        }
        Reply::Done { index } => (2, [*index, 0]),
        Reply::Variable(meta) => {
            fold.row(records::of_variable_meta(meta));
            (7, [0, 0])
        }
        // The words may quote what is hidden.
        Reply::Refused(Refusal::NotFound(_)) => (3, [0, 0]),
        Reply::Refused(Refusal::Conflict(_)) => (4, [0, 0]),
        Reply::Refused(Refusal::Invalid(_)) => (5, [0, 0]),
    };
    fold.row([request.0, kind, numbers[0], numbers[1]]);
    fold.finish()
}

/// Something that happened to a task.
#[inline]
pub(super) fn event(key: &TaskKey, event: &TaskEvent) -> u64 {
    let mut fold = Fold::new(6);
    fold.row(of_event(event));
    of_task(&mut fold, key.alloc, key.task.as_str());
    fold.finish()
}

#[inline]
fn of_event(event: &TaskEvent) -> [u64; 4] {
    let TaskEvent {
        kind,
        time,
        // Other people's words may be in it.
        display_message: _,
        details,
        fails_task,
    } = event;
    [
        *kind as u64,
        time.0.cast_unsigned(),
        count(details.len()),
        u64::from(*fails_task),
    ]
}

#[inline]
fn of_task(fold: &mut Fold, alloc: AllocId, task: &str) {
    fold.name([low(alloc.0), high(alloc.0)], task);
}

/// Two ids, of which the second may be missing: there is no id 0.
fn of_two(first: u128, second: Option<u128>) -> [u64; 4] {
    let second = second.unwrap_or(0);
    [low(first), high(first), low(second), high(second)]
}

/// A moment that may be missing: none is the beginning of time.
#[inline]
fn moment(time: Option<Timestamp>) -> u64 {
    time.map_or(i64::MIN, |time| time.0).cast_unsigned()
}
