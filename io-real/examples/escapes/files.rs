//! Descriptors, mounts, `/proc`, `/sys` and `/dev`.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::try_call::{all, call, errno, in_child};
use crate::{Row, Verdict};

pub(crate) const ROWS: &[Row] = &[
    ("2.01", "inherited descriptors", descriptors),
    ("2.04", "the image of process 1, for writing", || {
        write(&["/proc/1/exe"])
    }),
    ("2.08", "directories that were inherited", directories),
    ("2.10", "the memory and files of process 1", process_one),
    (
        "3.23",
        "names of the host in process 1",
        name_of_process_one,
    ),
    ("3.01a", "out of the root by chroot", || in_child(chroot)),
    ("3.01b", "pivot_root", || {
        call(
            libc::SYS_pivot_root,
            [c".".as_ptr() as usize, c".".as_ptr() as usize, 0, 0, 0],
        )
    }),
    ("3.01c", "mounts of the host", mounts),
    ("3.02", "a /proc that is none", proc_kind),
    ("3.09", "writing to /proc/sys", || {
        writable_below("/proc/sys")
    }),
    ("3.09b", "the system request key", || {
        write(&["/proc/sysrq-trigger"])
    }),
    ("3.10", "what /proc tells of the machine", hidden),
    ("3.11", "remounting and unmounting", remount),
    ("3.12", "writing to /sys", || writable_below("/sys")),
    ("3.13", "file systems for debugging", debugging),
    ("3.14", "nodes of devices", nodes),
    ("3.15", "devices of the machine", devices),
    ("3.16", "mounts that let programs gain rights", suid),
    ("3.20", "the new calls for mounts", new_mounts),
    ("4.01", "mounting control groups", control_groups),
    ("4.03", "control groups of others", groups_of_others),
    ("8.02", "sockets of services", sockets),
    ("8.04", "shared memory of others", shared_memory),
    ("9.06", "filling memory by files", sizes),
];

fn open(path: &str, write: bool) -> Verdict {
    match OpenOptions::new().read(!write).write(write).open(path) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(_) => Verdict::Got(path.to_owned()),
    }
}

fn write(paths: &[&str]) -> Verdict {
    all(paths.iter().map(|path| open(path, true)))
}

fn descriptors() -> Verdict {
    let mut open = Vec::new();
    for fd in 3..1024 {
        // SAFETY: asks about a number.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } != -1 {
            open.push(fd);
        }
    }
    match open.is_empty() {
        true => Verdict::Refused(libc::EBADF),
        false => Verdict::Got(format!("{open:?}")),
    }
}

fn directories() -> Verdict {
    all((3..1024).map(|fd| call(libc::SYS_fchdir, [fd, 0, 0, 0, 0])))
}

fn process_one() -> Verdict {
    let tries = ["environ", "maps", "mem"].map(|name| match fs::read(format!("/proc/1/{name}")) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(text) if text.is_empty() => Verdict::Harmless("empty".to_owned()),
        Ok(_) => Verdict::Got(name.to_owned()),
    });
    let listed = match fs::read_dir("/proc/1/fd").map(|dir| dir.count()) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(0) => Verdict::Harmless("none".to_owned()),
        Ok(count) => Verdict::Got(format!("{count} descriptors")),
    };
    all(tries.into_iter().chain([listed]))
}

fn name_of_process_one() -> Verdict {
    let name = fs::read("/proc/1/cmdline").unwrap_or_default();
    match name.iter().all(|byte| *byte == 0) {
        true => Verdict::Harmless("none".to_owned()),
        false => Verdict::Got(String::from_utf8_lossy(&name).into_owned()),
    }
}

/// The classic way: a root below the working directory, and then up from there.
fn chroot() -> Verdict {
    let Ok(root) = fs::metadata("/") else {
        return Verdict::Got("no root".to_owned());
    };
    let _ = fs::create_dir("/local/jail");
    let jail = CString::new("/local/jail").unwrap_or_default();
    // SAFETY: paths with NUL.
    if unsafe { libc::chroot(jail.as_ptr()) } != 0 {
        return Verdict::Refused(errno());
    }
    for _ in 0..64 {
        // SAFETY: a path with NUL.
        unsafe { libc::chdir(c"..".as_ptr()) };
    }
    match fs::metadata(".") {
        Ok(up) if (up.dev(), up.ino()) == (root.dev(), root.ino()) => {
            Verdict::Harmless("no further than its own root".to_owned())
        }
        Ok(_) => Verdict::Got("another root".to_owned()),
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
    }
}

/// Places and options of all mounts.
fn mount_table() -> Vec<(String, String, String)> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let dash = fields.iter().position(|it| *it == "-")?;
        let text = |at: usize| fields.get(at).map(|it| (*it).to_owned());
        Some((text(4)?, text(5)?, text(dash + 1)?))
    };
    table.lines().filter_map(line).collect()
}

