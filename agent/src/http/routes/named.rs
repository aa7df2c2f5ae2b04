//! Routes of what has a name: services, variables, volumes, namespaces, pools, policies; and of tokens.

use axum::routing::{any, delete, get, put};

use super::super::access::need::Need;
use super::super::access::routes::Routes;
use super::super::{acl, cluster, events, namespaces, search, services, vars, volumes};
use super::READ_JOB;
use crate::acl::Capability::{
    CsiListVolume, HostVolumeCreate, HostVolumeDelete, HostVolumeRead, HostVolumeRegister,
    ListJobs, SubmitJob,
};
use crate::acl::Level::{List, Read};
use crate::acl::PoolCapability;

/// Services, variables, volumes, namespaces, pools, and what is searched among all of them.
pub(super) fn named_things(routes: Routes) -> Routes {
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
        .route(
            "/v1/node/pools",
            Need::InHandler,
            Need::Nothing,
            any(cluster::no_more_pools).get(cluster::list_pools),
        )
        .route(
            "/v1/node/pool/{name}",
            pool,
            Need::Nothing,
            any(cluster::no_more_pools).get(cluster::one_pool),
        )
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
            "/v1/volumes/claims",
            Need::Namespace(&[HostVolumeRead]),
            get(volumes::claims),
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
        .plain(
            "/v1/plugins",
            Need::Plugin(List),
            get(cluster::none_of_them),
        )
}

pub(super) fn tokens_and_policies(routes: Routes, in_cluster: bool) -> Routes {
    // Whoever is first, as in Nomad. In a cluster nobody would be: its tokens are made at its servers.
    let first = match in_cluster {
        true => Need::Management,
        false => Need::Nothing,
    };
    routes
        .plain(
            "/v1/acl/bootstrap",
            first,
            put(acl::bootstrap).post(acl::bootstrap),
        )
        .plain("/v1/acl/policies", Need::Token, get(acl::list_policies))
        .route(
            "/v1/acl/policy/{name}",
            Need::Token,
            Need::Management,
            get(acl::one_policy)
                .put(acl::put_policy)
                .post(acl::put_policy)
                .delete(acl::delete_policy),
        )
        .plain("/v1/acl/tokens", Need::Management, get(acl::list_tokens))
        .plain(
            "/v1/acl/token",
            Need::Management,
            put(acl::create_token).post(acl::create_token),
        )
        .plain("/v1/acl/token/self", Need::InHandler, get(acl::own_token))
        .plain(
            "/v1/acl/token/{accessor}",
            Need::Management,
            get(acl::one_token)
                .put(acl::update_token)
                .post(acl::update_token)
                .delete(acl::delete_token),
        )
        .plain("/v1/acl/{*rest}", Need::Nothing, any(acl::not_here))
}

/// The same where nobody needs tokens.
pub(super) fn no_tokens(routes: Routes) -> Routes {
    routes
        .plain("/v1/acl/token/self", Need::Nothing, get(cluster::own_token))
        .plain("/v1/acl/{*rest}", Need::Nothing, any(cluster::no_acls))
}
