//! The flight recorder's language: what a recording holds, what is hidden in it, and how it is told
//! whether playing it again does the same. No I/O: who writes and reads files is elsewhere.
//!
//! The core does the same when it gets the same inputs. So a recording holds the inputs of an agent, and of
//! what followed only as much as tells that playing it does something else:
//!
//! - for each step the number of its effects;
//! - for each commit a hash of all that is saved by it;
//! - every so many steps a hash of the whole state ([`hash`]).
//!
//! The first of these that differs ends the first interval that differs; it begins after the last hash
//! that was the same.
//!
//! A recording is a ring of *segments*, files that each play alone, so that the oldest can be dropped at
//! any time. The first line of a segment says how to begin ([`Header`]), each further one is a step
//! ([`Step`]). The first segment of an agent's life begins as the agent did, with what the store held; each
//! later one with the agent itself, as data.
//!
//! Secrets are hidden before anything is written ([`redact`]), and hashes leave them out. Both follow
//! the names of types and fields that serde knows, and no list of inputs, effects or hooks: what is new
//! in the core is recorded, compared and hidden without a word here. Only who wants a new text to be
//! *shown* says so (`redact/policy.rs`).
//!
//! **Format.** Files `NNNNNNNN.rec`, read by `zcat`: gzip members ([`file`]), each of some lines of JSON.
//! Recordings of another format are refused by its number.
//!
//! **How long a recording can be read.** One of a whole life as long as the store's records are; one
//! that begins with a state by agents whose state has the same layout, where fields with defaults may be
//! added. Hashes count a field that is empty as one that is not there, so a new field changes none until
//! it is used.
//!
//! `io-real/src/recorder/` writes recordings, and `io-sim/src/replay/` plays them.

#![forbid(unsafe_code)]

pub mod file;
pub mod hash;
pub mod redact;

use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::store::Saved;
use drover_core::time::Now;
use serde::{Deserialize, Serialize};

pub use hash::ContentHash;

/// The layout that this version writes, and the only one that it reads. Up to layout 3 each effect had
/// a hash, and files were not compressed.
pub const FORMAT: u32 = 4;

/// How the names of segments' files end. What comes before are digits that rise.
pub const EXTENSION: &str = ".rec";

/// The first line of a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The layout.
    pub format: u32,
    /// The program's version: another one may decide otherwise.
    pub version: String,
    /// The life of the agent that this belongs to. Secrets have the same tokens within a life.
    pub life: String,
    /// How many steps of this life came before.
    pub step: u64,
    /// Whether steps are missing between the segment before and this one.
    pub gap: bool,
    /// How to begin.
    pub start: Start,
}

impl Header {
    /// When it begins, and what is kept of what followed at once.
    pub fn outcome(&self) -> (Now, Outcome) {
        match self.start {
            Start::Restore { now, outcome, .. } => (now, outcome),
            Start::Snapshot { now, .. } => (now, Outcome::default()),
        }
    }
}

/// How a segment begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// The agent is restored.
    Restore {
        /// What it is told.
        config: Box<Config>,
        /// What the store held.
        saved: Box<Saved>,
        /// When.
        now: Now,
        /// What followed at once.
        outcome: Outcome,
    },
    /// The agent goes on from this state.
    Snapshot {
        /// The state.
        agent: Box<Agent>,
        /// When.
        now: Now,
    },
}

/// One step: what came, and what is kept of what followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub now: Now,
    /// What came; none for a timeout.
    pub input: Option<Input>,
    /// What followed.
    pub outcome: Outcome,
}

/// What is kept of what followed from an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// How many effects.
    pub effects: u32,
    /// Of the commit, if there was one: there is never more than one in a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<ContentHash>,
    /// Of the whole state, where it was hashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ContentHash>,
}
