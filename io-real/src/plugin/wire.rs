//! The connection to a plugin: one socket, one HTTP/2 connection over it, many calls.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::process::geteuid;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::{Code, Status};

use super::error::{PluginError, Refusal};
use super::handshake::Address;
use crate::abort_on_drop::AbortOnDrop;
use crate::proc_stat::Stat;

/// How much of one stream's messages lies in memory before they are asked for, in bytes.
const STREAM_WINDOW: u32 = 256 << 10;

/// How much of all streams' messages lies in memory, in bytes.
const WINDOW: u32 = 1 << 20;

/// How long it may take to reach a plugin that listens already.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// What a plugin is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long an ordinary call may take.
    pub call: Duration,
    /// How long the start of a task may take; images may have to be fetched.
    pub start_task: Duration,
    /// How large one message may be, in bytes.
    pub message: usize,
    /// How many messages one stream may send in a second.
    pub per_second: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            call: Duration::from_secs(10),
            start_task: Duration::from_mins(10),
            message: 4 << 20,
            per_second: 1000,
        }
    }
}

/// Where calls go in. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Channel(SendRequest<Body>);

impl tower_service::Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A connection. It ends when this is dropped, and with it every call.
#[derive(Debug)]
pub(super) struct Wire {
    channel: Channel,
    limits: Limits,
    ended: watch::Receiver<bool>,
    _driver: AbortOnDrop<()>,
}

impl Wire {
    /// Connects to a plugin, whose process or session leader has this number.
    pub(super) async fn open(
        address: &Address,
        pid: i32,
        limits: Limits,
    ) -> Result<Wire, PluginError> {
        let connecting = async {
            match address {
                Address::Unix(path) => {
                    let socket = connect_unix(path, pid).await?;
                    Wire::over(socket, limits).await
                }
                Address::Tcp(address) => {
                    let socket = TcpStream::connect(address).await?;
                    socket.set_nodelay(true)?;
                    Wire::over(socket, limits).await
                }
            }
        };
        match timeout(CONNECT_TIME, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(PluginError::Timeout {
                call: "connect",
                after: CONNECT_TIME,
            }),
        }
    }

    /// A connection over this socket.
    pub(super) async fn over(
        socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        limits: Limits,
    ) -> Result<Wire, PluginError> {
        let shaking = Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(TokioIo::new(socket));
        let (channel, connection) = shaking
            .await
            .map_err(|error| PluginError::Lost(error.to_string()))?;
        let (end, ended) = watch::channel(false);
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to a plugin broke");
            }
            let _ = end.send(true);
        });
        Ok(Wire {
            channel: Channel(channel),
            limits,
            ended,
            _driver: AbortOnDrop(driver),
        })
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// For the generated clients.
    pub(super) fn channel(&self) -> (Channel, Uri) {
        (
            self.channel.clone(),
            Uri::from_static("http://plugin.invalid"),
        )
    }

    /// Waits until the connection has ended. Can be asked again.
    pub(super) async fn ended(&self) {
        let mut ended = self.ended.clone();
        // An error says that its task is gone, which is an end as well.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Waits for one answer, for the time of an ordinary call.
    pub(super) async fn call<T>(
        &self,
        call: &'static str,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, PluginError> {
        self.call_within(call, self.limits.call, answer).await
    }

    /// Waits for one answer, for so long.
    pub(super) async fn call_within<T>(
        &self,
        call: &'static str,
        after: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, PluginError> {
        match timeout(after, answer).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            // Without a connection there is nobody who could refuse.
            Ok(Err(status)) if self.channel.0.is_closed() => {
                Err(PluginError::Lost(format!("{call}: {}", status.message())))
            }
            Ok(Err(status)) => Err(refused(call, &status)),
            Err(_) => Err(PluginError::Timeout { call, after }),
        }
    }
}

/// Connects to a socket only if it is our user's, and is listened to by the plugin itself or by a
/// process of its session.
async fn connect_unix(path: &Path, pid: i32) -> Result<UnixStream, PluginError> {
    let socket = own_socket(path)?;
    // The very socket that was looked at, whatever stands at the path by now.
    let stream = UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd())).await?;
    let peer = stream.peer_cred()?;
    if peer.uid() != geteuid().as_raw() {
        let why = format!("user {} listens there", peer.uid());
        return Err(PluginError::Stranger(why));
    }
    // A listener in a process namespace around ours has no number here.
    let listener = peer.pid().unwrap_or(0);
    let session = || Stat::of(listener).map_or(0, |stat| stat.session);
    if listener != pid && session() != pid {
        let why = format!("process {listener} listens there");
        return Err(PluginError::Stranger(why));
    }
    Ok(stream)
}

/// The socket at this path, if it is one and our user's.
pub(super) fn own_socket(path: &Path) -> Result<OwnedFd, PluginError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = open(path, flags, Mode::empty()).map_err(io::Error::from)?;
    let stat = fstat(&socket).map_err(io::Error::from)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
        return Err(PluginError::Stranger("it is no socket".to_owned()));
    }
    if stat.st_uid != geteuid().as_raw() {
        let why = format!("it belongs to user {}", stat.st_uid);
        return Err(PluginError::Stranger(why));
    }
    Ok(socket)
}

/// What a status says, with what drivers put into its details.
pub(super) fn refused(call: &'static str, status: &Status) -> PluginError {
    let broken = std::error::Error::source(status).is_some();
    if status.code() == Code::Unavailable || broken {
        return PluginError::Lost(format!("{call}: {}", status.message()));
    }
    PluginError::Refused(Refusal {
        call,
        code: status.code(),
        message: cut(status.message()),
        recoverable: super::details::is_recoverable(status),
    })
}

/// So much of it as an event can hold.
fn cut(text: &str) -> String {
    text.chars().take(4096).collect()
}
