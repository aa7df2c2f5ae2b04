//! Whether a job can be run at all, before anything of it is made.
//!
//! The rules are those of Nomad for what this agent does; what it does not do and a task
//! would miss is refused by name, and what it merely does not act on is told as a warning. Bounds
//! keep a hostile job from taking the agent with it.
//!
//! **Paths** name the place as in job files: `job.priority`, `group["web"].count`,
//! `group["web"].task["server"].config.command`, `job.constraint[0]`. Names of groups and tasks
//! are quoted, lists are counted from 0.

mod artifact;
mod dispatch;
mod group;
mod identity;
mod image_update;
mod network;
mod periodic;
mod policy;
mod service;
mod task;
mod template;
mod volume;
mod wait_for;

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use crate::model::names;

use crate::constraint::check_constraint;
use crate::model::job::{Constraint, Job, JobType};
use crate::text::quote;

/// The most groups of a job.
pub const MAX_GROUPS: usize = 1_000;
/// The most tasks of a group.
pub const MAX_TASKS: usize = 100;
/// The most allocations of a job: the sum of its groups' counts.
pub const MAX_COUNT: i64 = 10_000;
/// The most conditions of a job and all its parts.
pub const MAX_CONSTRAINTS: usize = 10_000;
/// The most bytes of all meta, environment and artifacts of a job, keys and values.
pub const MAX_TEXT: usize = 1 << 20;
/// The most problems, and the most warnings, that are told of one job.
pub const MAX_PROBLEMS: usize = 200;

/// Something to tell about one place of a job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The place; see the module.
    pub path: String,
    /// What there is to tell.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// What was found out about a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Report {
    /// Why it cannot be run; empty if it can.
    pub problems: Vec<Problem>,
    /// What its author should know.
    pub warnings: Vec<Problem>,
    /// Whether the services of Consul are run as this node's own.
    consul_services: bool,
}

impl Report {
    /// Whether the job can be run.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, path: impl Into<String>, message: impl Into<String>) {
        push(&mut self.problems, path.into(), message.into());
    }

    fn warning(&mut self, path: impl Into<String>, message: impl Into<String>) {
        push(&mut self.warnings, path.into(), message.into());
    }

    /// A block that this agent does not act on and without which the task would not be what its
    /// author meant.
    fn unsupported(&mut self, given: bool, above: &str, block: &str) {
        if given {
            let message = format!("not supported by this version: {block}");
            self.problem(format!("{above}.{block}"), message);
        }
    }

    /// A block that is kept and shown, and otherwise of no effect here.
    fn no_effect(&mut self, given: bool, above: &str, block: &str) {
        if given {
            self.warning(format!("{above}.{block}"), "has no effect on this node");
        }
    }
}

fn push(list: &mut Vec<Problem>, path: String, message: String) {
    if list.len() < MAX_PROBLEMS {
        list.push(Problem { path, message });
    }
}

/// Checks a job. Whether its drivers exist and whether this node fulfils its conditions is not
/// looked at here. A job that is too large is not looked at any further.
pub fn validate(job: &Job) -> Report {
    validate_for(job, false)
}

/// The same for a node that runs the services of Consul as its own, or does not.
pub fn validate_for(job: &Job, consul_services: bool) -> Report {
    let mut report = Report {
        consul_services,
        ..Report::default()
    };
    check_size(&mut report, job);
    if !report.is_ok() {
        return report;
    }
    check_counts(&mut report, job);
    check_identity(&mut report, job);
    check_blocks(&mut report, job);
    let mut names = BTreeSet::new();
    for group in &job.task_groups {
        let path = format!("group[{}]", quote(&group.name));
        if !names.insert(group.name.as_str()) {
            report.problem(path.as_str(), "another group has the same name");
        }
        group::check(&mut report, job, group, &path);
    }
    report
}

fn check_counts(report: &mut Report, job: &Job) {
    if job.task_groups.is_empty() {
        report.problem("job", "must have at least one group");
    }
    let counts = job.task_groups.iter().map(|group| group.wanted().max(0));
    let wanted = counts.fold(0_i64, i64::saturating_add);
    if wanted > MAX_COUNT {
        let message = format!("must not have more than {MAX_COUNT} allocations, has {wanted}");
        report.problem("job", message);
    }
}

