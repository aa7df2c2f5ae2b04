//! See the core's request of the same name.

use drover_core::agent::requests;
use drover_core::effect::Reply;
use drover_core::model::value::Value;
use serde::{Deserialize, Serialize};

use super::Simulated;
use crate::check::{Facts, Verdict};
use crate::script::{ActKind, Jobs};
use crate::sim::Sim;

/// A group gets another count, or something is noted of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleJob {
    /// Which job.
    pub job: String,
    /// How many copies there shall be; none for a mere note.
    pub count: Option<i64>,
    /// Whether it is a group that the job does not have.
    pub elsewhere: bool,
    /// Whether whoever asks names the index that the job is shown with, or an older one; none if neither.
    #[serde(default)]
    pub expects: Option<bool>,
}

impl ActKind for ScaleJob {
    fn job(&self) -> Option<&str> {
        Some(&self.job)
    }

    fn act(&self, sim: &mut Sim, jobs: &mut Jobs<'_>) -> Verdict {
        let job = jobs.get(self.job.as_str());
        let group = job.and_then(|job| job.task_groups.first());
        let name = group.map_or("g", |group| &group.name);
        let shown = (sim.view()).and_then(|view| view.job(&sim.key_of(&self.job)));
        let shown = shown.map_or(0, |shown| shown.job.job_modify_index);
        let expect = |right| {
            if right {
                shown
            } else {
                shown.saturating_sub(1)
            }
        };
        sim.ask(requests::ScaleJob {
            job: sim.key_of(&self.job),
            group: if self.elsewhere { "nowhere" } else { name }.into(),
            count: self.count,
            message: "scaled".into(),
            error: false,
            meta: Value::Null,
            expect_index: self.expects.map(expect),
        });
        Ok(())
    }
}

impl Simulated for requests::ScaleJob {
    fn is_remembered(&self, facts: Facts<'_>, reply: &Reply) -> Option<bool> {
        let Reply::Registered { index, .. } = reply else {
            return None;
        };
        Some(match facts.job(&self.job) {
            Some(saved) => saved.job.modify_index >= *index,
            None => facts.replies.may_forget(&self.job),
        })
    }
}
