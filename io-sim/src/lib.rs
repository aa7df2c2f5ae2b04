//! A simulated world for the Drover node agent: a clock, processes that outlive the agent, a disk
//! that may lose what was not acknowledged, drivers and hook workers that hang, lie or answer
//! twice, and an order of events that nobody promised.
//!
//! [`Sim`] drives one [`drover_core::agent::Agent`] through it, one input at a time. Everything
//! follows from one seed: the same seed gives the same trace on any machine. After each step the
//! invariants ([`check`]) are looked at; what breaks one ends the run with its name and the trace.

#![forbid(unsafe_code)]

pub mod check;
mod choice;
pub mod coverage;
mod dirs;
mod disk;
mod driver;
pub mod exhaust;
mod faults;
pub mod habits;
mod hash;
mod identities;
mod inbox;
mod machine;
mod names;
mod process;
pub mod rehearse;
mod remote;
pub mod replay;
pub mod script;
mod search;
mod sim;
mod templates;
pub mod timeline;
mod trace;
mod world;

pub use check::Violation;
pub use check::property::{Class, Kind, Property};
pub use choice::{Choice, Choices, Overrides};
pub use coverage::Coverage;
pub use dirs::Dirs;
pub use disk::Disk;
pub use faults::{Fault, Faults};
pub use hash::Fold;
pub use identities::{Token, Tokens};
pub use inbox::Source;
pub use machine::listening;
pub use names::Names;
pub use process::Process;
pub use search::Search;
pub use sim::{Sim, Stepped, Turn, node};
pub use trace::{Column, Event, Trace, Way};
pub use world::World;