fn check_size(report: &mut Report, job: &Job) {
    let groups = &job.task_groups;
    if groups.len() > MAX_GROUPS {
        let message = format!("must not have more than {MAX_GROUPS} groups");
        report.problem("job", message);
    }
    for group in groups.iter().filter(|group| group.tasks.len() > MAX_TASKS) {
        report.problem(
            format!("group[{}]", quote(&group.name)),
            format!("must not have more than {MAX_TASKS} tasks"),
        );
    }
    let tasks = || groups.iter().flat_map(|group| &group.tasks);
    let texts = size(&job.meta)
        + groups.iter().map(|group| size(&group.meta)).sum::<usize>()
        + tasks().map(|t| size(&t.meta) + size(&t.env)).sum::<usize>()
        + tasks()
            .flat_map(|t| &t.artifacts)
            .map(artifact::size)
            .sum::<usize>();
    if texts > MAX_TEXT {
        let message =
            format!("meta, env and artifacts must not be larger than {MAX_TEXT} bytes together");
        report.problem("job", message);
    }
    let conditions = job.constraints.len()
        + groups.iter().map(|g| g.constraints.len()).sum::<usize>()
        + tasks().map(|t| t.constraints.len()).sum::<usize>();
    if conditions > MAX_CONSTRAINTS {
        let message = format!("must not have more than {MAX_CONSTRAINTS} constraints");
        report.problem("job", message);
    }
}

fn size(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(k, v)| k.len() + v.len()).sum()
}

fn check_identity(report: &mut Report, job: &Job) {
    match names::identifier(&job.id) {
        Ok(()) if job.id.contains(char::is_whitespace) => {
            report.problem("job.id", "must not contain spaces");
        }
        Ok(()) => {}
        Err(why) => report.problem("job.id", why),
    }
    // An empty name is the id, an empty pool the default one.
    for (path, text) in [("job.name", &job.name), ("job.node_pool", &job.node_pool)] {
        if !text.is_empty()
            && let Err(why) = names::identifier(text)
        {
            report.problem(path, why);
        }
    }
    for (path, text) in [
        ("job.namespace", &job.namespace),
        ("job.region", &job.region),
    ] {
        if let Err(why) = names::identifier(text) {
            report.problem(path, why);
        }
    }
    if !(1..=100).contains(&job.priority) {
        let message = format!("must be from 1 to 100, is {}", job.priority);
        report.problem("job.priority", message);
    }
    if job.datacenters.is_empty() {
        report.problem("job.datacenters", "must name at least one");
    }
    for (at, datacenter) in job.datacenters.iter().enumerate() {
        if datacenter.is_empty() {
            report.problem(format!("job.datacenters[{at}]"), "must not be empty");
        }
    }
}

fn check_blocks(report: &mut Report, job: &Job) {
    check_constraints(report, &job.constraints, "job");
    check_meta(report, &job.meta, "job");
    check_preferences(report, job, !job.affinities.is_empty(), "job", "affinity");
    check_preferences(report, job, !job.spreads.is_empty(), "job", "spread");
    if let Some(update) = &job.update {
        policy::check_update(report, update, "job.update");
    }
    if let Some(reschedule) = &job.reschedule {
        policy::check_reschedule(report, job.job_type, reschedule, "job.reschedule");
    }
    periodic::check(report, job);
    dispatch::check(report, job);
    report.unsupported(job.multiregion.is_some(), "job", "multiregion");
}

fn check_constraints(report: &mut Report, constraints: &[Constraint], above: &str) {
    for (at, constraint) in constraints.iter().enumerate() {
        if let Err(why) = check_constraint(constraint) {
            report.problem(format!("{above}.constraint[{at}]"), why);
        }
    }
}

/// Affinities and spreads choose among nodes: of no meaning on one node, and refused for jobs
/// that run on every node.
fn check_preferences(report: &mut Report, job: &Job, given: bool, above: &str, block: &str) {
    match job.job_type {
        JobType::System if given => {
            let message = "must not be given for a job of type system";
            report.problem(format!("{above}.{block}"), message);
        }
        JobType::System | JobType::Service | JobType::Batch | JobType::Sysbatch => {
            report.no_effect(given, above, block);
        }
    }
}

/// Keys of meta become names of variables.
fn check_meta(report: &mut Report, meta: &BTreeMap<String, String>, above: &str) {
    for (key, value) in meta {
        let path = || format!("{above}.meta[{}]", quote(key));
        if key.is_empty() {
            report.problem(path(), "the key must not be empty");
        } else if key.contains('\0') || value.contains('\0') {
            report.problem(path(), "must not contain NUL");
        } else if !key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let message = "other signs than letters, digits and _ become _ in the variable's name";
            report.warning(path(), message);
        }
    }
}

#[cfg(test)]
mod tests;
