//! The root of an isolated task, as a list of mounts that its shim puts together.
//!
//! The root is the task's directory itself. Over it lie parts of the host for reading only (`chroot_env`), what
//! the allocation shares, the task's secrets, a `/dev` with little in it, `/proc` and `/sys` with much of them
//! hidden, and the task's volumes and devices. Nothing is copied.
//!
//! All that is the host's is opened here, once, and sent as mounts that are nowhere yet; places are made through
//! handles, and no link is followed. No mount lets programs gain privileges or has devices, but for the few
//! nodes of `/dev`, each of which is a mount of its own.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use drover_core::driver::isolation::Profile;
use drover_core::effect::TaskConfig;
use drover_core::ids::TaskKey;
use drover_core::model::device::Mount as Wanted;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, mknodat, open, openat, symlinkat};
use rustix::io::Errno;

use super::detached::{self, Access};
use crate::dirs::{AllocDirs, enter};
use crate::network::{HOSTS, RESOLV};
use crate::shim::{Mount, Mounted};

/// What of the host tasks see where the agent's configuration does not say it: what Nomad's tasks get copies of. Of
/// systemd's resolver that is its files, to which `/etc/resolv.conf` may lead, and not the sockets beside them, by which
/// tasks without a network could ask it.
pub const CHROOT: [&str; 10] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/run/resolvconf",
    "/run/systemd/resolve/resolv.conf",
    "/run/systemd/resolve/stub-resolv.conf",
    "/sbin",
    "/usr",
];

/// What of `/etc` no task sees, since root may read it.
const SECRET: [&str; 4] = ["etc/shadow", "etc/shadow-", "etc/gshadow", "etc/gshadow-"];

/// The nodes of `/dev`.
const NODES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];

/// The links of `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];

/// What of `/proc` belongs to the whole machine and can be written.
const READ_ONLY: [&str; 5] = [
    "proc/bus",
    "proc/fs",
    "proc/irq",
    "proc/sys",
    "proc/sysrq-trigger",
];

/// What tells of the whole machine what no task needs.
const HIDDEN: [&str; 15] = [
    "proc/acpi",
    "proc/asound",
    "proc/interrupts",
    "proc/kallsyms",
    "proc/kcore",
    "proc/keys",
    "proc/kmsg",
    "proc/latency_stats",
    "proc/sched_debug",
    "proc/scsi",
    "proc/timer_list",
    "proc/timer_stats",
    "sys/devices/virtual/powercap",
    "sys/firmware",
    "sys/kernel",
];

/// How many terminals a task may open at a time: the machine has a few thousand for all, and what it keeps back for
/// itself is no less open to a task than to others.
const TERMINALS: &str = "64";

/// Bytes of shared memory that a task may have in `/dev/shm`; its memory limit holds for it too.
const SHM: &str = "67108864";

/// What of the host becomes part of a task's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPart {
    /// Where it is on the host. What is not there is left out.
    pub source: PathBuf,
    /// Where the task sees it, without a slash at the beginning.
    pub place: String,
}

/// The parts of the host where nothing else is configured.
pub fn usual_parts() -> Vec<HostPart> {
    let part = |path: &str| HostPart {
        source: path.into(),
        place: path.trim_start_matches('/').to_owned(),
    };
    CHROOT.map(part).into()
}

/// The mounts of a task's root, in order.
///
/// # Errors
/// Something that was asked for is not there, a place is a link, or the kernel says no.
pub(super) fn mounts(
    parts: &[HostPart],
    dirs: &AllocDirs,
    network: Option<&OwnedFd>,
    task: &TaskKey,
    config: &TaskConfig,
    profile: &Profile,
) -> io::Result<Vec<Mount>> {
    let dir = dirs.open(task.alloc, task.task.as_str())?;
    let mut root = Root {
        dir: dir.as_fd(),
        mounts: Vec::with_capacity(64),
    };
    root.put(
        "",
        Mounted::Root(detached::copy(dir.as_fd(), "", Access::OWN)?),
    )?;
    for part in parts {
        root.host_part(part, profile)?;
    }
    if let Some(network) = network {
        root.resolver(network)?;
    }
    let shared = dirs.open(task.alloc, "alloc")?;
    root.tree("alloc", detached::copy(shared.as_fd(), "", Access::OWN)?)?;
    let secrets = enter(dir.as_fd(), "secrets")?;
    root.tree("secrets", detached::copy(secrets.as_fd(), "", Access::OWN)?)?;
    root.devices(config)?;
    root.kernel()?;
    for wanted in &config.reserved.mounts {
        let named = |error: io::Error| {
            let why = format!(
                "mount {:?} at {:?}: {error}",
                wanted.host_path, wanted.task_path
            );
            io::Error::new(error.kind(), why)
        };
        root.volume(wanted).map_err(named)?;
    }
    Ok(root.mounts)
}

