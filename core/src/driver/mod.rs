//! Drivers: what starts a task's process.

pub mod admission;
pub mod capabilities;
pub(crate) mod coerce;
pub mod config;
pub mod cpu_quota;
pub mod docker;
pub mod isolation;
pub mod reported;
pub mod schema;
pub mod spec;

pub use coerce::port_pair;
