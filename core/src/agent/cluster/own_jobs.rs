//! Jobs of the node's own, where servers decide what runs: those that are here go on, and none begins.
//!
//! Servers do not know what a job of the node's own takes: each new one, and each version that asks for more, would
//! take from under them what they believe to be free. So jobs begin and grow at the servers alone. What makes a job of
//! the node's own smaller or ends it stays possible, and so does what it was made for: its periodic launches, and
//! children that are dispatched.

use super::super::Agent;
use crate::agent::requests::OperatorRequest;
use crate::effect::Refusal;

impl Agent {
    /// Why a request is the servers' to take, if it is.
    pub(in crate::agent) fn left_to_servers(&self, what: &dyn OperatorRequest) -> Option<Refusal> {
        let cluster = self.config.cluster.as_ref()?;
        if !cluster.only_jobs_of_servers || !what.new_work().is_some(self.view()) {
            return None;
        }
        Some(Refusal::Forbidden(
            "this agent is a node of a cluster, whose servers decide what runs here: submit the job to one of them \
             (-address=http://SERVER:4646, or NOMAD_ADDR; `drover node config -servers` lists them), or start the \
             agent without servers. Jobs of its own that are here go on, and can be stopped, scaled down and dispatched"
                .to_owned(),
        ))
    }
}
