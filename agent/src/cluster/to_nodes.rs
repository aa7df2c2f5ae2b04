//! Connections over TLS to the API of other nodes: of the cluster, and such as people name.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use drover_io_real::connect::{Connect, Connecting, Connection};
use drover_tls::client::{self, name_at};
use drover_tls::{Current, TlsError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::tls::name_of_nodes;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Makes them.
#[derive(Debug)]
pub(crate) struct ToNodes {
    network: Arc<dyn Connect>,
    names: Names,
    tls: Current<ClientConfig>,
}

/// For whom the certificate of a node is.
#[derive(Debug)]
enum Names {
    /// For a node of the region, whatever its address is.
    Role(ServerName<'static>),
    /// For the host that its address names, or for this, which the settings know.
    Host { or: Option<ServerName<'static>> },
}

impl ToNodes {
    /// To the nodes of a region, which servers name.
    ///
    /// # Errors
    /// The region cannot be a part of a name.
    pub(crate) fn of_region(
        network: Arc<dyn Connect>,
        region: &str,
        tls: Current<ClientConfig>,
    ) -> Result<ToNodes, String> {
        let names = Names::Role(name_of_nodes(region)?);
        Ok(ToNodes {
            network,
            names,
            tls,
        })
    }

    /// To nodes that people name. What is in `tls` takes certificates for their hosts, or for a node of this region.
    pub(crate) fn by_address(
        network: Arc<dyn Connect>,
        region: &str,
        tls: Current<ClientConfig>,
    ) -> ToNodes {
        let or = name_of_nodes(region).ok();
        ToNodes {
            network,
            names: Names::Host { or },
            tls,
        }
    }
}

impl Names {
    /// The name that is asked for.
    fn at(&self, authority: &str) -> io::Result<ServerName<'static>> {
        let unusable = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        match self {
            Names::Role(name) => Ok(name.clone()),
            Names::Host { .. } => name_at(authority).map_err(unusable),
        }
    }

    /// Why there is no connection, with all names that would have done.
    fn explained(&self, error: TlsError) -> TlsError {
        match (self, error) {
            (Names::Host { or: Some(or) }, TlsError::WrongName { wanted, has }) => {
                let wanted = format!("{wanted} or {}", or.to_str());
                TlsError::WrongName { wanted, has }
            }
            (_, error) => error,
        }
    }
}

impl Connect for ToNodes {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let name = self.names.at(authority)?;
            let plain = self.network.connect(authority).await?;
            let stream = client::connect(plain, name, self.tls.get(), HANDSHAKE).await;
            let stream = stream.map_err(|why| io::Error::from(self.names.explained(why)))?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
