//! Killing what is in a group, and removing it.

use super::{Cgroups, subdirs};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to wait between two tries to remove a group that is busy, and how often to try: the
/// kernel needs a moment to forget dead members.
const PAUSE: Duration = Duration::from_millis(10);
const TRIES: u32 = 100;

impl Cgroups {
    /// Kills everything in a group, and waits up to `within` until all is gone. True if it is.
    /// A group that does not exist is empty.
    ///
    /// # Errors
    /// `InvalidInput`: not a name. Others: what the kernel says.
    pub fn kill(&self, name: &str, within: Duration) -> io::Result<bool> {
        let until = Instant::now() + within;
        let dirs = self.group_dirs(name)?;
        if let Some(kill) = self.v2_dir(name).map(|dir| dir.join("cgroup.kill"))
            && kill.exists()
        {
            absent_is_fine(fs::write(kill, "1"))?;
        }
        // Members of version 1 groups, and whoever entered only some of a task's groups. Each round
        // waits for the dead of the last; what they forked meanwhile is killed in the next.
        loop {
            let (victims, empty) = kill_members(&dirs)?;
            if victims.is_empty() {
                return Ok(empty || !self.populated(name)?);
            }
            for victim in &victims {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                wait_for_death(victim, left)?;
            }
        }
    }

    /// Whether a group has members, zombies not counted.
    ///
    /// # Errors
    /// `InvalidInput`: not a name. Others: what the kernel says.
    pub fn populated(&self, name: &str) -> io::Result<bool> {
        for dir in self.group_dirs(name)? {
            if !members(&dir)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The members of a group and of the groups inside it, sorted.
    ///
    /// # Errors
    /// `InvalidInput`: not a name. Others: what the kernel says.
    pub fn members(&self, name: &str) -> io::Result<Vec<i32>> {
        let mut pids = Vec::new();
        for dir in self.group_dirs(name)? {
            pids.extend(members(&dir)?);
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Removes a group if that needs nothing but removing its directories: it is empty and there is
    /// none inside it, or it is gone. The kernel removes no group that has members. True if it did;
    /// else [`Cgroups::kill`] and [`Cgroups::remove`] have work to do.
    ///
    /// # Errors
    /// `InvalidInput`: not a name.
    pub fn remove_empty(&self, name: &str) -> io::Result<bool> {
        let dirs = self.group_dirs(name)?;
        let had_cores = self.has_own_cores(name);
        let removed = dirs
            .iter()
            .all(|dir| absent_is_fine(fs::remove_dir(dir)).is_ok());
        if removed && had_cores {
            self.share_cores()?;
        }
        Ok(removed)
    }

    /// Removes a group and the groups inside it; it is no error if it is gone. It must be empty, or
    /// becoming so: a busy group is tried again for about a second.
    ///
    /// # Errors
    /// `InvalidInput`: not a name. `ResourceBusy`: it has members. Others: what the kernel says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let had_cores = self.has_own_cores(name);
        self.remove_dirs(name)?;
        if had_cores {
            self.share_cores()?;
        }
        Ok(())
    }

    /// Removes a group as [`Cgroups::remove`], but lets nobody share what cores it had.
    pub(super) fn remove_dirs(&self, name: &str) -> io::Result<()> {
        for dir in self.group_dirs(name)? {
            let mut tries = 0;
            while let Err(error) = absent_is_fine(remove_tree(&dir)) {
                tries += 1;
                if error.kind() != io::ErrorKind::ResourceBusy || tries == TRIES {
                    let message = format!("remove cgroup {}: {error}", dir.display());
                    return Err(io::Error::new(error.kind(), message));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}

pub(super) fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// A cgroup's files vanish with its directory, so only directories are removed, innermost first.
fn remove_tree(dir: &Path) -> io::Result<()> {
    for inner in subdirs(dir)? {
        absent_is_fine(remove_tree(&inner))?;
    }
    fs::remove_dir(dir)
}

/// The members of a group and of the groups inside it.
fn members(dir: &Path) -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    // A group that goes away while we look has no members.
    let gone = |error: &io::Error| {
        error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(19)
    };
    match fs::read_to_string(dir.join("cgroup.procs")) {
        Ok(text) => pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok())),
        Err(error) if gone(&error) => return Ok(pids),
        Err(error) => return Err(error),
    }
    match subdirs(dir) {
        Ok(inner) => {
            for dir in inner {
                pids.extend(members(&dir)?);
            }
        }
        Err(error) if gone(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(pids)
}

/// Sends SIGKILL to all members and returns handles to wait for them, and whether there were none
/// at all.
fn kill_members(dirs: &[PathBuf]) -> io::Result<(Vec<OwnedFd>, bool)> {
    let (mut victims, mut empty) = (Vec::new(), true);
    for dir in dirs {
        let mut opened = Vec::new();
        for pid in members(dir)? {
            empty = false;
            // A pid of 0 is a process of another pid namespace.
            let Some(id) = Pid::from_raw(pid).filter(|id| id.as_raw_pid() > 1) else {
                continue;
            };
            if let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) {
                opened.push((pid, handle));
            }
        }
        if opened.is_empty() {
            continue;
        }
        // A pid may have been given to another process before its handle was opened. Who is a
        // member still is the one that the handle names.
        let still = members(dir)?;
        for (pid, handle) in opened {
            if still.contains(&pid) && pidfd_send_signal(&handle, Signal::KILL).is_ok() {
                victims.push(handle);
            }
        }
    }
    Ok((victims, empty))
}

fn wait_for_death(victim: &OwnedFd, within: Duration) -> io::Result<()> {
    let time = Timespec::try_from(within).unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    });
    match poll(&mut [PollFd::new(victim, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
