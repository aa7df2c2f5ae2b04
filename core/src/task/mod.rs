//! One task of an allocation: its runner, and what the runner needs to know.

pub mod destroyer;
pub mod environment;
pub mod hooks;
pub mod host_env;
mod identities;
mod inputs;
pub(crate) mod launch;
mod phase;
mod prepare;
pub(crate) mod reservation;
pub mod restart;
pub mod runner;
mod scripts;
pub(crate) mod sessions;
mod signals;
pub mod spec;
mod stopping;
mod templates;
mod timers;
pub mod volumes;
