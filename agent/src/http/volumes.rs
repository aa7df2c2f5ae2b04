//! Host volumes that are made, registered and removed while the agent runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use drover_core::agent::View;
use drover_core::agent::requests::{CreateVolume, DeleteVolume};
use drover_core::effect::Reply;
use drover_core::ids::VolumeId;
use drover_core::model::job::Constraint;
use drover_core::model::volume::{Directory, VolumeCapability, VolumeSpec};
use drover_core::text::quote;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::require;
use super::answer::{self, Answer};
use super::blocking::{Indexed, blocking_query};
use super::dto::{AllocStub, VolumeDto, VolumeStub};
use super::errors::ApiError;
use super::list;
use super::params::Params;
use super::records::{AllocRecords, NodeNames};
use super::{Api, body};
use crate::acl::{Capability, Level};

/// The one plugin that makes directories.
const PLUGIN: &str = "mkdir";

/// The body of a change.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Asked {
    volume: Given,
}

/// A volume as it is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Given {
    #[serde(rename = "ID")]
    id: String,
    name: String,
    namespace: String,
    #[serde(rename = "PluginID")]
    plugin_id: String,
    #[serde(rename = "NodeID")]
    node_id: String,
    node_pool: String,
    constraints: Vec<Constraint>,
    requested_capacity_min_bytes: i64,
    requested_capacity_max_bytes: i64,
    requested_capabilities: Vec<VolumeCapability>,
    parameters: BTreeMap<String, String>,
    host_path: String,
}

/// Volumes of a type; those of storage plugins are never here.
pub(super) async fn list(State(api): State<Api>, params: Params) -> Answer {
    if params.get("type") != Some("host") {
        let index = api.agent_handle.ask(|view| view.index()).await?;
        return answer::read(&params, index, &Vec::<Value>::new());
    }
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| {
        let stubs = view
            .machine()
            .volumes()
            .records()
            .map(|it| VolumeStub::of(view, it));
        let wanted = stubs.filter(|stub| {
            let is = |name: &str, value: &str| asked.non_empty(name).is_none_or(|it| it == value);
            asked.includes(&stub.namespace, Capability::HostVolumeRead)
                && (stub.id.starts_with(asked.prefix()) || stub.name.starts_with(asked.prefix()))
                && is("node_id", &stub.node_id)
                && is("node_pool", &stub.node_pool)
        });
        Indexed::whole(view, wanted.collect::<Vec<_>>())
    })
    .await?;
    list::list(params, seen, |stub| stub.id.clone(), VolumeStub::clone).await
}

/// What groups hold volumes for themselves: none, since a name means one volume here, sticky or not.
pub(super) async fn claims(State(api): State<Api>, params: Params) -> Answer {
    let index = api.agent_handle.ask(|view| view.index()).await?;
    answer::read(&params, index, &Vec::<Value>::new())
}

pub(super) async fn create(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let Asked { volume } = body::decode_with_nulls(request).await?;
    if !matches!(volume.plugin_id.as_str(), "" | PLUGIN) {
        let plugin = quote(&volume.plugin_id);
        return Err(ApiError::bad(format!(
            "there is no plugin {plugin} for host volumes: the only one is {PLUGIN}"
        )));
    }
    if !volume.host_path.is_empty() {
        let words = "a volume that is created has no host path: its plugin chooses one";
        return Err(ApiError::bad(words));
    }
    make(&api, &params, volume, None).await
}

pub(super) async fn register(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let Asked { volume } = body::decode_with_nulls(request).await?;
    if volume.host_path.is_empty() {
        return Err(ApiError::bad(
            "a volume that is registered needs a host path",
        ));
    }
    let path = Some(volume.host_path.clone());
    make(&api, &params, volume, path).await
}