fn mounts() -> Verdict {
    let own = [
        "/alloc",
        "/bin",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/local",
        "/proc",
        "/run/resolvconf",
        "/run/systemd/resolve",
        "/sbin",
        "/secrets",
        "/sys",
        "/usr",
    ];
    let table = mount_table();
    let foreign = table.iter().find(|(place, ..)| {
        place != "/" && !own.iter().any(|own| Path::new(place).starts_with(own))
    });
    match foreign {
        None if table.is_empty() => Verdict::Got("no table".to_owned()),
        None => Verdict::Harmless(format!("{} mounts, all its own", table.len())),
        Some((place, ..)) => Verdict::Got(place.clone()),
    }
}

fn suid() -> Verdict {
    let lax = mount_table().into_iter().find(|(place, options, _)| {
        let has = |option: &str| options.split(',').any(|it| it == option);
        let kind = fs::symlink_metadata(place).map(|it| it.file_type());
        let is_node = kind.is_ok_and(|it| FileTypeExt::is_char_device(&it)) || place == "/dev/pts";
        !has("nosuid") || !(has("nodev") || is_node)
    });
    match lax {
        None => Verdict::Harmless("nosuid everywhere, devices in /dev only".to_owned()),
        Some((place, options, _)) => Verdict::Got(format!("{place} {options}")),
    }
}

fn magic(path: &str) -> i64 {
    let path = CString::new(path).unwrap_or_default();
    // SAFETY: a structure of integers, which the call fills.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    match unsafe { libc::statfs(path.as_ptr(), &raw mut about) } {
        0 => about.f_type as i64,
        _ => 0,
    }
}

fn proc_kind() -> Verdict {
    match magic("/proc") {
        0x9fa0 => Verdict::Harmless("it is proc".to_owned()),
        other => Verdict::Got(format!("{other:x}")),
    }
}

fn writable_below(dir: &str) -> Verdict {
    let mut dirs = vec![Path::new(dir).to_owned()];
    let (mut tried, mut last) = (0, libc::ENOENT);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() && tried < 3000 {
                dirs.push(entry.path());
            } else if kind.is_file() {
                tried += 1;
                match OpenOptions::new().write(true).open(entry.path()) {
                    Ok(_) => return Verdict::Got(entry.path().display().to_string()),
                    Err(error) => last = error.raw_os_error().unwrap_or(0),
                }
            }
        }
    }
    Verdict::Refused(last)
}

fn hidden() -> Verdict {
    let names = [
        "kcore",
        "kallsyms",
        "keys",
        "timer_list",
        "sched_debug",
        "latency_stats",
        "interrupts",
        "kmsg",
    ];
    let file = |name: &&str| {
        let mut bytes = [0; 64];
        let file = fs::File::open(format!("/proc/{name}"));
        match file.and_then(|mut file| std::io::Read::read(&mut file, &mut bytes)) {
            Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
            Ok(0) => Verdict::Harmless("empty".to_owned()),
            Ok(_) => Verdict::Got(format!("/proc/{name}")),
        }
    };
    let dir = |name: &&str| match fs::read_dir(name).map(|dir| dir.count()) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(0) => Verdict::Harmless("empty".to_owned()),
        Ok(_) => Verdict::Got((*name).to_owned()),
    };
    let dirs = ["/proc/acpi", "/proc/scsi", "/sys/firmware", "/sys/kernel"];
    all(names.iter().map(file).chain(dirs.iter().map(dir)))
}

fn mount(source: &str, target: &str, kind: &str, flags: u64) -> Verdict {
    let [source, target, kind] =
        [source, target, kind].map(|it| CString::new(it).unwrap_or_default());
    // SAFETY: three paths with NUL, and no data.
    let done = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            std::ptr::null(),
        )
    };
    match done {
        0 => Verdict::Got(format!("mounted {kind:?}")),
        _ => Verdict::Refused(errno()),
    }
}

fn remount() -> Verdict {
    let unmount = |path: &str| {
        let path = CString::new(path).unwrap_or_default();
        call(libc::SYS_umount2, [path.as_ptr() as usize, 2, 0, 0, 0])
    };
    let again = |path: &str| mount("none", path, "", libc::MS_REMOUNT | libc::MS_BIND);
    all([
        again("/proc/sys"),
        again("/usr"),
        again("/sys"),
        again("/"),
        unmount("/proc/sys"),
        unmount("/proc/kcore"),
        unmount("/"),
        mount("/", "/local", "", libc::MS_BIND),
        mount("none", "/local", "overlay", 0),
        mount("none", "/local", "proc", 0),
    ])
}

fn debugging() -> Verdict {
    let kinds = [
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0xcafe_4a11,
        0xde5e_81e4,
        0x6573_5543,
    ];
    let dirs = ["debug", "tracing", "security", "config"].map(|name| format!("/sys/kernel/{name}"));
    let more = [
        "/sys/fs/bpf",
        "/sys/fs/fuse/connections",
        "/sys/firmware/efi/efivars",
    ]
    .map(str::to_owned);
    let found = dirs
        .iter()
        .chain(&more)
        .find(|dir| kinds.contains(&magic(dir)));
    match found {
        None => Verdict::Refused(libc::ENOENT),
        Some(dir) => Verdict::Got(dir.clone()),
    }
}

