//! `alloc_dir`: the allocation's directory, made before its tasks and removed with the allocation.

use super::AllocHook;
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::store::disk::Disk;
use crate::work::{BuildAllocDir, RemoveAllocDir};

/// The hook.
pub struct AllocDir;

impl AllocHook for AllocDir {
    fn name(&self) -> &'static str {
        "alloc_dir"
    }

    fn prerun(&self, alloc: &AllocRunner, _: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        alloc.hook_work(cx, self, BuildAllocDir)
    }

    fn words(&self, _: &AllocRunner, _: &Asking, _: Option<&Disk>) -> Option<String> {
        Some("Making its directory".to_owned())
    }

    fn destroy(&self, alloc: &AllocRunner, cx: &mut Cx<'_>) -> HookStart {
        alloc.hook_work(cx, self, RemoveAllocDir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};
    use crate::op::Failure;

    #[test]
    fn alloc_dir_is_made_before_tasks_and_removed_with_alloc() {
        let mut world = World::new();
        let alloc = world.alloc();
        let mut asking = Asking::default();
        let made = world.prerun(&alloc, &AllocDir, &mut asking);
        assert_eq!(made, Began::asks(BuildAllocDir));
        assert_eq!(
            world.words(&alloc, &AllocDir, &asking),
            "Making its directory"
        );
        assert_eq!(
            world.destroy(&alloc, &AllocDir),
            Began::asks(RemoveAllocDir)
        );
    }

    /// A directory of an allocation that a crash made unknown would stay for ever.
    #[test]
    fn alloc_dir_is_asked_for_when_alloc_is_saved() {
        let mut world = World::new();
        let alloc = world.alloc();
        let start = AllocDir.prerun(&alloc, &mut Asking::default(), &mut world.cx());
        let HookStart::Working(op) = start else {
            panic!("nothing is asked for: {start:?}");
        };
        let left = world
            .shared
            .out
            .iter()
            .any(|effect| effect.op() == Some(op));
        assert!(
            !left && world.shared.ledger.holds(op),
            "it left before the save"
        );
    }

    #[test]
    fn failed_alloc_dir_ends_the_setup() {
        let mut world = World::new();
        let mut alloc = world.alloc();
        let full = Failure::recoverable("no space left");
        let outcome = world.answered(
            &mut alloc,
            &AllocDir,
            &mut Asking::default(),
            Err(full.clone()),
        );
        assert_eq!(outcome, crate::hooks::HookOutcome::Over(Err(full)));
    }
}
