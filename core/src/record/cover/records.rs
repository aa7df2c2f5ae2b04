//! What is covered of a commit and its records.

use std::collections::BTreeMap;

use super::super::fold::{Fold, count, high, low};
use super::{moment, of_two};
use crate::ids::JobKey;
use crate::model::alloc::{DeploymentHealth, ExitResult, TaskState};
use crate::model::eval::{Deployment, Evaluation};
use crate::model::variable::{Variable, VariableKey, VariableMeta};
use crate::store::collected::CollectedAlloc;
use crate::store::record::{
    AllocRecord, AssignedPort, JobRecord, Launch, RestartBudget, TaskRecord,
};
use crate::store::{Batch, CommitId, Key, Meta, Record};
use crate::time::Timestamp;

/// A commit.
#[inline]
pub(in crate::record) fn commit(id: CommitId, batch: &Batch) -> u64 {
    let mut fold = Fold::new(7);
    fold.row([id.0, count(batch.len()), 0, 0]);
    for (key, record) in batch {
        of_key(&mut fold, key, record.is_some());
        match record {
            Some(Record::Task(record)) => of_task_record(&mut fold, record),
            Some(Record::Alloc(record)) => of_alloc(&mut fold, record),
            Some(Record::Meta(meta)) => of_meta(&mut fold, meta),
            Some(Record::Job(record)) => of_job(&mut fold, record),
            Some(Record::Eval(eval)) => of_eval(&mut fold, eval),
            Some(Record::Deployment(deployment)) => of_deployment(&mut fold, deployment),
            Some(Record::Variable(variable)) => of_variable(&mut fold, variable),
            Some(Record::Collected(record)) => of_collected(&mut fold, record),
            None => {}
        }
    }
    fold.finish()
}

#[inline]
fn of_key(fold: &mut Fold, key: &Key, is_there: bool) {
    let there = u64::from(is_there);
    match key {
        Key::Meta => fold.row([0, 0, 0, there]),
        Key::Job(job) => {
            fold.row([1, 0, 0, there]);
            of_job_key(fold, job);
        }
        Key::Eval(id) => fold.row([2, low(id.0), high(id.0), there]),
        Key::Deployment(id) => fold.row([3, low(id.0), high(id.0), there]),
        Key::Alloc(id) => fold.row([4, low(id.0), high(id.0), there]),
        Key::Task(id, task) => {
            let id = [low(id.0), high(id.0) ^ (5 | there << 8)];
            fold.name(id, task.as_str());
        }
        Key::Variable(key) => of_variable_key(fold, key, there),
        Key::Collected(id) => fold.row([7, low(id.0), high(id.0), there]),
    }
}

#[cold]
fn of_variable_key(fold: &mut Fold, key: &VariableKey, there: u64) {
    let VariableKey { namespace, path } = key;
    fold.row([6, 0, 0, there]);
    fold.text(namespace);
    fold.text(path);
}

#[cold]
fn of_job_key(fold: &mut Fold, job: &JobKey) {
    let JobKey { namespace, id } = job;
    fold.text(namespace);
    fold.text(id);
}

#[inline]
fn of_task_record(fold: &mut Fold, record: &TaskRecord) {
    let TaskRecord {
        state:
            TaskState {
                state,
                failed,
                restarts,
                last_restart,
                started_at,
                finished_at,
                events,
            },
        launch,
        runs,
        budget:
            RestartBudget {
                used,
                since,
                lost_starts,
            },
        hooks_done,
        reserved,
        templates,
        identities,
        secrets,
        paused_until,
        restarting,
        failing,
    } = record;
    let flags = u64::from(*failed) | u64::from(*restarting) << 1 | (*state as u64) << 2;
    fold.row([
        flags | u64::from(launch.is_some()) << 8 | u64::from(*failing) << 9,
        u64::from(runs.0) << 32 | u64::from(*used),
        *restarts,
        moment(*paused_until),
    ]);
    fold.row([
        moment(*last_restart),
        moment(*started_at),
        moment(*finished_at),
        moment(*since),
    ]);
    // What the events say is covered where each is told.
    let sizes = count(events.len()) | count(hooks_done.len()) << 32;
    let given = count(reserved.mounts.len()) | count(reserved.nodes.len()) << 32;
    let secrets = u64::from(!secrets.is_empty());
    fold.row([sizes, given, count(templates.len()), secrets]);
    if *lost_starts > 0 {
        fold.row([u64::from(*lost_starts), 3, 0, 0]);
    }
    if !identities.is_empty() {
        of_identities(fold, identities);
    }
    if let Some(launch) = launch {
        of_launch(fold, launch);
    }
}

