//! Jobs that are made of others.

use drover_core::ids::TaskKey;
use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::TaskConfig;

use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// A task starts with what the dispatch of its job brought for it.
    pub(super) fn a_start_finds_its_payload(
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
            Property::AStartFindsItsPayload,
            written == Some(payload),
            || format!("{key:?} finds {written:?} and not {payload:?}"),
        )
    }

    /// What a dispatch brought is written before the first start of its task, and not again: it is
    /// the task's from then on.
    pub(crate) fn a_payload_is_written_before_all_starts(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let started = world
            .launches_of(key)
            .any(|(_, process)| process.starts > 0);
        let property = Property::APayloadIsWrittenBeforeAllStarts;
        self.holds(property, !started, || format!("{key:?} has started"))
    }

    /// A task of a dispatched job is told the parent, and every key that a dispatch may bring.
    pub(super) fn a_start_is_told_its_dispatch(
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
            let told = config.env.get(&format!("NOMAD_META_{key}"));
            told.is_none() || told != Some(job.meta.get(*key).unwrap_or(&String::new()))
        };
        let untold: Vec<&String> = keys.filter(untold).collect();
        let holds = parent == Some(&job.parent_id) && untold.is_empty();
        self.holds(Property::AStartIsToldItsDispatch, holds, || {
            format!("{key:?}: parent {parent:?}, untold {untold:?}")
        })
    }

    /// A job that others are made of runs nothing itself.
    pub(super) fn no_mould_runs(&mut self, alloc: &AllocRunner) -> Verdict {
        let job = alloc.job();
        let mould = job.parameterized_job.is_some() && !job.dispatched;
        self.holds(Property::NoMouldRuns, !mould, || {
            alloc.record().name.to_string()
        })
    }

    /// Of the jobs that were made of one and are over, no more are kept than are meant to be.
    pub(super) fn dispatched_jobs_go(&mut self, agent: &Agent) -> Verdict {
        let view = agent.view();
        let mut over: BTreeMap<&str, usize> = BTreeMap::new();
        let children = view.jobs().filter(|record| record.job.dispatched);
        for job in children.map(|record| &record.job) {
            let count = over.entry(&job.parent_id).or_default();
            *count += usize::from(view.job_status(&job.key()) == "dead");
        }
        let kept = self.kept_children;
        for (parent, count) in over {
            self.holds(Property::DispatchedJobsGo, count <= kept, || {
                format!("{count} of {parent}")
            })?;
        }
        Ok(())
    }

    /// Whoever asks again with the same token gets the same job.
    pub(super) fn one_job_for_one_token(&mut self, agent: &Agent) -> Verdict {
        let mut known = BTreeSet::new();
        let children = agent.view().jobs();
        let children = children.filter(|record| record.job.dispatched && !record.purge);
        for job in children.map(|record| &record.job) {
            let token = &job.dispatch_idempotency_token;
            let first = token.is_empty() || known.insert((&job.parent_id, token));
            self.holds(Property::OneJobForOneToken, first, || {
                format!("{} is the second for {token}", job.id)
            })?;
        }
        Ok(())
    }
}
