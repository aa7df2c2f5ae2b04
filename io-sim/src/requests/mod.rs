//! What operators ask in simulated worlds: for each request ([`drover_core::agent::requests`]) one file with
//! what people of a script do with it ([`ActKind`]) and what its answer says of the disk ([`Simulated`]).

mod collect_alloc;
mod collect_garbage;
mod delete_variable;
mod deregister;
mod dispatch;
mod evaluate;
mod force_periodic;
mod hand_over;
mod open_session;
mod put_variable;
mod register;
mod restart;
mod revert_job;
mod scale_job;
mod set_stable;
mod signal;
mod stop_alloc;
mod tag_version;
mod take_over;
mod transfer_complete;
mod untag_version;

pub use collect_alloc::CollectAlloc;
pub use collect_garbage::Collect;
pub use delete_variable::DeleteVariable;
pub use deregister::Deregister;
pub use dispatch::Dispatch;
pub use evaluate::Evaluate;
pub use force_periodic::ForcePeriodic;
pub use hand_over::HandOver;
pub use open_session::OpenSession;
pub use put_variable::{Expect, PutVariable};
pub use register::{Change, Register};
pub use restart::{Restart, RestartTask};
pub use revert_job::RevertJob;
pub use scale_job::ScaleJob;
pub use set_stable::SetStable;
pub use signal::{Signal, SignalTask};
pub use stop_alloc::StopAlloc;
pub use tag_version::TagVersion;
pub use take_over::{TakeOver, TakeOverOne};
pub use transfer_complete::TransferComplete;
pub use untag_version::UntagVersion;

use drover_core::agent::requests::Request;
use drover_core::effect::Reply;
use drover_core::ids::JobKey;

use crate::check::Facts;
use crate::sim::Sim;

/// The latest version of a job, as the agent shows it; 0 if it does not.
fn shown_version(sim: &Sim, job: &JobKey) -> u64 {
    let shown = sim.view().and_then(|view| view.job(job));
    shown.map_or(0, |record| record.job.version)
}

/// A request, as the reference model knows it.
pub(crate) trait Simulated {
    /// Whether the disk holds what this answer says, or something later. None if the answer is empty of
    /// the kind.
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool>;
}

/// The request, as the reference model knows it.
pub(crate) fn simulated(request: &Request) -> &dyn Simulated {
    macro_rules! each {
        ($($name:ident)*) => { match request { $(Request::$name(it) => it,)* } };
    }
    each! {
        Register TakeOver HandOver DispatchJob Deregister Evaluate CollectGarbage PutVariable DeleteVariable
        StopAlloc CollectAlloc TransferComplete Restart Signal OpenSession
        RevertJob TagVersion UntagVersion SetStable ScaleJob ForcePeriodic
    }
}
