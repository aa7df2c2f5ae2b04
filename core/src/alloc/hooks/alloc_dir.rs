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
