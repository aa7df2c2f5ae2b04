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
mod faults;
mod inbox;
mod process;
mod sim;
mod trace;
mod world;

pub use check::Violation;
pub use check::property::{Class, Kind, Property};
pub use choice::{Choices, Fnv};
pub use coverage::Coverage;
pub use dirs::Dirs;
pub use disk::Disk;
pub use faults::{Fault, Faults};
pub use process::Process;
pub use sim::{Sim, Stepped, node};
pub use trace::Trace;
pub use world::World;
