//! The agent itself. One that is on its own is a server, too, which leads; a node of a cluster is a client and nothing
//! else.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use drover_core::agent::View;
use drover_core::agent::requests::CollectGarbage;
use drover_core::model::node::Node;
use serde_json::{Value, json};

use super::agent_stats;
use super::answer::{self, Answer};
use super::cluster::{Servers, servers_of};
use super::errors::ApiError;
use super::params::Params;
use super::{Api, Settings, status_servers};
use crate::config::address::reached_at;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The version of Nomad whose API, job files and behaviour it has.
pub const NOMAD_VERSION: &str = "2.0.5";

pub(super) async fn this(State(api): State<Api>, params: Params) -> Answer {
    let settings = api.settings.clone();
    let process = agent_stats::process();
    let shown = api.agent_handle.ask(move |view| {
        let stats = agent_stats::sections(view, &settings, process);
        (view.node().clone(), servers_of(view, &settings), stats)
    });
    let (node, servers, stats) = shown.await?;
    let settings = &api.settings;
    let member = match servers {
        Servers::Itself => member(&node, settings),
        Servers::Of(_) => no_member(),
    };
    let value = json!({
        "config": config(&node, &servers, settings),
        "member": member,
        "stats": stats,
    });
    answer::json(&params, &value)
}

fn config(node: &Node, servers: &Servers, settings: &Settings) -> Value {
    let http = match servers {
        Servers::Itself => settings.http_addr.clone(),
        Servers::Of(_) => reached_at(&node.http_addr, &node.address),
    };
    json!({
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
        "Client": client(servers),
        "Server": { "Enabled": *servers == Servers::Itself },
        "AdvertiseAddrs": { "HTTP": http },
        "TLSConfig": {
            "EnableHTTP": settings.tls,
            "EnableRPC": settings.client.node.servers_tls,
        },
    })
}

fn client(servers: &Servers) -> Value {
    match servers {
        Servers::Itself => json!({ "Enabled": true }),
        Servers::Of(all) => json!({ "Enabled": true, "Servers": all }),
    }
}

/// What an agent that is no server is among servers.
fn no_member() -> Value {
    json!({
        "Name": "",
        "Addr": Value::Null,
        "Port": 0,
        "Status": "none",
        "Tags": Value::Null,
        "ProtocolMin": 0,
        "ProtocolMax": 0,
        "ProtocolCur": 0,
        "DelegateMin": 0,
        "DelegateMax": 0,
        "DelegateCur": 0,
    })
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
    let settings = api.settings.clone();
    let asked = api.agent_handle.ask(move |view| {
        let trouble = view.store_error().map(str::to_owned);
        (trouble, servers_of(view, &settings), refused(view))
    });
    let (trouble, servers, refused) = asked.await?;
    let asked: Vec<&str> = params.all("type").collect();
    let (ok, mut value) = condition(&asked, trouble, &servers);
    // What runs here runs on.
    if let (true, Some(client), Some(why)) = (ok, value.get_mut("client"), refused) {
        client["message"] = json!(why);
    }
    if ok {
        answer::json(&params, &value)
    } else {
        Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            value.to_string(),
        ))
    }
}

/// Why servers do not take the node, which they never did.
fn refused(view: View<'_>) -> Option<String> {
    let server = view.server().filter(|it| !it.record().registered)?;
    let why = server.last_error()?;
    Some(format!("the node is not registered at its servers: {why}"))
}

