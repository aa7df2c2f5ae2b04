//! Scenarios and properties: the core against the simulated world.
//!
//! A scenario is a short function: it builds a job, scripts what people ask and what goes wrong,
//! and says what must come of it. [`for_seeds`] runs it under many orders and chances.

#![forbid(unsafe_code)]

pub mod build;
pub mod chaos;
pub mod hunt;
pub mod look;
pub mod report;
mod seeds;
pub mod small;
pub mod soak;
pub mod specimen;
mod theme;

pub use seeds::{Scenario, each_crash, for_seeds, for_seeds_keeping, replay};
