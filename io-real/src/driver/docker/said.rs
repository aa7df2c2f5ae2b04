//! What an engine says in answers that flow, for who tries what becomes of any bytes: each takes them in pieces.

use bollard::models::{CreateImageInfo, EventMessage};

use super::entries::Decoder;
use super::frames::Frames;
use super::lines::{Line, Splitter};
use super::progress::Progress;
use crate::session::Output;

/// What was made of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidLines {
    /// Those that are whole.
    pub whole: Vec<Vec<u8>>,
    /// How many were too long.
    pub too_long: usize,
    /// The containers of events, in which something happened.
    pub events: Vec<String>,
    /// How a download goes of which these lines tell, in words.
    pub progress: String,
    /// And what it brings, in bytes.
    pub bytes: u64,
}

/// What was written, by which stream and when.
pub type SaidOutput = Vec<(Output, String, Vec<u8>)>;

/// Takes lines of events, or of a download.
pub fn read_lines<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> SaidLines {
    let mut said = SaidLines::default();
    let (mut splitter, mut progress) = (Splitter::default(), Progress::default());
    for piece in pieces {
        splitter.take(piece);
        while let Some(line) = splitter.next() {
            let Line::Whole(line) = line else {
                said.too_long += 1;
                continue;
            };
            if let Ok(event) = serde_json::from_slice::<EventMessage>(&line) {
                said.events.extend(event.actor.and_then(|actor| actor.id));
            }
            if let Ok(info) = serde_json::from_slice::<CreateImageInfo>(&line) {
                progress.note(&info);
            }
            said.whole.push(line.to_vec());
        }
    }
    said.progress = progress.to_string();
    said.bytes = progress.bytes();
    said
}

/// Takes the output of a container with or without a terminal, and whether all of it is one.
pub fn read_output<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    has_terminal: bool,
) -> (SaidOutput, bool) {
    let (mut said, mut rest) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(has_terminal);
    for piece in pieces {
        let fed = decoder.feed(piece, &mut |entry| {
            rest.extend_from_slice(&entry.text);
            if entry.is_end {
                said.push((entry.which, entry.time, std::mem::take(&mut rest)));
            }
        });
        if fed.is_err() {
            return (said, false);
        }
    }
    (said, true)
}

/// Takes the frames of a program's two streams, and whether all are some.
pub fn read_frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> ([Vec<u8>; 2], bool) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut frames = Frames::default();
    for piece in pieces {
        let fed = frames.feed(piece, |which, bytes| match which {
            Output::Stdout => out.extend_from_slice(bytes),
            Output::Stderr => err.extend_from_slice(bytes),
        });
        if fed.is_err() {
            return ([out, err], false);
        }
    }
    ([out, err], true)
}
