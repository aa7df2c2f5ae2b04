//! The flight recorder's language: what a recording holds, how its frames are sealed, what is
//! hidden in them, and how effects are compared. Pure: who writes files is elsewhere.
//!
//! A recording is a ring of *segments*, and a segment is a list of frames. The first says how to
//! begin ([`Start`]), each further one is a step ([`Step`]). Replaying a segment needs nothing but
//! the segment, so the oldest can be dropped at any time:
//!
//! - The first segment of an agent's life begins as the agent did, with what the store held.
//!   Restoring is a step that can go wrong like any other, so it is replayed too.
//! - Each later one begins with the agent itself, as data. What the store holds is not enough in the
//!   middle of a life: operations under way, timers and random numbers would be missing. An agent
//!   is plain data, and a copy of it costs less than a commit.
//!
//! Secrets are hidden before anything is written ([`redact`]). The effects of a step are not
//! recorded, only their fingerprints ([`mark`]): they follow from the input.
//!
//! **Format.** Segments are files `NNNNNNNN.rec`; [`seal`] says what a frame looks like. What
//! follows a torn frame is not read. Parts of a state that repeat are written once (`$same`). Each
//! step has its clocks, its input, and for each effect its kind and a hash of 56 bits. Replay makes
//! the effects again, names the first whose hash differs, and says in words what came instead.
//! Where one segment goes on from another, the whole states are compared too. Recordings of another
//! format are refused by its number.
//!
//! **How long a recording can be read.** One of a whole life is read as long as the store's records
//! are. A segment that begins with a state is read by agents whose state has the same layout;
//! fields with defaults may be added. For a regression test prefer a segment that begins with a
//! life (`sim-tests/recordings/README.md`).
//!
//! `io-real/src/recorder/` writes recordings, and `io-sim/src/replay/` plays them.

pub mod brief;
mod cover;
pub mod digest;
mod fold;
pub mod mark;
pub mod redact;
pub mod seal;

use serde::{Deserialize, Serialize};

pub use mark::Mark;

use crate::agent::Agent;
use crate::config::Config;
use crate::input::Input;
use crate::store::Saved;
use crate::time::Now;

/// The layout that this version writes, and the only one that it reads. In layout 1 a mark held other
/// words, in layout 2 another hash.
pub const FORMAT: u32 = 3;

/// How the names of segments' files end. What comes before are digits that rise.
pub const EXTENSION: &str = ".rec";

/// In the first frame of a segment, what stands there more than once is taken out: the frame is
/// `{"shared": [...], "value": ...}`, and an object in the value whose only key is this one stands
/// for the item of that number in `shared`. Items are whole: there are no references in them.
pub const SAME: &str = "$same";

/// The first frame of a segment.
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

/// How a segment begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Start {
    /// The agent is restored; the marks are those of what it asks for at once.
    Restore {
        /// What it is told.
        config: Box<Config>,
        /// What the store held.
        saved: Box<Saved>,
        /// When.
        now: Now,
        /// What it asks for at once.
        marks: Vec<Mark>,
    },
    /// The agent goes on from this state.
    Snapshot {
        /// The state.
        agent: Box<Agent>,
        /// When.
        now: Now,
    },
}

/// One step: what came, and what followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub now: Now,
    /// What came; none for a timeout.
    pub input: Option<Input>,
    /// What followed.
    pub marks: Vec<Mark>,
}
