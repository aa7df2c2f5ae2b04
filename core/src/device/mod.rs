//! Devices: what plugins report of them, whether that can be believed, who holds which.

pub mod attribute;
pub mod choose;
pub mod group;
pub mod reported;
pub mod reported_stats;
pub mod unit;
