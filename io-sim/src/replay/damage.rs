//! What of a recording cannot be played, and which steps that costs.

use std::fmt;

use serde::Serialize;

use super::reading::Content;
use super::recording::Segment;

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
    let found = files.iter().enumerate();
    let found = found.filter_map(|(at, (name, content))| {
        let next = files.iter().skip(at + 1).find_map(|it| begin(&it.1));
        match content {
            Content::Nothing => None,
            Content::Segment(segment) => torn(name, segment, next),
            Content::Broken { segment, why, lost } => {
                let end = end(segment);
                Some(Damage {
                    file: name.clone(),
                    why: format!("step {} cannot be read: {why}", segment.steps.len() + 1),
                    played: Some(segment.steps.len()),
                    life: Some(end.0.to_owned()),
                    first_missing: Some(end.1 + 1),
                    last_missing: Some(end.1.saturating_add(*lost)),
                })
            }
            Content::Unreadable(beginning) => {
                let own = beginning.of.as_ref();
                let own = own.map(|(life, step)| (life.as_str(), *step));
                let before = files.iter().take(at).rev().find_map(|it| last(&it.1));
                // Between two segments of one life there is nothing else.
                let between = before.filter(|before| next.is_some_and(|next| next.0 == before.0));
                let from = own.or(between);
                // A life does not begin in its middle.
                let to = next.filter(|next| match from {
                    Some(from) => from.0 == next.0,
                    None => next.1 > 0,
                });
                Some(Damage {
                    file: name.clone(),
                    why: beginning.why.clone(),
                    played: None,
                    life: from.or(to).map(|known| known.0.to_owned()),
                    first_missing: from.map(|from| from.1 + 1),
                    last_missing: to.map(|to| to.1),
                })
            }
        }
    });
    found.collect()
}

/// Who goes on in another file wrote this one to its end, so that what is torn off is damage.
fn torn(name: &str, segment: &Segment, next: Option<Point<'_>>) -> Option<Damage> {
    let end = end(segment);
    let next = next.filter(|next| segment.torn > 0 && next.0 == end.0)?;
    Some(Damage {
        file: name.to_owned(),
        why: format!("its last {} bytes cannot be read", segment.torn),
        played: Some(segment.steps.len()),
        life: Some(end.0.to_owned()),
        first_missing: Some(end.1 + 1),
        last_missing: Some(next.1),
    })
}

/// Where a file begins.
fn begin(content: &Content) -> Option<Point<'_>> {
    match content {
        Content::Segment(segment) | Content::Broken { segment, .. } => {
            Some((&segment.header.life, segment.header.step))
        }
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
        Content::Segment(segment) => Some(end(segment)),
        Content::Broken { segment, lost, .. } => {
            let (life, step) = end(segment);
            Some((life, step.saturating_add(*lost)))
        }
        Content::Nothing | Content::Unreadable(_) => None,
    }
}

fn end(segment: &Segment) -> Point<'_> {
    let steps = u64::try_from(segment.steps.len()).unwrap_or(u64::MAX);
    let header = &segment.header;
    (&header.life, header.step.saturating_add(steps))
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
