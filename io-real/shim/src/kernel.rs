//! The few system calls that rustix does not offer in the form needed here.

use core::arch::asm;
use rustix::event::PollFd;
use rustix::io::{Errno, Result};
use rustix::runtime_448b8ad740e2a26f::KernelSigSet;

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const PPOLL: usize = 271;
    pub(super) const CLOCK_GETTIME: usize = 228;
    pub(super) const CLOSE_RANGE: usize = 436;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const PPOLL: usize = 73;
    pub(super) const CLOCK_GETTIME: usize = 113;
    pub(super) const CLOSE_RANGE: usize = 436;
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
    let mut time = [0_u64; 2];
    // SAFETY: clock 0 is CLOCK_REALTIME, which writes two 64-bit numbers.
    let done = unsafe {
        syscall(
            number::CLOCK_GETTIME,
            [0, time.as_mut_ptr() as usize, 0, 0, 0],
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
