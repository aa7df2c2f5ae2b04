//! Devices: what plugins say of them, whether that can be believed, who holds which.

pub mod said;
pub mod said_reservation;
pub mod said_stats;
