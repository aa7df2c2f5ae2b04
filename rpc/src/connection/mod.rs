//! One connection to a server: many calls in both directions, side by side.
//!
//! [`open`] returns a handle, [`Connection`], and the connection's driver, a future that the caller spawns.
//! The driver ends when the connection is closed, by the server or because all handles were dropped.
//!
//! Each call has a yamux stream of its own, because a server serves the calls of one stream one after the
//! other. So a slow call delays no other.
//!
//! **Deadlines and cancellation.** Each call of ours has a deadline. Dropping the future of a call resets its
//! stream.
//!
//! **Dead peers.** Our yamux sends no keep-alive pings, but servers do. So a connection on which no byte was
//! received for [`Limits::idle_timeout`] is closed, and all calls on it fail.

mod driver;
mod header;
mod inbound;
mod limits;
mod outbound;
mod reader;
mod streaming;
mod transport;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use drover_tls::TlsError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use transport::Transport;

pub use inbound::{Answer, Handler, InboundCall};
pub use limits::Limits;
pub use streaming::{Input, InputEnd, Output};

/// A handle of a connection, which is closed when all its handles are dropped.
#[derive(Clone, Debug)]
pub struct Connection {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: String,
    limits: Limits,
    /// Asks the driver for streams.
    open_stream: mpsc::Sender<oneshot::Sender<yamux::Stream>>,
    /// Bounds the calls at once.
    permits: Semaphore,
    next_seq: AtomicU64,
    closed: watch::Receiver<Option<CloseReason>>,
}

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// All handles were dropped.
    Local,
    /// The server closed it, or sent go-away.
    Remote,
    /// No byte was received for so long.
    IdleTimeout(Duration),
    /// TLS failed after its handshake, before the server said anything.
    Tls(TlsError),
    /// An I/O error, or a violation of yamux; in words.
    Failed(String),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::Local => f.write_str("the node closed it"),
            CloseReason::Remote => f.write_str("the server closed it"),
            CloseReason::IdleTimeout(time) => write!(f, "nothing was received for {time:?}"),
            CloseReason::Tls(reason) => reason.fmt(f),
            CloseReason::Failed(reason) => f.write_str(reason),
        }
    }
}

/// Starts a connection on a new transport. Returns its handle, and its driver, which must be spawned.
pub fn open<T, H>(
    io: T,
    server: impl Into<String>,
    handler: Arc<H>,
    limits: Limits,
) -> (Connection, impl Future<Output = CloseReason> + Send)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let (open_stream, stream_requests) = mpsc::channel(limits.outbound_calls.max(1));
    let (close, closed) = watch::channel(None);
    let shared = Shared {
        server: server.into(),
        limits,
        open_stream,
        permits: Semaphore::new(limits.outbound_calls),
        next_seq: AtomicU64::new(1),
        closed,
    };
    let driver = driver::Driver {
        io: Transport::new(io),
        stream_requests,
        handler,
        limits,
    };
    (
        Connection {
            shared: Arc::new(shared),
        },
        driver.run(close),
    )
}

impl Connection {
    /// The server's address.
    pub fn server(&self) -> &str {
        &self.shared.server
    }

    /// Whether both are handles of the same connection.
    pub fn is_same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Why the connection was closed; `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared.closed.borrow().clone()
    }

    /// Waits until the connection is closed.
    pub async fn closed(&self) -> CloseReason {
        let mut closed = self.shared.closed.clone();
        match closed.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(CloseReason::Local),
            // The driver was dropped.
            Err(_) => CloseReason::Local,
        }
    }
}
