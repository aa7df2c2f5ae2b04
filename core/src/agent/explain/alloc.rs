//! What an allocation waits for itself, and when its time is over.

use super::{Waiting, holders, wall};
use crate::agent::View;
use crate::alloc::runner::{AllocRunner, Phase};
use crate::model::job::JobType;
use crate::time::{Instant, Now};

impl View<'_> {
    pub(super) fn alloc_waits(self, now: Now, alloc: &AllocRunner) -> Vec<Waiting> {
        let at = |at: Instant| Some(wall(now, at));
        let setup = self.setup_wait(now, alloc);
        let delay = alloc.shutdown_delay_until().map(|until| Waiting {
            what: "the shutdown_delay of its group".to_owned(),
            until: at(until),
            then: "its tasks are asked to end: the leader first, sidecars last".to_owned(),
        });
        let verdict = alloc.awaits_verdict().then(|| manual_health(alloc));
        let others = self.awaits_cleaning(alloc.record().id).then(|| Waiting {
            what: "the removal of other allocations".to_owned(),
            until: None,
            then: "its directory is removed".to_owned(),
        });
        let longest = alloc.max_run_until().map(|until| Waiting {
            what: "the end of its max_run_duration".to_owned(),
            until: at(until),
            then: "its tasks are ended, it is complete, and nothing replaces it".to_owned(),
        });
        (setup.into_iter())
            .chain(delay)
            .chain(self.health_wait(now, alloc))
            .chain(verdict)
            .chain(self.check_waits(now, alloc))
            .chain(self.reschedule_wait(now, alloc))
            .chain(others)
            .chain(self.drain_wait(alloc))
            .chain(self.server_wait(now, alloc))
            .chain(longest)
            .collect()
    }

    /// What is done before its tasks, or after them.
    fn setup_wait(self, now: Now, alloc: &AllocRunner) -> Option<Waiting> {
        let (what, then) = match alloc.phase() {
            Phase::Prerun(_) => (
                self.setup_words(now, alloc),
                "its tasks start when that is done; without an answer in time the setup fails",
            ),
            Phase::Destroying(_) | Phase::DestroyPause(_) => (
                removal_words(alloc),
                "what cannot be removed is tried again",
            ),
            Phase::Finished if alloc.may_remove_network() => (
                "the removal of its network".to_owned(),
                "its ports are free; what cannot be removed is tried again",
            ),
            Phase::Tasks(_) | Phase::Finished | Phase::Destroyed => return None,
        };
        Some(Waiting {
            what,
            until: self.next_timer(alloc).map(|at| wall(now, at)),
            then: then.to_owned(),
        })
    }

    /// What its setup waits for; of what others hold, whose they are.
    fn setup_words(self, now: Now, alloc: &AllocRunner) -> String {
        let words = self.waits_for(alloc);
        let words = words.unwrap_or_else(|| "its setup".to_owned());
        match holders::of_claims(self, now, &self.ungranted(alloc)) {
            Some(whose) => format!("{words} ({whose})"),
            None => words,
        }
    }

    /// What an allocation that goes on waits for while its node is drained.
    fn drain_wait(self, alloc: &AllocRunner) -> Option<Waiting> {
        let drain = self.node_record().drain?;
        let (record, job_type) = (alloc.record(), alloc.job().job_type);
        let ignored = drain.spec.ignore_system_jobs && job_type.one_per_node();
        if ignored || record.finished || record.desired.is_terminal() {
            return None;
        }
        let (what, then) = match job_type {
            JobType::Service => (
                "its turn in the drain of this node",
                "it is asked to end; its job is placed again when the node is eligible",
            ),
            JobType::Batch => (
                "its own end, for which the drain of this node waits",
                "it is asked to end when the drain's deadline comes",
            ),
            JobType::System | JobType::Sysbatch => (
                "the end of all others, after which the drain of this node stops it",
                "it is asked to end; its job is placed again when the node is eligible",
            ),
        };
        Some(Waiting {
            what: what.to_owned(),
            until: drain.force_at,
            then: then.to_owned(),
        })
    }
}

/// What is removed of it, and all that failed the last time.
fn removal_words(alloc: &AllocRunner) -> String {
    let what = match alloc.record().has_network() {
        true => "the removal of its network and its directory",
        false => "the removal of its directory",
    };
    match alloc.destroy_errors() {
        [] => what.to_owned(),
        errors => format!("{what}; the last attempt failed: {}", errors.join("; ")),
    }
}

/// Its health is for people to say.
fn manual_health(alloc: &AllocRunner) -> Waiting {
    let deployment = alloc.record().deployment.unwrap_or_default();
    let id = alloc.record().id;
    Waiting {
        what: "somebody to say that it is healthy (health_check = \"manual\")".to_owned(),
        until: None,
        then: format!(
            "its deployment goes on; to say so: operator api -X PUT \
             -d '{{\"HealthyAllocationIDs\":[\"{id}\"]}}' /v1/deployment/allocation-health/{deployment}"
        ),
    }
}

/// What becomes of an allocation that waits for nothing; `given_up` is whether it failed and may not be replaced.
pub(super) fn next(alloc: &AllocRunner, given_up: bool) -> &'static str {
    match alloc.phase() {
        Phase::Prerun(_) => "it is set up, and then its tasks start",
        Phase::Tasks(_) if alloc.is_ending() => "its tasks end, and then it is over",
        Phase::Tasks(_) => "it goes on for as long as its tasks do",
        Phase::Finished if given_up => {
            "it is over, and its reschedule policy allows no other in its place; its directory is kept until it is \
             garbage-collected"
        }
        Phase::Finished => "it is over; its directory is kept until it is garbage-collected",
        Phase::Destroying(_) | Phase::DestroyPause(_) | Phase::Destroyed => {
            "its directory is removed, and a record of it is kept for a while"
        }
    }
}
