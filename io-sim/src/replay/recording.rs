//! Reading a recording: a file, or a directory of them.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use drover_recorder::file::{self, End};
use drover_recorder::{EXTENSION, FORMAT, Header, Step};
use serde_json::Value;

use super::damage::{Damage, damages};

/// A recording: segments in their order.
#[derive(Clone, Debug)]
pub struct Recording {
    segments: Vec<Segment>,
    /// Where each step is: its segment, and its number there from 1; 0 is the segment's beginning.
    events: Vec<(usize, usize)>,
    damages: Vec<Damage>,
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
    /// How what was written ends.
    pub end: End,
}

impl Segment {
    /// The agent's life, and how many steps of it came until the end of this segment.
    pub(super) fn last(&self) -> (&str, u64) {
        let steps = u64::try_from(self.steps.len()).unwrap_or(u64::MAX);
        let header = &self.header;
        (&header.life, header.step.saturating_add(steps))
    }
}

/// One thing to play.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A segment begins.
    Begin(&'a Segment),
    /// A step.
    Step(&'a Segment, &'a Step),
}

/// What is in a file.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing at all: the agent died before it wrote anything.
    Nothing,
    /// What can be read of a segment.
    Segment(Segment),
    /// Not even the beginning can be read.
    Unreadable(Beginning),
}

/// A beginning that cannot be read.
#[derive(Debug)]
pub(super) struct Beginning {
    /// What is wrong with it.
    pub(super) why: String,
    /// Whether it was cut off or changed, and so may have been a recording of this version.
    pub(super) torn: bool,
    /// The agent's life, and how many of its steps came before, if that can be read.
    pub(super) of: Option<(String, u64)>,
}

impl Beginning {
    fn unknown(why: impl ToString) -> Beginning {
        Beginning {
            why: why.to_string(),
            torn: false,
            of: None,
        }
    }
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
    /// None of the recordings in the directory can be read.
    Damaged(PathBuf, Vec<Damage>),
}

/// What is said of a beginning that was cut off or changed.
const TORN: &str =
    "its header is incomplete: the agent died while it was written, or it was damaged since";

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
            Unreadable::Torn(path) => {
                write!(f, "nothing can be played in {}: {TORN}", path.display())
            }
            Unreadable::NoRecording(name, why) => write!(f, "{name} is no recording: {why}"),
            Unreadable::Damaged(path, damages) => {
                write!(f, "no recording in {} can be read", path.display())?;
                damages.iter().try_for_each(|one| write!(f, "\n{one}"))
            }
        }
    }
}

impl std::error::Error for Unreadable {}

impl Recording {
    /// Reads a file, or every recording in a directory. A segment that cannot be read is left out, and
    /// is among [`Recording::damages`], as long as there is another one.
    ///
    /// # Errors
    /// See [`Unreadable`]. A torn end is none.
    pub fn open(path: &Path) -> Result<Recording, Unreadable> {
        let is_dir = path.is_dir();
        let files = if is_dir {
            files_in(path).map_err(|error| Unreadable::Io(path.to_owned(), error))?
        } else {
            vec![read_file(path)?]
        };
        let damages = damages(&files);
        let mut segments = Vec::new();
        for (name, content) in files {
            match content {
                Content::Segment(segment) => segments.push(segment),
                Content::Unreadable(beginning) if !is_dir && !beginning.torn => {
                    return Err(Unreadable::NoRecording(name, beginning.why));
                }
                Content::Unreadable(_) | Content::Nothing => {}
            }
        }
        let recording = Recording {
            damages,
            ..Recording::of(segments)
        };
        match (recording.is_empty(), is_dir) {
            (false, _) => Ok(recording),
            (true, false) => Err(Unreadable::Torn(path.to_owned())),
            (true, true) if recording.damages.is_empty() => Err(Unreadable::Empty(path.to_owned())),
            (true, true) => Err(Unreadable::Damaged(path.to_owned(), recording.damages)),
        }
    }

    /// A recording of these segments.
    pub fn of(segments: Vec<Segment>) -> Recording {
        let mut events = Vec::new();
        for (at, segment) in segments.iter().enumerate() {
            events.extend((0..=segment.steps.len()).map(|step| (at, step)));
        }
        Recording {
            segments,
            events,
            damages: Vec::new(),
        }
    }

    /// What of its files cannot be played, in their order. The torn end of a life is not among it.
    pub fn damages(&self) -> &[Damage] {
        &self.damages
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

/// Reads the bytes of a file of this name.
fn read(name: &str, bytes: &[u8]) -> Content {
    if bytes.is_empty() {
        return Content::Nothing;
    }
    let (text, mut end) = file::read(bytes);
    let mut lines = text.split(|byte| *byte == b'\n');
    let header = match lines.next().filter(|line| !line.is_empty()) {
        Some(line) => header(line),
        None => Err(no_beginning(bytes)),
    };
    let header = match header {
        Ok(header) => header,
        Err(beginning) => return Content::Unreadable(beginning),
    };
    let mut steps = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Step>(line) {
            Ok(step) => steps.push(step),
            Err(error) => {
                end = End::Damaged(error.to_string());
                break;
            }
        }
    }
    Content::Segment(Segment {
        name: name.to_owned(),
        header,
        steps,
        end,
    })
}

/// Of a file without a first line that is whole.
fn no_beginning(bytes: &[u8]) -> Beginning {
    match file::of_old_layout(bytes) {
        _ if file::may_begin(bytes) => Beginning {
            torn: true,
            ..Beginning::unknown(TORN)
        },
        Some((version, format)) => Beginning::unknown(format!(
            "its format is {format}, and this version reads {FORMAT}; drover {version} wrote it, and \
             plays it"
        )),
        None => Beginning::unknown("it has no header"),
    }
}

fn header(line: &[u8]) -> Result<Header, Beginning> {
    let header: Value = serde_json::from_slice(line).map_err(Beginning::unknown)?;
    // The format alone can be read by every version.
    let format = header["format"].as_u64().unwrap_or(0);
    if format != u64::from(FORMAT) {
        let why = format!("its format is {format}, and this version reads {FORMAT}");
        return Err(Beginning::unknown(why));
    }
    let by = header["version"].as_str().unwrap_or("?").to_owned();
    let life = header["life"].as_str().map(str::to_owned);
    let of = life.zip(header["step"].as_u64());
    serde_json::from_slice(line).map_err(|error| Beginning {
        of,
        ..Beginning::unknown(format!(
            "{error}; it was written by version {by}, whose states may be of another layout"
        ))
    })
}

/// A file's name and content.
fn read_file(path: &Path) -> Result<(String, Content), Unreadable> {
    let bytes = fs::read(path).map_err(|error| Unreadable::Io(path.to_owned(), error))?;
    let name = name(path);
    let content = read(&name, &bytes);
    Ok((name, content))
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The recordings in a directory, oldest first. One that the disk does not give is unreadable as well.
fn files_in(dir: &Path) -> io::Result<Vec<(String, Content)>> {
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
    let files = paths.into_iter().map(|path| {
        let unreadable = |why| (name(&path), Content::Unreadable(Beginning::unknown(why)));
        read_file(&path).unwrap_or_else(unreadable)
    });
    Ok(files.collect())
}
