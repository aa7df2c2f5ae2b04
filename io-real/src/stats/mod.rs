//! Statistics: reading what tasks and the machine use, when somebody looks.
//!
//! [`crate::sampler`] answers for tasks and [`HostSampler`] for the machine. Nothing is read while nobody
//! looks, and nothing twice in a second. What is read comes from counters of the kernel
//! ([`counters`], pure functions over bytes); what it comes to is the core's to say
//! ([`drover_core::stats`]).
//!
//! - **Everything is measured on request.** A sample is good for a second, whoever asks, and its
//!   encoded answer is kept as long (`agent/src/http/response_cache.rs`; an allocation's also ends with the
//!   state's index). Percentages need two samples: the first request, and one after a minute
//!   without any, takes a tenth of a second more. In that time the other tasks are measured too,
//!   so that asking for hundreds of allocations one after the other takes it once. Files of a control
//!   group stay open between requests, and are closed by the first request after a minute without any.
//! - **Plugins** measure by themselves; they are listened to while somebody asks ([`listening`]).
//!   GPUs are asked by the request itself, only those that it is about.
//! - **Where numbers come from** ([`counters`]): control groups of version 2, version 1 groups of
//!   `memory` and `cpu`, and on hybrid systems the CPU time that the unified tree counts. Swap is
//!   swap: Nomad reports memory and swap together under that name. Resident memory and caches of
//!   version 1 include groups that the task made inside its own, as its usage does. Without control
//!   groups: the main process and what descends from it, without children of processes that ended
//!   before them. Single processes (256 at most) are read only for an allocation's page, not for
//!   metrics.
//! - **Disks** are what is mounted of kinds that need a block device (and zfs), directories only. A
//!   disk that hangs hangs a thread of its own ([`disks`]).
//! - **Cost** (100 tasks, the released program, a virtual machine of two processors,
//!   `bench/agent.sh`): an allocation's statistics 45,000 times a second over one connection,
//!   `/v1/metrics` 13,000 times with 337 KB, both with client and agent on one processor; where
//!   each has its own, waking the other one takes longer than the answer (10,000 a second). Most of
//!   an answer is the kernel's and HTTP's. Reading all tasks each second, with the text for
//!   Prometheus, is 0.5 to 0.7 % of a core, most of it seven reads of control group files for each
//!   task. The machine is known 17 ms after the start.

pub mod counters;
mod disks;
pub(crate) mod group;
mod host;
pub(crate) mod listening;
pub(crate) mod processes;
pub(crate) mod read;

pub use disks::Disks;
pub use group::GroupDirs;
pub use host::HostSampler;

use std::time::Duration;

/// How long a sample is good enough.
pub const FRESH: Duration = Duration::from_secs(1);

/// How old an earlier sample may be for what was done since then to be called "now".
pub(crate) const RECENT: Duration = Duration::from_secs(60);

/// How long a first look takes, because a percentage needs two samples.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// Where something of a launch can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsSource {
    /// Its control group.
    pub group: Option<GroupDirs>,
    /// Its main process, by number and time of start (field 22 of `/proc/<pid>/stat`).
    pub process: Option<(i32, u64)>,
}
