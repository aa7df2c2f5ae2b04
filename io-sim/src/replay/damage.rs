//! What of a recording cannot be played, and which steps that costs.

use std::fmt;

use serde::Serialize;

use drover_recorder::file::End;

use super::recording::Content;

/// A file that is left out, or of which only the first steps are played.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Damage {
    /// Its name.
    pub file: String,
    /// What is wrong.
    pub why: String,
    /// How many of its steps are played nevertheless; none if it is left out.
    pub played: Option<usize>,
    /// The agent's life whose steps are missing, if that is known.
    pub life: Option<String>,
    /// The first step of that life that is missing, counted from 1, if that is known.
    pub first_missing: Option<u64>,
    /// The last one, if that is known.
    pub last_missing: Option<u64>,
}

/// A point in the agent's lives: the life, and how many of its steps come before.
type Point<'a> = (&'a str, u64);

/// What is damaged of these files, which are in their order.
pub(super) fn damages(files: &[(String, Content)]) -> Vec<Damage> {
    let found = files
        .iter()
        .enumerate()
        .filter_map(|(at, (name, content))| {
            let (before, after) = (files.get(..at)?, files.get(at + 1..)?);
            let next = after.iter().find_map(|(_, content)| begin(content));
            let (why, played, from) = match content {
                Content::Nothing => return None,
                Content::Segment(segment) => {
                    let (last, played) = (segment.last(), segment.steps.len());
                    let why = match &segment.end {
                        // Who goes on in another file wrote this one to its end.
                        End::Torn(bytes) if next.is_some_and(|next| next.0 == last.0) => {
                            format!("its last {bytes} bytes cannot be read")
                        }
                        End::Torn(_) | End::Whole => return None,
                        End::Damaged(why) => format!("what follows cannot be read: {why}"),
                    };
                    (why, Some(played), Some(last))
                }
                Content::Unreadable(beginning) => {
                    let own = beginning.of.as_ref();
                    let own = own.map(|(life, step)| (life.as_str(), *step));
                    let last = before.iter().rev().find_map(|(_, content)| last(content));
                    // Between two segments of one life there is nothing else.
                    let between = last.filter(|last| next.is_some_and(|next| next.0 == last.0));
                    (beginning.why.clone(), None, own.or(between))
                }
            };
            // A life does not begin in its middle.
            let to = next.filter(|next| match from {
                Some(from) => from.0 == next.0,
                None => next.1 > 0,
            });
            Some(Damage {
                file: name.clone(),
                why,
                played,
                life: from.or(to).map(|known| known.0.to_owned()),
                first_missing: from.map(|from| from.1 + 1),
                last_missing: to.map(|to| to.1),
            })
        });
    found.collect()
}

/// Where a file begins.
fn begin(content: &Content) -> Option<Point<'_>> {
    match content {
        Content::Segment(segment) => Some((&segment.header.life, segment.header.step)),
        Content::Unreadable(beginning) => {
            let (life, step) = beginning.of.as_ref()?;
            Some((life, *step))
        }
        Content::Nothing => None,
    }
}

/// Where a file ends.
fn last(content: &Content) -> Option<Point<'_>> {
    match content {
        Content::Segment(segment) => Some(segment.last()),
        Content::Nothing | Content::Unreadable(_) => None,
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match self.played {
            None => write!(f, "{file} is left out: {}; ", self.why)?,
            Some(steps) => write!(f, "{file} is played up to its step {steps}: {}; ", self.why)?,
        }
        let life = self.life.as_deref().unwrap_or("?");
        match (self.first_missing, self.last_missing) {
            (Some(first), Some(last)) if first > last => f.write_str("no step is missing"),
            (Some(first), Some(last)) if first == last => {
                write!(f, "step {first} of life {life} is missing")
            }
            (Some(first), Some(last)) => {
                write!(f, "steps {first} to {last} of life {life} are missing")
            }
            (Some(first), None) => {
                write!(f, "the steps from {first} on of life {life} are missing")
            }
            (None, Some(last)) => write!(f, "the steps up to {last} of life {life} are missing"),
            (None, None) => f.write_str("which steps are missing is not known"),
        }
    }
}
