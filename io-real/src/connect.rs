//! Connections to other machines.
//!
//! Code that speaks to another machine takes its connections from a [`Connect`] and not from the
//! operating system, so that the same code runs over a simulated network: with delays, partitions
//! and hosts that die (`tests/network`). Two kinds of client are deliberately not among them: the
//! downloads of artifacts, which a sandboxed process of its own makes, and the metadata probes,
//! which ask an address of this host.

use std::fmt;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A connection, made or not.
pub type Connecting<'a> =
    Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send + 'a>>;

/// Bytes in both directions.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Makes connections.
pub trait Connect: fmt::Debug + Send + Sync {
    /// Connects to `HOST:PORT`. It has no deadline: whoever asks has one.
    ///
    /// # Errors
    /// The name is unknown, or nobody answers there.
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a>;
}

/// TCP over the network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Connect for Tcp {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect(authority).await?;
            // Requests are small and shall leave at once.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
