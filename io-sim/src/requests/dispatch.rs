//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::dispatch;
use drover_core::model::job::Job;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A job is made of a parameterized one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Which.
    pub job: String,
    /// What it brings is made of this.
    pub nth: u32,
}

impl ActKind for Dispatch {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, _: &mut Jobs<'_>) -> Verdict {
        sim.dispatch(&self.job, self.nth);
        Ok(())
    }
}

impl Simulated for requests::DispatchJob {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Dispatched { job, .. } = reply else {
            return None;
        };
        Some(match facts.job(job) {
            Some(saved) => is_made_by(&saved.job, &self.dispatch),
            None => facts.replies.may_forget(job),
        })
    }
}

/// Whether the job bears what the dispatch brought, or an earlier one of the same token.
fn is_made_by(job: &Job, dispatch: &dispatch::Dispatch) -> bool {
    let bears = |(key, value): (&String, &String)| job.meta.get(key) == Some(value);
    let same = job.payload == dispatch.payload && dispatch.meta.iter().all(bears);
    let again = !dispatch.token.is_empty();
    job.dispatched && job.dispatch_idempotency_token == dispatch.token && (same || again)
}
