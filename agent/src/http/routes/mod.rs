//! All routes, with what each needs of whoever asks: for reading (GET) first, for everything else second. The needs
//! are those of Nomad's documentation; Drover's own routes have those of what is most like them.

mod machine;
mod named;

use axum::routing::{any, get, put};

use super::access::need::{Asked, Need};
use super::access::routes::Routes;
use super::{
    Api, allocations, checks, client, deployments, evaluations, exec, explain, file_put,
    file_stream, files, job, jobs, logs, port_forward, scale, services, snapshot, stats, statuses,
};
use crate::acl::Capability::{
    AllocExec, AllocLifecycle, ListJobs, ListScalingPolicies, ParseJob, ReadFs, ReadJob, ReadLogs,
    ReadScalingPolicy, SubmitJob,
};

/// To read jobs, and what became of them.
const READ_JOB: Need = Need::Namespace(&[ReadJob]);
/// To read an allocation.
const READ_ALLOC: Need = Need::Alloc(&[ReadJob]);
/// To look at the files of an allocation.
const READ_FILES: Need = Need::Alloc(&[ReadFs]);

/// All of them.
pub(super) fn all(api: &Api) -> Routes {
    let routes = Routes::new(api.clone());
    let routes = jobs_and_evaluations(routes);
    let routes = allocations_and_files(routes);
    let routes = machine::nodes_and_agent(routes);
    let routes = machine::operator(routes);
    let routes = named::named_things(routes);
    let in_cluster = !api.settings.client.node.servers.is_empty();
    let routes = match api.settings.acl.enabled {
        true => named::tokens_and_policies(routes, in_cluster),
        false => named::no_tokens(routes),
    };
    machine::cluster_of_one(routes)
}

fn jobs_and_evaluations(routes: Routes) -> Routes {
    routes
        .route(
            "/v1/jobs",
            Need::Namespace(&[ListJobs]),
            Need::Somewhere(&[SubmitJob]),
            get(jobs::list).put(jobs::register).post(jobs::register),
        )
        .route(
            "/v1/jobs/statuses",
            READ_JOB,
            Need::Somewhere(&[ReadJob]),
            get(statuses::list)
                .put(statuses::of_named)
                .post(statuses::of_named),
        )
        .plain(
            "/v1/jobs/parse",
            Need::Namespace(&[ParseJob, SubmitJob]),
            put(jobs::parse).post(jobs::parse),
        )
        .plain(
            "/v1/validate/job",
            Need::Somewhere(&[ReadJob]),
            put(jobs::validate).post(jobs::validate),
        )
        .plain("/v1/job/{*rest}", Need::Of(job::need), any(job::any))
        .plain("/v1/evaluations", READ_JOB, get(evaluations::list))
        .plain("/v1/evaluations/count", READ_JOB, get(evaluations::count))
        .plain(
            "/v1/evaluation/{id}",
            Need::Eval(&[ReadJob]),
            get(evaluations::one),
        )
        .plain(
            "/v1/evaluation/{id}/allocations",
            Need::Eval(&[ReadJob]),
            get(evaluations::allocations),
        )
        .plain("/v1/deployments", READ_JOB, get(deployments::list))
        .plain(
            "/v1/deployment/{id}",
            Need::Deployment(&[ReadJob]),
            get(deployments::one),
        )
        .plain(
            "/v1/deployment/allocations/{id}",
            Need::Deployment(&[ReadJob]),
            get(deployments::allocations),
        )
        .plain(
            "/v1/deployment/{action}/{id}",
            Need::Deployment(&[SubmitJob]),
            put(deployments::act).post(deployments::act),
        )
        .plain(
            "/v1/scaling/policies",
            Need::Namespace(&[ListScalingPolicies]),
            get(scale::list),
        )
        .plain(
            "/v1/scaling/policy/{id}",
            Need::Somewhere(&[ReadScalingPolicy]),
            get(scale::one),
        )
}

fn allocations_and_files(routes: Routes) -> Routes {
    routes
        .plain("/v1/allocations", READ_JOB, get(allocations::list))
        .plain(
            "/v1/allocation/{id}",
            Need::AllocOrDisk(&[ReadJob]),
            get(allocations::one),
        )
        .plain(
            "/v1/allocation/{id}/stop",
            Need::Alloc(&[AllocLifecycle]),
            put(allocations::stop).post(allocations::stop),
        )
        .plain(
            "/v1/allocation/{id}/explain",
            READ_ALLOC,
            get(explain::alloc),
        )
        .plain(
            "/v1/allocation/{id}/services",
            READ_ALLOC,
            get(services::of_alloc),
        )
        .plain(
            "/v1/allocation/{id}/checks",
            READ_ALLOC,
            get(checks::of_alloc),
        )
        .plain(
            "/v1/client/allocation/{id}/checks",
            READ_ALLOC,
            get(checks::of_alloc),
        )
        // Other nodes come with a token of their own.
        .plain(
            "/v1/client/allocation/{id}/snapshot",
            Need::Nothing,
            get(snapshot::get),
        )
        .plain(
            "/v1/client/allocation/{id}/exec",
            Need::Of(exec_in_alloc),
            get(exec::exec),
        )
        .plain(
            "/v1/client/allocation/{id}/port-forward",
            Need::Alloc(&[AllocExec]),
            get(port_forward::forward),
        )
        .acting(
            "/v1/client/allocation/{id}/gc",
            Need::Alloc(&[SubmitJob]),
            get(client::collect_alloc)
                .put(client::collect_alloc)
                .post(client::collect_alloc),
        )
        .route(
            "/v1/client/allocation/{id}/{action}",
            READ_ALLOC,
            Need::Alloc(&[AllocLifecycle]),
            get(stats::alloc).put(client::act).post(client::act),
        )
        .plain(
            "/v1/client/fs/logs/{id}",
            Need::Alloc(&[ReadLogs, ReadFs]),
            get(logs::logs),
        )
        .plain(
            "/v1/client/fs/put/{id}",
            Need::Alloc(&[AllocExec]),
            get(file_put::put),
        )
        .plain(
            "/v1/client/fs/stream/{id}",
            READ_FILES,
            get(file_stream::stream),
        )
        .plain("/v1/client/fs/ls/{id}", READ_FILES, get(files::ls))
        .plain("/v1/client/fs/stat/{id}", READ_FILES, get(files::stat))
        .plain("/v1/client/fs/cat/{id}", READ_FILES, get(files::cat))
        .plain("/v1/client/fs/readat/{id}", READ_FILES, get(files::read_at))
}

/// A program beside a task.
fn exec_in_alloc(asked: &Asked<'_>) -> Need {
    exec::need(asked, Need::Alloc(&[AllocExec]))
}
