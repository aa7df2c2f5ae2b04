//! The volume that the allocations' directories are on.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

use crate::mounts;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let dir = &context.settings.alloc_dir;
    let volume = context.kernel.volume(dir);
    let volume =
        volume.map_err(|error| ProbeError::unreadable(dir.display().to_string(), error))?;
    let set = context.settings.disk_total_mb;
    if let Some(volume) = &volume {
        let mounts = context.root.mounts()?;
        if let Some(mount) = mounts::holding(&mounts, &volume.dir) {
            put(&mut found, "unique.storage.volume", &mount.source);
        }
    }
    let bytes = set
        .map(|mib| mib.saturating_mul(1 << 20))
        .or(volume.map(|volume| volume.bytes));
    if let Some(bytes) = bytes {
        put(&mut found, "unique.storage.bytestotal", bytes);
        found.resources.disk_mb = Some(bytes >> 20);
    }
    Ok(found)
}
