//! What is configured of the cluster whose node an agent is, if it is in one.

use std::env;
use std::sync::Arc;

use drover_core::config::ClusterConfig;
use drover_core::ids::NodeId;
use drover_io_real::connect::{Connect, Tcp, TcpToReader};
use drover_io_real::migrate::Nodes;
use drover_io_real::migrate::token::NodeSecret;
use drover_rpc::msgpack::Secret;

use super::Settings;
use crate::cluster::inbound::Inbound;
use crate::cluster::introduction::{self, Introduction};
use crate::cluster::{Cluster, NodeIdentity, ToNodes};
use crate::http::agent::NOMAD_VERSION;

/// The port of servers that are named without one.
const SERVER_PORT: u16 = 4647;

/// What the core is told of the cluster.
pub(super) fn config(settings: &Settings) -> Option<ClusterConfig> {
    let joins = !settings.file.client.node.servers.is_empty();
    joins.then(|| ClusterConfig {
        version: NOMAD_VERSION.into(),
        only_jobs_of_servers: true,
    })
}

/// Who reaches its servers, which `inbound` answers.
///
/// # Errors
/// Its region cannot be a part of their names.
pub(super) fn calls(
    settings: &Settings,
    id: NodeId,
    secret: &NodeSecret,
    inbound: Inbound,
) -> Result<Option<Cluster>, String> {
    let servers = &settings.file.client.node.servers;
    if servers.is_empty() {
        return Ok(None);
    }
    let servers = servers.iter().map(|server| with_port(server)).collect();
    let node = NodeIdentity {
        id,
        secret: secret.expose().into(),
        region: settings.file.agent.region(),
        tls: settings.tls.http().is_some(),
        introduction: Introduction {
            given: introduction(settings),
            file: settings.data_dir.join(introduction::FILE),
        },
    };
    let tls = settings.tls.rpc();
    Cluster::new(node, servers, Arc::new(TcpToReader), inbound, tls).map(Some)
}

/// What introduces the node, if it was given at the start. As with Nomad, the variable goes first.
fn introduction(settings: &Settings) -> Secret {
    let given = env::var("NOMAD_CLIENT_INTRO_TOKEN").ok();
    let given = given.filter(|text| !text.trim().is_empty());
    given.map_or_else(|| settings.introduction.clone(), Secret::from)
}

/// How nodes are reached that servers name: over TLS if it is known whom to believe.
///
/// # Errors
/// The node's region cannot be a part of their names.
pub(super) fn nodes_of_cluster(settings: &Settings) -> Result<Nodes, String> {
    let joins = !settings.file.client.node.servers.is_empty();
    let Some(tls) = settings.tls.nodes().filter(|_| joins) else {
        return Ok(Nodes::default());
    };
    let region = settings.file.agent.region();
    let encrypted = ToNodes::of_region(Arc::new(Tcp), &region, tls)?;
    Ok(Nodes::new(Arc::new(Tcp), Some(Arc::new(encrypted))))
}

/// How nodes are reached from which people move jobs here.
pub(super) fn named_nodes(settings: &Settings) -> Nodes {
    let encrypted = settings.tls.named().map(|tls| {
        let to_nodes = ToNodes::by_address(Arc::new(Tcp), &settings.file.agent.region(), tls);
        Arc::new(to_nodes) as Arc<dyn Connect>
    });
    Nodes::new(Arc::new(Tcp), encrypted)
}

/// A server's address with its port.
fn with_port(server: &str) -> String {
    let (open, last) = (server.matches(':').count(), server.rsplit(':').next());
    let has_port = last.is_some_and(|last| last.parse::<u16>().is_ok());
    match (open, server.ends_with(']')) {
        (1, _) if has_port => server.to_owned(),
        (0, _) | (_, true) => format!("{server}:{SERVER_PORT}"),
        _ if server.starts_with('[') => server.to_owned(),
        // An address of version 6.
        _ => format!("[{server}]:{SERVER_PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::with_port;

    #[test]
    fn server_without_port_has_the_usual_one() {
        for (given, full) in [
            ("10.0.0.1", "10.0.0.1:4647"),
            ("10.0.0.1:5000", "10.0.0.1:5000"),
            ("servers.example", "servers.example:4647"),
            ("fd00::1", "[fd00::1]:4647"),
            ("[fd00::1]", "[fd00::1]:4647"),
            ("[fd00::1]:5000", "[fd00::1]:5000"),
        ] {
            assert_eq!(with_port(given), full);
        }
    }
}
