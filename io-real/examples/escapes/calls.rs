//! System calls and other surfaces of the kernel.

use crate::try_call::{all, call, errno, in_child};
use crate::{Row, Verdict};

pub(crate) const ROWS: &[Row] = &[
    ("6.01", "the kernel's cryptography", || {
        call(libc::SYS_socket, [38, 5, 0, 0, 0])
    }),
    ("6.02a", "calls of 32-bit programs", || {
        in_child(thirty_two_bits)
    }),
    ("6.02b", "calls of x32", || {
        call(libc::SYS_getpid | 0x4000_0000, [0; 5])
    }),
    ("6.03", "io_uring", io_uring),
    ("6.04", "bpf, perf, userfaultfd, kcmp", || {
        refused(&[
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_userfaultfd,
            libc::SYS_kcmp,
            libc::SYS_lookup_dcookie,
        ])
    }),
    ("6.05", "keys", || {
        refused(&[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key])
    }),
    ("6.06", "kexec, reboot, modules, swap", || {
        refused(&[
            libc::SYS_kexec_load,
            libc::SYS_reboot,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_delete_module,
            libc::SYS_swapon,
            libc::SYS_acct,
            libc::SYS_quotactl,
        ])
    }),
    ("6.07", "the kernel's log", || {
        call(libc::SYS_syslog, [3, 0, 0, 0, 0])
    }),
    ("6.08", "the clock", || {
        refused(&[libc::SYS_clock_settime, libc::SYS_settimeofday])
    }),
    ("6.09", "tracing process 1", tracing),
    ("6.10", "descriptors of process 1", || {
        refused(&[libc::SYS_pidfd_getfd])
    }),
    ("6.11", "the hypervisor", || {
        call(libc::SYS_socket, [40, 1, 0, 0, 0])
    }),
    ("7.05", "characters into a terminal", || {
        call(libc::SYS_ioctl, [0, 0x5412, c"x".as_ptr() as usize, 0, 0])
    }),
    ("9.10", "real time and priorities", priorities),
];

/// Only the filter's own answers count: the arguments are nonsense, and so would be refused anyway.
fn refused(calls: &[libc::c_long]) -> Verdict {
    all(calls.iter().map(|number| match call(*number, [0; 5]) {
        Verdict::Refused(libc::EPERM) => Verdict::Refused(libc::EPERM),
        Verdict::Refused(errno) => {
            Verdict::Got(format!("call {number} reached the kernel: {errno}"))
        }
        other => other,
    }))
}

fn io_uring() -> Verdict {
    let calls = [
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ];
    all(calls.map(|number| match call(number, [0; 5]) {
        Verdict::Refused(libc::ENOSYS) => Verdict::Refused(libc::ENOSYS),
        Verdict::Refused(errno) => {
            Verdict::Got(format!("call {number} reached the kernel: {errno}"))
        }
        other => other,
    }))
}

/// `getpid` as a program of 32 bits asks for it.
fn thirty_two_bits() -> Verdict {
    #[cfg(target_arch = "x86_64")]
    {
        let answer: i64;
        // SAFETY: a call without arguments, that only answers.
        unsafe {
            core::arch::asm!("int 0x80", inlateout("rax") 20_i64 => answer, out("r8") _, out("r9") _,
                out("r10") _, out("r11") _);
        }
        match answer {
            0.. => Verdict::Got(format!("{answer}")),
            errno => Verdict::Refused(i32::try_from(-errno).unwrap_or(0)),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    Verdict::Harmless("there are none".to_owned())
}

fn tracing() -> Verdict {
    let mut byte = 0_u8;
    let mut ours = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let mut theirs = libc::iovec {
        iov_base: 0x40_0000 as *mut libc::c_void,
        iov_len: 1,
    };
    // SAFETY: writes one byte at most, into ours.
    let read = unsafe { libc::process_vm_readv(1, &raw mut ours, 1, &raw mut theirs, 1, 0) };
    let read = match read {
        -1 => Verdict::Refused(errno()),
        read => Verdict::Got(format!("{read} bytes of process 1")),
    };
    // PTRACE_ATTACH, PTRACE_SEIZE
    all([
        call(libc::SYS_ptrace, [16, 1, 0, 0, 0]),
        call(libc::SYS_ptrace, [0x4206, 1, 0, 0, 0]),
        read,
    ])
}

fn priorities() -> Verdict {
    let param = libc::sched_param { sched_priority: 10 };
    // SAFETY: the parameter is ours.
    let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
    let real_time = match set {
        0 => Verdict::Got("SCHED_FIFO".to_owned()),
        _ => Verdict::Refused(errno()),
    };
    all([
        real_time,
        call(
            libc::SYS_setpriority,
            [0, 0, (-20_isize).cast_unsigned(), 0, 0],
        ),
    ])
}
