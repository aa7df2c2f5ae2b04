//! Allocations: one copy of a task group on this node, from its directory to its end.

pub mod coordinator;
pub mod health;
pub mod hooks;
pub mod kill_order;
pub mod remote;
pub mod runner;
mod status;
