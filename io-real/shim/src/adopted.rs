//! A task that another shim started: not our child, so its end is seen through a pidfd.

use crate::proc;
use crate::record::{Exit, Process};
use rustix::fd::OwnedFd;
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The task's process and how to ask for it.
pub struct Adopted {
    /// Names this very process, whatever becomes of its pid.
    pub handle: OwnedFd,
    /// Who it is.
    pub process: Process,
}

/// The first version of the kernel's `struct pidfd_info`.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const GET_INFO: u32 = opcode::read_write::<PidfdInfo>(0xff, 11);
const WITH_EXIT: u64 = 1 << 3;

impl Adopted {
    /// Finds the task; `None` if it is gone.
    pub fn find(process: Process) -> Option<Self> {
        let handle = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty()).ok()?;
        // Looked at after the handle was opened: the handle is of the process we looked at.
        (proc::identity(process.pid) == process).then_some(Self { handle, process })
    }

    /// How it ended, once it has. The kernel tells it in two places, and in neither on a kernel
    /// before 6.15 after the process was reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.reaped()
            .or_else(|| self.zombie())
            .or_else(|| self.reaped())
    }

    fn reaped(&self) -> Option<Exit> {
        let mut info = PidfdInfo {
            mask: WITH_EXIT,
            ..PidfdInfo::default()
        };
        // SAFETY: the operation fills the structure whose size is part of its number.
        unsafe { ioctl(&self.handle, Updater::<GET_INFO, _>::new(&mut info)) }.ok()?;
        (info.mask & WITH_EXIT != 0).then(|| Exit::from_wait_status(info.exit_code))
    }

    fn zombie(&self) -> Option<Exit> {
        let stat = proc::stat(self.process.pid)?;
        let same = stat.state == b'Z' && stat.start_time == self.process.start_time;
        same.then(|| Exit::from_wait_status(stat.exit_code))
    }
}