/// When each token was made; their names are the job's.
#[cold]
fn of_identities(fold: &mut Fold, made: &BTreeMap<String, Timestamp>) {
    for time in made.values() {
        fold.row([moment(Some(*time)), 2, 0, 0]);
    }
}

fn of_launch(fold: &mut Fold, launch: &Launch) {
    let Launch {
        id,
        run,
        exit,
        start_failed,
        lost,
    } = launch;
    let (ended, exit) = exit.as_ref().map_or((0, 0), of_exit);
    let start_failed = start_failed.map_or(0, |recoverable| 1 + u64::from(recoverable));
    let lost = lost.map_or(0, |loss| 1 + loss as u64);
    let flags = ended | start_failed << 8 | lost << 12 | u64::from(run.0) << 32;
    fold.row([low(id.0), high(id.0), flags, exit]);
}

/// That it ended, and how.
fn of_exit(exit: &ExitResult) -> (u64, u64) {
    let ExitResult {
        code,
        signal,
        oom_killed,
        message,
    } = exit;
    let known = u64::from(code.is_some()) << 1 | u64::from(message.is_some()) << 2;
    let flags = 1 | known | u64::from(*oom_killed) << 3;
    let numbers = [code.unwrap_or(0), *signal].map(|number| u64::from(number.cast_unsigned()));
    (flags, numbers[0] << 32 | numbers[1])
}

#[inline]
fn of_alloc(fold: &mut Fold, record: &AllocRecord) {
    let AllocRecord {
        // It is the key.
        id: _,
        // It is made of the next ones.
        name: _,
        index,
        job,
        job_version,
        group,
        eval,
        deployment,
        previous,
        preempts,
        preempted_by,
        inherits,
        remote,
        next,
        desired,
        desired_description,
        status,
        status_description,
        forced,
        finished,
        destroying,
        promised,
        reschedules,
        health,
        ports,
        devices,
        cores,
        launches,
        create_time,
        modify_time,
        create_index,
        modify_index,
    } = record;
    let (health, health_time) = health.as_ref().map_or((0, 0), of_health);
    let flags = u64::from(*forced) | u64::from(*finished) << 1 | u64::from(*destroying) << 2;
    let states = (*desired as u64) << 8 | (*status as u64) << 16 | health << 24;
    fold.row([
        flags | states | u64::from(*index) << 32,
        *job_version,
        *create_index,
        *modify_index,
    ]);
    fold.row([
        create_time.0.cast_unsigned(),
        modify_time.0.cast_unsigned(),
        low(eval.0),
        high(eval.0),
    ]);
    // Texts stand elsewhere in memory; how long they are is known here.
    let names = count(job.namespace.len()) ^ count(job.id.len()) << 16;
    let names = names ^ count(group.as_str().len()) << 32;
    let words = count(desired_description.len()) ^ count(status_description.len()) << 32;
    let lists = count(inherits.len()) ^ count(reschedules.len()) << 32;
    let held = count(ports.len()) ^ count(devices.len()) << 16 ^ count(launches.len()) << 32;
    fold.row([names, words, lists, held]);
    let rare = [
        deployment.map(|id| id.0),
        previous.map(|id| id.0),
        next.map(|id| id.0),
    ];
    if deployment.is_some() || previous.is_some() || next.is_some() || health != 0 {
        of_links(fold, rare, health_time);
    }
    if let Some(remote) = remote {
        super::remote(fold, remote);
    }
    if let Some(by) = preempted_by {
        fold.row([low(by.0), high(by.0), 3, 0]);
    }
    for id in preempts {
        fold.row([low(id.0), high(id.0), 4, 0]);
    }
    if let Some(until) = promised {
        fold.row([until.0.cast_unsigned(), 2, 0, 0]);
    }
    for id in inherits {
        fold.row([low(id.0), high(id.0), 0, 0]);
    }
    for time in reschedules {
        fold.row([time.0.cast_unsigned(), 0, 0, 0]);
    }
    for port in ports {
        of_port(fold, port);
    }
    for device in devices {
        fold.text(&device.task);
        fold.text(&device.plugin);
        device.ids.iter().for_each(|id| fold.text(id));
    }
    for assigned in cores {
        fold.text(&assigned.task);
        let ids = assigned.ids.iter();
        ids.for_each(|id| fold.row([u64::from(*id), 5, 0, 0]));
    }
    for (task, launch) in launches {
        fold.name([low(launch.0), high(launch.0)], task.as_str());
    }
}

