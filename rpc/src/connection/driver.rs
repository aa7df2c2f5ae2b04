//! The driver of a connection: one task that owns the yamux session.
//!
//! **Acknowledging inbound streams.** A server closes its *whole session* if a stream that it opened is not
//! acknowledged within 75 s. The yamux crate acknowledges with the first data that is written, so one
//! slow inbound call would end every other call. Therefore [`acknowledge`] writes an empty frame, which
//! carries the acknowledgement, as soon as a stream was accepted.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures::io::{AsyncWrite as _, AsyncWriteExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep_until, timeout};
use yamux::{Config, ConnectionError, Mode, Stream};

use super::inbound::{Handler, serve};
use super::transport::{Seen, Transport};
use super::{CloseReason, Limits};
use crate::preamble::MULTIPLEX;

/// The receive window of a new stream, a constant of yamux.
const WINDOW: usize = 256 << 10;

/// How long an orderly close may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection before its preamble.
pub(super) struct Driver<T, H> {
    pub(super) io: Transport<T>,
    pub(super) stream_requests: mpsc::Receiver<oneshot::Sender<Stream>>,
    pub(super) handler: Arc<H>,
    pub(super) limits: Limits,
}

impl<T, H> Driver<T, H>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    /// Runs until the connection is closed, and reports why.
    pub(super) async fn run(mut self, close: watch::Sender<Option<CloseReason>>) -> CloseReason {
        let seen = self.io.seen.clone();
        let preamble = self.io.write_all(&[MULTIPLEX]);
        let reason = match timeout(self.limits.handshake_timeout, preamble).await {
            Ok(Ok(())) => Session::new(self).run(&close).await,
            Ok(Err(error)) => failure(&seen, ConnectionError::Io(error)),
            Err(_) => CloseReason::Failed("the first byte could not be sent".to_owned()),
        };
        close.send_replace(Some(reason.clone()));
        reason
    }
}

/// A connection after its preamble.
struct Session<T, H> {
    yamux: yamux::Connection<Transport<T>>,
    seen: Seen,
    idle: Pin<Box<Sleep>>,
    stream_requests: mpsc::Receiver<oneshot::Sender<Stream>>,
    /// The request that gets the next stream.
    next_request: Option<oneshot::Sender<Stream>>,
    handler: Arc<H>,
    /// Inbound calls; they are aborted when the connection is closed.
    inbound: JoinSet<()>,
    inbound_permits: Arc<Semaphore>,
    limits: Limits,
}

/// What the driver has to act on.
enum Event {
    /// A stream for this request.
    Opened(oneshot::Sender<Stream>, Stream),
    /// A stream that the server opened.
    Inbound(Stream),
    /// The connection is closed, or is to be closed.
    Close(CloseReason),
}

impl<T, H> Session<T, H>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    fn new(driver: Driver<T, H>) -> Session<T, H> {
        let Driver {
            io,
            stream_requests,
            handler,
            limits,
        } = driver;
        let seen = io.seen.clone();
        let mut config = Config::default();
        // Each setter checks against the other value: the window must be unlimited in between.
        config.set_max_connection_receive_window(None);
        config.set_max_num_streams(limits.streams());
        config.set_max_connection_receive_window(Some(limits.streams() * WINDOW));
        Session {
            yamux: yamux::Connection::new(io, config, Mode::Client),
            idle: Box::pin(sleep_until(seen.last_read() + limits.idle_timeout)),
            seen,
            stream_requests,
            next_request: None,
            handler,
            inbound: JoinSet::new(),
            inbound_permits: Arc::new(Semaphore::new(limits.inbound_calls)),
            limits,
        }
    }

    async fn run(mut self, close: &watch::Sender<Option<CloseReason>>) -> CloseReason {
        loop {
            match poll_fn(|cx| self.poll(cx)).await {
                // If the call was cancelled meanwhile, its stream is dropped unused.
                Event::Opened(request, stream) => drop(request.send(stream)),
                Event::Inbound(stream) => self.accept(stream),
                Event::Close(reason) => {
                    // Before the streams end, so that calls fail with the reason.
                    close.send_replace(Some(reason.clone()));
                    self.inbound.abort_all();
                    if reason == CloseReason::Local {
                        let close = poll_fn(|cx| self.yamux.poll_close(cx));
                        drop(timeout(CLOSE_TIMEOUT, close).await);
                    }
                    return reason;
                }
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        while let Poll::Ready(Some(_)) = self.inbound.poll_join_next(cx) {}
        if let Poll::Ready(reason) = self.poll_idle(cx) {
            return Poll::Ready(Event::Close(reason));
        }
        if let Poll::Ready(event) = self.poll_stream_request(cx) {
            return Poll::Ready(event);
        }
        Poll::Ready(match ready!(self.yamux.poll_next_inbound(cx)) {
            Some(Ok(stream)) => Event::Inbound(stream),
            Some(Err(error)) => Event::Close(self.failure(error)),
            None => Event::Close(self.failure(ConnectionError::Closed)),
        })
    }

    /// Whether nothing was received for too long.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        while self.idle.as_mut().poll(cx).is_ready() {
            let due = self.seen.last_read() + self.limits.idle_timeout;
            if due <= self.idle.deadline() {
                return Poll::Ready(CloseReason::IdleTimeout(self.limits.idle_timeout));
            }
            self.idle.as_mut().reset(due);
        }
        Poll::Pending
    }

    /// Opens a stream for the next request that was not cancelled.
    fn poll_stream_request(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        while self
            .next_request
            .as_ref()
            .is_none_or(oneshot::Sender::is_closed)
        {
            self.next_request = ready!(self.stream_requests.poll_recv(cx));
            if self.next_request.is_none() {
                return Poll::Ready(Event::Close(CloseReason::Local));
            }
        }
        let stream = ready!(self.yamux.poll_new_outbound(cx));
        Poll::Ready(match (stream, self.next_request.take()) {
            (Ok(stream), Some(request)) => Event::Opened(request, stream),
            (Ok(_), None) => Event::Close(CloseReason::Local),
            (Err(error), _) => Event::Close(self.failure(error)),
        })
    }

    fn failure(&self, error: ConnectionError) -> CloseReason {
        failure(&self.seen, error)
    }

    /// Serves an inbound stream. Beyond the limit it is reset, which fails its call at the server.
    fn accept(&mut self, mut stream: Stream) {
        acknowledge(&mut stream);
        if let Ok(permit) = self.inbound_permits.clone().try_acquire_owned() {
            let (handler, limits) = (self.handler.clone(), self.limits);
            self.inbound.spawn(async move {
                serve(stream, handler, limits).await;
                drop(permit);
            });
        }
    }
}

/// Sends an empty frame with the acknowledgement of a new stream. It never has to wait: nothing else was
/// written to the stream.
fn acknowledge(stream: &mut Stream) {
    let mut cx = Context::from_waker(Waker::noop());
    let written = Pin::new(stream).poll_write(&mut cx, &[]);
    debug_assert!(matches!(written, Poll::Ready(Ok(0))), "{written:?}");
}

/// Why a connection ended, by what was seen of its bytes.
fn failure(seen: &Seen, error: ConnectionError) -> CloseReason {
    match (seen.tls_failure(), error) {
        (Some(reason), _) => CloseReason::Tls(reason),
        (None, ConnectionError::Closed) => CloseReason::Remote,
        (None, other) => CloseReason::Failed(other.to_string()),
    }
}
