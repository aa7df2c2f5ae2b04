//! Routes of the node, of the agent, and of the cluster that it is alone.

use axum::routing::{any, delete, get, put};

use super::super::access::need::Need;
use super::super::access::routes::Routes;
use super::super::{
    agent, audit, client, cluster, host, identity, keyring, metadata, metrics, monitor, node_life,
    nodes, plugins, scheduler, state_snapshot, stats,
};
use crate::acl::Level::{Read, Write};

pub(super) fn nodes_and_agent(routes: Routes) -> Routes {
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
        .acting(
            "/v1/client/gc",
            Need::Node(Write),
            get(client::collect).put(client::collect),
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
        .plain(
            "/v1/agent/monitor",
            Need::Agent(Read),
            get(monitor::monitor),
        )
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

pub(super) fn operator(routes: Routes) -> Routes {
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

/// What a cluster of one machine has, and what nobody has.
pub(super) fn cluster_of_one(routes: Routes) -> Routes {
    let mut routes = routes
        .plain("/v1/status/leader", Need::Nothing, get(agent::leader))
        .plain("/v1/status/peers", Need::Nothing, get(agent::peers))
        .plain("/v1/regions", Need::Nothing, get(agent::regions))
        .plain("/.well-known/jwks.json", Need::Nothing, get(identity::keys))
        .plain(
            "/.well-known/openid-configuration",
            Need::Nothing,
            get(cluster::no_oidc),
        );
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
