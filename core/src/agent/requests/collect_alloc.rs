//! `alloc gc`: removes one allocation that ended.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown};
use crate::effect::Reply;
use crate::ids::{AllocId, JobKey};

/// Remove an allocation that ended, before garbage collection selects it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectAlloc {
    /// Which.
    pub alloc: AllocId,
}

impl OperatorRequest for CollectAlloc {
    fn name(&self) -> &'static str {
        "collect alloc"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let Some(alloc) = asked.agent.allocs.get(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        let record = alloc.record().clone();
        if !record.finished {
            return Some(conflict("the allocation is not terminal: stop it first"));
        }
        if asked.agent.gc_snapshot(asked.now.wall).is_needed(&record) {
            return Some(conflict(
                "the allocation is still needed: for its replacement, its disk, its roll-out, or because servers do not know \
                 yet that it ended",
            ));
        }
        asked.agent.remove(asked.now, self.alloc);
        Some(asked.done())
    }

    fn handle_collected(&self, asked: &mut Asked<'_>, _: &JobKey) -> Reply {
        asked.done()
    }
}
