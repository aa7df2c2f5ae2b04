//! A job moves to another node (`docs/moving.md`).

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::agent::View;
use crate::effect::Reply;
use crate::ids::{AllocId, JobKey, Slot};
use crate::store::disk::RETENTION_LEASE;

/// Another node takes over this job: say what its copies replace, and keep their disks for that node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HandOver {
    /// Which.
    pub job: JobKey,
}

impl OperatorRequest for HandOver {
    fn name(&self) -> &'static str {
        "hand over"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let view = asked.agent.view();
        if view.job(&self.job).is_none() {
            return Some(unknown_job());
        }
        if let Err(why) = is_all_here(view, &self.job) {
            return Some(conflict(&why));
        }
        let latest = view.handover(&self.job);
        let latest: Vec<(Slot, AllocId)> = latest.map(|alloc| (alloc.slot(), alloc.id)).collect();
        let until = asked.now.wall + RETENTION_LEASE;
        for (slot, alloc) in &latest {
            let mut disk = asked.agent.disk_of(slot);
            disk.lease(*alloc, until);
            asked.cx().save_disk(slot.clone(), Some(disk));
        }
        Some(Reply::HandedOver(latest))
    }
}

/// What is not all here cannot be handed over: the other node would await the latest allocations only, and not
/// whom those await.
fn is_all_here(view: View<'_>, key: &JobKey) -> Result<(), String> {
    let id = &key.id;
    if let Some(awaited) = view.awaited_elsewhere(key) {
        let (alloc, address) = (awaited.alloc.short(), &awaited.address);
        return Err(format!(
            "job \"{id}\" still waits for allocation {alloc} at {address}: move it from there, \
             or when it runs here"
        ));
    }
    match view.still_ends(key) {
        None => Ok(()),
        Some(ending) => Err(format!(
            "allocation {} of job \"{id}\" has not ended yet, and the one after it waits for that: \
             move the job when that one runs, or when the job is stopped and over",
            ending.id.short()
        )),
    }
}
