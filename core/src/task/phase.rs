//! Where a task is ([`Phase`]), how far its stop is, and the names of its timers.

use serde::{Deserialize, Serialize};

use super::destroyer::Destroyer;
use crate::hooks::Pipeline;
use crate::op::Op;
use crate::time::Instant;

/// Where a task is. Every phase but the last has a deadline or a named thing that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Waits until its stage of the group's life begins.
    Waiting,
    /// Prestart hooks run.
    Preparing(Pipeline),
    /// The driver was asked to start it.
    Starting(Op),
    /// The driver was asked to find it, after a restart of the agent.
    Recovering(Op),
    /// Its process lives.
    Running,
    /// It is about to be asked to end, when its shutdown delay is over.
    Delaying(Instant),
    /// It is about to be asked to end, when the servers of the cluster have removed its services; then at the latest.
    Deregistering(Instant),
    /// It was asked to end, and gets this much time.
    Stopping(Stop),
    /// Its process is over, or ended by force now; its remains are garbage-collected.
    Cleaning(Destroyer),
    /// It waits for its next start.
    Pausing(Instant),
    /// It ended. If something of it could not be garbage-collected, that is tried on.
    Dead(Destroyer),
}

/// How far a stop is. The grace begins when the request leaves, and force follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Stop {
    /// The driver was asked to send the signal, and has as long as the grace for it.
    Asked(Op),
    /// The signal was sent; the grace is over then.
    Sent(Instant),
}

/// The names of the phases' timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskTimer {
    /// The shutdown delay is over.
    ShutdownDelay,
    /// It is not waited any longer for servers to remove its services.
    Deregistration,
    /// The grace is over.
    KillGrace,
    /// The driver is asked again to destroy what is left.
    Destroy,
    /// The pause before the next start is over.
    RestartDelay,
    /// The task is told of templates that changed, or it is tried again to watch them.
    Template,
    /// Tokens are made anew, or servers are asked again for those of a start.
    Identity,
}
