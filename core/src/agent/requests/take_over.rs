//! A job moves here from other nodes (`docs/moving.md`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict};
use crate::agent::Agent;
use crate::effect::Reply;
use crate::ids::Slot;
use crate::model::job::Job;
use crate::model::remote::Takeover;

/// Run this job, which ran on other nodes until now. Where it runs here already, that stays: asked again it
/// changes nothing, as registering does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TakeOver {
    /// The job; complete, canonical and valid.
    pub job: Arc<Job>,
    /// What its copies replace.
    pub from: Vec<Takeover>,
}

impl OperatorRequest for TakeOver {
    fn name(&self) -> &'static str {
        "take over"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.key())
    }

    fn registers(&self) -> bool {
        true
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        if let Err(why) = asked.agent.check_home(&self.job) {
            return Some(conflict(&why));
        }
        let key = self.job.key();
        let known = asked.agent.local.jobs.get(&key);
        let runs = known.is_some_and(|known| !known.job.stop);
        // Looks at tags go on at both nodes: which digests images have by now is no difference.
        let job = match runs {
            true => asked.agent.with_known_digests(&self.job),
            false => Agent::with_followed_digests(&self.job),
        };
        if runs && known.is_some_and(|known| !known.is_same(&job)) {
            let id = &key.id;
            let why = format!("job \"{id}\" runs on this node already: stop it first");
            return Some(conflict(&why));
        }
        let reply = asked.agent.register(asked.now, &job, None);
        // Copies that are not named still wait for whom they waited for.
        for Takeover { group, index, from } in self.from.iter().filter(|_| !runs) {
            let slot = Slot {
                job: key.clone(),
                group: group.clone(),
                index: *index,
                lane: 0,
                alloc: None,
            };
            let mut disk = asked.agent.disk_of(&slot);
            disk.replace_elsewhere(from.clone());
            asked.cx().save_disk(slot, Some(disk));
        }
        Some(reply)
    }
}
