//! See the core's request of the same name.

use std::sync::Arc;

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::fnv::fnv1a;
use drover_core::ids::JobKey;
use drover_core::model::group::{Port, TaskGroup};
use drover_core::model::job::Job;
use drover_core::model::policy::RestartMode;
use drover_core::model::submission::Submission;
use drover_core::model::template::Wait;
use drover_core::model::value::Value;
use drover_core::time::Span;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A job is handed in, as it is or after a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    /// Which.
    pub job: String,
    /// What is changed first, for good.
    pub change: Option<Change>,
}

impl ActKind for Register {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        hand_in(sim, jobs, &self.job, self.change, None);
        Ok(())
    }
}

/// A job is handed in after a change by somebody who looked at it before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckAndRegister {
    /// Which.
    pub job: String,
    /// What is changed first, for good.
    pub change: Change,
    /// Which index that person saw.
    pub saw: Seen,
}

/// What somebody saw of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    /// What it is shown with.
    Shown,
    /// That there is no such job.
    Nothing,
    /// An index that it had before, or never had.
    Older,
}

impl ActKind for CheckAndRegister {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        let shown = (sim.view()).and_then(|view| view.job(&sim.key_of(&self.job)));
        let shown = shown.map_or(0, |shown| shown.job.job_modify_index);
        let index = match self.saw {
            Seen::Shown => shown,
            Seen::Nothing => 0,
            Seen::Older => shown.saturating_sub(1),
        };
        hand_in(sim, jobs, &self.job, Some(self.change), Some(index));
        Ok(())
    }
}

fn hand_in(
    sim: &mut Sim,
    jobs: &mut Jobs<'_>,
    job: &str,
    change: Option<Change>,
    expect_index: Option<u64>,
) {
    if let Some(job) = jobs.get_mut(job) {
        if let Some(change) = change {
            change.make(job);
        }
        sim.ask(requests::Register {
            job: Arc::new(job.clone()),
            expect_index,
            submission: Some(text_of(job)),
        });
    }
}

impl Simulated for requests::Register {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        is_remembered(&self.job, facts, reply)
    }
}

/// The job file that a job stands in, which is another one for each other job.
fn text_of(job: &Job) -> Arc<Submission> {
    let text = serde_json::to_vec(job).unwrap_or_default();
    Arc::new(Submission {
        source: format!("job file {:016x}", fnv1a(&text)).into(),
        format: "hcl2".into(),
        ..Submission::default()
    })
}

pub(super) fn is_remembered(job: &Job, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
    job_is_remembered(&job.key(), facts, reply)
}

pub(super) fn job_is_remembered(key: &JobKey, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
    let Reply::Registered { job_index, .. } = reply else {
        return None;
    };
    Some(match facts.job(key) {
        Some(saved) => saved.job.job_modify_index >= *job_index,
        None => facts.replies.may_forget(key),
    })
}

/// A change of a job's first group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// The first task's environment: it is replaced.
    Env(u64),
    /// The first task's kill timeout, how long changes of its templates are collected, and for how much longer its
    /// tokens are good: it is updated in place.
    KillTimeout(Span),
    /// The number of copies.
    Count(i64),
    /// How important it is.
    Priority(i64),
    /// What the first task is told of itself: it is replaced.
    Meta(u64),
    /// How often each task is started again, and after which delay: it is updated in place.
    Restarts(i64, Span),
    /// How often what failed is replaced, and after which delay.
    Replacements(i64, Span),
    /// How long each task goes on after its services are gone: it is updated in place.
    ShutdownDelay(Span),
    /// The tags of all services: they are updated in place.
    Tag(u64),
    /// How often all checks of services run, in seconds: they are updated in place.
    CheckInterval(i64),
    /// Whether there is a second group: a copy of the first under another name.
    SecondGroup(bool),
}

