//! `migrate_disk`, on this node: what those before it left on their disks.
//!
//! The record of the slot's disk ([`crate::store::disk`]) says from which allocations it moves here. After the
//! wait, and with its own directory made, `alloc/data` and each task's `local` are taken over from the nearest
//! that has any, by renaming (`io-real/src/dirs/inherit.rs`). That it moved is remembered in the commit before
//! anything starts; until then none of them is removed.
//!
//! - A kill in the middle does no harm: what moved stays moved, and the rest moves when the hook
//!   runs again.
//! - If a disk cannot be moved, the allocation fails and its replacement tries again. Nomad starts
//!   the task with an empty disk.
//! - The report that a move succeeded counts even when it comes after the deadline. It is the only late answer
//!   that is not stale.

use super::AllocHook;
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::{HookOutcome, HookStart};
use crate::input::HookOutput;
use crate::op::Failure;
use crate::operations::Purpose;
use crate::store::disk::Disk;
use crate::work::InheritDisk;

/// The hook.
pub struct MigrateDisk;

impl AllocHook for MigrateDisk {
    fn name(&self) -> &'static str {
        "migrate_disk"
    }

    fn purpose(&self) -> Purpose {
        Purpose::MoveDisk
    }

    fn prerun(&self, alloc: &AllocRunner, _: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        let disk = cx.shared.disks.get(&alloc.record().slot());
        let from = disk.map(|disk| disk.sources_of(alloc.record().id).to_vec());
        let Some(from) = from.filter(|from| !from.is_empty()) else {
            return HookStart::Done;
        };
        let tasks = alloc.task_names();
        alloc.hook_work(cx, self, InheritDisk { from, tasks })
    }

    /// Before any task runs: a disk is taken over once.
    fn answered(
        &self,
        alloc: &mut AllocRunner,
        _: &mut Asking,
        cx: &mut Cx<'_>,
        result: Result<HookOutput, Failure>,
    ) -> HookOutcome {
        if result.is_ok() {
            moved(alloc, cx);
        }
        HookOutcome::Over(result.map(|_| ()))
    }

    fn words(&self, alloc: &AllocRunner, _: &Asking, disk: Option<&Disk>) -> Option<String> {
        let nearest = disk.and_then(|disk| disk.sources_of(alloc.record().id).first());
        let nearest = nearest.map(|id| id.short().to_string()).unwrap_or_default();
        Some(format!("Migrating the disk of allocation {nearest}"))
    }
}

/// The disk lies here, whenever that is reported.
pub(crate) fn moved(alloc: &AllocRunner, cx: &mut Cx<'_>) {
    alloc.edit_disk(cx, |disk| disk.moved_to(alloc.record().id));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{ALLOC, Began, World};
    use crate::ids::AllocId;

    fn world() -> World {
        World::new().with_disk(Disk {
            holder: Some(ALLOC),
            sources: vec![AllocId(7), AllocId(5)],
            ..Disk::default()
        })
    }

    #[test]
    fn disk_is_taken_over_from_all_before_nearest_first() {
        let mut world = world();
        let (alloc, mut asking) = (world.alloc(), Asking::default());
        let work = InheritDisk {
            from: vec![AllocId(7), AllocId(5)],
            tasks: vec!["server".into()],
        };
        let asked = world.prerun(&alloc, &MigrateDisk, &mut asking);
        assert_eq!(asked, Began::asks(work));
        let words = format!("Migrating the disk of allocation {}", AllocId(7).short());
        assert_eq!(world.words(&alloc, &MigrateDisk, &asking), words);
    }

    #[test]
    fn alloc_that_gets_no_disk_takes_nothing_over() {
        let of_another = Disk {
            holder: Some(AllocId(8)),
            ..world().disk()
        };
        for disk in [Disk::default(), Disk::of(Some(ALLOC)), of_another] {
            let mut world = World::new().with_disk(disk);
            let alloc = world.alloc();
            let start = world.prerun(&alloc, &MigrateDisk, &mut Asking::default());
            assert_eq!(start, Began::Done);
        }
    }

    #[test]
    fn moved_disk_has_no_sources_and_is_not_moved_again() {
        let mut world = world();
        let (mut alloc, mut asking) = (world.alloc(), Asking::default());
        let done = Ok(HookOutput::default());
        let outcome = world.answered(&mut alloc, &MigrateDisk, &mut asking, done);
        assert_eq!(outcome, HookOutcome::Over(Ok(())));
        assert_eq!(world.disk(), Disk::of(Some(ALLOC)));
        assert_eq!(world.prerun(&alloc, &MigrateDisk, &mut asking), Began::Done);
    }

    #[test]
    fn disk_that_cannot_be_moved_fails_the_setup_and_stays_where_it_is() {
        let mut world = world();
        let before = world.disk();
        let (mut alloc, mut asking) = (world.alloc(), Asking::default());
        let failure = Failure::recoverable("read-only file system");
        let outcome = world.answered(&mut alloc, &MigrateDisk, &mut asking, Err(failure.clone()));
        assert_eq!(outcome, HookOutcome::Over(Err(failure)));
        assert_eq!(world.disk(), before, "the replacement tries again");
    }

    /// It is what counts even when it is reported too late.
    #[test]
    fn disk_that_moves_has_a_purpose_of_its_own() {
        assert_eq!(MigrateDisk.purpose(), Purpose::MoveDisk);
    }
}
