//! What a job or an allocation is doing, and why. Drover's own.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::{Path, State};
use drover_core::agent::{AllocExplanation, View};
use drover_core::ids::{AllocId, JobKey};
use drover_io_real::clock;
use drover_io_real::listeners::{Listener, listeners};

use super::Api;
use super::answer::{self, Answer};
use super::dto::{AllocExplanationDto, JobExplanationDto};
use super::errors::ApiError;
use super::params::{Params, uuid};

/// The ports of the host that tasks which do not run would listen at, with their labels, by the allocation.
type Wanted = BTreeMap<String, Vec<(String, u16)>>;

/// `GET /v1/job/ID/explain`.
pub(super) async fn job(api: &Api, params: &Params, key: JobKey) -> Answer {
    let question = move |view: View<'_>| {
        let explained = view.explain_job(clock::now(), &key);
        let allocs = explained.iter().flat_map(|job| &job.allocs);
        let wanted = wanted(view, allocs);
        let explained = explained.map(JobExplanationDto::from);
        (view.index(), explained, wanted)
    };
    match api.agent_handle.ask(question).await? {
        (index, Some(mut job), wanted) => {
            find_obstacles(&mut job.allocations, wanted).await;
            answer::read(params, index, &job)
        }
        (index, None, _) => Err(ApiError::not_found("job not found").at(index)),
    }
}

/// `GET /v1/allocation/ID/explain`.
pub(super) async fn alloc(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: AllocId = uuid("alloc", &id)?;
    let question = move |view: View<'_>| {
        let explained = view.explain_alloc(clock::now(), id);
        let wanted = wanted(view, explained.iter());
        let collected = view.collected_alloc(id).is_some();
        let explained = explained.map(AllocExplanationDto::from);
        (view.index(), explained.map(|one| (one, wanted)), collected)
    };
    match api.agent_handle.ask(question).await? {
        (index, Some((mut alloc, wanted)), _) => {
            find_obstacles(std::slice::from_mut(&mut alloc), wanted).await;
            answer::read(&params, index, &alloc)
        }
        (index, None, true) => Err(ApiError::not_found(
            "the allocation is over and its directory was garbage-collected: alloc status shows its record",
        )
        .at(index)),
        (index, None, false) => Err(ApiError::not_found("alloc not found").at(index)),
    }
}

/// The ports of those allocations of which a task ended and is to run, or failed.
fn wanted<'a>(view: View<'_>, explained: impl Iterator<Item = &'a AllocExplanation>) -> Wanted {
    let troubled = |alloc: &&AllocExplanation| {
        let mut tasks = alloc.tasks.iter();
        alloc.desired == "run" && tasks.any(|task| task.failed || task.cause.is_some())
    };
    let of_alloc = |alloc: &AllocExplanation| {
        let record = view.alloc(alloc.id)?.record();
        let ports = record.ports.iter();
        // Behind a bridge nobody listens at the host's.
        let ports = ports.filter(|_| record.network.is_none());
        let ports: Vec<_> = ports.map(|port| (port.label.clone(), port.value)).collect();
        Some((alloc.id.to_string(), ports))
    };
    let all = explained.filter(troubled).filter_map(of_alloc);
    all.filter(|(_, ports)| !ports.is_empty()).collect()
}

/// Notes who else listens at the ports that allocations want. A machine that does not say so is no reason to say
/// nothing.
async fn find_obstacles(allocs: &mut [AllocExplanationDto], wanted: Wanted) {
    if wanted.is_empty() {
        return;
    }
    let ports: BTreeSet<u16> = wanted.values().flatten().map(|(_, port)| *port).collect();
    let listed = tokio::task::spawn_blocking(move || listeners(&ports)).await;
    let found = listed.ok().and_then(Result::ok).unwrap_or_default();
    for alloc in allocs {
        let ports = wanted.get(&alloc.id).into_iter().flatten();
        let obstacles = ports.filter_map(|(label, port)| {
            let listener = found.get(port)?;
            let own = listener.groups.contains(&alloc.id);
            (!own).then(|| obstacle(label, *port, listener))
        });
        alloc.obstacles = obstacles.collect();
    }
}

fn obstacle(label: &str, port: u16, listener: &Listener) -> String {
    let who = match (listener.process, listener.program.as_str()) {
        (Some(process), program) => format!("{program:?} (process {process})"),
        (None, _) => "a program of another user".to_owned(),
    };
    format!("port {label} = {port} of this machine: {who} listens there")
}
