//! Connections with TLS to servers of a region.
//!
//! The first byte says that TLS begins; after the handshake, a connection begins inside of it as it would without.
//! What it is made with may be exchanged meanwhile: the next connection uses it, and those that are open go on.

use std::io;
use std::time::Duration;

use drover_tls::client::{Stream, connect, server_name};
use drover_tls::{Current, TlsError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::client::Connector;
use crate::error::Error;
use crate::preamble;

/// How long a handshake may take. Servers give up after the same time.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Connects as another connector does, and encrypts that.
#[derive(Debug)]
pub struct Tls<C> {
    inner: C,
    name: ServerName<'static>,
    config: Current<ClientConfig>,
}

impl<C> Tls<C> {
    /// Connections to the servers of this region. Whether their name is looked at, and who is believed, the settings
    /// say ([`drover_tls::client::config`]).
    ///
    /// # Errors
    /// The region cannot be a part of a name.
    pub fn new(inner: C, region: &str, config: Current<ClientConfig>) -> Result<Tls<C>, String> {
        let name = server_name(&format!("server.{region}.nomad"))?;
        Ok(Tls {
            inner,
            name,
            config,
        })
    }
}

impl<C: Connector> Connector for Tls<C> {
    type Io = Stream<C::Io>;

    async fn connect(&self, address: &str) -> io::Result<Stream<C::Io>> {
        let mut io = self.inner.connect(address).await?;
        let begun = timeout(HANDSHAKE, io.write_all(&[preamble::TLS])).await;
        begun.unwrap_or_else(|_| Err(TlsError::TimedOut(HANDSHAKE).into()))?;
        let stream = connect(io, self.name.clone(), self.config.get(), HANDSHAKE).await;
        stream.map_err(io::Error::from)
    }

    fn failed(&self, error: &Error) {
        self.inner.failed(error);
    }
}
