//! The command line.
pub mod args;
mod dashes;
