//! Statistics: what was measured, added up. It has no clock; `io-real/src/stats/` reads,
//! `agent/src/http/stats.rs` and `agent/src/http/metrics/` answer.
//!
//! Nothing is decided by statistics, so they are no part of the agent's state, no recording has
//! them, and they alone in this crate have fractions.
//!
//! - **What was not measured is unset, which is not zero**, from the counter's file to JSON: each
//!   value is an `Option`, a sum of nothing but unset values is unset, and `Measured` lists which
//!   values are there, because Nomad's shapes have zeros for the others. Metrics that were not
//!   measured are not there.
//! - **An allocation** uses what the launches use that run now. A task that ended keeps what was measured
//!   last, for an hour; one that runs again has nothing until it is measured.
//! - **Devices** are looked up by what a task holds, which costs that task's devices and not the
//!   machine's. An allocation lists each group of devices once, with its instances merged
//!   (`DeviceUsage` can be made in no other way); Nomad lists a group once for each task.
//!
//! [`usage`] is what a task uses, [`running`] who is measured, [`sample`] and [`cpu`] how two samples of
//! counters become a percentage, [`reported`] what drivers say of their tasks, [`devices`] what plugins measured of their devices,
//! [`board`] keeps the latest of all this and answers for one allocation, [`host`] is the machine.

pub mod board;
pub mod cpu;
pub mod devices;
pub mod host;
pub mod reported;
pub mod running;
pub mod sample;
pub mod usage;
