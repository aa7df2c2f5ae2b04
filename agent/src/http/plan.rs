//! `PUT /v1/job/ID/plan`: what registering a job would do. It changes nothing.

use std::sync::Arc;

use axum::extract::Request;
use drover_core::model::job::Job;
use drover_core::store::periodic::second_of;
use drover_io_real::{clock, zones};
use serde::Deserialize;
use serde_json::Value;

use super::answer::{self, Answer};
use super::dto::{AllocMetric, AllocStub, PlanAnnotations, Planned};
use super::errors::ApiError;
use super::params::Params;
use super::records::{AllocRecords, NodeNames};
use super::{Api, body, diff, jobs};
use crate::acl::Capability;
use crate::admission::Preserve;
use crate::times;

/// The body of a plan.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    job: Option<Value>,
    diff: bool,
    preserve_counts: bool,
    preserve_resources: bool,
}

pub(super) async fn plan(api: &Api, params: &Params, id: &str, request: Request) -> Answer {
    let asked: Asked = body::decode(request).await?;
    let preserve = Preserve {
        counts: asked.preserve_counts,
        resources: asked.preserve_resources,
    };
    let job = asked
        .job
        .ok_or_else(|| ApiError::bad("Job must be specified"))?;
    let job = jobs::decode(job)?;
    if job.id != id {
        return Err(ApiError::bad("Job ID does not match"));
    }
    let mut admitted = jobs::admit(api, params, job, preserve).await?;
    let job = Arc::new(admitted.job.clone());
    let (wanted, with_diff) = (job.clone(), asked.diff);
    let zone = job.periodic.as_ref().map(|it| it.time_zone.clone());
    let zone = zone.and_then(|zone| zones::around(&zone, second_of(clock::now().wall)).ok());
    let asked_by = params.clone();
    let planned = api.agent_handle.ask(move |view| {
        let now = clock::now();
        let node = Arc::new(NodeNames::of(view.node()));
        let wanted = view.with_known_digests(&wanted);
        let known = view.job(&wanted.key()).map(|record| record.job.clone());
        let dry_run = match one_launch(&wanted, known.as_deref()) {
            Some(launch) => view.dry_run(now, &launch),
            None => view.dry_run(now, &wanted),
        };
        let preempted = dry_run.preempts.iter();
        let preempted = preempted.filter_map(|id| view.shown_alloc(*id));
        let preempted = preempted
            .filter(|alloc| {
                let namespace = &alloc.record().job.namespace;
                asked_by.may(namespace, Capability::ReadJob)
            })
            .map(|alloc| AllocStub::from(&AllocRecords::of(view, &node, alloc)))
            .collect();
        let planned = Planned {
            annotations: PlanAnnotations::of(&dry_run.groups, preempted),
            failed_groups: AllocMetric::of_dry_run(&node, &dry_run),
            job_modify_index: known.as_ref().map_or(0, |known| known.job_modify_index),
            index: known.as_ref().map_or(0, |known| known.modify_index),
            next_periodic_launch: view
                .next_launch(now, &wanted, zone.as_ref())
                .map(times::to_seconds),
            ..Planned::default()
        };
        (planned, dry_run, known, wanted, view.node().drivers.clone())
    });
    let (mut planned, dry_run, known, job, drivers) = planned.await?;
    admitted
        .warnings
        .extend(remarks(api, dry_run.unplaced.unknown));
    admitted
        .warnings
        .extend(jobs::missing_drivers(&job, &drivers));
    planned.warnings = admitted.warning_text();
    if with_diff {
        let mut diff = diff::job(known.as_deref(), &job);
        diff::annotate(&mut diff, known.as_deref(), &job, &dry_run);
        planned.diff = Some(diff);
    }
    answer::json(params, &planned)
}

/// What is to be known of a plan by this node, which may be one that learns still what it has.
fn remarks(api: &Api, learns: bool) -> impl Iterator<Item = String> {
    let learns =
        learns.then_some("this node does not know yet all that it has: ask again when it does");
    let in_cluster = api.settings.status_servers.is_some().then_some(
        "this agent is a node of a cluster and takes no new work of its own: submit the job to a server of the cluster",
    );
    learns.into_iter().chain(in_cluster).map(str::to_owned)
}

/// What a job that runs nothing itself makes each time: whether that has a place is what a plan of it tells. None for
/// other jobs, and for one that ran something itself until now, which will be stopped.
fn one_launch(wanted: &Job, known: Option<&Job>) -> Option<Job> {
    let ran_itself = known.is_some_and(|known| !known.is_template());
    (wanted.is_template() && !ran_itself).then(|| Job {
        periodic: None,
        parameterized_job: None,
        ..wanted.clone()
    })
}