impl Change {
    /// Makes it.
    pub fn make(self, job: &mut Job) {
        match self {
            Change::Priority(priority) => job.priority = priority,
            Change::SecondGroup(there) => second_group(job, there),
            _ => {}
        }
        let Some(group) = job.task_groups.first_mut() else {
            return;
        };
        match (self, group.tasks.first_mut()) {
            (Change::Env(value), Some(task)) => {
                task.env.insert("V".to_owned(), value.to_string());
            }
            (Change::Meta(value), Some(task)) => {
                task.meta.insert("m".to_owned(), value.to_string());
            }
            (Change::KillTimeout(span), Some(task)) => {
                task.kill_timeout = Some(span);
                for template in &mut task.templates {
                    template.wait = Some(Wait {
                        min: span,
                        max: Span(span.0.saturating_mul(4)),
                    });
                }
                let mut identities = task.identity.iter_mut().chain(&mut task.identities);
                if let Some(identity) = identities.find(|one| one.ttl.0 > 0) {
                    identity.ttl.0 = identity.ttl.0.saturating_add(span.0);
                }
            }
            (Change::Count(count), _) => group.count = Some(count),
            (Change::Restarts(attempts, delay), _) => restarts(group, attempts, delay),
            (Change::Replacements(attempts, delay), _) => {
                if let Some(policy) = &mut group.reschedule_policy {
                    (policy.attempts, policy.delay) = (Some(attempts), Some(delay));
                    // What fails by itself is given up some day.
                    policy.interval = Some(Span::secs(24 * 3600));
                }
            }
            (Change::ShutdownDelay(span), _) => {
                (group.tasks.iter_mut()).for_each(|task| task.shutdown_delay = span);
            }
            (Change::Tag(tag), _) => tags(group, tag),
            (Change::CheckInterval(seconds), _) => check_intervals(group, seconds),
            (Change::Priority(_) | Change::SecondGroup(_), _)
            | (Change::Env(_) | Change::Meta(_) | Change::KillTimeout(_), None) => {}
        }
    }
}

/// Policies that are there say something else.
fn restarts(group: &mut TaskGroup, attempts: i64, delay: Span) {
    let of_tasks = group.tasks.iter_mut().map(|task| &mut task.restart_policy);
    let policies = of_tasks.chain([&mut group.restart_policy]).flatten();
    // Who waits for the next interval has at least one attempt in each.
    for policy in policies.filter(|policy| policy.mode == Some(RestartMode::Fail)) {
        (policy.attempts, policy.delay) = (Some(attempts), Some(delay));
    }
}

fn tags(group: &mut TaskGroup, tag: u64) {
    let of_tasks = group.tasks.iter_mut().flat_map(|task| &mut task.services);
    for service in group.services.iter_mut().chain(of_tasks) {
        if let Value::Map(fields) = service {
            let tag = Value::from(format!("t{tag}").as_str());
            fields.insert("Tags".to_owned(), Value::List(vec![tag]));
        }
    }
}

fn check_intervals(group: &mut TaskGroup, seconds: i64) {
    let of_tasks = group.tasks.iter_mut().flat_map(|task| &mut task.services);
    for service in group.services.iter_mut().chain(of_tasks) {
        let Value::Map(fields) = service else {
            continue;
        };
        let Some(Value::List(checks)) = fields.get_mut("Checks") else {
            continue;
        };
        for check in checks {
            if let Value::Map(fields) = check {
                let interval = Value::Int(Span::secs(seconds).0);
                fields.insert("Interval".to_owned(), interval);
            }
        }
    }
}

fn second_group(job: &mut Job, there: bool) {
    const NAME: &str = "h";
    if there == job.task_groups.iter().any(|group| group.name == NAME) || job.task_groups.len() > 2
    {
        return;
    }
    if !there {
        job.task_groups.retain(|group| group.name != NAME);
    } else if let Some(first) = job.task_groups.first() {
        let mut second = first.clone();
        NAME.clone_into(&mut second.name);
        for network in &mut second.networks {
            let fixed = core::mem::take(&mut network.reserved_ports).into_iter();
            let chosen = fixed.map(|port| Port { value: 0, ..port });
            network.dynamic_ports.extend(chosen);
        }
        job.task_groups.push(second);
    }
}
