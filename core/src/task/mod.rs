//! One task of an allocation.

pub mod environment;
pub mod interpolate;
