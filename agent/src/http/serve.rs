//! Connections: a bounded number of them, each with a bounded patience.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many connections are served at the same time.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take to send a request's head, also the next one of a connection.
const HEAD_PATIENCE: Duration = Duration::from_secs(75);
/// The most bytes of a request's head.
const MAX_HEAD: usize = 64 * 1024;
/// The pause after a connection could not be accepted, for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// What a client is told for whom there is no room.
const TOO_MANY: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\n\
Content-Type: text/plain; charset=utf-8\r\n\r\nthis agent has too many connections";

/// Serves until this future is dropped; what is under way is dropped with it.
pub async fn serve(listener: TcpListener, router: Router) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => match room.clone().try_acquire_owned() {
                    Ok(permit) => {
                        let router = router.clone();
                        connections.spawn(async move {
                            connection(stream, router).await;
                            drop(permit);
                        });
                    }
                    Err(_) => refuse(stream),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, router: Router) {
    // Log lines shall not wait for more of them.
    let _ = stream.set_nodelay(true);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(MAX_HEAD);
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Says no without waiting for anything: a fresh connection has room for so few bytes.
fn refuse(stream: TcpStream) {
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(TOO_MANY);
    }
}
