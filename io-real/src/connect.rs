//! Connections to other machines.
//!
//! Code that speaks to another machine takes its connections from a [`Connect`] and not from the
//! operating system, so that the same code runs over a simulated network: with delays, partitions
//! and hosts that die (`tests/network`). Two kinds of client are deliberately not among them: the
//! downloads of artifacts, which a sandboxed process of its own makes, and the metadata probes,
//! which ask an address of this host.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drover_tls::client::Secure;
use rustix::net::sockopt;
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

/// For how long nothing may come until the other side is asked whether it is there, and for how long what was sent may
/// stay unacknowledged where the other side always reads.
const SILENCE: Duration = Duration::from_secs(30);
/// How often a silent one is asked whether it is there, and how often in vain.
const PROBES: (Duration, u32) = (Duration::from_secs(10), 3);

/// TCP over the network of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tcp;

impl Connect for Tcp {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let stream = open(authority).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// The same, to somebody who always reads, as servers of a cluster do: what is not acknowledged for long is lost.
/// Elsewhere a reader may be slow for good.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpToReader;

impl Connect for TcpToReader {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let stream = open(authority).await?;
            let _ = sockopt::set_tcp_user_timeout(&stream, milliseconds(SILENCE));
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A network whose connections are encrypted, to one other side.
#[derive(Clone, Debug)]
pub struct Encrypted {
    /// What the encrypted bytes go over.
    pub network: Arc<dyn Connect>,
    /// Who the other side has to be.
    pub secure: Secure,
}

impl Connect for Encrypted {
    fn connect<'a>(&'a self, authority: &'a str) -> Connecting<'a> {
        Box::pin(async move {
            let plain = self.network.connect(authority).await?;
            let stream = self.secure.connect(plain, HANDSHAKE).await?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

async fn open(authority: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(authority).await?;
    // Requests are small and shall leave at once.
    let _ = stream.set_nodelay(true);
    keep_alive(&stream, SILENCE);
    Ok(stream)
}

/// Has the kernel ask after such a silence whether the other side is there, and end the connection if it is not: a
/// machine that vanishes says nothing.
pub fn keep_alive(stream: impl AsFd, silence: Duration) {
    let stream = stream.as_fd();
    // What cannot fail on a socket, and would do no harm.
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, silence);
    let _ = sockopt::set_tcp_keepintvl(stream, PROBES.0);
    let _ = sockopt::set_tcp_keepcnt(stream, PROBES.1);
}

fn milliseconds(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}