/// A root in the making.
struct Root<'a> {
    /// The task's directory.
    dir: BorrowedFd<'a>,
    mounts: Vec<Mount>,
}

impl Root<'_> {
    fn put(&mut self, place: &str, what: Mounted) -> io::Result<()> {
        let place = CString::new(place)?;
        self.mounts.push(Mount { what, place });
        Ok(())
    }

    /// Puts a directory's mount at a place, which is made.
    fn tree(&mut self, place: &str, tree: OwnedFd) -> io::Result<()> {
        make_place(self.dir, place, true)?;
        self.put(place, Mounted::Tree(tree))
    }

    fn host_part(&mut self, part: &HostPart, profile: &Profile) -> io::Result<()> {
        let named = |error: io::Error| {
            let why = format!("{} for the task's root: {error}", part.source.display());
            io::Error::new(error.kind(), why)
        };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let source = match open(&part.source, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            source => source.map_err(|errno| named(errno.into()))?,
        };
        let is_dir = FileType::from_raw_mode(fstat(&source)?.st_mode) == FileType::Directory;
        make_place(self.dir, &part.place, is_dir).map_err(named)?;
        let access = Access {
            // Where programs may gain privileges, those of the host are those that do.
            suid: !profile.no_new_privileges,
            ..Access::HOST
        };
        let tree = detached::copy(source.as_fd(), "", access).map_err(named)?;
        self.put(&part.place, Mounted::Tree(tree))
    }

    /// The files by which names are resolved, where the allocation's network has its own.
    fn resolver(&mut self, network: &OwnedFd) -> io::Result<()> {
        for name in [HOSTS, RESOLV] {
            let file = match detached::copy(network.as_fd(), name, Access::HOST_FILE) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let place = self.behind_links(&format!("etc/{name}"))?;
            self.put(&place, Mounted::Tree(file))?;
        }
        Ok(())
    }

    /// Where a file of `/etc` is in the task's root: what the host has there may be a link, as systemd's is, and its
    /// end be no part of the root, where the task's directory is then.
    fn behind_links(&self, place: &str) -> io::Result<String> {
        let host = Path::new("/").join(place);
        match std::fs::symlink_metadata(&host) {
            Ok(found) if found.is_symlink() => {}
            // What is mounted over it needs it to be there.
            Ok(_) => return Ok(place.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let why = format!(
                    "the host has no {}, over which the task's could be",
                    host.display()
                );
                return Err(io::Error::new(io::ErrorKind::NotFound, why));
            }
            Err(error) => return Err(error),
        }
        let end = std::fs::read_link(&host)?;
        let whole = Path::new("/etc").join(end);
        let mut names: Vec<String> = Vec::new();
        for part in whole.components() {
            match part {
                Component::ParentDir => {
                    names.pop();
                }
                Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        let end = names.join("/");
        make_place(self.dir, &end, false)?;
        Ok(end)
    }

    /// `/dev`: a small file system for reading only, with a mount for each node.
    fn devices(&mut self, config: &TaskConfig) -> io::Result<()> {
        let options = [("mode", "755"), ("size", "65536"), ("nr_inodes", "256")];
        let dev = detached::fresh("tmpfs", &options, Access::OWN)?;
        for name in ["mqueue", "pts", "shm"] {
            mkdirat(&dev, name, Mode::from_raw_mode(0o755))?;
        }
        for (name, target) in LINKS {
            symlinkat(target, &dev, name)?;
        }
        let mut nodes = Vec::new();
        for name in NODES {
            nodes.push((name.to_owned(), Path::new("/dev").join(name)));
        }
        for node in &config.reserved.nodes {
            let place = node.task_path.strip_prefix("/dev/").ok_or_else(|| {
                let why = format!("the device {:?} is not below /dev", node.task_path);
                io::Error::new(io::ErrorKind::InvalidInput, why)
            })?;
            nodes.push((place.to_owned(), PathBuf::from(&node.host_path)));
        }
        for (name, _) in &nodes {
            make_place(dev.as_fd(), name, false)?;
        }
        detached::make_read_only(dev.as_fd())?;
        self.tree("dev", dev)?;
        for (name, path) in nodes {
            let node = detached::copy_path(&path, Access::NODE)?;
            self.put(&format!("dev/{name}"), Mounted::Tree(node))?;
        }
        let options = [
            ("newinstance", ""),
            ("ptmxmode", "0666"),
            ("mode", "0620"),
            ("gid", "5"),
            ("max", TERMINALS),
        ];
        let terminals = detached::fresh("devpts", &options, Access::NODE)?;
        self.put("dev/pts", Mounted::Tree(terminals))?;
        let options = [("mode", "1777"), ("size", SHM)];
        let shared = detached::fresh("tmpfs", &options, Access::DATA)?;
        self.put("dev/shm", Mounted::Tree(shared))?;
        self.put("dev/mqueue", Mounted::Mqueue)
    }

    /// What the kernel tells, with most of what it tells of the machine as a whole hidden.
    fn kernel(&mut self) -> io::Result<()> {
        for (name, what) in [("proc", Mounted::Proc), ("sys", Mounted::Sysfs)] {
            make_place(self.dir, name, true)?;
            self.put(name, what)?;
        }
        for place in READ_ONLY {
            self.put(place, Mounted::ReadOnly)?;
        }
        for place in HIDDEN.iter().chain(&SECRET) {
            self.put(place, Mounted::Mask)?;
        }
        Ok(())
    }

    fn volume(&mut self, wanted: &Wanted) -> io::Result<()> {
        let place = place_of(&wanted.task_path)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let source = open(&wanted.host_path, flags, Mode::empty())?;
        let follows = match wanted.propagation_mode.as_str() {
            "" | "private" => false,
            "host-to-task" => true,
            other => {
                let why = format!("the propagation {other:?} is not possible with exec");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
        };
        let access = Access {
            read_only: wanted.read_only,
            follows,
            ..Access::VOLUME
        };
        let is_dir = FileType::from_raw_mode(fstat(&source)?.st_mode) == FileType::Directory;
        make_place(self.dir, &place, is_dir)?;
        let tree = detached::copy(source.as_fd(), "", access)?;
        self.put(&place, Mounted::Tree(tree))
    }
}

/// A path of a task as a place below its root.
fn place_of(path: &str) -> io::Result<String> {
    let names: Vec<&str> = path
        .split('/')
        .filter(|it| !matches!(*it, "" | "."))
        .collect();
    if names.is_empty() || names.contains(&"..") {
        let why = "it must be a path below the task's root, without \"..\"";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(names.join("/"))
}

/// Makes a place for a mount below a directory: a directory or an empty file, and the directories on the way. What
/// is there already stays.
fn make_place(below: BorrowedFd<'_>, place: &str, is_dir: bool) -> io::Result<()> {
    let mut names: Vec<&str> = place.split('/').collect();
    let file = if is_dir { None } else { names.pop() };
    let mut at: Option<OwnedFd> = None;
    for name in names {
        let dir = at.as_ref().map_or(below, OwnedFd::as_fd);
        match mkdirat(dir, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(in_the_way(place, error)),
        }
        let next = enter(dir, name).map_err(|error| in_the_way(place, error))?;
        at = Some(next);
    }
    let Some(file) = file else { return Ok(()) };
    let dir = at.as_ref().map_or(below, OwnedFd::as_fd);
    // Not opened: what another thread spawns meanwhile would have it open for writing until it executes its program, and
    // the file system could not be made one for reading only.
    let made = mknodat(
        dir,
        file,
        FileType::RegularFile,
        Mode::from_raw_mode(0o644),
        0,
    );
    match made {
        // The shim follows no link that is there.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(in_the_way(place, error)),
    }
}

fn in_the_way(place: &str, error: Errno) -> io::Error {
    let error = io::Error::from(error);
    let why = format!("/{place} of the task's root cannot be made a place for a mount: {error}");
    io::Error::new(error.kind(), why)
}

/// Whether this kernel can do all that.
pub(super) fn probe() -> io::Result<()> {
    let node = openat(
        CWD,
        "/dev/null",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    detached::copy(node.as_fd(), "", Access::NODE).map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn places_become_read_only_while_others_spawn() {
        if !geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let over = AtomicBool::new(false);
        let made = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        assert!(Command::new("true").status().unwrap().success());
                    }
                });
            }
            let made: io::Result<()> = (0..300).try_for_each(|_| {
                let dev = detached::fresh("tmpfs", &[("mode", "755")], Access::OWN)?;
                for name in NODES {
                    make_place(dev.as_fd(), name, false)?;
                }
                detached::make_read_only(dev.as_fd())
            });
            over.store(true, Ordering::Relaxed);
            made
        });
        made.unwrap();
    }
}
