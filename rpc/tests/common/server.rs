//! A model of a server: answers calls of nodes as configured, and calls them.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use drover_rpc::msgpack::{Value, decode, encode};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::peer::{Peer, PeerStream};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct CallHeader {
    pub(crate) seq: u64,
    pub(crate) service_method: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ReplyHeader {
    pub(crate) error: String,
    pub(crate) seq: u64,
    pub(crate) service_method: String,
}

/// What a server does with a call.
pub(crate) enum Does {
    /// It answers with this body, after a while.
    Reply(Duration, Vec<u8>),
    /// It answers with an error.
    Error(&'static str),
    /// It never answers.
    Nothing,
    /// It sends these bytes in place of an answer.
    Bytes(Vec<u8>),
    /// It does this, when it knows what.
    Later(Pin<Box<dyn Future<Output = Does> + Send>>),
}

impl Does {
    /// Answers at once.
    pub(crate) fn reply<T: Serialize>(reply: &T) -> Does {
        Does::Reply(Duration::ZERO, encode(reply).expect("it can be written"))
    }

    /// Answers with nothing.
    pub(crate) fn empty() -> Does {
        Does::Reply(Duration::ZERO, vec![0x80])
    }
}

/// Answers all calls that come.
pub(crate) async fn answer<F>(mut incoming: mpsc::UnboundedReceiver<PeerStream>, does: F)
where
    F: Fn(&str, Value) -> Does + Send + Sync + 'static,
{
    let does = Arc::new(does);
    while let Some(stream) = incoming.recv().await {
        let does = does.clone();
        tokio::spawn(async move { calls(stream, &*does).await });
    }
}

async fn calls<F>(mut stream: PeerStream, does: &F) -> Option<()>
where
    F: Fn(&str, Value) -> Does,
{
    assert_eq!(stream.byte().await?, 1, "the type of a stream");
    loop {
        let call: CallHeader = stream.next().await?;
        let body = stream.bytes().await?;
        let (seq, service_method) = (call.seq, call.service_method);
        let mut done = does(&service_method, decode(&body).expect("a body"));
        while let Does::Later(later) = done {
            done = later.await;
        }
        let (error, body) = match done {
            Does::Reply(after, body) => {
                tokio::time::sleep(after).await;
                (String::new(), body)
            }
            Does::Error(error) => (error.to_owned(), vec![0x80]),
            Does::Nothing | Does::Later(_) => std::future::pending().await,
            Does::Bytes(bytes) => {
                stream.send(&bytes).await;
                continue;
            }
        };
        stream
            .object(&ReplyHeader {
                error,
                seq,
                service_method,
            })
            .await;
        stream.send(&body).await;
    }
}

/// Calls the node. `None`: it ended the call without a reply.
pub(crate) async fn call(peer: &Peer, method: &str, body: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut stream = peer.open();
    let header = CallHeader {
        seq: 77,
        service_method: method.to_owned(),
    };
    stream.send(&[1]).await;
    stream.object(&header).await;
    stream.send(body).await;
    let reply: ReplyHeader = stream.next().await?;
    assert_eq!((reply.seq, reply.service_method.as_str()), (77, method));
    let body = stream.bytes().await?;
    stream.finish();
    Some((reply.error, body))
}
