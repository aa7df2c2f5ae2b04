//! Task shims: how the agent starts tasks that outlive it, and finds them again.
//!
//! Each task runs under a shim, a tiny program of its own (`io-real/shim`) that starts the task,
//! moves its output to log files, and records its end. This module is the agent's side. It blocks,
//! and it decides nothing: what to start, when to kill and when to forget is its caller's business.
//!
//! A start bears a *launch id* (a UUID) that the caller chose and saved before. Everything is found
//! by it later:
//!
//! | file             | what                                                                      |
//! |------------------|---------------------------------------------------------------------------|
//! | `bin/shim-<hash>`| the shim program, written once; shims run from a copy in memory (`sealed`)|
//! | `run/<launch>.r` | the record; its lock says whether a shim lives ([`record`])               |
//! | `run/<launch>.s` | the shim's control socket ([`wire`])                                      |
//!
//! What holds, whoever dies when:
//! - A launch starts its program at most once. [`ShimHome::recover`] either finds what became of
//!   it, or makes sure that it never starts.
//! - Nobody waits for a shim without an end. One that was stopped is continued; of one that does not
//!   answer nevertheless [`ShimHome::recover`] says so, and [`Live::end_shim`] ends it.
//! - When a [`Live`]'s descriptor is readable, the shim is gone; its record is final, unless the
//!   shim itself was killed. Then the task lives on, its output waits in the pipes that the agent
//!   holds too, and [`ShimHome::takeover`] gives it a new shim.
//!
//! **Exactly once.** Whoever first locks an *empty* record decides the launch: a shim writes
//! `Starting`; an agent that searches writes `Abandoned`, and no shim can start the launch any
//! more. The child executes its program only after the record says `Running` with its pid. A shim
//! holds the lock for its whole life, so a free lock proves that it is dead.
//!
//! | dies | what holds |
//! |------|------------|
//! | agent | tasks, logs and records go on; the next agent asks for each launch by name and finds it running, ended, or never started |
//! | agent between saving a start and asking for it | the search decides that it never starts; the task is started under a new launch |
//! | shim, agent alive | the agent holds the pipes too, so no output is lost; a new shim takes over, with log position and control group; on kernels without `PIDFD_GET_INFO` (before 6.15) the exit code may be unknown |
//! | nobody, but the shim is stopped | whoever asks it something continues it by pidfd, and so does the watcher, which checks every 10 s |
//! | nobody, but the shim does not answer | signals go to the task directly; a destroy kills the shim by pidfd, then the task and its group |
//! | shim, no agent there | the task may live on until an agent comes; then it is ended, and the restart policy decides |
//! | shim between claim and `Running` | its child sees the link close and never executes the program |
//! | machine | everything is gone; boot ids tell, and launches are `Rebooted` |
//!
//! Nothing is signalled that is not proved ours: by pidfd, start time and boot id, or as an
//! unreaped child. Stopping is the kill signal, the grace, then `Destroy`: kill by the shim, then
//! by control group, and by pidfd where neither serves.

mod collect;
mod encode;
mod home;
mod live;
mod lock;
mod process;
mod program;
#[path = "../../shim/src/record.rs"]
#[allow(dead_code, reason = "shared with the shim, which uses all of it")]
pub mod record;
#[cfg(test)]
mod record_tests;
mod recover;
mod sealed;
mod spec;
mod start;
mod tidy;
#[path = "../../shim/src/wire.rs"]
#[allow(dead_code, reason = "shared with the shim, which uses all of it")]
pub mod wire;

pub use home::ShimHome;
pub use live::{Live, Outcome};
pub use record::Process;
pub use recover::Recovered;
pub(crate) use recover::open_process;
pub use spec::{
    Cgroup, Entrance, ExitRecord, Isolation, LaunchSpec, Logs, Mount, Mounted, SessionStreams, User,
};
pub use start::StartError;
pub use wire::Step;
