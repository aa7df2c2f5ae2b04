//! Inbound calls: what a server asks of the node is read here, and answered by a [`Handler`].

use std::sync::Arc;

use futures::io::{AsyncReadExt, AsyncWriteExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use yamux::Stream;

use super::Limits;
use super::header::{CallHeader, ReplyHeader};
use super::reader::MessageReader;
use super::streaming::{Input, Output, accept};
use crate::msgpack::{Malformed, decode, encode, encode_onto};
use crate::preamble::StreamType;
use crate::types::InboundRequest;

/// The longest header of a call, in bytes. It holds a number and a method.
const MAX_HEADER: usize = 4 << 10;

/// How many calls are served on one stream. Servers make one.
const MAX_CALLS: usize = 1 << 10;

/// The body of a reply with an error: an empty map.
const NO_BODY: &[u8] = &[0x80];

/// Answers the calls of servers. A call is dropped when its connection is closed.
pub trait Handler: Send + Sync + 'static {
    /// Answers a call. There is no deadline.
    fn call(&self, call: InboundCall) -> impl Future<Output = Answer> + Send;

    /// Whether there is a streaming call of this method.
    fn has_stream(&self, method: &str) -> bool;

    /// Serves a streaming call; when this returns, the stream is closed.
    fn stream(
        &self,
        call: InboundCall,
        input: &mut Input,
        output: &mut Output,
    ) -> impl Future<Output = ()> + Send;
}

/// A call of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboundCall {
    /// The method, as `Allocations.Signal`.
    pub method: String,
    body: Vec<u8>,
}

impl InboundCall {
    pub(super) fn new(method: String, body: &[u8]) -> InboundCall {
        InboundCall {
            method,
            body: body.to_vec(),
        }
    }

    /// The request, by the type of the method.
    ///
    /// # Errors
    /// The answer to a request that is not of this type.
    pub fn request<R: InboundRequest>(&self) -> Result<R, Answer> {
        self.decode()
            .map_err(|error| Answer::Error(format!("msgpack decode error: {error}")))
    }

    /// The request of a streaming call.
    ///
    /// # Errors
    /// If it is not of this type.
    pub fn decode<R: DeserializeOwned>(&self) -> Result<R, Malformed> {
        decode(&self.body)
    }
}

/// The answer to an inbound call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A reply, encoded by [`Answer::reply`].
    Reply(Vec<u8>),
    /// An error. Servers show it to their user, and recognize some texts.
    Error(String),
    /// There is no such method.
    UnknownMethod,
}

impl Answer {
    /// Encodes a reply.
    pub fn reply<T: Serialize>(reply: &T) -> Answer {
        match encode(reply) {
            Ok(bytes) => Answer::Reply(bytes),
            Err(error) => Answer::Error(format!("the reply cannot be encoded: {error}")),
        }
    }
}

/// Serves a stream that the server opened. Where this returns early, the stream is dropped, which resets it.
pub(super) async fn serve<H: Handler>(mut stream: Stream, handler: Arc<H>, limits: Limits) {
    let mut kind = [0];
    let Ok(Ok(())) = timeout(limits.handshake_timeout, stream.read_exact(&mut kind)).await else {
        return;
    };
    match StreamType::of(kind[0]) {
        Some(StreamType::Calls) => drop(serve_calls(stream, &*handler, limits).await),
        Some(StreamType::Streaming) => drop(serve_streaming(stream, &*handler, limits).await),
        None => {}
    }
}

/// Serves calls one after the other. `None`: the stream is to be reset.
async fn serve_calls<H: Handler>(stream: Stream, handler: &H, limits: Limits) -> Option<()> {
    let time = limits.handshake_timeout;
    let mut reader = MessageReader::new(stream);
    for _ in 0..MAX_CALLS {
        let Ok(header) = timeout(time, reader.next(MAX_HEADER)).await.ok()? else {
            break;
        };
        let CallHeader {
            seq,
            service_method,
        } = decode(header).ok()?;
        let body = timeout(time, reader.next(limits.request_bytes))
            .await
            .ok()?
            .ok()?;
        let call = InboundCall::new(service_method.clone(), body);
        let bytes = encoded(seq, service_method, handler.call(call).await);
        timeout(time, reader.stream().write_all(&bytes))
            .await
            .ok()?
            .ok()?;
    }
    reader.stream().close().await.ok()
}

/// The bytes of a reply: header and body.
fn encoded(seq: u64, service_method: String, answer: Answer) -> Vec<u8> {
    let (error, body) = match answer {
        Answer::Reply(body) => (String::new(), body),
        // An empty text would be read as success.
        Answer::Error(text) if text.is_empty() => ("unknown error".to_owned(), NO_BODY.to_vec()),
        Answer::Error(text) => (text, NO_BODY.to_vec()),
        Answer::UnknownMethod => (
            format!("rpc: can't find method {service_method}"),
            NO_BODY.to_vec(),
        ),
    };
    let mut bytes = Vec::new();
    // Two texts and a number can always be encoded.
    drop(encode_onto(
        &mut bytes,
        &ReplyHeader {
            error,
            seq,
            service_method,
        },
    ));
    bytes.extend(body);
    bytes
}

/// Serves a streaming call. `None`: there is nothing (more) to serve.
async fn serve_streaming<H: Handler>(stream: Stream, handler: &H, limits: Limits) -> Option<()> {
    let (input, output) = stream.split();
    let mut input = Input::new(input, limits.request_bytes);
    let mut output = Output::new(output);
    let call = accept(&mut input, &mut output, |method| handler.has_stream(method));
    let call = timeout(limits.handshake_timeout, call).await.ok()??;
    handler.stream(call, &mut input, &mut output).await;
    output.close().await;
    Some(())
}
