//! Signals: all blocked, always; only the wait lets `SIGCHLD` through.

use runtime::{How, KernelSigSet, KernelSigaction, KernelSigactionFlags};
use rustix::process::Signal;
use rustix::runtime_448b8ad740e2a26f as runtime;

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!("drover_restore:", "mov eax, 15", "syscall");

#[cfg(target_arch = "x86_64")]
unsafe extern "C" {
    fn drover_restore();
}

/// Does nothing: the signal's work is done once it has ended the wait.
unsafe extern "C" fn on_child(_: i32) {}

/// Blocks every signal, so that none can end the shim but `SIGKILL`, and readies `SIGCHLD`.
pub fn block_all() {
    // SAFETY: this program has no libc whose reserved signals could be disturbed.
    let _ = unsafe { runtime::kernel_sigprocmask(How::SETMASK, Some(&KernelSigSet::all())) };
    let mut action = KernelSigaction {
        sa_handler_kernel: Some(on_child),
        ..Default::default()
    };
    action.sa_flags = KernelSigactionFlags::NOCLDSTOP;
    #[cfg(target_arch = "x86_64")]
    {
        action.sa_flags |= KernelSigactionFlags::RESTORER;
        action.sa_restorer = Some(drover_restore);
    }
    // SAFETY: the handler touches nothing, and the restorer is the kernel's protocol.
    let _ = unsafe { runtime::kernel_sigaction(Signal::CHILD, Some(action)) };
}

/// The mask for the wait: everything but `SIGCHLD`.
pub fn wait_mask() -> KernelSigSet {
    let mut mask = KernelSigSet::all();
    mask.remove(Signal::CHILD);
    mask
}

/// Gives a task's process the signals of a fresh one: default actions, nothing blocked.
pub fn reset() {
    let plain = KernelSigaction {
        sa_handler_kernel: runtime::KERNEL_SIG_DFL,
        ..KernelSigaction::default()
    };
    for number in 1..=64 {
        if let Some(signal) = from_number(number) {
            // SAFETY: the default action runs no code of ours. SIGKILL and SIGSTOP refuse it.
            let _ = unsafe { runtime::kernel_sigaction(signal, Some(plain.clone())) };
        }
    }
    // SAFETY: as in `block_all`.
    let _ = unsafe { runtime::kernel_sigprocmask(How::SETMASK, Some(&KernelSigSet::empty())) };
}

/// The signal with this number, real-time signals included.
pub fn from_number(number: i32) -> Option<Signal> {
    // SAFETY: 1 to 64 are the kernel's signals, and no libc here reserves any of them.
    (1..=64)
        .contains(&number)
        .then(|| unsafe { Signal::from_raw_unchecked(number) })
}
