//! Drover's decisions.
#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

pub mod driver;
pub mod ids;
pub mod local;
pub mod model;
pub mod op;
pub mod task;
pub mod text;
pub mod time;
