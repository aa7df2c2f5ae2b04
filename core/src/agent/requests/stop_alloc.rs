//! `alloc stop`: one allocation ends, and its job replaces it.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, cx, stopping, unknown};
use crate::alloc::runner::Update;
use crate::effect::Reply;
use crate::ids::{AllocId, JobKey};
use crate::model::eval::Trigger;

/// Why an allocation of servers is not stopped here.
const OF_SERVERS: &str = "the servers of the cluster placed the allocation: stop it there";

/// Stop the allocation; its job replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StopAlloc {
    /// Which.
    pub alloc: AllocId,
    /// Whether it does not wait for its shutdown delays.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub no_shutdown_delay: bool,
}

impl OperatorRequest for StopAlloc {
    fn name(&self) -> &'static str {
        "stop"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let cx = &mut cx(&asked.agent.config, &mut asked.agent.shared, asked.now);
        let Some(alloc) = asked.agent.allocs.get_mut(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        let has_servers = asked.agent.server.is_some();
        if alloc.record().of_servers && has_servers {
            return Some(conflict(OF_SERVERS));
        }
        if self.no_shutdown_delay {
            alloc.skip_shutdown_delay(cx);
        }
        if alloc.record().of_servers {
            alloc.update(cx, Update::Stop("alloc was stopped by an operator"));
            return Some(asked.done());
        }
        let job = alloc.job_key().clone();
        // What is over stays what it was: a batch job that completed is not run again for this.
        if !alloc.record().finished {
            alloc.update(cx, Update::Stop("alloc was stopped by an operator"));
        }
        let eval = asked.agent.evaluate(asked.now, &job, Trigger::AllocStop);
        Some(stopping(&eval))
    }

    /// As of any that is over: its job is considered again.
    fn handle_collected(&self, asked: &mut Asked<'_>, job: &JobKey) -> Reply {
        stopping(&asked.agent.evaluate(asked.now, job, Trigger::AllocStop))
    }
}
