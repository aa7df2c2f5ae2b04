//! The agent's own TLS: what the files that the block `tls` names make, for the servers of its cluster and for its
//! API, and how they are exchanged while it runs.

use std::sync::Arc;

use drover_tls::client::{self, Believes, server_name};
use drover_tls::{Authorities, Current, Identity, server};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

use crate::config::tls::TlsConfig;

/// What is in force. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    rpc: Option<Current<ClientConfig>>,
    nodes: Option<Current<ClientConfig>>,
    named: Option<Current<ClientConfig>>,
    http: Option<Current<ServerConfig>>,
    /// The name that nodes of the region have.
    node: Option<ServerName<'static>>,
    /// Whether clients of the API need certificates: an API that others reach may have begun for that alone.
    asks_clients: bool,
}

/// What files make.
#[derive(Default)]
struct Loaded {
    rpc: Option<Arc<ClientConfig>>,
    nodes: Option<Arc<ClientConfig>>,
    named: Option<Arc<ClientConfig>>,
    http: Option<Arc<ServerConfig>>,
}

/// The name of the nodes of a region. As in Nomad, their certificates have it, whatever their addresses are.
///
/// # Errors
/// The region cannot be a part of a name.
pub(crate) fn name_of_nodes(region: &str) -> Result<ServerName<'static>, String> {
    server_name(&format!("client.{region}.nomad"))
}

impl Tls {
    /// What these settings make, for a node of this region.
    ///
    /// # Errors
    /// A file cannot be used; which, and why.
    pub fn load(config: &TlsConfig, region: &str) -> Result<Tls, String> {
        let node = name_of_nodes(region).ok();
        let loaded = load(config, node.as_ref())?;
        Ok(Tls {
            rpc: loaded.rpc.map(Current::new),
            nodes: loaded.nodes.map(Current::new),
            named: loaded.named.map(Current::new),
            http: loaded.http.map(Current::new),
            node,
            asks_clients: config.verify_https_client,
        })
    }

    /// For connections to servers; none without TLS.
    pub fn rpc(&self) -> Option<Current<ClientConfig>> {
        self.rpc.clone()
    }

    /// For connections to the API of nodes that servers name; none without TLS, or without authorities.
    pub fn nodes(&self) -> Option<Current<ClientConfig>> {
        self.nodes.clone()
    }

    /// For connections to the API of nodes that people name by their addresses; none without TLS, or without
    /// authorities.
    pub fn named(&self) -> Option<Current<ClientConfig>> {
        self.named.clone()
    }

    /// For connections of the API; none without TLS.
    pub fn http(&self) -> Option<Current<ServerConfig>> {
        self.http.clone()
    }

    /// Reads the files anew. New connections have what is in them; those that are open go on. Whether there is TLS
    /// at all, and whether clients of the API need certificates, stays as it is.
    ///
    /// # Errors
    /// A file cannot be used, or TLS would be switched on or off; then everything stays as it was.
    pub fn reload(&self, config: &TlsConfig) -> Result<(), String> {
        let switched = |what| format!("tls: {what} is switched on or off by a restart alone");
        if config.rpc != self.rpc.is_some() {
            return Err(switched("rpc"));
        }
        if config.http != self.http.is_some() {
            return Err(switched("http"));
        }
        if config.http && config.verify_https_client != self.asks_clients {
            return Err(switched("verify_https_client"));
        }
        let loaded = load(config, self.node.as_ref())?;
        if let Some((current, new)) = self.rpc.as_ref().zip(loaded.rpc) {
            current.set(new);
        }
        if let Some((current, new)) = self.nodes.as_ref().zip(loaded.nodes) {
            current.set(new);
        }
        if let Some((current, new)) = self.named.as_ref().zip(loaded.named) {
            current.set(new);
        }
        if let Some((current, new)) = self.http.as_ref().zip(loaded.http) {
            current.set(new);
        }
        Ok(())
    }
}

/// What files make, for a node of this name.
fn load(config: &TlsConfig, node: Option<&ServerName<'static>>) -> Result<Loaded, String> {
    if !config.rpc && !config.http {
        return Ok(Loaded::default());
    }
    let explain = |error: &dyn std::fmt::Display| format!("tls: {error}");
    let authorities = config.ca_file.as_deref().map(Authorities::read);
    let authorities = authorities.transpose().map_err(|error| explain(&error))?;
    let files = config.cert_file.as_deref().zip(config.key_file.as_deref());
    let identity = files.map(|(certificate, key)| Identity::read(certificate, key));
    let identity = identity.transpose().map_err(|error| explain(&error))?;
    let protocol = config.protocol()?;
    let mut loaded = Loaded::default();
    let for_clients = |believes| {
        let made = client::config(believes, identity.as_ref(), &protocol);
        made.map(Some).map_err(|error| explain(&error))
    };
    if config.rpc {
        let authorities = authorities.clone();
        let authorities = authorities.ok_or("tls: rpc needs ca_file")?;
        let believes = match config.verify_server_hostname {
            true => Believes::Named(authorities),
            false => Believes::Signed(authorities),
        };
        loaded.rpc = for_clients(believes)?;
    }
    if let Some(authorities) = authorities.clone() {
        // Whoever gets a disk's token has to be a node of the cluster, whatever is asked of servers.
        loaded.nodes = for_clients(Believes::Named(authorities.clone()))?;
        // People name an address, and its host counts as anywhere. Certificates that Nomad's own program makes have
        // no host but the role of a node, by which nodes of a cluster know each other, too.
        loaded.named = for_clients(match node {
            Some(node) => Believes::NamedOr(authorities, node.clone()),
            None => Believes::Named(authorities),
        })?;
    }
    if config.http {
        let own = identity.as_ref().ok_or("tls: http needs cert_file")?;
        let clients = authorities.filter(|_| config.verify_https_client);
        let made = server::config(own, clients.as_ref(), &protocol);
        loaded.http = Some(made.map_err(|error| explain(&error))?);
    }
    Ok(loaded)
}
