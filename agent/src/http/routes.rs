//! All routes, with what each needs of whoever asks: for reading (GET) first, for everything else second. The needs
//! are those of Nomad's documentation; Drover's own routes have those of what is most like them.

use axum::routing::{any, delete, get, put};

use super::access::need::{Asked, Need};
use super::access::routes::Routes;
use super::{
    Api, agent, allocations, audit, checks, client, cluster, deployments, evaluations, events, exec,
    explain, file_put, file_stream, files, host, identity, job, jobs, keyring, logs, metadata,
    metrics, monitor, namespaces, node_life, nodes, plugins, port_forward, scale, scheduler, search,
    services, snapshot, state_snapshot, stats, vars, volumes,
};
use crate::acl::Capability::{
    AllocExec, AllocLifecycle, CsiListVolume, HostVolumeCreate, HostVolumeDelete, HostVolumeRead,
    HostVolumeRegister, ListJobs, ListScalingPolicies, ParseJob, ReadFs, ReadJob, ReadLogs,
    ReadScalingPolicy, SubmitJob,
};
use crate::acl::Level::{List, Read, Write};
use crate::acl::PoolCapability;

/// To read jobs, and what became of them.
const READ_JOB: Need = Need::Namespace(&[ReadJob]);
/// To read an allocation.
const READ_ALLOC: Need = Need::Alloc(&[ReadJob]);
/// To look at the files of an allocation.
const READ_FILES: Need = Need::Alloc(&[ReadFs]);
/// Nothing of this kind is changed by anybody.
const NOBODY: Need = Need::Management;

/// All of them.
pub(super) fn all(api: &Api) -> Routes {
    let routes = Routes::new(api.clone());
    let routes = jobs_and_evaluations(routes);
    let routes = allocations_and_files(routes);
    let routes = nodes_and_agent(routes);
    let routes = operator(routes);
    let routes = named_things(routes);
    cluster_of_one(routes)
}

