//! Bytes of logs and files as streams: in frames of JSON, as Nomad's programs read them, or plain.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// How often a reader hears that the stream lives, while there is nothing else to send.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(1);
/// How many pieces of a stream may wait for a slow reader.
pub(super) const AHEAD: usize = 4;

/// One frame of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct Frame {
    /// The bytes in base64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) data: String,
    /// Which file they are of.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) file: String,
    /// The place after them.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) offset: u64,
    /// Why bytes are missing before these, if they are.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) file_event: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is told of a file: some bytes of it, or what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) data: Vec<u8>,
    pub(super) file: String,
    /// The place after the bytes.
    pub(super) offset: u64,
    pub(super) event: &'static str,
}

/// How a stream is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Frames of JSON; an empty one is a heartbeat.
    Frames,
    /// The bytes, one behind the other. There is no heartbeat.
    Plain,
    /// The bytes, each piece in a message of its own; an empty one is a heartbeat.
    Messages,
}

impl Form {
    /// What says that the stream lives.
    pub(super) fn heartbeat(self) -> Option<Bytes> {
        match self {
            Form::Frames => Some(Bytes::from_static(b"{}")),
            Form::Plain => None,
            Form::Messages => Some(Bytes::new()),
        }
    }

    /// A piece in this form; none if there is nothing of it that could be said so.
    pub(super) fn encode(self, piece: Piece) -> Option<Bytes> {
        match self {
            Form::Plain | Form::Messages => {
                (!piece.data.is_empty()).then(|| Bytes::from(piece.data))
            }
            Form::Frames => {
                let frame = Frame {
                    data: STANDARD.encode(&piece.data),
                    file: piece.file,
                    offset: piece.offset,
                    file_event: piece.event.to_owned(),
                };
                // Plain text and a number: this cannot fail.
                serde_json::to_vec(&frame).ok().map(Bytes::from)
            }
        }
    }
}
