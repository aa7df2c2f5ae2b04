//! Statistics: what was measured, added up.
//!
//! Nothing is decided by them, so they are no part of the agent's state, and they alone in this
//! crate have fractions. What was not measured is unset, which is not zero: a sum of nothing but
//! unset values is unset.
//!
//! [`usage`] is what a task uses, [`cpu`] how two looks at a clock of work become a percentage,
//! [`told`] what drivers say of their tasks, [`devices`] what plugins measured of their devices, [`board`] keeps the latest of all this and
//! answers for one allocation, [`host`] is the machine.

pub mod board;
pub mod cpu;
pub mod devices;
pub mod host;
pub mod told;
pub mod usage;
