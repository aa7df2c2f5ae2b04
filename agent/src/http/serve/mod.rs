//! Connections: a bounded number of them, each with time limits. The numbers are in [`limits`].
//!
//! What may last long is counted apart, for each client address and together: blocking queries,
//! streams (logs, files, snapshots), websockets (exec sessions), bodies being received, and their bytes. All of it together
//! fits into the connections with some to spare, so ordinary requests are always answered. At the
//! limit of connections the oldest one without a request is closed ([`connections`]). Where all are
//! in use, and for everything else beyond its limit, the answer is 429 with `Retry-After` and a
//! body that can be read: the agent waits up to 1 s for the client to read it, since closing
//! earlier would reset the connection.
//!
//! With TLS a connection is counted before its handshake, which has 10 s as well ([`secure`]). A client that
//! is refused there is closed without a word, since it would not understand one.
//!
//! A head has 10 s from its first byte; a body may pause for 10 s and take 5 min; a client that
//! reads nothing of its answer for 30 s is closed, unless that is a stream, which then gives way to
//! others. One check each second, while there are connections, finds what is overdue.

mod connections;
mod limits;
mod secure;
#[cfg(test)]
mod secure_tests;
mod socket;
mod stream;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustix::net::{Shutdown, shutdown};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, timeout};

use drover_tls::Current;

use connections::{Admitted, Close, Connections};
pub(super) use connections::{Busy, Caller, Receiving};
pub use limits::Limits;
#[cfg(test)]
pub(crate) use limits::Share;
use secure::Secure;
pub use socket::LocalSocket;
use socket::Socket;
pub(super) use socket::Transport;
use stream::Watched;

/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
/// The pause after a connection could not be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How many refused clients are given the time to read why.
const MAX_REFUSALS: usize = 64;
/// How long a client that is refused, or whose connection the agent ends, may go on sending. A
/// connection that is closed before has its answer thrown away by the kernel.
const LINGER: Duration = Duration::from_secs(1);
/// After how many seconds a refused client may come again.
pub(super) const RETRY_AFTER: &str = "1";
/// As whose the connections of the unix socket are counted: nobody comes from there over the network.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Where the API is served.
#[derive(Debug)]
pub struct Listeners {
    /// To the network, or to this machine.
    pub network: TcpListener,
    /// What connections from there are encrypted with.
    pub tls: Option<Current<ServerConfig>>,
    /// To the agent's own user.
    pub local: Option<LocalSocket>,
}

/// Serves within these limits until this future is dropped; what is under way is dropped with it. With TLS, each
/// connection is made with what is in force at its beginning.
pub async fn serve(listeners: Listeners, router: Router, limits: Limits) {
    let Listeners {
        network,
        tls,
        local,
    } = listeners;
    let mut check = tokio::time::interval(limits.check);
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let handshake = limits.head;
    let all = Connections::new(limits);
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accepted(&network, local.as_ref()) => match accepted {
                Ok((stream, peer)) => {
                    let tls = tls.as_ref().filter(|_| stream.transport() == Transport::Network);
                    let secure = tls.map(|tls| Secure::new(tls, handshake));
                    let arrived = Arrived { stream, peer, secure };
                    accept(arrived, &router, &all, &refusals, &mut tasks);
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    all.close_oldest_idle();
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = tasks.join_next() => {}
            now = check.tick(), if !tasks.is_empty() => all.check(now),
        }
    }
}

