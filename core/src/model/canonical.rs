//! A job with what its author left open filled in, so that everybody after this reads the same.
//!
//! The defaults are those of Nomad. What is given is never changed; doing it twice is the
//! same as doing it once. Nothing is validated: a job that makes no sense stays one.

mod service;
mod task;

use std::collections::BTreeMap;

use super::group::{EphemeralDisk, TaskGroup};
use super::job::{Constraint, Job, JobType};
use super::policy::{ReschedulePolicy, RestartPolicy, RestartRules, UpdateStrategy};
use super::value::Value;
use crate::time::{SECOND, Span};

/// Fills in what a job leaves open:
///
/// - the job: its name (the id), namespace, region, pool, priority and data centres;
/// - groups: their count (the least of `scaling`, or 1), disk, network mode, and the policies,
///   each field from the group, then the job, then the job type's default;
/// - tasks: their restart policy (each field from the task, then the group), `kill_timeout`,
///   logs, and the fields of artifacts, templates, volume mounts and Vault;
/// - services: their name, provider, address mode, and what checks inherit from them;
/// - conditions and preferences: operator and weight.
pub fn canonicalize(job: &mut Job) {
    fill_text(&mut job.name, &job.id);
    fill_text(&mut job.namespace, "default");
    fill_text(&mut job.region, "global");
    fill_text(&mut job.node_pool, "default");
    if job.priority == 0 {
        job.priority = 50;
    }
    if job.datacenters.is_empty() {
        job.datacenters.push("*".to_owned());
    }
    conditions(&mut job.constraints, &mut job.affinities, &mut job.spreads);
    let inherited = Inherited {
        job_id: job.id.clone(),
        job_type: job.job_type,
        update: job.update.clone(),
        reschedule: job.reschedule.clone(),
        migrate: job.migrate.clone(),
    };
    for group in &mut job.task_groups {
        fill_group(group, &inherited);
    }
}

/// What groups take from their job.
struct Inherited {
    job_id: String,
    job_type: JobType,
    update: Option<UpdateStrategy>,
    reschedule: Option<ReschedulePolicy>,
    migrate: Option<Value>,
}

fn fill_group(group: &mut TaskGroup, job: &Inherited) {
    if group.count.is_none() {
        let least = group.scaling.as_ref().and_then(|scaling| scaling.min);
        group.count = Some(least.unwrap_or(1));
    }
    if let Some(scaling) = &mut group.scaling {
        if scaling.kind.is_empty() {
            "horizontal".clone_into(&mut scaling.kind);
        }
        scaling.min.get_or_insert(group.count.unwrap_or(1));
    }
    group
        .ephemeral_disk
        .get_or_insert_with(EphemeralDisk::default);
    conditions(
        &mut group.constraints,
        &mut group.affinities,
        &mut group.spreads,
    );
    fill_policies(group, job);
    for network in &mut group.networks {
        fill_text(&mut network.mode, "host");
        for port in network
            .reserved_ports
            .iter_mut()
            .chain(&mut network.dynamic_ports)
        {
            fill_text(&mut port.host_network, "default");
        }
    }
    let name = format!("{}-{}", job.job_id, group.name);
    group
        .services
        .iter_mut()
        .for_each(|service| service::fill_service(service, &name, ""));
    let restart = group.restart_policy.unwrap_or_default();
    for task in &mut group.tasks {
        task::fill_task(task, &restart, &name);
    }
}

