//! The byte stream below yamux: tokio's traits as the ones that yamux uses, and when bytes were last read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::io::{AsyncRead, AsyncWrite};
use tokio::io::ReadBuf;
use tokio::time::Instant;

/// When bytes were last read; at first, when it was made.
#[derive(Clone, Debug)]
pub(super) struct LastRead {
    start: Instant,
    micros: Arc<AtomicU64>,
}

impl LastRead {
    pub(super) fn new() -> LastRead {
        LastRead {
            start: Instant::now(),
            micros: Arc::default(),
        }
    }

    pub(super) fn get(&self) -> Instant {
        self.start + Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }

    fn set(&self) {
        let micros = self.start.elapsed().as_micros() as u64;
        self.micros.store(micros, Ordering::Relaxed);
    }
}

/// A byte stream that notes when bytes are read.
pub(super) struct Transport<T> {
    pub(super) io: T,
    pub(super) last_read: LastRead,
}

impl<T: tokio::io::AsyncRead + Unpin> AsyncRead for Transport<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer))?;
        self.last_read.set();
        Poll::Ready(Ok(buffer.filled().len()))
    }
}

impl<T: tokio::io::AsyncWrite + Unpin> AsyncWrite for Transport<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
