//! Another node has read a disk that was kept for it.

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, unknown};
use crate::effect::Reply;
use crate::ids::AllocId;
use crate::store::disk::AFTER_TRANSFER;

/// Another node has read the allocation's disk to the end. It is kept a while longer, for that node may die before it
/// makes use of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TransferComplete {
    /// Which.
    pub alloc: AllocId,
}

impl OperatorRequest for TransferComplete {
    fn name(&self) -> &'static str {
        "transfer complete"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Alloc(self.alloc)
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let Some(alloc) = asked.agent.allocs.get(&self.alloc) else {
            return Some(unknown(self.alloc));
        };
        let (slot, until) = (alloc.record().slot(), asked.now.wall + AFTER_TRANSFER);
        (asked.cx()).edit_disk(&slot, |disk| disk.transfer_complete(self.alloc, until));
        Some(asked.done())
    }
}
