//! The way to the agent's core, for everything that people and programs ask of it.

pub use drover_io_real::door::{Door, Gone, Inside, Knock, Pulse, Question};