fn fill_policies(group: &mut TaskGroup, job: &Inherited) {
    let rules = RestartRules::default_for(job.job_type);
    let given = group.restart_policy.unwrap_or_default();
    group.restart_policy = Some(merged(
        given,
        RestartPolicy {
            attempts: Some(i64::from(rules.attempts)),
            interval: Some(rules.interval),
            delay: Some(rules.delay),
            mode: Some(rules.mode),
            render_templates: Some(false),
        },
    ));
    if !job.job_type.one_per_node() {
        let given = group.reschedule_policy.clone().unwrap_or_default();
        let of_job = job.reschedule.clone().unwrap_or_default();
        let default = default_reschedule(job.job_type);
        group.reschedule_policy = Some(rescheduled(rescheduled(given, of_job), default));
    }
    if !job.job_type.runs_to_completion() && group.update.is_none() {
        let default = (job.job_type == JobType::Service).then(UpdateStrategy::default);
        group.update = job.update.clone().or(default);
    }
    // Moving to another node has no effect here, so nobody is given a block that nobody wrote.
    if group.migrate.is_none() {
        group.migrate = job.migrate.clone();
    }
    if let Some(migrate) = &mut group.migrate {
        if let Some(Value::Map(of_job)) = &job.migrate {
            let of_job = of_job
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone()));
            fill(migrate, &of_job.collect::<Vec<_>>());
        }
        fill(migrate, &default_migrate());
    }
    // Of a group without the block the defaults are shown, and may be handed in again.
    let mut default = Value::Map(BTreeMap::new());
    fill(&mut default, &default_migrate());
    group.migrate = group.migrate.take().filter(|it| *it != default);
}

/// How copies leave a node that is drained, unless somebody says otherwise.
pub fn default_migrate() -> [(&'static str, Value); 4] {
    [
        ("MaxParallel", Value::Int(1)),
        ("HealthCheck", Value::from("checks")),
        ("MinHealthyTime", Value::Int(10 * SECOND)),
        ("HealthyDeadline", Value::Int(300 * SECOND)),
    ]
}

/// A restart policy with what `given` says, and else what `default` says.
fn merged(given: RestartPolicy, default: RestartPolicy) -> RestartPolicy {
    RestartPolicy {
        attempts: given.attempts.or(default.attempts),
        interval: given.interval.or(default.interval),
        delay: given.delay.or(default.delay),
        mode: given.mode.or(default.mode),
        render_templates: given.render_templates.or(default.render_templates),
    }
}

fn rescheduled(given: ReschedulePolicy, default: ReschedulePolicy) -> ReschedulePolicy {
    ReschedulePolicy {
        attempts: given.attempts.or(default.attempts),
        interval: given.interval.or(default.interval),
        delay: given.delay.or(default.delay),
        delay_function: given.delay_function.or(default.delay_function),
        max_delay: given.max_delay.or(default.max_delay),
        unlimited: given.unlimited.or(default.unlimited),
    }
}

/// Services are moved for ever with growing pauses, batch jobs once a day.
fn default_reschedule(job_type: JobType) -> ReschedulePolicy {
    if job_type.runs_to_completion() {
        return ReschedulePolicy {
            attempts: Some(1),
            interval: Some(Span::secs(24 * 3600)),
            delay: Some(Span::secs(5)),
            delay_function: Some("constant".to_owned()),
            max_delay: Some(Span::ZERO),
            unlimited: Some(false),
        };
    }
    ReschedulePolicy {
        attempts: Some(0),
        interval: Some(Span::ZERO),
        delay: Some(Span::secs(30)),
        delay_function: Some("exponential".to_owned()),
        max_delay: Some(Span::secs(3600)),
        unlimited: Some(true),
    }
}

/// Operators and weights.
fn conditions(constraints: &mut [Constraint], affinities: &mut [Value], spreads: &mut [Value]) {
    for constraint in constraints {
        fill_text(&mut constraint.operand, "=");
    }
    for affinity in affinities {
        fill(
            affinity,
            &[("Operand", Value::from("=")), ("Weight", Value::Int(50))],
        );
    }
    for spread in spreads {
        fill(spread, &[("Weight", Value::Int(50))]);
    }
}

/// Sets a text unless it has one.
fn fill_text(text: &mut String, default: &str) {
    if text.is_empty() {
        default.clone_into(text);
    }
}

/// Sets the entries of a block that are missing or empty.
fn fill(block: &mut Value, defaults: &[(&str, Value)]) {
    let Value::Map(fields) = block else { return };
    for (key, default) in defaults {
        let empty = |value: &Value| matches!(value, Value::Null) || value.as_str() == Some("");
        if fields.get(*key).is_none_or(empty) {
            fields.insert((*key).to_owned(), default.clone());
        }
    }
}

#[cfg(test)]
mod tests;
