//! One task of an allocation: its runner, and what the runner needs to know.

pub mod destination;
pub mod destroyer;
pub mod environment;
pub mod host_env;
mod identities;
mod inputs;
pub mod interpolate;
pub mod place;
mod prepare;
pub mod restart;
pub mod runner;
mod scripts;
mod signals;
pub mod spec;
mod stopping;
mod templates;
mod timers;

pub(crate) use identities::file as identity_file;
pub use prepare::{PRESTART, TaskHook};
