//! The few system calls that rustix does not offer in the form needed here.

use core::arch::asm;
use rustix::event::PollFd;
use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::io::{Errno, Result};
use rustix::process::Pid;
use rustix::runtime_448b8ad740e2a26f::KernelSigSet;

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const PPOLL: usize = 271;
    pub(super) const CLOCK_GETTIME: usize = 228;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const MOUNT_SETATTR: usize = 442;
    pub(super) const CLONE: usize = 56;
    pub(super) const SIGTIMEDWAIT: usize = 128;
    pub(super) const SECCOMP: usize = 317;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const PPOLL: usize = 73;
    pub(super) const CLOCK_GETTIME: usize = 113;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const MOUNT_SETATTR: usize = 442;
    pub(super) const CLONE: usize = 220;
    pub(super) const SIGTIMEDWAIT: usize = 137;
    pub(super) const SECCOMP: usize = 277;
}

/// # Safety
/// The arguments must be what the call with this number expects.
#[cfg(target_arch = "x86_64")]
unsafe fn syscall(number: usize, args: [usize; 5]) -> Result<usize> {
    let [a, b, c, d, e] = args;
    let answer: isize;
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer, in("rdi") a, in("rsi") b,
            in("rdx") c, in("r10") d, in("r8") e, lateout("rcx") _, lateout("r11") _,
            options(nostack));
    }
    result(answer)
}

/// # Safety
/// The arguments must be what the call with this number expects.
#[cfg(target_arch = "aarch64")]
unsafe fn syscall(number: usize, args: [usize; 5]) -> Result<usize> {
    let [a, b, c, d, e] = args;
    let answer: isize;
    // SAFETY: the kernel's calling convention; the caller vouches for the arguments.
    unsafe {
        asm!("svc 0", in("x8") number, inlateout("x0") a as isize => answer, in("x1") b,
            in("x2") c, in("x3") d, in("x4") e, options(nostack));
    }
    result(answer)
}

fn result(answer: isize) -> Result<usize> {
    if answer < 0 {
        Err(Errno::from_raw_os_error(-answer as i32))
    } else {
        Ok(answer as usize)
    }
}

/// Waits until a descriptor is ready, a signal outside `mask` arrives, or `seconds` have passed.
/// The mask is swapped in one step with the wait, so that no signal falls between.
pub fn ppoll(fds: &mut [PollFd<'_>], seconds: Option<i64>, mask: &KernelSigSet) -> Result<usize> {
    let time = [seconds.unwrap_or(0), 0];
    let time = if seconds.is_some() {
        time.as_ptr() as usize
    } else {
        0
    };
    let mask = core::ptr::from_ref(mask) as usize;
    // SAFETY: the array, the time and the mask (8 bytes) live through the call.
    unsafe {
        syscall(
            number::PPOLL,
            [fds.as_mut_ptr() as usize, fds.len(), time, mask, 8],
        )
    }
}

/// The wall clock, ns since 1970.
pub fn now_ns() -> u64 {
    const REALTIME: usize = 0;
    clock_ns(REALTIME)
}

/// How long processors have worked for this process, in ns.
pub fn worked_ns() -> u64 {
    const PROCESS_CPUTIME_ID: usize = 2;
    clock_ns(PROCESS_CPUTIME_ID)
}

fn clock_ns(clock: usize) -> u64 {
    let mut time = [0_u64; 2];
    // SAFETY: a clock writes two 64-bit numbers.
    let done = unsafe {
        syscall(
            number::CLOCK_GETTIME,
            [clock, time.as_mut_ptr() as usize, 0, 0, 0],
        )
    };
    let [seconds, nanos] = time;
    if done.is_ok() {
        seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos)
    } else {
        0
    }
}

/// Closes every descriptor above standard error that the agent did not mean to hand down.
///
/// # Safety
/// Nothing in this process may own one of them.
pub unsafe fn close_inherited() {
    // SAFETY: as the caller promises. Before Linux 5.9 the call does not exist and nothing happens.
    let _ = unsafe { syscall(number::CLOSE_RANGE, [3, u32::MAX as usize, 0, 0, 0]) };
}

/// Closes every descriptor from `first` to `last`.
///
/// # Safety
/// Nothing in this process may use one of them any more.
pub unsafe fn close_all(first: u32, last: u32) {
    // SAFETY: as the caller promises.
    let _ = unsafe {
        syscall(
            number::CLOSE_RANGE,
            [first as usize, last as usize, 0, 0, 0],
        )
    };
}

/// Forks a child that is born in new namespaces. `None` in the child.
///
/// # Safety
/// As for `fork`: there must be one thread.
pub unsafe fn fork_into(namespaces: u32) -> Result<Option<Pid>> {
    const SIGCHLD: usize = 17;
    let flags = namespaces as usize | SIGCHLD;
    // SAFETY: without a stack of its own the child goes on with a copy of this one, as after `fork`.
    let pid = unsafe { syscall(number::CLONE, [flags, 0, 0, 0, 0])? };
    Ok(Pid::from_raw(pid as i32))
}

/// Waits for a signal, all of which must be blocked. Its number.
pub fn wait_signal() -> Option<i32> {
    let all = KernelSigSet::all();
    let set = core::ptr::from_ref(&all) as usize;
    // SAFETY: the set (8 bytes) lives through the call, and nothing is asked but the number.
    let signal = unsafe { syscall(number::SIGTIMEDWAIT, [set, 0, 0, 8, 0]) };
    signal.ok().map(|signal| signal as i32)
}

/// Lets nobody write through a mount.
pub fn make_read_only(tree: BorrowedFd<'_>) -> Result<()> {
    const EMPTY_PATH: usize = 0x1000;
    const READ_ONLY: u64 = 1;
    // Attributes to set, to clear, propagation, user namespace.
    let attributes = [READ_ONLY, 0, 0, 0];
    let at = [
        tree.as_raw_fd() as usize,
        c"".as_ptr() as usize,
        EMPTY_PATH,
        attributes.as_ptr() as usize,
        32,
    ];
    // SAFETY: path and attributes (32 bytes) live through the call.
    unsafe { syscall(number::MOUNT_SETATTR, at).map(|_| ()) }
}

/// Loads a filter for system calls.
pub fn load_filter(filter: &[u8]) -> Result<()> {
    const SET_MODE_FILTER: usize = 1;
    // An instruction has 8 bytes. The kernel reads a number of them, and a pointer at offset 8.
    let program = [filter.len() / 8, filter.as_ptr() as usize];
    let program = program.as_ptr() as usize;
    // SAFETY: the kernel reads as many instructions as are there, at any alignment.
    unsafe { syscall(number::SECCOMP, [SET_MODE_FILTER, 0, program, 0, 0]).map(|_| ()) }
}
