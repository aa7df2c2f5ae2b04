//! The parts of the `drover` program.

pub mod jobspec;
pub mod runtime;
