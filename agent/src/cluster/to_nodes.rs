//! Connections over TLS to the API of other nodes of the cluster.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_tls::Current;
use drover_tls::client::{self, server_name};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Makes them. As in Nomad, a node has a certificate for `client.REGION.nomad`, whatever its address is.
#[derive(Debug)]
pub(crate) struct ToNodes {
    network: Arc<dyn Connect>,
    name: ServerName<'static>,
    tls: Current<ClientConfig>,
}

impl ToNodes {
    /// To the nodes of a region.
    ///
    /// # Errors
    /// The region cannot be a part of a name.
    pub(crate) fn new(
        network: Arc<dyn Connect>,
        region: &str,
        tls: Current<ClientConfig>,
    ) -> Result<ToNodes, String> {
        let name = server_name(&format!("client.{region}.nomad"))?;
        Ok(ToNodes { network, name, tls })
    }
}

impl Connect for ToNodes {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let plain = self.network.connect(authority).await?;
            let (name, config) = (self.name.clone(), self.tls.get());
            let stream = client::connect(plain, name, config, HANDSHAKE).await;
            let stream = stream.map_err(io::Error::from)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
