//! Drivers: what starts a task's process.

pub(crate) mod coerce;
pub mod config;
pub mod manager;
pub mod schema;
