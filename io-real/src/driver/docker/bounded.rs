//! A connection from which no more than so much is read: bollard keeps an answer until it is whole, or a line of it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// The connection.
pub(super) struct Bounded {
    stream: UnixStream,
    most: u64,
    left: u64,
}

impl Bounded {
    /// One that gives at most so many bytes, and then an error.
    pub(super) fn new(stream: UnixStream, most: u64) -> Bounded {
        Bounded {
            stream,
            most,
            left: most,
        }
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let got = buffer.filled().len().saturating_sub(before);
        let left = u64::try_from(got).ok();
        match left.and_then(|got| self.left.checked_sub(got)) {
            Some(left) => {
                self.left = left;
                read
            }
            None => Poll::Ready(Err(io::Error::other(format!(
                "it answers with more than {} MiB, which are not read",
                self.most >> 20
            )))),
        }
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::super::{fake, wire};

    #[tokio::test]
    async fn invalid_answers_fail_their_request_alone() {
        let (engine, _dir) = fake::engine(|request| {
            let name = request.rsplit('/').nth(1).unwrap_or_default();
            match name {
                "huge" => (200, " ".repeat(usize::try_from(wire::WHOLE).unwrap() + 1)),
                "half" => (200, r#"{"Id":"x","State":{"#.to_owned()),
                "none" => (200, String::new()),
                "other" => (200, r#"{"Id":{"no":"text"}}"#.to_owned()),
                "failed" => (500, r#"{"message":"disk full"}"#.to_owned()),
                "words" => (500, "<html>no engine</html>".to_owned()),
                _ => (200, r#"{"Id":"good"}"#.to_owned()),
            }
        })
        .await;
        for (name, expected) in [
            ("huge", "more than 32 MiB"),
            ("half", "EOF"),
            ("none", "EOF"),
            ("other", "invalid type"),
            ("failed", "disk full"),
            ("words", "no engine"),
        ] {
            let trouble = engine.inspect(name).await.unwrap_err();
            let failure = trouble.failure("container");
            assert!(failure.recoverable, "{name}: {failure:?}");
            assert!(failure.message.contains(expected), "{name}: {failure:?}");
            // Whoever asks for something else gets it.
            let found = engine.inspect("good").await.unwrap();
            assert_eq!(found.id.as_deref(), Some("good"));
        }
    }
}