async fn make(api: &Api, params: &Params, given: Given, registered: Option<String>) -> Answer {
    let namespace = match (given.namespace.as_str(), params.namespace()) {
        ("", namespace) => namespace.to_owned(),
        (namespace, _) => namespace.to_owned(),
    };
    let capability = match registered {
        Some(_) => Capability::HostVolumeRegister,
        None => Capability::HostVolumeCreate,
    };
    params.principal.require(&namespace, capability)?;
    if registered.is_some() {
        // It may be any directory of the machine.
        require(params.principal.rights().node(Level::Write))?;
    }
    let of_node = api.agent_handle.ask(|view| {
        let node = view.node();
        (node.id.to_string(), node.pool.clone())
    });
    let (id, pool) = of_node.await?;
    if !given.id.is_empty() {
        let words = "a volume cannot be changed: delete it, and create it again without an id";
        return Err(ApiError::bad(words));
    }
    if !given.node_id.is_empty() && given.node_id != id {
        return Err(ApiError::bad(format!(
            "Unknown node {}",
            quote(&given.node_id)
        )));
    }
    if !["", "all", pool.as_str()].contains(&given.node_pool.as_str()) {
        let other = quote(&given.node_pool);
        return Err(ApiError::bad(format!(
            "the node is not in node pool {other}"
        )));
    }
    // Of what is registered nothing is made.
    let directory = match registered {
        Some(_) => Directory::default(),
        None => Directory::of(&given.parameters).map_err(ApiError::bad)?,
    };
    let spec = VolumeSpec {
        name: given.name,
        namespace,
        registered,
        directory,
        parameters: given.parameters,
        capabilities: given.requested_capabilities,
        constraints: given.constraints,
        capacity: (
            given.requested_capacity_min_bytes,
            given.requested_capacity_max_bytes,
        ),
    };
    match api.agent_handle.request(CreateVolume { spec }).await? {
        Reply::Volume(id) => {
            let asked = params.clone();
            let seen = (api.agent_handle)
                .ask(move |view| shown(view, &asked, id))
                .await?;
            let answer = json!({ "Volume": seen.value, "Warnings": "" });
            answer::read(params, seen.index, &answer)
        }
        other => Err(ApiError::unexpected(other)),
    }
}

fn shown(view: View<'_>, params: &Params, id: VolumeId) -> Indexed<Option<VolumeDto>> {
    let record = view.machine().volumes().record(id);
    let volume = record.map(|record| {
        let users = view.users_of_volume(record);
        let node = Arc::new(NodeNames::of(view.node()));
        let users = users.into_iter().filter_map(|id| view.shown_alloc(id));
        let users = users.filter(|alloc| {
            let namespace = &alloc.record().job.namespace;
            params.may(namespace, Capability::ReadJob)
        });
        let stubs = users.map(|alloc| AllocStub::from(&AllocRecords::of(view, &node, alloc)));
        VolumeDto::of(view, record, stubs.collect())
    });
    Indexed::whole(view, volume)
}

fn id_of(text: &str) -> Result<VolumeId, ApiError> {
    let unknown = || ApiError::not_found(format!("Unknown volume {}", quote(text)));
    text.parse().map_err(|_| unknown())
}

pub(super) async fn read(State(api): State<Api>, Path(id): Path<String>, params: Params) -> Answer {
    let volume = id_of(&id)?;
    let asked = params.clone();
    let seen = blocking_query(&api, &params, move |view| shown(view, &asked, volume)).await?;
    match seen.value {
        Some(volume) => answer::read(&params, seen.index, &volume),
        None => Err(ApiError::not_found(format!("Unknown volume {}", quote(&id))).at(seen.index)),
    }
}

pub(super) async fn delete(
    State(api): State<Api>,
    Path(id): Path<String>,
    params: Params,
) -> Answer {
    let volume = id_of(&id)?;
    match api.agent_handle.request(DeleteVolume { volume }).await? {
        Reply::Done { index } => answer::read(&params, index, &json!({})),
        other => Err(ApiError::unexpected(other)),
    }
}
