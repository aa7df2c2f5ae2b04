//! Reading a recording: a file, or a directory of them.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use drover_core::record::{EXTENSION, FORMAT, Header, Step, seal};
use serde_json::Value;

use super::unpack::unpack;

/// A recording: segments in their order.
#[derive(Clone, Debug)]
pub struct Recording {
    segments: Vec<Segment>,
    /// Where each step is: its segment, and its number there from 1; 0 is the segment's beginning.
    events: Vec<(usize, usize)>,
}

/// A part of a recording that can be played by itself.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The name of its file.
    pub name: String,
    /// How it begins.
    pub header: Header,
    /// What came then.
    pub steps: Vec<Step>,
    /// How many bytes at its end cannot be read: the agent was killed while they were written, or
    /// they were damaged since.
    pub torn: usize,
}

/// One thing to play.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A segment begins.
    Begin(&'a Segment),
    /// A step.
    Step(&'a Segment, &'a Step),
}

/// Why there is nothing to play.
#[derive(Debug)]
pub enum Unreadable {
    /// The disk says no.
    Io(PathBuf, io::Error),
    /// The directory holds no recording.
    Empty(PathBuf),
    /// Not even the beginning of the file can be read.
    Torn(PathBuf),
    /// It is none, or one of another version.
    NoRecording(String, String),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Io(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Unreadable::Empty(path) => write!(
                f,
                "there is no recording in {}: an agent's is in the directory `recording` of its \
                 data directory",
                path.display()
            ),
            Unreadable::Torn(path) => write!(
                f,
                "there is nothing to play in {}: its beginning is not whole; the agent died while it \
                 was written, or it was damaged since",
                path.display()
            ),
            Unreadable::NoRecording(name, why) => write!(f, "{name} is no recording: {why}"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Recording {
    /// Reads a file, or every recording in a directory.
    ///
    /// # Errors
    /// See [`Unreadable`]. A torn end is none.
    pub fn open(path: &Path) -> Result<Recording, Unreadable> {
        let failed = |error| Unreadable::Io(path.to_owned(), error);
        let paths = if path.is_dir() {
            segments_in(path).map_err(failed)?
        } else {
            vec![path.to_owned()]
        };
        let mut segments = Vec::new();
        for path in paths {
            let bytes = fs::read(&path).map_err(|error| Unreadable::Io(path.clone(), error))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            segments.extend(read(&name, &bytes)?);
        }
        if segments.is_empty() {
            let unreadable = if path.is_dir() {
                Unreadable::Empty
            } else {
                Unreadable::Torn
            };
            return Err(unreadable(path.to_owned()));
        }
        Ok(Recording::of(segments))
    }

    /// A recording of these segments.
    pub fn of(segments: Vec<Segment>) -> Recording {
        let mut events = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            events.extend((0..=segment.steps.len()).map(|step| (at, step)));
        }
        Recording { segments, events }
    }

    /// The segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How many steps there are, beginnings of segments included.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is nothing to play.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The step of this number, from 1.
    pub fn event(&self, number: usize) -> Option<Event<'_>> {
        let (segment, step) = *self.events.get(number.checked_sub(1)?)?;
        let segment = self.segments.get(segment)?;
        Some(match step.checked_sub(1) {
            None => Event::Begin(segment),
            Some(step) => Event::Step(segment, segment.steps.get(step)?),
        })
    }

    /// The number of the step with which the segment of step `number` begins.
    pub(super) fn beginning(&self, number: usize) -> usize {
        let at = number.checked_sub(1).and_then(|at| self.events.get(at));
        at.map_or(1, |(_, step)| number - step)
    }
}

/// The files of recordings in a directory, oldest first.
fn segments_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str);
        if name.is_some_and(|name| name.ends_with(EXTENSION)) {
            paths.push(path);
        }
    }
    // Longer numbers are higher ones.
    paths.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(paths)
}

/// Reads one file. None if the agent died before it wrote anything whole.
fn read(name: &str, bytes: &[u8]) -> Result<Option<Segment>, Unreadable> {
    let no_recording = |why: String| Unreadable::NoRecording(name.to_owned(), why);
    let (header, mut rest) = match seal::next(bytes) {
        Ok(Some(frame)) => frame,
        Ok(None) => return Ok(None),
        Err(seal::Torn) if looks_sealed(bytes) => return Ok(None),
        Err(seal::Torn) => return Err(no_recording("it does not begin as one".to_owned())),
    };
    let header: Value =
        serde_json::from_slice(header).map_err(|error| no_recording(error.to_string()))?;
    let header = unpack(header);
    // The format alone can be read by every version.
    let format = header["format"].as_u64().unwrap_or(0);
    if format != u64::from(FORMAT) {
        let why = format!("its format is {format}, and this version reads {FORMAT}");
        return Err(no_recording(why));
    }
    let by = header["version"].as_str().unwrap_or("?").to_owned();
    let header = serde_json::from_value(header).map_err(|error| {
        no_recording(format!(
            "{error}; it was written by version {by}, whose states may be of another layout"
        ))
    })?;
    let mut segment = Segment {
        name: name.to_owned(),
        header,
        steps: Vec::new(),
        torn: 0,
    };
    loop {
        match seal::next(rest) {
            Ok(None) => return Ok(Some(segment)),
            Ok(Some((text, after))) => {
                let step = serde_json::from_slice(text);
                let step = step.map_err(|error| no_recording(error.to_string()))?;
                segment.steps.push(step);
                rest = after;
            }
            Err(seal::Torn) => {
                segment.torn = rest.len();
                return Ok(Some(segment));
            }
        }
    }
}

/// Whether a file that holds no whole frame may be the beginning of one.
fn looks_sealed(bytes: &[u8]) -> bool {
    let head = bytes.iter().take(8);
    bytes.len() < 26 && head.clone().all(u8::is_ascii_hexdigit)
        || bytes.get(26) == Some(&b'{') && head.clone().all(u8::is_ascii_hexdigit)
}
