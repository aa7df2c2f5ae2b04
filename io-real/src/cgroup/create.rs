//! Making groups.

use super::{Cgroups, Group, Limits, Version, check, swap, weight};
use cgroups_rs::fs::cgroup::Cgroup;
use cgroups_rs::fs::cpu::CpuController;
use cgroups_rs::fs::hierarchies::V2;
use cgroups_rs::fs::memory::MemController;
use cgroups_rs::fs::{Hierarchy, error::Error};
use std::error::Error as _;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

impl Cgroups {
    /// Makes a group, or finds it, and sets its limits.
    ///
    /// # Errors
    /// `InvalidInput`: not a name. Others: what the kernel says to which file.
    pub fn create(&self, name: &str, limits: &Limits) -> io::Result<Group> {
        check(name)?;
        let path = Path::new(&self.parent).join(name);
        let hierarchy: Box<dyn Hierarchy> = match &self.v1 {
            None => Box::new(V2::new()),
            Some(v1) => Box::new(v1.clone()),
        };
        let mut controllers = vec!["cpu".to_owned(), "memory".to_owned()];
        let counts = limits.processes.or(self.most_processes);
        if self.version == Version::V2 && counts.is_some() {
            controllers.push("pids".to_owned());
        }
        if self.version == Version::V2 && self.cores.is_some() {
            controllers.push("cpuset".to_owned());
        }
        let io_limits = self.io_limits(limits.io)?;
        if self.version == Version::V2 && io_limits.is_some() {
            controllers.push("io".to_owned());
        }
        let group = Cgroup::new_with_specified_controllers(hierarchy, &path, Some(controllers))
            .map_err(|error| failed(name, &error))?;
        let memory = self.controlled.last().map(|memory| memory.join(name));
        if let Some(memory) = &memory {
            swap::allow(memory, self.version)?;
        }
        self.limit(&group, limits)
            .map_err(|error| failed(name, &error))?;
        if let (Some(memory), Some(most), true) = (&memory, limits.memory_max, limits.no_swap) {
            swap::forbid(memory, self.version, most)?;
        }
        self.limit_processes(name, counts)?;
        self.limit_io(name, io_limits.as_ref())?;
        if let Some(cores) = &self.cores {
            cores.assign(name, &limits.cores)?;
        }
        if let Some(unified) = &self.unified {
            fs::create_dir_all(unified.join(name))?;
        }
        self.put_mark(name);
        Ok(self.group(name))
    }

    fn limit(&self, group: &Cgroup, limits: &Limits) -> Result<(), Error> {
        let v2 = self.version == Version::V2;
        if let (Some(shares), Some(cpu)) =
            (limits.cpu_shares, group.controller_of::<CpuController>())
        {
            cpu.set_shares(if v2 { weight(shares) } else { shares.max(2) })?;
        }
        if let (Some((quota, period)), Some(cpu)) =
            (limits.cpu_quota, group.controller_of::<CpuController>())
        {
            cpu.set_cfs_quota_and_period(Some(quota), Some(period))?;
        }
        let Some(memory) = group.controller_of::<MemController>() else {
            return Ok(());
        };
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        // A group that is made again may have had a limit that is not wanted any more.
        memory.set_limit(limits.memory_max.map_or(-1, bytes))?;
        if let Some(reserved) = limits.memory_reserved {
            memory.set_soft_limit(bytes(reserved))?;
        }
        Ok(())
    }

    /// Bounds how many processes and threads a group has. A kernel without that has nothing to write to.
    fn limit_processes(&self, name: &str, most: Option<u64>) -> io::Result<()> {
        let dir = match (&self.pids, self.version) {
            (Some(pids), _) => pids.join(name),
            (None, Version::V2) => match self.controlled.first() {
                Some(parent) => parent.join(name),
                None => return Ok(()),
            },
            (None, Version::V1 | Version::Hybrid) => return Ok(()),
        };
        fs::create_dir_all(&dir)?;
        let text = most.map_or_else(|| "max".to_owned(), |most| most.to_string());
        // The kernel makes these files and nobody else can: to ask for one that is not there is refused.
        let file = fs::OpenOptions::new()
            .write(true)
            .open(dir.join("pids.max"));
        match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            file => file?.write_all(text.as_bytes()),
        }
    }

    /// The files of a group that was made before, with its limits as they are.
    ///
    /// # Errors
    /// `InvalidInput`: not a name.
    pub fn find(&self, name: &str) -> io::Result<Group> {
        check(name)?;
        Ok(self.group(name))
    }

    fn group(&self, name: &str) -> Group {
        let sets = self.cores.as_ref();
        let plain = self
            .controlled
            .iter()
            .chain(&self.pids)
            .chain(&self.unified);
        let dirs = plain.map(|dir| dir.join(name));
        let dirs = dirs.chain(self.blkio_dir(name));
        let dirs: Vec<PathBuf> = dirs.chain(sets.and_then(|it| it.entrance(name))).collect();
        let there = |file: PathBuf| file.exists().then_some(file);
        let oom = self
            .controlled
            .last()
            .map(|memory| memory.join(name))
            .and_then(|memory| {
                there(memory.join("memory.oom_control"))
                    .or_else(|| there(memory.join("memory.events")))
            });
        let kill = self
            .v2_dir(name)
            .and_then(|dir| there(dir.join("cgroup.kill")));
        Group {
            procs: dirs.iter().map(|dir| dir.join("cgroup.procs")).collect(),
            oom,
            kill,
        }
    }
}

fn failed(name: &str, error: &Error) -> io::Error {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    let kind = cause.map_or(io::ErrorKind::Other, io::Error::kind);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    io::Error::new(kind, format!("cgroup {name}: {error}{cause}"))
}
