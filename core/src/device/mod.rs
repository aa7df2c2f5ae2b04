//! Devices: what plugins report of them, whether that can be believed, who holds which.

pub mod attribute;
pub mod choose;
pub mod group;
pub mod said;
pub mod said_stats;
pub mod unit;
