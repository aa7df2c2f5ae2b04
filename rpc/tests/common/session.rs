//! A whole connection between a node and a server, as it was recorded: the frames of each side, and the calls that
//! they carry.

use std::path::Path;

use drover_rpc::msgpack::{Value, decode, end_of};

use super::frames::{DATA, Frame, SYN, carried};
use super::recording;

/// The frames of both sides, each in order.
pub(crate) struct Session {
    pub(crate) from_node: Vec<Frame>,
    pub(crate) to_node: Vec<Frame>,
}

/// A call of the node.
pub(crate) struct Exchange {
    pub(crate) stream: u32,
    pub(crate) method: String,
    pub(crate) request: Vec<u8>,
    /// The error, empty for none, and the body. None where the connection ended before.
    pub(crate) reply: Option<(String, Vec<u8>)>,
}

/// The streams that one side opened, in order.
fn opened(frames: &[Frame]) -> impl Iterator<Item = u32> {
    let opening = |frame: &&Frame| frame.flags & SYN != 0 && frame.stream != 0;
    frames.iter().filter(opening).map(|frame| frame.stream)
}

/// A text in a header.
fn text(header: &[u8], field: &str) -> String {
    match decode(header).expect("a header") {
        Value::Map(mut fields) => match fields.remove(field) {
            Some(Value::Text(text)) => text,
            other => panic!("{field}: {other:?}"),
        },
        other => panic!("no header: {other:?}"),
    }
}

/// The objects in bytes of which the end may be missing.
fn objects(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut objects = Vec::new();
    while let Ok(end) = end_of(bytes) {
        objects.push(bytes[..end].to_vec());
        bytes = &bytes[end..];
    }
    objects
}

/// As much of these bytes as is whole frames.
pub(crate) fn whole_frames(bytes: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(header) = bytes.get(end..end + 12) {
        let length = u32::from_be_bytes(header[8..].try_into().expect("four"));
        let body = if header[1] == DATA {
            length as usize
        } else {
            0
        };
        if bytes.len() < end + 12 + body {
            break;
        }
        end += 12 + body;
    }
    &bytes[..end]
}

impl Session {
    /// What each side sent; the node's begins with the byte for many calls.
    pub(crate) fn new(from_node: &[u8], to_node: &[u8]) -> Session {
        assert_eq!(from_node.first(), Some(&6), "many calls at once");
        Session {
            from_node: Frame::all(whole_frames(&from_node[1..])),
            to_node: Frame::all(whole_frames(to_node)),
        }
    }

    /// The one that was recorded with a server of this version.
    pub(crate) fn recorded(version: &str) -> Session {
        let part = |side: &str| recording(&format!("{version}/session.{side}-node.bin"));
        Session::new(&part("from"), &part("to"))
    }

    /// The calls of the node, in the order in which it made them.
    pub(crate) fn calls(&self) -> Vec<Exchange> {
        let calls = opened(&self.from_node).filter_map(|stream| {
            let sent = objects(carried(&self.from_node, stream).strip_prefix(&[1])?);
            let came = objects(&carried(&self.to_node, stream));
            let [header, request] = <[Vec<u8>; 2]>::try_from(sent).ok()?;
            let reply = <[Vec<u8>; 2]>::try_from(came).ok();
            Some(Exchange {
                stream,
                method: text(&header, "ServiceMethod"),
                request,
                reply: reply.map(|[header, body]| (text(&header, "Error"), body)),
            })
        });
        calls.collect()
    }

    /// The streams that the server opened for calls of this method, and what the node sent there.
    pub(crate) fn streamed(&self, method: &str) -> Vec<(u32, Vec<u8>)> {
        let of_it = opened(&self.to_node).filter(|stream| {
            let asked = carried(&self.to_node, *stream);
            let header = asked.strip_prefix(&[5]).map(objects);
            let header = header.and_then(|objects| objects.into_iter().next());
            header.is_some_and(|header| text(&header, "Method") == method)
        });
        let of_it = of_it.map(|stream| (stream, carried(&self.from_node, stream)));
        of_it.collect()
    }
}

/// The versions of servers with which a session was recorded, the oldest first.
pub(crate) fn versions() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpc/tests/recorded");
    let entries = std::fs::read_dir(&folder).expect("recordings");
    let folders = entries.filter_map(|entry| {
        let entry = entry.expect("an entry");
        let is_folder = entry.file_type().expect("a type").is_dir();
        is_folder.then(|| entry.file_name().to_string_lossy().into_owned())
    });
    let mut versions: Vec<String> = folders.collect();
    let number = |version: &String| -> Vec<u32> {
        let parts = version.split('.');
        parts.map(|part| part.parse().expect("a number")).collect()
    };
    versions.sort_by_key(number);
    versions
}
