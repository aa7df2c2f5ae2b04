//! Decoders of an engine's streamed answers as one call each, for fuzzing with any bytes: each takes them in pieces.

use bollard::models::{CreateImageInfo, EventMessage};

use super::entries::Decoder;
use super::frames::Frames;
use super::lines::{Line, Splitter};
use super::progress::Progress;
use crate::session::Output;

/// What was made of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecodedLines {
    /// Those that are whole.
    pub whole: Vec<Vec<u8>>,
    /// How many were too long.
    pub too_long: usize,
    /// The containers of events, in which something happened.
    pub events: Vec<String>,
    /// The progress of the download that these lines report, in words.
    pub progress: String,
    /// And what it brings, in bytes.
    pub bytes: u64,
}

/// What was written, by which stream and when.
pub type DecodedOutput = Vec<(Output, String, Vec<u8>)>;

/// Takes lines of events, or of a download.
pub fn read_lines<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> DecodedLines {
    let mut decoded = DecodedLines::default();
    let (mut splitter, mut progress) = (Splitter::default(), Progress::default());
    for piece in pieces {
        splitter.take(piece);
        while let Some(line) = splitter.next() {
            let Line::Whole(line) = line else {
                decoded.too_long += 1;
                continue;
            };
            if let Ok(event) = serde_json::from_slice::<EventMessage>(&line) {
                decoded
                    .events
                    .extend(event.actor.and_then(|actor| actor.id));
            }
            if let Ok(info) = serde_json::from_slice::<CreateImageInfo>(&line) {
                progress.note(&info);
            }
            decoded.whole.push(line.to_vec());
        }
    }
    decoded.progress = progress.to_string();
    decoded.bytes = progress.bytes();
    decoded
}

/// Takes the output of a container with or without a terminal, and whether all of it is one.
pub fn read_output<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    has_terminal: bool,
) -> (DecodedOutput, bool) {
    let (mut decoded, mut rest) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(has_terminal);
    for piece in pieces {
        let fed = decoder.feed(piece, &mut |entry| {
            rest.extend_from_slice(&entry.text);
            if entry.is_end {
                decoded.push((entry.which, entry.time, std::mem::take(&mut rest)));
            }
        });
        if fed.is_err() {
            return (decoded, false);
        }
    }
    (decoded, true)
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
