//! Users, capabilities and namespaces.

use std::fs;

use crate::try_call::{all, call, errno, in_child};
use crate::{Row, Verdict};

pub(crate) const ROWS: &[Row] = &[
    ("5.01", "capabilities without asking", masks),
    ("5.02", "another user or group", others),
    ("5.03", "groups of root", groups),
    ("5.06a", "unshare", unshare),
    ("5.06b", "clone into namespaces", clone),
    ("5.06c", "clone3", || call(libc::SYS_clone3, [0; 5])),
    ("5.07", "setns", setns),
    ("5.10", "open_by_handle_at", || {
        call(libc::SYS_open_by_handle_at, [0; 5])
    }),
    ("5.12", "raw and packet sockets", raw_sockets),
    ("5.14", "secure bits and ambient capabilities", ambient),
    ("5.15", "gaining privileges by executing", no_new_privileges),
    ("5.16", "personalities", personalities),
    ("7.02", "killing process 1", kill_one),
    ("7.03", "processes of the host", processes),
];

fn status(name: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().trim().to_owned()
}

fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

fn masks() -> Verdict {
    let mask = |name| u64::from_str_radix(&status(name), 16).unwrap_or(u64::MAX);
    let [inh, prm, eff, bnd, amb] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(mask);
    // chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service sys_chroot audit_write setfcap
    let usual = 0xa004_05fb;
    let most = if is_root() { usual } else { 0 };
    let text = format!("inh {inh:x} prm {prm:x} eff {eff:x} bnd {bnd:x} amb {amb:x}");
    match inh == 0 && amb == 0 && prm == most && eff == most && bnd == usual {
        true => Verdict::Harmless(text),
        false => Verdict::Got(text),
    }
}

fn others() -> Verdict {
    if is_root() {
        return Verdict::Harmless("it is root, within its capabilities".to_owned());
    }
    all([
        call(libc::SYS_setuid, [0; 5]),
        call(libc::SYS_setgid, [0; 5]),
        call(libc::SYS_setresuid, [0; 5]),
        call(libc::SYS_setgroups, [0; 5]),
    ])
}

fn groups() -> Verdict {
    let own: Vec<String> = status("Groups")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    // SAFETY: asks for a number.
    let group = unsafe { libc::getegid() };
    match is_root() || (group != 0 && !own.contains(&"0".to_owned())) {
        true => Verdict::Harmless(format!("group {group}, {own:?}")),
        false => Verdict::Got(format!("group {group}, {own:?}")),
    }
}

const KINDS: [usize; 8] = [
    0x80,
    0x2_0000,
    0x200_0000,
    0x400_0000,
    0x800_0000,
    0x1000_0000,
    0x2000_0000,
    0x4000_0000,
];

fn unshare() -> Verdict {
    all(KINDS.map(|kind| call(libc::SYS_unshare, [kind, 0, 0, 0, 0])))
}

fn clone() -> Verdict {
    all(KINDS.into_iter().skip(1).map(|kind| {
        let flags = kind | 17;
        // SAFETY: without a stack of its own a child goes on as after a fork, and ends at once.
        match unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) } {
            -1 => Verdict::Refused(errno()),
            // SAFETY: the child ends.
            0 => unsafe { libc::_exit(0) },
            child => Verdict::Got(format!("{kind:x}: child {child}")),
        }
    }))
}

fn setns() -> Verdict {
    let names = ["/proc/self/ns/mnt", "/proc/1/ns/mnt", "/proc/1/ns/pid"];
    all(names.map(|name| match fs::File::open(name) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(file) => {
            let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
            call(libc::SYS_setns, [fd.unsigned_abs() as usize, 0, 0, 0, 0])
        }
    }))
}

fn socket(family: usize, kind: usize, protocol: usize) -> Verdict {
    call(libc::SYS_socket, [family, kind, protocol, 0, 0])
}

fn raw_sockets() -> Verdict {
    all([socket(2, 3, 1), socket(10, 3, 58), socket(17, 3, 0x0300)])
}

fn ambient() -> Verdict {
    // PR_SET_SECUREBITS with all, PR_CAP_AMBIENT to raise kill.
    let prctl = libc::SYS_prctl;
    match is_root() {
        // Root may set them, with setpcap; they take away only.
        true => all([call(prctl, [47, 2, 21, 0, 0])]),
        false => all([
            call(prctl, [28, 0x2f, 0, 0, 0]),
            call(prctl, [47, 2, 5, 0, 0]),
        ]),
    }
}

fn no_new_privileges() -> Verdict {
    let text = format!(
        "NoNewPrivs {}, Seccomp {}",
        status("NoNewPrivs"),
        status("Seccomp")
    );
    match (status("NoNewPrivs").as_str(), status("Seccomp").as_str()) {
        ("1", "2") => Verdict::Harmless(text),
        _ => Verdict::Got(text),
    }
}

fn personalities() -> Verdict {
    all([0x4_0000, 0x40_0000].map(|kind| call(libc::SYS_personality, [kind, 0, 0, 0, 0])))
}

fn kill_one() -> Verdict {
    in_child(|| {
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            // SAFETY: process 1 of the task's own namespace.
            if unsafe { libc::kill(1, signal) } != 0 {
                return Verdict::Refused(errno());
            }
        }
        let stat = fs::read_to_string("/proc/1/stat").unwrap_or_default();
        match stat.contains(") S ") || stat.contains(") R ") {
            true => Verdict::Harmless("it lives".to_owned()),
            false => Verdict::Got(stat),
        }
    })
}

/// A process of the host, by its number there. A process of its own may have the same.
pub(crate) fn kill(pid: &str) -> Verdict {
    let number = pid.parse().unwrap_or(i32::MAX);
    // SAFETY: a number, and a signal that nothing outlives.
    match unsafe { libc::kill(number, libc::SIGKILL) } {
        0 => Verdict::Got(format!("process {pid}")),
        _ => Verdict::Refused(errno()),
    }
}

fn processes() -> Verdict {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = names.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let foreign: Vec<u32> = pids.filter(|pid| *pid > 400).collect();
    // SAFETY: asks whether a process is there.
    let parent = unsafe { libc::getppid() };
    match foreign.is_empty() && parent < 400 {
        true => Verdict::Harmless(format!("its own only, parent {parent}")),
        false => Verdict::Got(format!("{foreign:?}, parent {parent}")),
    }
}
