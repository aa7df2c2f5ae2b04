//! The agent itself.

use axum::extract::State;
use axum::http::StatusCode;
use drover_core::agent::requests::CollectGarbage;
use drover_core::model::node::Node;
use serde_json::{Value, json};

use super::agent_stats;
use super::answer::{self, Answer};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, Settings};

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of Nomad whose API, job files and behaviour it has.
pub const NOMAD_VERSION: &str = "2.0.5";

pub(super) async fn this(State(api): State<Api>, params: Params) -> Answer {
    let settings = api.settings.clone();
    let process = agent_stats::process();
    let shown = api.agent_handle.ask(move |view| {
        let stats = agent_stats::sections(view, &settings, process);
        (view.node().clone(), stats)
    });
    let (node, stats) = shown.await?;
    let settings = &api.settings;
    let value = json!({
        "config": {
            "Region": node.region,
            "Datacenter": node.datacenter,
            "NodeName": node.name,
            "DataDir": settings.data_dir,
            "DevMode": false,
            "Version": {
                "Version": settings.nomad_version,
                "VersionPrerelease": "",
                "VersionMetadata": format!("drover.{}", settings.version),
                "Revision": "",
                "BuildDate": Value::Null,
            },
            "UI": { "Enabled": false, "ShowCLIHints": false },
            "ACL": { "Enabled": settings.acl.enabled },
            "Client": { "Enabled": true },
            "Server": { "Enabled": true },
            "AdvertiseAddrs": { "HTTP": settings.http_addr },
            "TLSConfig": { "EnableHTTP": false, "EnableRPC": false },
        },
        "member": member(&node, settings),
        "stats": stats,
    });
    answer::json(&params, &value)
}

fn member(node: &Node, settings: &Settings) -> Value {
    let (addr, port) = settings
        .http_addr
        .rsplit_once(':')
        .unwrap_or((&settings.http_addr, "0"));
    json!({
        "Name": format!("{}.{}", node.name, node.region),
        "Addr": addr,
        "Port": port.parse::<u16>().unwrap_or(0),
        "Status": "alive",
        "Tags": {
            "role": "nomad",
            "region": node.region,
            "dc": node.datacenter,
            "build": settings.nomad_version,
            "id": node.id.to_string(),
            "port": port,
            "expect": "1",
            "vsn": "1",
            "raft_vsn": "3",
            "revision": "",
            "rpc_addr": addr,
            "bootstrap": "1",
        },
        "ProtocolMin": 1,
        "ProtocolMax": 5,
        "ProtocolCur": 2,
        "DelegateMin": 2,
        "DelegateMax": 5,
        "DelegateCur": 4,
    })
}

pub(super) async fn health(State(api): State<Api>, params: Params) -> Answer {
    let trouble = api
        .agent_handle
        .ask(|view| view.store_error().map(str::to_owned))
        .await?;
    let ok = trouble.is_none();
    let state = json!({ "ok": ok, "message": trouble.unwrap_or_else(|| "ok".to_owned()) });
    let asked: Vec<&str> = params.all("type").collect();
    let parts = ["client", "server"]
        .into_iter()
        .filter(|part| asked.is_empty() || asked.contains(part))
        .map(|part| (part.to_owned(), state.clone()));
    let value = Value::Object(parts.collect());
    if ok {
        answer::json(&params, &value)
    } else {
        Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            value.to_string(),
        ))
    }
}

pub(super) async fn members(State(api): State<Api>, params: Params) -> Answer {
    let node = api.agent_handle.ask(|view| view.node().clone()).await?;
    let value = json!({
        "ServerName": node.name,
        "ServerRegion": node.region,
        "ServerDC": node.datacenter,
        "Members": [member(&node, &api.settings)],
    });
    answer::json(&params, &value)
}

pub(super) async fn leader(State(api): State<Api>, params: Params) -> Answer {
    answer::json(&params, &api.settings.http_addr)
}

pub(super) async fn peers(State(api): State<Api>, params: Params) -> Answer {
    answer::json(&params, &[&api.settings.http_addr])
}

pub(super) async fn regions(State(api): State<Api>, params: Params) -> Answer {
    let region = api
        .agent_handle
        .ask(|view| view.node().region.clone())
        .await?;
    answer::json(&params, &[region])
}

pub(super) async fn collect(State(api): State<Api>) -> Answer {
    match api.agent_handle.request(CollectGarbage).await? {
        drover_core::effect::Reply::Done { .. } => answer::empty(),
        other => Err(ApiError::unexpected(other)),
    }
}
