//! What happened: a number that tells two runs apart, and, if wanted, the whole story.

use std::hash::Hasher;
use std::sync::Arc;

use drover_core::time::{Instant, SECOND, Span};

use crate::hash::StateHasher;

/// Where in a picture of the story something belongs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// The agent as a whole, and its clock.
    Agent,
    /// Whoever asks things of it.
    People,
    /// The store.
    Store,
    /// An allocation or one of its tasks, by name.
    Of(Arc<str>),
}

impl Column {
    /// The column of what is called so; a launch belongs to its task.
    pub fn named(entity: &str) -> Column {
        match entity {
            "agent" | "clock" | "machine" | "driver" => Column::Agent,
            "store" => Column::Store,
            "people" => Column::People,
            name => Column::Of(Arc::from(
                name.rsplit_once('#').map_or(name, |(task, _)| task),
            )),
        }
    }
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Into the agent.
    In,
    /// Out of the agent.
    Out,
    /// In the world, unseen by the agent.
    World,
    /// Trouble that chance made.
    Fault,
}

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time since the beginning, whatever the clocks said.
    pub at: Span,
    /// The number of the agent's step that it belongs to.
    pub step: u64,
    /// Whose it is.
    pub column: Column,
    /// Which way it went.
    pub way: Way,
    /// What it was.
    pub text: String,
}

impl Event {
    /// Whose it is and what it was.
    pub fn words(&self) -> String {
        match &self.column {
            Column::Of(name) => format!("{name} {}", self.text),
            Column::Agent | Column::People | Column::Store => self.text.clone(),
        }
    }
}

impl core::fmt::Display for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (seconds, nanos) = (self.at.0 / SECOND, self.at.0 % SECOND);
        let way = match self.way {
            Way::In => "->",
            Way::Out => "   <-",
            Way::World => "world:",
            Way::Fault => "fault:",
        };
        write!(f, "{seconds:>6}.{nanos:09} {way} ")?;
        match &self.column {
            Column::Agent => {}
            Column::People => write!(f, "people ")?,
            Column::Store => write!(f, "store ")?,
            Column::Of(name) => write!(f, "{name} ")?,
        }
        f.write_str(&self.text)
    }
}

/// The story of a run.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    log: Option<TraceLog>,
    hash: StateHasher,
    steps: u64,
}

#[derive(Clone, Debug, Default)]
struct TraceLog {
    events: Vec<Event>,
    hashes: Vec<u64>,
}

impl Trace {
    /// From now on the story is kept.
    pub fn keep(&mut self) {
        self.log = Some(TraceLog::default());
    }

    /// Whether the story is kept.
    pub fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    /// One more line, if the story is kept.
    pub(crate) fn write(&mut self, at: Span, way: Way, write: impl FnOnce() -> (Column, String)) {
        if let Some(log) = &mut self.log {
            let (column, text) = write();
            let step = self.steps;
            log.events.push(Event {
                at,
                step,
                column,
                way,
                text,
            });
        }
    }

    /// What the agent was told or did, for the number.
    pub(crate) fn record(&mut self, what: u64) {
        self.hash.write_u64(what);
    }

    /// A step is over.
    pub(crate) fn end_step(&mut self, now: Instant) {
        self.steps += 1;
        self.hash.write_u64(now.0);
        if let Some(log) = &mut self.log {
            log.hashes.push(self.hash.finish());
        }
    }

    /// A number that two runs share if and only if they went the same way.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// The number after each step, if the story is kept.
    pub fn hashes(&self) -> &[u64] {
        self.log.as_ref().map_or(&[], |log| &log.hashes)
    }

    /// The story, if it is kept.
    pub fn events(&self) -> &[Event] {
        self.log.as_ref().map_or(&[], |log| &log.events)
    }

    /// Its last `n` lines.
    pub fn tail(&self, n: usize) -> Vec<String> {
        let events = self.events();
        let last = events.iter().skip(events.len().saturating_sub(n));
        last.map(Event::to_string).collect()
    }
}
