//! This node.

use std::sync::Arc;

use axum::extract::{Path, State};
use drover_core::agent::{ShownAlloc, View};
use drover_core::ids::NodeId;

use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, NodeDto};
use super::errors::ApiError;
use super::filter::{Picked, Row, Unpicked, pick_below};
use super::list;
use super::params::{Params, check_prefix, uuid};
use super::records::{AllocRecords, NodeNames};
use super::{Api, missing};
use crate::acl::Capability;

pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    check_prefix("node", params.prefix())?;
    let (with_resources, with_os) = (params.flag("resources"), params.flag("os"));
    let seen = nodes(&api, &params).await?;
    let stub = move |node: &NodeRow| node.0.stub(with_resources, with_os);
    list::list(params, seen, |node| node.0.id.clone(), stub).await
}

/// The node, if it is asked for.
pub(super) async fn nodes(api: &Api, params: &Params) -> Result<Indexed<Vec<NodeRow>>, ApiError> {
    let (settings, asked) = (api.settings.clone(), params.clone());
    let node = move |view: View<'_>| {
        let node = asked.is_prefix_of(view.node().id);
        let node = node.then(|| {
            NodeRow(
                NodeDto::of(view, &settings.nomad_version, &settings.client).with_tls(settings.tls),
            )
        });
        Indexed::whole(view, node.into_iter().collect())
    };
    blocking_query(api, params, node).await
}

/// The node in a list: filters see it whole.
pub(super) struct NodeRow(pub(super) NodeDto);

impl Row for NodeRow {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        match pick_below(&self.0.full(), path, 0) {
            Err(Unpicked::Missing) if path.len() == 1 => {
                Err(Unpicked::no_field(0, path.first().map_or("", |name| name)))
            }
            picked => picked,
        }
    }
}

pub(super) async fn one(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let path = format!("/v1/node/{id}");
    if let Some(what) = missing::offered_by_nomad(&path) {
        return Err(missing::not_offered(what, &path));
    }
    let id: NodeId = uuid("node", &id)?;
    let settings = api.settings.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let node = (view.node().id == id).then(|| {
            NodeDto::of(view, &settings.nomad_version, &settings.client)
                .with_tls(settings.tls)
                .full()
        });
        Indexed::whole(view, node)
    })
    .await?;
    match seen.value {
        Some(node) => answer::read(&params, seen.index, &node),
        None => Err(ApiError::not_found("node not found").at(seen.index)),
    }
}

pub(super) async fn allocations(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let id: NodeId = uuid("node", &id)?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let wanted = view.allocs().filter(|alloc| {
            view.node().id == id
                && asked.includes_all_by_default(&alloc.record().job.namespace, Capability::ReadJob)
        });
        let node = Arc::new(NodeNames::of(view.node()));
        let allocs =
            wanted.map(|alloc| AllocRecords::with_job(view, &node, ShownAlloc::Here(alloc)));
        Indexed::whole(view, allocs.collect::<Vec<_>>())
    })
    .await?;
    let token = |alloc: &AllocRecords| alloc.alloc().id.to_string();
    list::list(params, seen, token, Alloc::of).await
}
