//! The byte stream below yamux: tokio's traits as the ones that yamux uses, and what was seen of it: when bytes were
//! last read, and why TLS failed. That is not always seen from above: yamux drops an error of writing, and goes on.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use drover_tls::TlsError;
use futures::io::{AsyncRead, AsyncWrite};
use tokio::io::ReadBuf;
use tokio::time::Instant;

/// What was seen of a byte stream.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    start: Instant,
    /// When bytes were last read; at first, when it was made.
    read_after_micros: Arc<AtomicU64>,
    tls_failure: Arc<OnceLock<TlsError>>,
}

impl Seen {
    fn new() -> Seen {
        Seen {
            start: Instant::now(),
            read_after_micros: Arc::default(),
            tls_failure: Arc::default(),
        }
    }

    pub(super) fn last_read(&self) -> Instant {
        self.start + Duration::from_micros(self.read_after_micros.load(Ordering::Relaxed))
    }

    /// Why TLS failed, if it did.
    pub(super) fn tls_failure(&self) -> Option<TlsError> {
        self.tls_failure.get().cloned()
    }

    fn read(&self) {
        let micros = self.start.elapsed().as_micros() as u64;
        self.read_after_micros.store(micros, Ordering::Relaxed);
    }

    /// Remembers the first failure: what comes later follows from it.
    fn done<V>(&self, done: io::Result<V>) -> io::Result<V> {
        done.inspect_err(|error| {
            if let Some(reason) = TlsError::within(error) {
                self.tls_failure.get_or_init(|| reason.clone());
            }
        })
    }
}

/// A byte stream that notes what is seen of it.
pub(super) struct Transport<T> {
    io: T,
    pub(super) seen: Seen,
}

impl<T> Transport<T> {
    pub(super) fn new(io: T) -> Transport<T> {
        let seen = Seen::new();
        Transport { io, seen }
    }
}

impl<T: tokio::io::AsyncRead + Unpin> AsyncRead for Transport<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer));
        self.seen.done(read)?;
        self.seen.read();
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<T: tokio::io::AsyncWrite + Unpin> AsyncWrite for Transport<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes));
        Poll::Ready(self.seen.done(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.io).poll_flush(cx));
        Poll::Ready(self.seen.done(flushed))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
