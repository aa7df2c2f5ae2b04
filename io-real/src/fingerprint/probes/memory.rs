//! Memory.

use drover_core::fingerprint::Fingerprint;

use super::super::put::put;
use super::super::{Context, ProbeError};

const MEMINFO: usize = 64 * 1024;

pub(in super::super) fn query(context: &Context) -> Result<Fingerprint, ProbeError> {
    let mut found = Fingerprint::default();
    let meminfo = context.root.text("proc/meminfo", MEMINFO)?;
    let set = context.settings.memory_total_mb;
    let bytes = set
        .map(|mib| mib.saturating_mul(1 << 20))
        .or_else(|| total(&meminfo.unwrap_or_default()));
    if let Some(bytes) = bytes {
        put(&mut found, "memory.totalbytes", bytes);
        found.resources.memory_mb = Some(bytes >> 20);
    }
    Ok(found)
}

/// The bytes of memory that the kernel has to give.
fn total(meminfo: &str) -> Option<u64> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