/// The next connection, and as whose it is counted.
async fn accepted(
    network: &TcpListener,
    local: Option<&LocalSocket>,
) -> std::io::Result<(Socket, IpAddr)> {
    let local = async {
        match local {
            Some(local) => local.accept().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        accepted = network.accept() => {
            let (stream, peer) = accepted?;
            Ok((Socket::Network(stream), peer.ip()))
        }
        accepted = local => Ok((Socket::Local(accepted?), LOCAL)),
    }
}

/// A connection that was just accepted.
struct Arrived {
    stream: Socket,
    peer: IpAddr,
    secure: Option<Secure>,
}

fn accept(
    arrived: Arrived,
    router: &Router,
    all: &Arc<Connections>,
    refusals: &Arc<Semaphore>,
    tasks: &mut JoinSet<()>,
) {
    let Arrived {
        stream,
        peer,
        secure,
    } = arrived;
    match all.admit(peer) {
        Ok(admitted) => {
            tasks.spawn(connection(stream, secure, router.clone(), admitted));
        }
        Err(busy) => {
            tracing::debug!(%peer, %busy, "a connection is refused");
            if secure.is_some() {
                return;
            }
            // Beyond these, nobody has the time to read why.
            if let Ok(permit) = refusals.clone().try_acquire_owned() {
                tasks.spawn(async move {
                    refuse(&stream, &busy).await;
                    drop(permit);
                });
            }
        }
    }
}

async fn connection(
    stream: Socket,
    secure: Option<Secure>,
    router: Router,
    mut admitted: Admitted,
) {
    stream.prepare();
    let stream = Arc::new(stream);
    let watched = Watched::new(stream.clone(), admitted.caller.clone());
    match secure {
        None => http(watched, Words::Understood, stream, router, admitted).await,
        Some(secure) => {
            if let Some(io) = secure.handshake(watched, &stream, &mut admitted).await {
                http(io, Words::Encrypted, stream, router, admitted).await;
            }
        }
    }
}

/// Whether a client understands what is written to its socket past the protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    Understood,
    Encrypted,
}

/// Speaks HTTP over a connection's stream, which is the socket or lies over it.
async fn http<I>(io: I, words: Words, stream: Arc<Socket>, router: Router, mut admitted: Admitted)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let caller = admitted.caller.clone();
    let io = TokioIo::new(io);
    let (own, transport) = (caller.clone(), stream.transport());
    let service =
        service_fn(move |request| answer(request, own.clone(), transport, router.clone()));
    let mut http = http1::Builder::new();
    // The time of heads is checked with everything else's.
    http.header_read_timeout(None).max_buf_size(MAX_HEAD);
    let served = http.serve_connection(io, service).with_upgrades();
    tokio::select! {
        biased;
        why = &mut admitted.closed => {
            if why != Ok(Close::LateHead) || words == Words::Encrypted {
                return;
            }
            let words = "the head of the request did not arrive in time";
            send_status(&stream, "408 Request Timeout", "", words);
        }
        served = served => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
    if let Some(over) = caller.websocket() {
        tokio::select! {
            _ = over => {}
            _ = &mut admitted.closed => {
                // Whoever holds the websocket sees that.
                let _ = shutdown(&stream, Shutdown::Both);
                return;
            }
        }
    }
    caller.ended();
    tokio::select! {
        () = linger(&stream) => {}
        _ = &mut admitted.closed => {}
    }
}

async fn answer(
    mut request: hyper::Request<Incoming>,
    caller: Caller,
    transport: Transport,
    router: Router,
) -> Result<hyper::Response<Counted>, std::convert::Infallible> {
    caller.begin();
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(transport);
    let response = TowerToHyperService::new(router).call(request).await?;
    Ok(response.map(|body| Counted { body, caller }))
}

/// The body of an answer, which says when it is complete.
struct Counted {
    body: Body,
    caller: Caller,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.caller.answered();
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Refuses a client in words.
async fn refuse(stream: &Socket, busy: &Busy) {
    // Many clients take an answer that comes before their request for a mistake.
    let _ = timeout(LINGER, stream.readable()).await;
    let retry = format!("Retry-After: {RETRY_AFTER}\r\n");
    send_status(stream, "429 Too Many Requests", &retry, &busy.to_string());
    linger(stream).await;
}

/// Answers without waiting for anything: a socket that nothing was sent to yet takes so few bytes.
fn send_status(stream: &Socket, status: &str, headers: &str, message: &str) {
    let length = message.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{message}"
    );
    let _ = stream.try_write(text.as_bytes());
}

/// Ends the sending, and waits a moment for the client to do the same.
async fn linger(stream: &Socket) {
    if shutdown(stream, Shutdown::Write).is_err() {
        return;
    }
    let drain = async {
        let mut rest = [0; 4096];
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut rest) {
                Ok(0) => return,
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {}
            }
        }
    };
    let _ = timeout(LINGER, drain).await;
}