/// What an allocation belongs to, replaces and is replaced by, and since when its health is known.
fn of_links(fold: &mut Fold, ids: [Option<u128>; 3], health_time: u64) {
    for id in ids {
        fold.row(of_two(id.unwrap_or(0), None));
    }
    fold.row([health_time, 0, 0, 0]);
}

fn of_health(health: &DeploymentHealth) -> (u64, u64) {
    let DeploymentHealth { healthy, timestamp } = health;
    (1 + u64::from(*healthy), timestamp.0.cast_unsigned())
}

#[cold]
fn of_port(fold: &mut Fold, port: &AssignedPort) {
    let AssignedPort {
        label,
        value,
        to,
        host_ip,
    } = port;
    fold.row([u64::from(*value), u64::from(*to), 0, 0]);
    fold.text(label);
    fold.text(host_ip);
}

#[cold]
fn of_meta(fold: &mut Fold, meta: &Meta) {
    let Meta {
        schema,
        node,
        index,
    } = meta;
    fold.row([u64::from(*schema), *index, low(node.0), high(node.0)]);
}

#[cold]
fn of_job(fold: &mut Fold, record: &JobRecord) {
    let JobRecord {
        job,
        versions,
        purge,
        deployment,
        done,
        handed,
    } = record;
    let flags = u64::from(*purge) | u64::from(job.stop) << 1 | u64::from(job.stable) << 2;
    fold.row(of_two(u128::from(flags), deployment.map(|id| id.0)));
    fold.row([
        job.version,
        job.create_index,
        job.modify_index,
        job.job_modify_index,
    ]);
    fold.row([
        job.submit_time.0.cast_unsigned(),
        count(versions.len()),
        count(done.len()),
        count(handed.len()),
    ]);
    for version in versions {
        fold.row([version.version, 0, 0, 0]);
    }
    for (group, index) in done {
        fold.row([u64::from(*index), 0, 0, 0]);
        fold.text(group.as_str());
    }
    for handed in handed {
        fold.row([u64::from(handed.index), 1, 0, 0]);
        fold.text(handed.group.as_str());
        super::remote(fold, &handed.from);
    }
}

#[cold]
fn of_eval(fold: &mut Fold, eval: &Evaluation) {
    let Evaluation {
        // It is the key.
        id: _,
        job,
        trigger,
        time,
        deployment,
        status,
        failed_groups,
        blocked_eval,
        previous_eval,
        create_index,
        modify_index,
    } = eval;
    fold.row([
        *trigger as u64,
        time.0.cast_unsigned(),
        *create_index,
        *modify_index,
    ]);
    let failed = u128::from(count(failed_groups.len()));
    let others = [blocked_eval, previous_eval].map(|id| id.map_or(0, |id| id.0));
    let linked = others != [0, 0];
    let flags = (u128::from(*status as u8) << 1) | u128::from(linked);
    fold.row(of_two(failed | (flags << 64), deployment.map(|id| id.0)));
    if linked {
        fold.row(of_two(others[0], Some(others[1])));
    }
    of_job_key(fold, job);
    for (group, why) in failed_groups {
        fold.text(group);
        fold.text(why);
    }
}

#[cold]
fn of_deployment(fold: &mut Fold, deployment: &Deployment) {
    let Deployment {
        // It is the key.
        id: _,
        job,
        job_version,
        status,
        description,
        create_index,
        modify_index,
    } = deployment;
    fold.row([*status as u64, *job_version, *create_index, *modify_index]);
    of_job_key(fold, job);
    fold.text(description);
}

#[cold]
fn of_collected(fold: &mut Fold, record: &CollectedAlloc) {
    let CollectedAlloc { alloc, tasks } = record;
    of_alloc(fold, alloc);
    for (task, state) in tasks {
        let TaskState {
            state,
            failed,
            restarts,
            last_restart,
            started_at,
            finished_at,
            // What they say was covered where each was told.
            events,
        } = state;
        let flags = u64::from(*failed) | (*state as u64) << 1 | count(events.len()) << 8;
        fold.name([flags, *restarts], task.as_str());
        fold.row([
            moment(*last_restart),
            moment(*started_at),
            moment(*finished_at),
            0,
        ]);
    }
}

#[cold]
fn of_variable(fold: &mut Fold, variable: &Variable) {
    let Variable {
        meta,
        // Secrets.
        items: _,
    } = variable;
    fold.row(of_variable_meta(meta));
}

pub(super) fn of_variable_meta(meta: &VariableMeta) -> [u64; 4] {
    let VariableMeta {
        create_index,
        modify_index,
        create_time,
        modify_time,
    } = meta;
    [
        *create_index,
        *modify_index,
        create_time.0.cast_unsigned(),
        modify_time.0.cast_unsigned(),
    ]
}
