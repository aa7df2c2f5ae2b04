//! Reading one file of a recording.

use drover_core::record::{FORMAT, Header, Step, seal};
use serde_json::Value;

use super::recording::Segment;
use super::unpack::unpack;

/// What is said of a beginning that was cut off or changed.
const TORN: &str =
    "its beginning is not whole; the agent died while it was written, or it was damaged since";

/// What is in a file.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing at all: the agent died before it wrote anything.
    Nothing,
    /// A segment whose steps were read to the end, or to where they are torn off.
    Segment(Segment),
    /// A segment of which a step in the middle cannot be read, and so nothing after it.
    Broken {
        /// What comes before that step.
        segment: Segment,
        /// What is wrong with the step.
        why: String,
        /// How many steps are lost: that one, and those after it.
        lost: u64,
    },
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
    /// The agent's life that the segment belongs to, and how many of its steps came before, if that can be
    /// read.
    pub(super) of: Option<(String, u64)>,
}

impl Beginning {
    /// One of which nothing is known but that it cannot be read.
    pub(super) fn unknown(why: impl ToString) -> Beginning {
        Beginning {
            why: why.to_string(),
            torn: false,
            of: None,
        }
    }
}

/// Reads the bytes of a file of this name.
pub(super) fn read(name: &str, bytes: &[u8]) -> Content {
    if bytes.is_empty() {
        return Content::Nothing;
    }
    let (header, mut rest) = match beginning(bytes) {
        Ok(read) => read,
        Err(why) => return Content::Unreadable(why),
    };
    let mut segment = Segment {
        name: name.to_owned(),
        header,
        steps: Vec::new(),
        torn: 0,
    };
    loop {
        let why = match seal::next(rest) {
            Ok(None) => return Content::Segment(segment),
            Ok(Some((text, after))) => match serde_json::from_slice::<Step>(text) {
                Ok(step) => {
                    segment.steps.push(step);
                    rest = after;
                    continue;
                }
                Err(error) => error.to_string(),
            },
            Err(seal::Torn) if frames_after(rest) == 0 => {
                segment.torn = rest.len();
                return Content::Segment(segment);
            }
            Err(seal::Torn) => "it is not what was written there".to_owned(),
        };
        let lost = 1 + frames_after(rest);
        return Content::Broken { segment, why, lost };
    }
}

/// The first frame, and the bytes after it.
fn beginning(bytes: &[u8]) -> Result<(Header, &[u8]), Beginning> {
    let (header, rest) = match seal::next(bytes) {
        Ok(Some(frame)) => frame,
        Err(seal::Torn) if looks_sealed(bytes) => {
            return Err(Beginning {
                torn: true,
                ..Beginning::unknown(TORN)
            });
        }
        Ok(None) | Err(seal::Torn) => {
            return Err(Beginning::unknown("it does not begin as one"));
        }
    };
    let header: Value = serde_json::from_slice(header).map_err(Beginning::unknown)?;
    let header = unpack(header);
    // The format alone can be read by every version.
    let format = header["format"].as_u64().unwrap_or(0);
    if format != u64::from(FORMAT) {
        let why = format!("its format is {format}, and this version reads {FORMAT}");
        return Err(Beginning::unknown(why));
    }
    let by = header["version"].as_str().unwrap_or("?").to_owned();
    let life = header["life"].as_str().map(str::to_owned);
    let of = life.zip(header["step"].as_u64());
    let header = serde_json::from_value(header).map_err(|error| {
        let why = format!(
            "{error}; it was written by version {by}, whose states may be of another layout"
        );
        Beginning {
            of,
            ..Beginning::unknown(why)
        }
    })?;
    Ok((header, rest))
}

/// How many whole frames follow the first line of these bytes, whatever is wrong with that line.
fn frames_after(bytes: &[u8]) -> u64 {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(1);
    let whole = lines.filter(|line| matches!(seal::next(line), Ok(Some((_, [])))));
    u64::try_from(whole.count()).unwrap_or(u64::MAX)
}

/// Whether a file that holds no whole frame may be the beginning of one.
fn looks_sealed(bytes: &[u8]) -> bool {
    let head = bytes.iter().take(8);
    bytes.len() < 26 && head.clone().all(u8::is_ascii_hexdigit)
        || bytes.get(26) == Some(&b'{') && head.clone().all(u8::is_ascii_hexdigit)
}
