//! Outbound calls: a header and a body to the server, a header and a body back, on a stream of their own.

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::io::AsyncWriteExt;
use tokio::sync::oneshot;
use tokio::time::timeout;
use yamux::Stream;

use super::header::{CallHeader, ReplyHeader};
use super::reader::{MessageReader, ReadError};
use super::{CloseReason, Connection};
use crate::error::{Error, ServerError};
use crate::msgpack::{Malformed, decode, encode_onto};
use crate::preamble::StreamType;
use crate::types::Request;

/// The longest header of a reply, in bytes. It holds an error text.
const MAX_HEADER: usize = 64 << 10;

impl Connection {
    /// Calls the server and waits for its reply, `wait` at most. Dropping the future cancels the call.
    ///
    /// # Errors
    /// If the server replies with an error or with something invalid, does not reply in time, or the
    /// connection is closed.
    pub async fn call<R: Request>(&self, request: &R, wait: Duration) -> Result<R::Reply, Error> {
        let seq = self.shared.next_seq.fetch_add(1, Ordering::Relaxed);
        let bytes = encoded(seq, request)?;
        let mut stream = None;
        match timeout(wait, self.exchange::<R>(seq, &bytes, &mut stream)).await {
            Ok(reply) => reply,
            Err(_) => Err(Error::DeadlineExceeded {
                server: self.server().to_owned(),
                method: R::METHOD,
                after: wait,
                acknowledged: !stream.is_some_and(|mut reader| reader.stream().is_pending_ack()),
            }),
        }
    }

    /// Sends a call and reads its reply. The call's stream is left in `stream`.
    async fn exchange<R: Request>(
        &self,
        seq: u64,
        bytes: &[u8],
        stream: &mut Option<MessageReader<Stream>>,
    ) -> Result<R::Reply, Error> {
        // Acquiring fails only if the semaphore is closed, which it never is.
        let _permit = self.shared.permits.acquire().await;
        let Some(opened) = self.open_stream().await else {
            return Err(self.lost::<R>(false, "it is closed".to_owned()));
        };
        let reader = stream.insert(MessageReader::new(opened));
        if let Err(error) = reader.stream().write_all(bytes).await {
            return Err(self.lost::<R>(true, error.to_string()));
        }
        let time = self.shared.limits.acknowledge_timeout;
        let header = match timeout(time, self.read_header::<R>(reader)).await {
            Ok(header) => header?,
            Err(_) if reader.stream().is_pending_ack() => {
                let reason = format!("the server did not acknowledge the call within {time:?}");
                return Err(self.lost::<R>(true, reason));
            }
            Err(_) => self.read_header::<R>(reader).await?,
        };
        let body = reader.next(self.shared.limits.reply_bytes).await;
        let body = body.map_err(|error| self.read_failed::<R>(error))?;
        let reply = self.reply::<R>(seq, header, body);
        // The reply is complete; a failure to close the stream changes nothing.
        drop(reader.stream().close().await);
        reply
    }

    async fn read_header<R: Request>(
        &self,
        reader: &mut MessageReader<Stream>,
    ) -> Result<ReplyHeader, Error> {
        let header = reader.next(MAX_HEADER).await;
        let header = header.map_err(|error| self.read_failed::<R>(error))?;
        decode(header).map_err(|reason| self.invalid::<R>(reason))
    }

    fn reply<R: Request>(
        &self,
        seq: u64,
        header: ReplyHeader,
        body: &[u8],
    ) -> Result<R::Reply, Error> {
        if header.seq != seq {
            let reason = format!("it has sequence number {} instead of {seq}", header.seq);
            return Err(self.invalid::<R>(Malformed::InvalidType(reason)));
        }
        if !header.error.is_empty() {
            return Err(Error::Server {
                server: self.server().to_owned(),
                method: R::METHOD,
                error: ServerError::new(&header.error),
            });
        }
        R::decode(body).map_err(|reason| self.invalid::<R>(reason))
    }

    /// A new stream; `None` if the connection is closed.
    async fn open_stream(&self) -> Option<Stream> {
        let (request, stream) = oneshot::channel();
        self.shared.open_stream.send(request).await.ok()?;
        stream.await.ok()
    }

    fn read_failed<R: Request>(&self, error: ReadError) -> Error {
        match error {
            ReadError::End { .. } => self.lost::<R>(
                true,
                "the server closed the stream without a reply".to_owned(),
            ),
            ReadError::Io(error) => self.lost::<R>(true, error.to_string()),
            ReadError::Malformed(reason) => self.invalid::<R>(reason),
        }
    }

    /// The connection's close reason explains more than the stream's error.
    fn lost<R: Request>(&self, sent: bool, reason: String) -> Error {
        let server = self.server().to_owned();
        let closed = self.close_reason();
        if let Some(CloseReason::Tls(reason)) = closed {
            return Error::Tls { server, reason };
        }
        Error::ConnectionLost {
            server,
            method: R::METHOD,
            sent,
            reason: closed.as_ref().map_or(reason, CloseReason::to_string),
        }
    }

    fn invalid<R: Request>(&self, reason: Malformed) -> Error {
        Error::InvalidReply {
            server: self.server().to_owned(),
            method: R::METHOD,
            reason,
        }
    }
}

/// The bytes of a call: the stream's type, the header and the body.
fn encoded<R: Request>(seq: u64, request: &R) -> Result<Vec<u8>, Error> {
    let header = CallHeader {
        seq,
        service_method: R::METHOD.to_owned(),
    };
    let mut bytes = vec![StreamType::Calls.byte()];
    encode_onto(&mut bytes, &header)
        .and_then(|()| request.encode(&mut bytes))
        .map_err(|error| Error::InvalidRequest {
            method: R::METHOD,
            reason: error.to_string(),
        })?;
    Ok(bytes)
}
