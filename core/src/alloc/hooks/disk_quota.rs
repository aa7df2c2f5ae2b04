//! `disk_quota`: what the allocation's directory may take at most, where the agent's configuration wants that enforced
//! and the file system can. After whatever is taken over from another allocation is there, because that counts.

use super::AllocHook;
use crate::alloc::remote::Asking;
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::hooks::HookStart;
use crate::store::disk::Disk;
use crate::work::SetDiskQuota;

/// The hook.
pub struct DiskQuota;

impl AllocHook for DiskQuota {
    fn name(&self) -> &'static str {
        "disk_quota"
    }

    fn prerun(&self, alloc: &AllocRunner, _: &mut Asking, cx: &mut Cx<'_>) -> HookStart {
        if !cx.config.disk_quota {
            return HookStart::Done;
        }
        let bytes = alloc.disk_size();
        alloc.hook_work(cx, self, SetDiskQuota { bytes })
    }

    fn words(&self, _: &AllocRunner, _: &Asking, _: Option<&Disk>) -> Option<String> {
        Some("Limiting its disk space".to_owned())
    }
}
