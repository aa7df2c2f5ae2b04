//! What operators ask in simulated worlds: for each request ([`drover_core::agent::requests`]) one file with
//! what people of a script do with it ([`ActKind`]) and what its answer says of the disk ([`Simulated`]).

mod apply_acl_policy;
mod apply_namespace;
mod apply_node_meta;
mod bootstrap_acl;
mod collect_alloc;
mod collect_garbage;
mod create_acl_token;
mod create_volume;
mod delete_acl_policy;
mod delete_acl_token;
mod delete_namespace;
mod delete_variable;
mod delete_volume;
mod deregister;
mod dispatch;
mod evaluate;
mod evaluate_node;
mod fail_deployment;
mod force_periodic;
mod hand_over;
mod open_session;
mod pause_deployment;
mod promote_deployment;
mod put_variable;
mod register;
mod restart;
mod revert_job;
mod scale_job;
mod set_alloc_health;
mod set_eligibility;
mod set_scheduler;
mod set_stable;
mod signal;
mod stop_alloc;
mod tag_version;
mod take_over;
mod transfer_complete;
mod untag_version;
mod update_acl_token;
mod update_drain;

pub use apply_acl_policy::ApplyAclPolicy;
pub use apply_namespace::ApplyNamespace;
pub use apply_node_meta::ApplyNodeMeta;
pub use bootstrap_acl::BootstrapAcl;
pub use collect_alloc::CollectAlloc;
pub use collect_garbage::Collect;
pub use create_acl_token::CreateAclToken;
pub use create_volume::CreateVolume;
pub use delete_acl_policy::DeleteAclPolicy;
pub use delete_acl_token::DeleteAclToken;
pub use delete_namespace::DeleteNamespace;
pub use delete_variable::DeleteVariable;
pub use delete_volume::DeleteVolume;
pub use deregister::{Deregister, DeregisterWithoutDelay};
pub use dispatch::Dispatch;
pub use evaluate::{Evaluate, ForceReschedule};
pub use evaluate_node::EvaluateNode;
pub use fail_deployment::FailDeployment;
pub use force_periodic::ForcePeriodic;
pub use hand_over::HandOver;
pub use open_session::OpenSession;
pub use pause_deployment::PauseDeployment;
pub use promote_deployment::PromoteDeployment;
pub use put_variable::{Expect, PutVariable};
pub use register::{Change, CheckAndRegister, Register, Seen};
pub use restart::{Restart, RestartTask};
pub use revert_job::RevertJob;
pub use scale_job::ScaleJob;
pub use set_alloc_health::SetAllocHealth;
pub use set_eligibility::SetEligibility;
pub use set_scheduler::SetScheduler;
pub use set_stable::SetStable;
pub use signal::{Signal, SignalTask};
pub use stop_alloc::{StopAlloc, StopAllocWithoutDelay};
pub use tag_version::TagVersion;
pub use take_over::{TakeOver, TakeOverOne};
pub use transfer_complete::TransferComplete;
pub use untag_version::UntagVersion;
pub use update_acl_token::UpdateAclToken;
pub use update_drain::UpdateDrain;

use drover_core::agent::requests::Request;
use drover_core::effect::Reply;
use drover_core::ids::{DeploymentId, JobKey};

use crate::check::Facts;
use crate::sim::Sim;

/// The latest version of a job, as the agent shows it; 0 if it does not.
fn shown_version(sim: &Sim, job: &JobKey) -> u64 {
    let shown = sim.view().and_then(|view| view.job(job));
    shown.map_or(0, |record| record.job.version)
}

/// The roll-out of the latest version of a job, as the agent shows it; none that there is if it does not.
fn shown_deployment(sim: &Sim, job: &JobKey) -> DeploymentId {
    let shown = sim.view().and_then(|view| view.job(job));
    shown
        .and_then(|record| record.deployment)
        .unwrap_or_default()
}

/// Whether the disk holds what became of a roll-out, or something later.
fn deployment_is_remembered(id: DeploymentId, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
    let Reply::Deployment { index, .. } = reply else {
        return None;
    };
    let saved = facts.deployment(id);
    // It goes with its version.
    Some(saved.is_none_or(|saved| saved.create_index <= *index))
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
        SetEligibility UpdateDrain ApplyNodeMeta SetScheduler CreateVolume DeleteVolume
        ApplyNamespace DeleteNamespace EvaluateNode BootstrapAcl CreateAclToken UpdateAclToken
        DeleteAclToken ApplyAclPolicy DeleteAclPolicy
        PromoteDeployment FailDeployment PauseDeployment SetAllocHealth
    }
}
