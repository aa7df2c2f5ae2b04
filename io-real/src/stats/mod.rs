//! Statistics: reading what tasks and the machine use, when somebody looks.
//!
//! [`Sampler`] answers for tasks and [`HostSampler`] for the machine. Nothing is read while nobody
//! looks, and nothing twice in a second. What is read comes from counters of the kernel
//! ([`counters`], pure functions over bytes); what it comes to is the core's to say
//! ([`drover_core::stats`]).

pub mod counters;
mod devices;
mod disks;
mod group;
mod host;
pub(crate) mod listening;
mod processes;
mod read;
mod sampler;
mod task;

pub use disks::Disks;
pub use group::GroupDirs;
pub use host::HostSampler;
pub use sampler::{Depth, Looked, Sampler};

use std::time::Duration;

/// How long a sample is good enough.
pub const FRESH: Duration = Duration::from_secs(1);

/// How old an earlier sample may be for what was done since then to be called "now".
pub(crate) const RECENT: Duration = Duration::from_secs(60);

/// How long a first look takes, because a percentage needs two samples.
const SHORT: Duration = Duration::from_millis(100);

/// Where something of a launch can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its control group.
    pub group: Option<GroupDirs>,
    /// Its main process, by number and time of start (field 22 of `/proc/<pid>/stat`).
    pub process: Option<(i32, u64)>,
}
