//! Drivers: what starts a task's process.

mod coerce;
pub mod config;
pub mod schema;
