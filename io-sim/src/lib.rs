//! A simulated world for the Drover node agent: a clock, processes that outlive the agent, a disk
//! that may lose what was not acknowledged, drivers and hook workers that hang, lie or answer
//! twice, and an order of events that nobody promised.
//!
//! [`Sim`] drives one [`drover_core::agent::Agent`] through it, one input at a time. Everything
//! follows from one seed: the same seed gives the same trace on any machine. After each step the
//! invariants ([`check`]) are checked; what breaks one ends the run with its name and the trace.
//!
//! It is a world, not a mock: processes outlive the agent, the disk may or may not hold what was
//! not acknowledged, drivers hang, lie or answer twice, the clock jumps, the machine reboots.
//!
//! - **Choices** are keyed (`choice.rs`): a hash of seed, point (`point.rs`), entity and occurrence; 0 does no
//!   harm, and seed 0 is the benign world. Entities have names that do not change when something
//!   else is taken out (`names.rs`).
//! - **A run is data** ([`script`]): jobs, requests of people, weights of faults, the search,
//!   overrides. It is written to a file, played anywhere (`script/run.rs`) and made small
//!   (`script/shrink.rs`).
//! - **Order** (`search.rs`): inputs lie in a queue for each source, and what the world does by
//!   itself beside them; a search picks. Latencies come from a coarse grid around the deadlines, so
//!   that things collide.
//! - **Every order** of small worlds ([`exhaust`]).
//! - **Faults** (`faults.rs`) have weights and budgets, and end: within two simulated hours after
//!   them everything must converge, `pending()` must be empty, and another restart of the agent
//!   must change nothing (`sim/ends.rs`).
//! - **An engine** ([`engine`]) that tasks share may die beneath them, be slow, lie, forget, or say things twice.
//! - **A cluster**: the servers are a model ([`servers`]) that may be behind, silent, forgetful or odd. The node of a script
//!   is in one or not; a [`fleet`] is many nodes and their servers, with properties across nodes, and tests of
//!   production code stand between them (`fleet/wire.rs`).
//! - **Properties** ([`check`]) are checked after each step on what the step touched, and on
//!   everything now and then.
//! - **Rehearsals** ([`rehearse`]) of people's jobs, and **replays** ([`replay`]) of real agents'
//!   recordings.

#![forbid(unsafe_code)]

pub mod check;
mod choice;
mod counters;
pub mod coverage;
mod dice;
mod dirs;
mod disk;
mod driver;
pub mod engine;
pub mod exhaust;
mod faults;
pub mod fleet;
mod hash;
mod hooks;
mod identities;
mod inbox;
mod later;
mod machine;
mod names;
pub mod network;
mod point;
mod process;
pub mod registry;
pub mod rehearse;
mod remote;
pub mod replay;
mod requests;
mod sampler;
mod scene;
pub mod script;
mod search;
pub mod servers;
mod services;
mod sessions;
mod sim;
pub mod task_faults;
mod templates;
pub mod timeline;
mod trace;
mod volumes;
mod words;
mod world;
pub mod zones;

pub use check::Violation;
pub use check::property::{Class, Kind, Property};
pub use choice::{Choice, Choices, Overrides};
pub use coverage::Coverage;
pub use dice::Dice;
pub use dirs::Dirs;
pub use disk::Disk;
pub use engine::{Engine, with_engine};
pub use faults::{Fault, Faults};
pub use fleet::Fleet;
pub use hash::StateHasher;
pub use identities::{Token, Tokens};
pub use inbox::Source;
pub use machine::listening;
pub use names::Names;
pub use point::Point;
pub use process::Process;
pub use search::Search;
pub use servers::Servers;
pub use sim::{PRIVATE_NETWORK, Sim, Stepped, Turn, client_of_cluster, node};
pub use trace::{Column, Event, Trace, Way};
pub use world::World;
