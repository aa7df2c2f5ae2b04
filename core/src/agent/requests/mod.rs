//! What operators can ask: one file for each request. It says what the request takes, what is checked, what
//! it does and what it answers; whoever passes requests on, shows or counts them knows them as
//! [`OperatorRequest`]s.
//!
//! An answer leaves when what was done is saved. A request about an allocation is taken also while the
//! agent ends its tasks; all others are refused then.

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
pub use collect_garbage::CollectGarbage;
pub use create_acl_token::CreateAclToken;
pub use create_volume::CreateVolume;
pub use delete_acl_policy::DeleteAclPolicy;
pub use delete_acl_token::DeleteAclToken;
pub use delete_namespace::DeleteNamespace;
pub use delete_variable::DeleteVariable;
pub use delete_volume::DeleteVolume;
pub use deregister::Deregister;
pub use dispatch::{DispatchJob, MAX_CHILDREN};
pub use evaluate::Evaluate;
pub use evaluate_node::EvaluateNode;
pub use fail_deployment::FailDeployment;
pub use force_periodic::ForcePeriodic;
pub use hand_over::HandOver;
pub use open_session::{MAX_SESSIONS, MAX_SESSIONS_OF_ALLOC, OpenSession, SessionCommand};
pub use pause_deployment::PauseDeployment;
pub use promote_deployment::PromoteDeployment;
pub use put_variable::PutVariable;
pub use register::Register;
pub use restart::{Restart, RestartScope};
pub use revert_job::RevertJob;
pub use scale_job::ScaleJob;
pub use set_alloc_health::SetAllocHealth;
pub use set_eligibility::SetEligibility;
pub use set_scheduler::SetScheduler;
pub use set_stable::SetStable;
pub use signal::Signal;
pub use stop_alloc::StopAlloc;
pub use tag_version::TagVersion;
pub use take_over::TakeOver;
pub use transfer_complete::TransferComplete;
pub use untag_version::UntagVersion;
pub use update_acl_token::UpdateAclToken;
pub use update_drain::UpdateDrain;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Agent, View, cx};
use crate::cx::Cx;
use crate::effect::{Effect, Refusal, Reply};
use crate::ids::{AllocId, DeploymentId, GroupName, JobKey, RequestId};
use crate::ledger::Haste;
use crate::model::eval::{Deployment, Evaluation};
use crate::model::variable::VariableKey;
use crate::time::Now;

/// What is the same of all requests.
pub trait OperatorRequest {
    /// What is asked, in a word or two.
    fn name(&self) -> &'static str;

    /// What it is about.
    fn subject(&self) -> Subject<'_>;

    /// Whether it brings work: a job, a version of one, or another count. The scheduler's configuration may forbid
    /// that.
    fn registers(&self) -> bool {
        false
    }

    /// Which work it brings that nothing here asked for until now. A node of a cluster leaves that to its servers.
    fn new_work(&self) -> NewWork<'_> {
        match self.registers() {
            true => NewWork::Job,
            false => NewWork::None,
        }
    }

    /// Checks it, does it, and answers. None if the answer follows.
    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply>;

    /// The same, where only a record is left of the allocation, which is of this job.
    fn handle_collected(&self, asked: &mut Asked<'_>, job: &JobKey) -> Reply {
        let _ = (asked, job);
        conflict("the allocation is terminal, and its directory was garbage-collected")
    }
}

/// Work that nothing asked for until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewWork<'a> {
    /// None.
    None,
    /// A job, or a version of one.
    Job,
    /// So many copies of a group, as far as it has fewer. What is no job or group here is refused as such.
    Copies(&'a JobKey, &'a GroupName, i64),
}

impl NewWork<'_> {
    /// Whether there is any.
    pub fn is_some(self, view: View<'_>) -> bool {
        match self {
            NewWork::None => false,
            NewWork::Job => true,
            NewWork::Copies(job, group, count) => {
                let group = view
                    .job(job)
                    .and_then(|known| known.job.group(group.as_str()));
                group.is_some_and(|group| count > group.wanted())
            }
        }
    }
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A job.
    Job(JobKey),
    /// An allocation.
    Alloc(AllocId),
    /// A roll-out.
    Deployment(DeploymentId),
    /// A variable.
    Variable(&'a VariableKey),
    /// A namespace.
    Namespace(&'a str),
    /// Who may use the API.
    Acl,
    /// The node.
    Node,
    /// All there is.
    Everything,
}

/// The agent that is asked.
pub struct Asked<'a> {
    agent: &'a mut Agent,
    now: Now,
    /// Where an answer that follows goes to.
    request: RequestId,
}

impl Asked<'_> {
    fn cx(&mut self) -> Cx<'_> {
        cx(&self.agent.config, &mut self.agent.shared, self.now)
    }

    /// A roll-out that may still go on.
    ///
    /// # Errors
    /// There is none, or it is over.
    fn active_deployment(&self, id: DeploymentId, what: &str) -> Result<Arc<Deployment>, Reply> {
        let Some(known) = self.agent.local.deployments.get(&id) else {
            let words = "deployment not found".to_owned();
            return Err(Reply::Refused(Refusal::NotFound(words)));
        };
        match known.is_active() {
            true => Ok(known.clone()),
            false => Err(conflict(&format!("can't {what} terminal deployment"))),
        }
    }

    /// A roll-out was changed, and an earlier version of its job came back, if one did.
    fn deployment_changed(&self, job: &JobKey, reverted: Option<u64>) -> Reply {
        Reply::Deployment {
            eval: self.agent.local.latest_eval(job).map(|eval| eval.id),
            index: self.agent.shared.index,
            reverted,
        }
    }

    fn done(&self) -> Reply {
        let index = self.agent.shared.index;
        Reply::Done { index }
    }
}

