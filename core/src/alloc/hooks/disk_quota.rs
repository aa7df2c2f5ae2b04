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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World};
    use crate::model::group::EphemeralDisk;

    fn begin(wanted: bool, size_mb: Option<i64>) -> Began {
        let mut world = World::new();
        world.config.disk_quota = wanted;
        world.group().ephemeral_disk = size_mb.map(|size_mb| EphemeralDisk {
            size_mb,
            ..EphemeralDisk::default()
        });
        let alloc = world.alloc();
        world.prerun(&alloc, &DiskQuota, &mut Asking::default())
    }

    #[test]
    fn disk_space_is_limited_to_size_of_group() {
        let asks = |mib: u64| {
            Began::asks(SetDiskQuota {
                bytes: mib * 1024 * 1024,
            })
        };
        assert_eq!(begin(true, Some(17)), asks(17));
        assert_eq!(begin(true, None), asks(300), "the usual size");
    }

    #[test]
    fn disk_space_is_not_limited_unless_agent_is_configured_so() {
        assert_eq!(begin(false, Some(17)), Began::Done);
    }
}