fn jobs_and_evaluations(routes: Routes) -> Routes {
    routes
        .route(
            "/v1/jobs",
            Need::Namespace(&[ListJobs]),
            Need::Somewhere(&[SubmitJob]),
            get(jobs::list).put(jobs::register).post(jobs::register),
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
        .plain("/v1/allocation/{id}", READ_ALLOC, get(allocations::one))
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
        .route(
            "/v1/client/allocation/{id}/{action}",
            READ_ALLOC,
            Need::Of(client_action),
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

/// What is done to an allocation on its node.
fn client_action(asked: &Asked<'_>) -> Need {
    match asked.part("action").as_deref() {
        Some("gc") => Need::Alloc(&[SubmitJob]),
        _ => Need::Alloc(&[AllocLifecycle]),
    }
}

fn nodes_and_agent(routes: Routes) -> Routes {
    routes
        .plain("/v1/nodes", Need::Node(Read), get(nodes::list))
        .plain("/v1/node/{id}", Need::Node(Read), get(nodes::one))
        .plain(
            "/v1/node/{id}/allocations",
            Need::Node(Read),
            get(nodes::allocations),
        )
        .plain(
            "/v1/node/{id}/eligibility",
            Need::Node(Write),
            put(node_life::eligibility).post(node_life::eligibility),
        )
        .plain(
            "/v1/node/{id}/drain",
            Need::Node(Write),
            put(node_life::drain).post(node_life::drain),
        )
        .plain(
            "/v1/node/{id}/evaluate",
            Need::Node(Write),
            put(node_life::evaluate).post(node_life::evaluate),
        )
        .plain(
            "/v1/node/{id}/purge",
            Need::Node(Write),
            put(node_life::purge).post(node_life::purge),
        )
        .plain("/v1/client/stats", Need::Node(Read), get(stats::host))
        .route(
            "/v1/client/metadata",
            Need::Node(Read),
            Need::Node(Write),
            get(metadata::read).post(metadata::apply),
        )
        .plain(
            "/v1/client/gc",
            Need::Node(Write),
            get(cluster::collect).put(cluster::collect),
        )
        // Whoever scrapes has no token, as with Nomad.
        .plain("/v1/metrics", Need::Nothing, get(metrics::metrics))
        .plain("/v1/agent/self", Need::Agent(Read), get(agent::this))
        .plain("/v1/agent/plugins", Need::Agent(Read), get(plugins::list))
        .route(
            "/v1/agent/audit",
            Need::Agent(Read),
            Need::Agent(Write),
            get(audit::list).put(audit::fix).post(audit::fix),
        )
        .plain("/v1/agent/host", Need::Agent(Read), get(host::facts))
        .plain("/v1/agent/health", Need::Nothing, get(agent::health))
        .plain("/v1/agent/monitor", Need::Agent(Read), get(monitor::monitor))
        .plain("/v1/agent/members", Need::Node(Read), get(agent::members))
        .route(
            "/v1/agent/servers",
            Need::Agent(Read),
            Need::Agent(Write),
            get(cluster::servers)
                .put(cluster::set_servers)
                .post(cluster::set_servers),
        )
        .plain(
            "/v1/agent/schedulers",
            Need::Agent(Read),
            get(cluster::schedulers),
        )
        .plain(
            "/v1/agent/schedulers/config",
            Need::Agent(Read),
            get(cluster::scheduler_config),
        )
}

fn operator(routes: Routes) -> Routes {
    routes
        .route(
            "/v1/operator/scheduler/configuration",
            Need::Operator(Read),
            Need::Operator(Write),
            get(scheduler::configuration)
                .put(scheduler::set)
                .post(scheduler::set),
        )
        .plain(
            "/v1/operator/snapshot",
            Need::Management,
            get(state_snapshot::save)
                .put(state_snapshot::restore)
                .post(state_snapshot::restore),
        )
        .plain(
            "/v1/operator/keyring/keys",
            Need::Management,
            get(keyring::list),
        )
        .plain(
            "/v1/operator/keyring/rotate",
            Need::Management,
            put(keyring::rotate).post(keyring::rotate),
        )
        .plain(
            "/v1/operator/keyring/key/{id}",
            Need::Management,
            delete(keyring::remove),
        )
        .plain(
            "/v1/operator/raft/configuration",
            Need::Management,
            get(cluster::raft_configuration),
        )
        .plain(
            "/v1/operator/autopilot/configuration",
            Need::Operator(Read),
            get(cluster::autopilot),
        )
        .plain(
            "/v1/operator/autopilot/health",
            Need::Operator(Read),
            get(cluster::autopilot_health),
        )
        .plain(
            "/v1/operator/license",
            Need::Operator(Read),
            get(cluster::no_license),
        )
        .plain("/v1/system/gc", Need::Management, put(agent::collect))
        .plain(
            "/v1/system/reconcile/summaries",
            Need::Management,
            put(cluster::reconcile_summaries),
        )
}

/// Services, variables, volumes, namespaces, pools, and what is searched among all of them.
fn named_things(routes: Routes) -> Routes {
    let namespace = get(namespaces::one)
        .put(namespaces::put_named)
        .post(namespaces::put_named)
        .delete(namespaces::delete);
    let pool = Need::Pool(PoolCapability::Read);
    routes
        .plain("/v1/services", READ_JOB, get(services::list))
        .plain("/v1/service/{name}", READ_JOB, get(services::one))
        .plain(
            "/v1/service/{name}/{id}",
            Need::Namespace(&[SubmitJob]),
            delete(services::delete),
        )
        .plain("/v1/vars", Need::InHandler, get(vars::list))
        .plain("/v1/var/{*path}", Need::InHandler, any(vars::any))
        .plain(
            "/v1/search",
            Need::InHandler,
            put(search::search).post(search::search),
        )
        .plain(
            "/v1/search/fuzzy",
            Need::InHandler,
            put(search::fuzzy).post(search::fuzzy),
        )
        .plain("/v1/event/stream", Need::InHandler, get(events::stream))
        .plain("/v1/namespaces", Need::InHandler, get(namespaces::list))
        .plain(
            "/v1/namespace",
            Need::Management,
            put(namespaces::put).post(namespaces::put),
        )
        .route(
            "/v1/namespace/{name}",
            Need::InHandler,
            Need::Management,
            namespace,
        )
        .plain("/v1/node/pools", Need::InHandler, get(cluster::list_pools))
        .plain("/v1/node/pool/{name}", pool, get(cluster::one_pool))
        .plain(
            "/v1/node/pool/{name}/nodes",
            Need::Each(&[Need::Pool(PoolCapability::Read), Need::Node(Read)]),
            get(cluster::nodes_of_pool),
        )
        .plain(
            "/v1/node/pool/{name}/jobs",
            Need::Each(&[
                Need::Pool(PoolCapability::Read),
                Need::Namespace(&[ListJobs]),
            ]),
            get(cluster::jobs_of_pool),
        )
        .plain(
            "/v1/volumes",
            Need::Namespace(&[HostVolumeRead, CsiListVolume]),
            get(volumes::list),
        )
        .plain(
            "/v1/volume/host/create",
            Need::Somewhere(&[HostVolumeCreate]),
            put(volumes::create).post(volumes::create),
        )
        .plain(
            "/v1/volume/host/register",
            Need::Somewhere(&[HostVolumeRegister]),
            put(volumes::register).post(volumes::register),
        )
        .route(
            "/v1/volume/host/{id}",
            Need::Volume(&[HostVolumeRead]),
            Need::Volume(&[HostVolumeDelete]),
            get(volumes::read).delete(volumes::delete),
        )
        .plain("/v1/plugins", Need::Plugin(List), get(cluster::none_of_them))
}

/// What a cluster of one machine has, and what nobody has.
fn cluster_of_one(routes: Routes) -> Routes {
    let mut routes = routes
        .plain("/v1/status/leader", Need::Nothing, get(agent::leader))
        .plain("/v1/status/peers", Need::Nothing, get(agent::peers))
        .plain("/v1/regions", Need::Nothing, get(agent::regions))
        .plain("/.well-known/jwks.json", Need::Nothing, get(identity::keys))
        .plain(
            "/.well-known/openid-configuration",
            Need::Nothing,
            get(cluster::no_oidc),
        )
        .plain(
            "/v1/acl/token/self",
            Need::InHandler,
            get(cluster::own_token),
        )
        .plain("/v1/acl/{*rest}", NOBODY, any(cluster::no_acls));
    for path in [
        "/v1/quotas",
        "/v1/quota",
        "/v1/quota/{*rest}",
        "/v1/quota-usages",
        "/v1/sentinel/{*rest}",
        "/v1/recommendation",
        "/v1/recommendations",
        "/v1/recommendations/{*rest}",
        "/v1/recommendation/{*rest}",
        "/v1/operator/utilization",
    ] {
        routes = routes.plain(path, Need::Nothing, any(cluster::enterprise));
    }
    routes
}