/// The requests: a line for each. What else they were called is what recordings call them.
macro_rules! requests {
    ($($(#[serde(alias = $was:literal)])? $name:ident,)*) => {
        /// What an operator asks.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Request {
            $(#[allow(missing_docs, reason = "its type says it")]
            $(#[serde(alias = $was)])?
            $name($name),)*
        }

        impl Request {
            /// As what is the same of all.
            pub fn get(&self) -> &dyn OperatorRequest {
                match self {
                    $(Request::$name(request) => request,)*
                }
            }
        }

        $(impl From<$name> for Request {
            fn from(request: $name) -> Request {
                Request::$name(request)
            }
        })*
    };
}

requests! {
    Register,
    TakeOver,
    HandOver,
    #[serde(alias = "Dispatch")]
    DispatchJob,
    Deregister,
    Evaluate,
    CollectGarbage,
    PutVariable,
    DeleteVariable,
    StopAlloc,
    #[serde(alias = "Collect")]
    CollectAlloc,
    #[serde(alias = "Delivered")]
    TransferComplete,
    Restart,
    Signal,
    OpenSession,
    RevertJob,
    TagVersion,
    UntagVersion,
    SetStable,
    ScaleJob,
    ForcePeriodic,
    SetEligibility,
    UpdateDrain,
    PromoteDeployment,
    FailDeployment,
    PauseDeployment,
    SetAllocHealth,
    ApplyNodeMeta,
    SetScheduler,
    CreateVolume,
    DeleteVolume,
    ApplyNamespace,
    DeleteNamespace,
    BootstrapAcl,
    CreateAclToken,
    UpdateAclToken,
    DeleteAclToken,
    ApplyAclPolicy,
    DeleteAclPolicy,
    EvaluateNode,
}

impl Agent {
    /// Answers, or sees to it that the answer follows. Returns what it touched.
    pub(super) fn on_request(
        &mut self,
        now: Now,
        request: RequestId,
        what: &Request,
    ) -> BTreeSet<AllocId> {
        let what = what.get();
        let mut touched = BTreeSet::new();
        let mut collected = None;
        match what.subject() {
            Subject::Alloc(id) if self.allocs.contains_key(&id) => {
                touched.insert(id);
            }
            Subject::Alloc(id) => {
                collected = self.collected.get(id).map(|known| known.alloc.job.clone());
            }
            Subject::Job(_)
            | Subject::Deployment(_)
            | Subject::Variable(_)
            | Subject::Namespace(_)
            | Subject::Acl
            | Subject::Node
            | Subject::Everything
                if self.shutdown.is_some() =>
            {
                let reply = conflict("the agent is shutting down");
                self.shared
                    .ledger
                    .after_save(Effect::Reply(request, reply), Haste::AtOnce);
                return touched;
            }
            Subject::Job(_)
            | Subject::Deployment(_)
            | Subject::Variable(_)
            | Subject::Namespace(_)
            | Subject::Acl
            | Subject::Node
            | Subject::Everything => {}
        }
        let refusal = what.registers().then(|| self.refuses_work(what)).flatten();
        let mut asked = Asked {
            agent: self,
            now,
            request,
        };
        let reply = match collected {
            _ if refusal.is_some() => refusal.map(Reply::Refused),
            Some(job) => Some(what.handle_collected(&mut asked, &job)),
            None => what.handle(&mut asked),
        };
        if let Some(reply) = reply {
            self.shared
                .ledger
                .after_save(Effect::Reply(request, reply), Haste::AtOnce);
        }
        touched
    }
}

impl Agent {
    /// Why a request that brings work is not taken now, whatever it says.
    fn refuses_work(&self, what: &dyn OperatorRequest) -> Option<Refusal> {
        let rejected = self.registration_refusal();
        let rejected = rejected.or_else(|| self.left_to_servers(what));
        rejected.or_else(|| match what.subject() {
            Subject::Job(job) => {
                let checked = self.check_namespace_of(&job);
                checked.err().map(Refusal::Conflict)
            }
            Subject::Alloc(_)
            | Subject::Deployment(_)
            | Subject::Variable(_)
            | Subject::Namespace(_)
            | Subject::Acl
            | Subject::Node
            | Subject::Everything => None,
        })
    }
}

fn conflict(why: &str) -> Reply {
    Reply::Refused(Refusal::Conflict(why.to_owned()))
}

fn unknown(id: AllocId) -> Reply {
    Reply::Refused(Refusal::NotFound(format!("Unknown allocation \"{id}\"")))
}

pub(super) fn unknown_job() -> Reply {
    Reply::Refused(Refusal::NotFound("job not found".to_owned()))
}

fn stopping(eval: &Arc<Evaluation>) -> Reply {
    Reply::Stopping {
        eval: Some(eval.id),
        index: eval.create_index,
    }
}
