//! What a control group counts.

use std::fs::File;
use std::path::{Path, PathBuf};

use drover_core::stats::sample::Counters;

use super::counters::{Take, v1, v2};
use super::read::{Buffer, open};

/// The directories of a group. With version 2 alone all are the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupDirs {
    /// Version 2.
    V2(PathBuf),
    /// Version 1.
    V1 {
        /// Of the `cpu` controller.
        cpu: PathBuf,
        /// Of the `cpuacct` controller, where somebody makes a group in it that is not that of `cpu`.
        cpuacct: Option<PathBuf>,
        /// Of the `memory` controller.
        memory: PathBuf,
        /// In the controller-less version 2 tree of a hybrid system.
        unified: Option<PathBuf>,
    },
}

/// The files of a group, held open.
#[derive(Debug)]
pub(crate) struct GroupFiles {
    counters: Vec<(File, Take)>,
    /// Nobody throttles it, which is known without reading.
    unthrottled: bool,
    members: Option<File>,
}

impl GroupFiles {
    /// Opens what there is. `None`: the group is gone.
    pub(crate) fn open(dirs: &GroupDirs) -> Option<GroupFiles> {
        let mut counters = Vec::new();
        let mut unthrottled = false;
        let mut add = |dir: &Path, files: &[(&str, Take)]| {
            let opened = files.iter().filter_map(|(name, take)| {
                let file = open(&dir.join(name))?;
                Some((file, *take))
            });
            counters.extend(opened);
        };
        let members = match dirs {
            GroupDirs::V2(dir) => {
                add(dir, v2::FILES);
                dir
            }
            GroupDirs::V1 {
                cpu,
                cpuacct,
                memory,
                unified,
            } => {
                // Where `cpuacct` is mounted apart, only engines make groups in it; the unified tree
                // counts the same.
                if let Some(dir) = unified {
                    add(dir, v2::FILES);
                }
                add(cpuacct.as_ref().unwrap_or(cpu), v1::CPUACCT);
                // Each file costs; who has no quota is never throttled, and nobody gives it one later.
                unthrottled = !has_quota(cpu);
                if !unthrottled {
                    add(cpu, v1::CPU);
                }
                add(memory, v1::MEMORY);
                memory
            }
        };
        let members = open(&members.join("cgroup.procs"));
        (!counters.is_empty()).then_some(GroupFiles {
            counters,
            unthrottled,
            members,
        })
    }

    /// Reads each file once. `None`: the group is gone.
    pub(crate) fn read(&self, buffer: &mut Buffer) -> Option<Counters> {
        let mut reading = Counters::default();
        if self.unthrottled {
            reading.spent.throttled_periods = Some(0);
            reading.spent.throttled_time = Some(0);
        }
        let mut read = false;
        for (file, take) in &self.counters {
            if let Some(text) = buffer.read(file) {
                take(text, &mut reading);
                read = true;
            }
        }
        read.then_some(reading)
    }

    /// The list of its members.
    pub(crate) fn members<'a>(&self, buffer: &'a mut Buffer) -> Option<&'a [u8]> {
        buffer.read(self.members.as_ref()?)
    }
}

/// Whether a group of the `cpu` controller may be throttled.
fn has_quota(cpu: &Path) -> bool {
    let quota = open(&cpu.join("cpu.cfs_quota_us"));
    let mut buffer = Buffer::default();
    quota.is_none_or(|file| buffer.read(&file) != Some(b"-1\n"))
}
