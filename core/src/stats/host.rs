//! What the machine uses.

use super::cpu::{CoreTimes, CoreUse};
use super::devices::DeviceUsage;
use crate::time::Timestamp;

/// How many of the kernel's ticks a second has, on every architecture that this runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// The machine at one moment. What was not measured is unset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Host {
    /// Memory.
    pub memory: HostMemory,
    /// Each core by its name, such as `cpu0`.
    pub cores: Vec<(String, CoreUse)>,
    /// MHz of a core, if that is known.
    pub mhz_of_a_core: Option<f64>,
    /// What is mounted, in the order in which it was.
    pub disks: Vec<Disk>,
    /// The volume that the allocations' directories are on.
    pub alloc_dir: Option<Volume>,
    /// What plugins measured of all devices.
    pub devices: DeviceUsage,
    /// Seconds since the machine started.
    pub uptime: Option<u64>,
    /// When.
    pub at: Timestamp,
}

/// What each core did since `before`. A core that was switched on meanwhile has nothing to be compared with.
pub fn cores_since(
    now: &[(String, CoreTimes)],
    before: &[(String, CoreTimes)],
) -> Vec<(String, CoreUse)> {
    let used = now.iter().filter_map(|(name, times)| {
        let (_, before) = before.iter().find(|(known, _)| known == name)?;
        Some((name.clone(), times.since(before)))
    });
    used.collect()
}

impl Host {
    /// MHz that a core uses; none while nobody knows what a core has.
    pub fn ticks(&self, core: &CoreUse) -> Option<f64> {
        self.mhz_of_a_core.map(|mhz| core.total / 100.0 * mhz)
    }

    /// MHz that a core used, added up over all seconds since the machine started.
    pub fn ticks_count(&self, core: &CoreUse) -> Option<f64> {
        let (mhz, worked) = (self.mhz_of_a_core?, core.worked?);
        Some(worked as f64 / TICKS_A_SECOND * mhz)
    }

    /// MHz that all cores use together.
    pub fn all_ticks(&self) -> Option<f64> {
        let mhz = self.mhz_of_a_core?;
        let cores = self.cores.iter().map(|(_, core)| core.total / 100.0 * mhz);
        (!self.cores.is_empty()).then(|| cores.sum())
    }
}

/// The machine's memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// All that there is.
    pub total: Option<u64>,
    /// What programs can get.
    pub available: Option<u64>,
    /// What is used, caches not counted.
    pub used: Option<u64>,
    /// What nobody uses for anything.
    pub free: Option<u64>,
}

/// Something that is mounted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disk {
    /// What, such as `/dev/vda`.
    pub device: String,
    /// Where.
    pub mountpoint: String,
    /// How full it is.
    pub volume: Volume,
}

/// How full a file system is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volume {
    /// All of its bytes.
    pub size: u64,
    /// Bytes that are used.
    pub used: u64,
    /// Bytes that others than root can get.
    pub available: u64,
    /// Percent that are used, of those that others than root can use.
    pub used_percent: f64,
    /// Percent of its files that are used.
    pub inodes_percent: f64,
}

impl Volume {
    /// From what the kernel counts: bytes, free bytes, free bytes for others than root, files, free
    /// files.
    pub fn of(size: u64, free: u64, available: u64, files: u64, files_free: u64) -> Volume {
        let used = size.saturating_sub(free);
        Volume {
            size,
            used,
            available,
            used_percent: percent(used, used.saturating_add(available)),
            inodes_percent: percent(files.saturating_sub(files_free), files),
        }
    }
}

fn percent(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => part as f64 / all as f64 * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_without_size_has_no_percent() {
        let volume = Volume::of(100, 40, 20, 10, 5);
        assert_eq!((volume.used, volume.used_percent), (60, 75.0));
        assert_eq!(volume.inodes_percent, 50.0);
        let odd = Volume::of(0, 5, 0, 0, 3);
        assert_eq!(
            (odd.used, odd.used_percent, odd.inodes_percent),
            (0, 0.0, 0.0)
        );
    }

    fn core(total: f64, worked: Option<u64>) -> CoreUse {
        CoreUse {
            user: total,
            system: 0.0,
            idle: 100.0 - total,
            total,
            worked,
        }
    }

    #[test]
    fn core_usage_is_bounded_by_capacity() {
        let busy = core(25.0, Some(300));
        let mut host = Host {
            mhz_of_a_core: Some(2000.0),
            cores: vec![
                ("cpu0".to_owned(), busy),
                ("cpu1".to_owned(), core(50.0, None)),
            ],
            ..Host::default()
        };
        assert_eq!(host.ticks(&busy), Some(500.0));
        assert_eq!(host.all_ticks(), Some(1500.0));
        // Three seconds of work at 2000 MHz.
        assert_eq!(host.ticks_count(&busy), Some(6000.0));
        assert_eq!(host.ticks_count(&core(25.0, None)), None);
        host.mhz_of_a_core = None;
        assert_eq!(host.ticks(&busy), None);
        assert_eq!(host.ticks_count(&busy), None);
        assert_eq!(host.all_ticks(), None);
    }

    #[test]
    fn unknown_cores_give_no_usage() {
        let host = Host {
            mhz_of_a_core: Some(2000.0),
            ..Host::default()
        };
        assert_eq!(host.all_ticks(), None);
    }
}