fn nodes() -> Verdict {
    let mut tries = Vec::new();
    for dir in [
        "/local",
        "/tmp",
        "/alloc/data",
        "/secrets",
        "/dev/shm",
        "/dev",
    ] {
        for (kind, number) in [(libc::S_IFBLK, 0x700), (libc::S_IFCHR, 0x101)] {
            let path = format!("{dir}/node-{kind:x}");
            let name = CString::new(path.as_str()).unwrap_or_default();
            // SAFETY: a path with NUL.
            let made = unsafe { libc::mknod(name.as_ptr(), kind | 0o666, number) };
            let refused = errno();
            tries.push(match made {
                0 => open(&path, false),
                _ => Verdict::Refused(refused),
            });
            let _ = fs::remove_file(&path);
        }
    }
    all(tries)
}

fn devices() -> Verdict {
    let names = [
        "mem",
        "kmem",
        "port",
        "kmsg",
        "sda",
        "vda",
        "nvme0",
        "fuse",
        "kvm",
        "net/tun",
        "uinput",
        "loop0",
        "loop-control",
        "mapper/control",
        "vsock",
        "rtc",
        "rtc0",
    ];
    let known = [
        "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin",
        "stdout", "tty", "urandom", "zero",
    ];
    let other = fs::read_dir("/dev").into_iter().flatten().flatten();
    let other = other.map(|it| it.file_name().to_string_lossy().into_owned());
    if let Some(other) = other
        .into_iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        return Verdict::Got(format!("/dev/{other}"));
    }
    all(names.map(|name| open(&format!("/dev/{name}"), false)))
}

fn new_mounts() -> Verdict {
    let path = c"/".as_ptr() as usize;
    all([
        call(libc::SYS_fsopen, [c"tmpfs".as_ptr() as usize, 0, 0, 0, 0]),
        call(libc::SYS_fspick, [usize::MAX, path, 0, 0, 0]),
        call(libc::SYS_open_tree, [usize::MAX, path, 1, 0, 0]),
        call(
            libc::SYS_move_mount,
            [usize::MAX, path, usize::MAX, path, 0],
        ),
        call(libc::SYS_mount_setattr, [usize::MAX, path, 0, 0, 0]),
    ])
}

fn control_groups() -> Verdict {
    all([
        mount("none", "/local", "cgroup", 0),
        mount("none", "/local", "cgroup2", 0),
        write(&[
            "/sys/fs/cgroup/release_agent",
            "/sys/fs/cgroup/cgroup.procs",
        ]),
    ])
}

fn groups_of_others() -> Verdict {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let above = own.lines().find(|line| line.contains("/.."));
    if let Some(above) = above {
        return Verdict::Got(above.to_owned());
    }
    match fs::read_dir("/sys/fs/cgroup").map(|dir| dir.count()) {
        Ok(0) => Verdict::Harmless("there are none to see".to_owned()),
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(count) => Verdict::Got(format!("{count} in /sys/fs/cgroup")),
    }
}

/// A path of the host, also by other ways up. What is there is changed, called and removed, as far as that works: whoever
/// looks from outside sees it.
pub(crate) fn of_host(path: &str) -> Verdict {
    let up = "../".repeat(64);
    let ways = [
        "",
        "/proc/1/root",
        "/proc/self/root",
        &up,
        "/local/../../../..",
    ];
    all(ways.map(|way| {
        let path = format!("{way}{path}");
        match fs::symlink_metadata(&path) {
            Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
            Ok(_) => {
                spoil(&path);
                Verdict::Got(path)
            }
        }
    }))
}

fn spoil(path: &str) {
    let _ = UnixStream::connect(path);
    let file = OpenOptions::new().append(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(b"spoiled"));
    let _ = fs::write(format!("{path}/spoiled"), "");
    let _ = fs::remove_file(path);
}

fn sockets() -> Verdict {
    let paths = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/systemd/private",
        "/run/dbus/system_bus_socket",
    ];
    all(paths.map(|path| match fs::symlink_metadata(path) {
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or(0)),
        Ok(_) => Verdict::Got(path.to_owned()),
    }))
}

fn shared_memory() -> Verdict {
    let lines = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap_or_default();
        text.lines().count().saturating_sub(1)
    };
    let files = |dir: &str| fs::read_dir(dir).map_or(0, Iterator::count);
    let found =
        lines("shm") + lines("sem") + lines("msg") + files("/dev/shm") + files("/dev/mqueue");
    match found {
        0 => Verdict::Harmless("none is there".to_owned()),
        found => Verdict::Got(format!("{found} things of others")),
    }
}

fn sizes() -> Verdict {
    let all_bounded = ["/dev", "/dev/shm"].iter().all(|path| {
        let path = CString::new(*path).unwrap_or_default();
        // SAFETY: a structure of integers, which the call fills.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let done = unsafe { libc::statfs(path.as_ptr(), &raw mut about) };
        let bytes = about.f_blocks.saturating_mul(about.f_bsize as u64);
        done == 0 && (1..=64 << 20).contains(&bytes)
    });
    match all_bounded {
        true => Verdict::Harmless("64 MiB at most".to_owned()),
        false => Verdict::Got("no bound".to_owned()),
    }
}
