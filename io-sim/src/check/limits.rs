//! The numbers that people rely on, as the documents have them. They are written here again: a check that asks the agent
//! for its own limit cannot find that it is another one.

use drover_core::time::Span;

/// For how long a disk is kept for another node that it is handed over to.
pub(super) const DISK_KEPT_FOR_NODE: Span = Span::secs(24 * 60 * 60);
/// For how long it is kept when the transfer to that node is complete.
pub(super) const DISK_KEPT_AFTER_TRANSFER: Span = Span::secs(10 * 60);
/// How often fetching a disk is tried.
pub(super) const DISK_FETCHES: u32 = 5;
/// How many evaluations are kept of a job.
pub(super) const EVALS_OF_JOB: usize = 10;
/// How many evaluations are kept of jobs that are purged.
pub(super) const EVALS_OF_PURGED_JOBS: usize = 100;
/// How many versions are kept of a job, besides those that somebody needs.
pub(super) const VERSIONS_OF_JOB: usize = 6;
/// How many events are kept of a task.
pub(super) const EVENTS_OF_TASK: usize = 10;
/// How many scaling events are kept of a group.
pub(super) const SCALING_EVENTS_OF_GROUP: usize = 20;
/// How many keys the node's metadata may have besides those of the configuration.
pub(super) const NODE_META_KEYS: usize = 1000;
/// By how much the priority of whoever preempts is higher, at least.
pub(super) const PREEMPTION_PRIORITY_DELTA: i64 = 10;
/// How many sessions there are in all allocations, and in one.
pub(super) const SESSIONS: (usize, usize) = (256, 32);
/// A periodic job that is launched at most so many seconds late was launched in time.
pub(super) const PERIODIC_GRACE: i64 = 10;
