//! Scenarios and properties: the core against the simulated world.
//!
//! A scenario is a short function: it builds a job ([`build`]), scripts what people ask and what
//! goes wrong, and says what must come of it ([`inspect`]). [`for_seeds`] runs it under many orders
//! and chances:
//!
//! ```text
//! for_seeds(300, |sim| {
//!     sim.register(&service("web", [task("main")]));
//!     sim.until(SOON, |sim| sim.runs("web", "main"))?;
//!     sim.deregister("web", false);
//!     sim.until(SOON, |sim| sim.all_over("web", ClientStatus::Complete))?;
//!     sim.convergence()
//! });
//! ```
//!
//! `each_crash` runs a scenario once for each of its steps, with the agent dying after it. A bug
//! that a search found becomes a scenario with the bug's name in one of `tests/known_bugs_of_*.rs`.
//!
//! Random worlds are made by [`chaos`]: each seed is another script of jobs, requests and faults; one
//! seed in fifty is a [`fleet`] of several nodes. Half of them have a *theme* ([`theme`]): everything in them is about tokens, or scripts, or
//! disks, so that what is rare elsewhere meets itself often. Whatever needs three rare things at
//! once should have one. Planted bugs are in `bugs/`, and `hunt` looks for them; `bugs/README.md`
//! says how to plant one.

#![forbid(unsafe_code)]

mod acl_acts;
pub mod build;
mod changes;
pub mod chaos;
mod clock;
mod cluster;
pub mod engine;
pub mod fleet;
pub mod hunt;
pub mod inspect;
mod node_acts;
mod policies;
mod random_jobs;
pub mod report;
mod seeds;
pub mod small;
pub mod soak;
pub mod specimen;
mod theme;
mod themes_of_operators;
mod volume_acts;

pub use seeds::{
    Scenario, each_crash, each_crash_in_cluster, each_crash_on_engine, for_seeds,
    for_seeds_in_cluster, for_seeds_keeping, for_seeds_on, for_seeds_on_engine, replay,
};
