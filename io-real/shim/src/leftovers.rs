//! Killing what a task leaves behind.

use crate::adopted::Adopted;
use crate::proc;
use crate::text;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::read;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

/// Kills everything in a cgroup.
pub fn kill_group(path: Option<&CStr>) {
    if let Some(path) = path {
        let _ = proc::write_file(path, b"1");
    }
}

/// Kills all children of the shim. The children of each then become children of the shim, which is
/// a subreaper; so calling this again after every death reaches all descendants, wherever they
/// hide. False if there are some, but none that may be killed.
pub fn kill_children() -> bool {
    let path = c"/proc/thread-self/children";
    let Ok(file) = openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut buffer = [0; 512];
    let (mut pid, mut killed) = (0_i32, false);
    while let Ok(len @ 1..) = read(&file, &mut buffer) {
        for byte in buffer.get(..len).unwrap_or_default() {
            if byte.is_ascii_digit() {
                pid = pid.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
            } else if let Some(child) = Pid::from_raw(core::mem::take(&mut pid)) {
                // A child that was not reaped keeps its pid, so this cannot hit anything else.
                killed |= kill_process(child, Signal::KILL).is_ok();
            }
        }
    }
    killed
}

/// Kills the members of a session whose leader, the adopted task, is dead. They are nobody's
/// children that we could ask for, so all processes are looked at.
pub fn kill_session(leader: crate::record::Process) {
    // A pid is not given out again while it names a session; if it was, nobody is left.
    if proc::stat(leader.pid).is_some_and(|stat| stat.start_time != leader.start_time) {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(dir) = openat(CWD, c"/proc", flags, Mode::empty()) else {
        return;
    };
    let mut space = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(&dir, &mut space);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(pid) = text::number(entry.file_name().to_bytes()) {
            kill_member(pid as i32, leader.pid);
        }
    }
}

/// Kills the first process of an adopted task's namespaces, if there is one, and with it all others in them.
pub fn kill_holder(holder: crate::record::Process) {
    if let Some(holder) = Adopted::find(holder) {
        let _ = pidfd_send_signal(&holder.handle, Signal::KILL);
    }
}

fn kill_member(pid: i32, session: i32) {
    let member = |pid| proc::stat(pid).is_some_and(|stat| stat.session == session);
    let Some(id) = Pid::from_raw(pid) else { return };
    if !member(pid) {
        return;
    }
    if let Ok(handle) = pidfd_open(id, PidfdFlags::empty())
        && member(pid)
    {
        let _ = pidfd_send_signal(&handle, Signal::KILL);
    }
}