/// Whether all parts of the agent that are asked for work, and how each does.
fn condition(asked: &[&str], trouble: Option<String>, servers: &Servers) -> (bool, Value) {
    let is_there = |part: &str| part == "client" || *servers == Servers::Itself;
    let is_wanted = |part: &&str| match asked.is_empty() {
        true => is_there(part),
        false => asked.contains(part),
    };
    let wanted = ["client", "server"].into_iter().filter(is_wanted);
    let (mut all_ok, mut parts) = (true, serde_json::Map::new());
    for part in wanted {
        let trouble = match is_there(part) {
            true => trouble.clone(),
            false => Some(format!("{part} not enabled")),
        };
        let ok = trouble.is_none();
        all_ok &= ok;
        let message = trouble.unwrap_or_else(|| "ok".to_owned());
        parts.insert(part.to_owned(), json!({ "ok": ok, "message": message }));
    }
    (all_ok, Value::Object(parts))
}

pub(super) async fn members(State(api): State<Api>, params: Params, headers: HeaderMap) -> Answer {
    if let Servers::Of(known) = Servers::of(&api).await? {
        let (servers, question) = status_servers::ask(&api, &params, &headers, &known).await?;
        return answer::json(&params, &servers.members(question).await?);
    }
    let node = api.agent_handle.ask(|view| view.node().clone()).await?;
    let value = json!({
        "ServerName": node.name,
        "ServerRegion": node.region,
        "ServerDC": node.datacenter,
        "Members": [member(&node, &api.settings)],
    });
    answer::json(&params, &value)
}

pub(super) async fn leader(State(api): State<Api>, params: Params, headers: HeaderMap) -> Answer {
    match Servers::of(&api).await? {
        Servers::Itself => answer::json(&params, &api.settings.http_addr),
        Servers::Of(known) => {
            let (servers, question) = status_servers::ask(&api, &params, &headers, &known).await?;
            answer::json(&params, &servers.leader(question).await?)
        }
    }
}

pub(super) async fn peers(State(api): State<Api>, params: Params, headers: HeaderMap) -> Answer {
    match Servers::of(&api).await? {
        Servers::Itself => answer::json(&params, &[&api.settings.http_addr]),
        Servers::Of(known) => {
            let (servers, question) = status_servers::ask(&api, &params, &headers, &known).await?;
            answer::json(&params, &servers.peers(question).await?)
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of_cluster() -> Servers {
        Servers::Of(vec!["10.0.0.1:4647".to_owned()])
    }

    #[test]
    fn node_of_a_cluster_is_a_client_and_no_server() {
        let node = Node {
            http_addr: "0.0.0.0:4646".to_owned(),
            address: "10.0.0.9".to_owned(),
            ..Node::default()
        };
        let mut settings = Settings {
            http_addr: "0.0.0.0:4646".to_owned(),
            tls: true,
            ..Settings::default()
        };
        settings.client.node.servers_tls = true;
        let shown = config(&node, &of_cluster(), &settings);
        assert_eq!(shown["Server"], json!({ "Enabled": false }));
        let client = json!({ "Enabled": true, "Servers": ["10.0.0.1:4647"] });
        assert_eq!(shown["Client"], client);
        assert_eq!(shown["AdvertiseAddrs"]["HTTP"], "10.0.0.9:4646");
        let tls = json!({ "EnableHTTP": true, "EnableRPC": true });
        assert_eq!(shown["TLSConfig"], tls);
        let alone = config(&node, &Servers::Itself, &settings);
        assert_eq!(alone["Server"], json!({ "Enabled": true }));
        assert_eq!(alone["AdvertiseAddrs"]["HTTP"], "0.0.0.0:4646");
    }

    #[test]
    fn health_of_a_node_of_a_cluster_is_that_of_the_client() {
        let (ok, value) = condition(&[], None, &of_cluster());
        assert!(ok);
        assert_eq!(value, json!({ "client": { "ok": true, "message": "ok" } }));
        let (ok, value) = condition(&["server"], None, &of_cluster());
        assert!(!ok);
        let server = json!({ "ok": false, "message": "server not enabled" });
        assert_eq!(value, json!({ "server": server }));
        let (ok, value) = condition(&[], Some("full".to_owned()), &Servers::Itself);
        assert!(!ok);
        assert_eq!(value["server"]["message"], "full");
    }
}
