//! Jobs that are made of others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Reply, TaskConfig};
use drover_core::ids::{RequestId, TaskKey};
use drover_core::model::job::{Job, JobStatus};

use super::history::saved_job;
use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of dispatches.
#[derive(Clone, Debug, Default)]
pub(super) struct Dispatches {
    /// The jobs that others were to be made of, as they were when somebody asked.
    parents: BTreeMap<RequestId, Arc<Job>>,
}

impl Dispatches {
    /// Somebody is about to ask.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        if let Request::DispatchJob(asked) = asked {
            let parent = agent.view().job(&asked.job);
            self.parents
                .extend(parent.map(|parent| (request, parent.job.clone())));
        }
    }
}

impl Checker {
    /// A dispatched job is its parent, with what was asked where that says something else.
    pub(super) fn dispatched_job_is_as_asked(
        &mut self,
        world: &World,
        request: RequestId,
        asked: &Request,
        reply: &Reply,
    ) -> Verdict {
        let parent = self.dispatches.parents.remove(&request);
        let (Some(parent), Request::DispatchJob(asked), Reply::Dispatched { job, .. }) =
            (parent, asked, reply)
        else {
            return Ok(());
        };
        let asked = &asked.dispatch;
        // Whoever asks again with the same token gets what was asked first.
        let made = saved_job(world, job).filter(|_| asked.token.is_empty());
        let Some(made) = made.map(|made| &made.job) else {
            return Ok(());
        };
        let mut meta = parent.meta.clone();
        meta.extend(asked.meta.clone());
        let priority = asked.priority.unwrap_or(parent.priority);
        let so = made.meta == meta && made.priority == priority && made.payload == asked.payload;
        self.holds(Property::DispatchedJobIsAsAsked, so, || {
            let (of_job, own) = (&made.meta, made.priority);
            format!("{job:?} has {of_job:?} and priority {own}, not {meta:?} and {priority}")
        })
    }

    /// A task of a dispatched job starts with its payload written.
    pub(super) fn start_has_its_dispatch_payload(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let payload = &alloc.job().payload;
        let task = alloc.task(&key.task).map(|task| task.spec().task());
        let wants = task.is_some_and(|task| task.dispatch_payload.is_some());
        if !wants || payload.is_empty() {
            return Ok(());
        }
        let own = (key.alloc, key.task.clone());
        let written = world.dirs.payloads.get(&own);
        self.holds(
            Property::StartHasItsDispatchPayload,
            written == Some(payload),
            || format!("{key:?} finds {written:?} and not {payload:?}"),
        )
    }

    /// What a dispatch brought is written before the first start of its task, and not again: it is
    /// the task's from then on.
    pub(crate) fn dispatch_payload_is_written_once(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let started = world
            .launches_of(key)
            .any(|(_, process)| process.starts > 0);
        let property = Property::DispatchPayloadIsWrittenOnce;
        self.holds(property, !started, || format!("{key:?} has started"))
    }

    /// The environment of a dispatched task has the parent job and every meta key that a dispatch may set.
    pub(super) fn start_env_has_dispatch_meta(
        &mut self,
        alloc: &AllocRunner,
        key: &TaskKey,
        config: &TaskConfig,
    ) -> Verdict {
        let job = alloc.job();
        let Some(rules) = job.parameterized_job.as_ref().filter(|_| job.dispatched) else {
            return Ok(());
        };
        let parent = config.env.get("NOMAD_JOB_PARENT_ID");
        let keys = rules.meta_required.iter().chain(&rules.meta_optional);
        let untold = |key: &&String| {
            let reported = config.env.get(&format!("NOMAD_META_{key}"));
            reported.is_none() || reported != Some(job.meta.get(*key).unwrap_or(&String::new()))
        };
        let untold: Vec<&String> = keys.filter(untold).collect();
        let holds = parent == Some(&job.parent_id) && untold.is_empty();
        self.holds(Property::StartEnvHasDispatchMeta, holds, || {
            format!("{key:?}: parent {parent:?}, untold {untold:?}")
        })
    }

    /// A parameterized job runs no allocation itself.
    pub(super) fn parameterized_job_never_runs(&mut self, alloc: &AllocRunner) -> Verdict {
        let job = alloc.job();
        let parameterized = job.parameterized_job.is_some() && !job.dispatched;
        self.holds(Property::ParameterizedJobNeverRuns, !parameterized, || {
            alloc.record().name.to_string()
        })
    }

    /// The number of finished dispatched jobs of a parent stays within its limit.
    pub(super) fn finished_dispatched_jobs_are_collected(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let mut over: BTreeMap<&str, usize> = BTreeMap::new();
        let children = view.jobs().filter(|record| record.job.is_child());
        for job in children.map(|record| &record.job) {
            let count = over.entry(&job.parent_id).or_default();
            *count += usize::from(view.job_status(&job.key()) == JobStatus::Dead);
        }
        let kept = self.kept_children;
        for (parent, count) in over {
            self.holds(
                Property::FinishedDispatchedJobsAreCollected,
                count <= kept,
                || format!("{count} of {parent}"),
            )?;
        }
        Ok(())
    }

    /// Whoever asks again with the same token gets the same job.
    pub(super) fn idempotency_token_dispatches_once(&mut self, agent: &Agent) -> Verdict {
        let mut known = BTreeSet::new();
        let children = agent.view().jobs();
        let children = children.filter(|record| record.job.dispatched && !record.purge);
        for job in children.map(|record| &record.job) {
            let token = &job.dispatch_idempotency_token;
            let first = token.is_empty() || known.insert((&job.parent_id, token));
            self.holds(Property::IdempotencyTokenDispatchesOnce, first, || {
                format!("{} is the second for {token}", job.id)
            })?;
        }
        Ok(())
    }
}
