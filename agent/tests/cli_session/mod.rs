//! Sessions of a command line, written as text: what is run, and what must come of it.

mod dev;
mod play;
mod script;

pub(crate) use dev::{Dev, nomad};
pub(crate) use play::{Outcome, Session};
pub(crate) use script::{Check, Step, parse};
