//! Drivers: what starts a task's process.

pub(crate) mod coerce;
pub mod config;
pub mod reported;
pub mod schema;
pub mod spec;

pub use coerce::port_pair;
