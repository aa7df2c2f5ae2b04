//! The bytes of a connection, watched: whether any come, and whether any are taken.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{Shutdown, shutdown};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connections::Caller;
use super::socket::Socket;

/// A connection's socket. The agent keeps the other handle, for what is to be said when the
/// protocol has ended.
#[derive(Debug)]
pub(super) struct Watched {
    stream: Arc<Socket>,
    caller: Caller,
    unread: bool,
}

impl Watched {
    pub(super) fn new(stream: Arc<Socket>, caller: Caller) -> Watched {
        Watched {
            stream,
            caller,
            unread: false,
        }
    }

    fn is_unread(&mut self, unread: bool) {
        if self.unread != unread {
            self.unread = unread;
            self.caller.is_unread(unread);
        }
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        write: impl Fn(&Socket) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.stream.poll_write_ready(cx)?.is_pending() {
                self.is_unread(true);
                return Poll::Pending;
            }
            match write(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => {
                    self.is_unread(false);
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_all(buf.initialize_unfilled()) {
                Ok(count) => {
                    buf.advance(count);
                    if count > 0 {
                        self.caller.received();
                    }
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The protocol flushes when it has handed over all it has.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.caller.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = shutdown(&*self.stream, Shutdown::Write);
        Poll::Ready(done.map_err(io::Error::from))
    }
}
