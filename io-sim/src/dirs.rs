//! Directories: what hooks make and remove.

use std::collections::BTreeSet;

use drover_core::effect::HookWork;
use drover_core::ids::{AllocId, TaskName};
use drover_core::op::Failure;
use serde::Serialize;

/// The directories that exist.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Dirs {
    /// Of allocations.
    pub allocs: BTreeSet<AllocId>,
    /// Of tasks.
    pub tasks: BTreeSet<(AllocId, TaskName)>,
}

impl Dirs {
    /// Does a hook's work. Doing it twice is doing it once.
    pub(crate) fn work(
        &mut self,
        alloc: AllocId,
        task: Option<&TaskName>,
        work: &HookWork,
    ) -> Result<(), Failure> {
        match work {
            HookWork::BuildAllocDir => {
                self.allocs.insert(alloc);
            }
            HookWork::BuildTaskDir { .. } => {
                if !self.allocs.contains(&alloc) {
                    return Err(Failure::fatal("the allocation has no directory"));
                }
                self.tasks.extend(task.map(|task| (alloc, task.clone())));
            }
            HookWork::Reserve { .. } => {}
            HookWork::RemoveAllocDir => {
                self.allocs.remove(&alloc);
                self.tasks.retain(|(of, _)| *of != alloc);
            }
        }
        Ok(())
    }
}
