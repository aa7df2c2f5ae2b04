//! A task's secrets: a file system of their own in memory, which no disk ever sees.
//!
//! It is mounted onto the handle of a directory, so that no link leads it elsewhere, and carries
//! nothing that could be executed. It is gone when the machine restarts and is made again before
//! the task's next start. So each bears an id: whoever remembers another one knows that what was put
//! there is there no more.
//!
//! Without the right to mount, secrets are a plain directory, as in Nomad, and have no id.
//!
//! The directory is 0700 of the task's user, or of the agent's where the job names none, and is
//! made so again before each start; tokens in it are 0600. The hook `task_dir` sees to it before
//! each start and reports the id: artifacts that were fetched into secrets with another id are
//! fetched again (templates are rendered before each start anyway). Disks that are handed on have
//! no secrets in them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use drover_core::ids::AllocId;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use rustix::process::{getegid, geteuid};

use super::{AllocDirs, Owner, enter, give, make, named, open_dir};
use crate::facts;

/// The directory.
pub(super) const NAME: &str = "secrets";
/// Its permissions: its owner reads it and nobody else, whatever is in it.
pub(super) const MODE: u32 = 0o700;
/// The file in it that has its id.
const MARK: &str = ".drover-secrets";
/// More layers than this nobody mounts over each other by mistake.
const MOST_LAYERS: u32 = 16;

const MIB: u64 = 1024 * 1024;

impl AllocDirs {
    /// Makes sure that the secrets of a task, whose directory was made, are in memory, with room for
    /// so many megabytes; 0 for one. They belong to `user`, and nobody else reads them, whatever the
    /// task or an earlier version of the agent made of them. Returns their id.
    ///
    /// # Errors
    /// The task's directory is not there, something else stands in the way, or the machine says no.
    pub fn secrets(
        &self,
        alloc: AllocId,
        task: &str,
        user: Owner,
        megabytes: u64,
    ) -> io::Result<String> {
        let user = owner(user);
        // Two at once would mount one over the other.
        let _one_at_a_time = self
            .mounting
            .lock()
            .unwrap_or_else(|lock| lock.into_inner());
        let dir = self.open(alloc, task)?;
        let plain = match open_dir(dir.as_fd(), NAME) {
            Err(Errno::XDEV) => {
                let mounted = enter(dir.as_fd(), NAME)?;
                give(mounted.as_fd(), MODE, user)?;
                return id_of(&mounted);
            }
            // Its task may have removed it.
            Ok(_) | Err(Errno::NOENT) => make(dir.as_fd(), NAME, MODE, user)?,
            Err(error) => return Err(named(error, NAME)),
        };
        if !geteuid().is_root() {
            return Ok(String::new());
        }
        match mount(&plain, megabytes.max(1).saturating_mul(MIB)) {
            // Root without its rights, as in some containers.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(%error, task, "secrets lie on a disk: they cannot be mounted");
                Ok(String::new())
            }
            mounted => mounted,
        }
    }

    /// Makes the directory of a task that has users of its own, of whom this machine knows nothing: what it sees of it
    /// is for all of them, and nobody of this machine but the agent's user gets to it. Otherwise as
    /// [`AllocDirs::build_task`], unless it is `made`, and [`AllocDirs::secrets`].
    ///
    /// # Errors
    /// As those.
    pub fn private_task(
        &self,
        alloc: AllocId,
        task: &str,
        megabytes: u64,
        made: bool,
    ) -> io::Result<String> {
        if !made {
            self.build_task(alloc, task, None)?;
        }
        let own = self.open(alloc, "")?;
        let dir = make(own.as_fd(), task, MODE, owner(None))?;
        let id = self.secrets(alloc, task, None, megabytes)?;
        fchmod(enter(dir.as_fd(), NAME)?, Mode::from_raw_mode(0o777))?;
        Ok(id)
    }

    /// Takes the secrets of all tasks of an allocation away, also while somebody uses them: they
    /// are gone for everybody who has not got them open.
    pub(super) fn drop_secrets(&self, alloc: AllocId) -> io::Result<()> {
        let own = match open_dir(self.root.as_fd(), &alloc.to_string()) {
            // What is no directory of ours has none of our mounts.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            own => own?,
        };
        for entry in Dir::read_from(&own)? {
            let entry = entry?;
            let Ok(task) = open_dir(own.as_fd(), entry.file_name()) else {
                continue;
            };
            let path = format!("/proc/self/fd/{}/{NAME}", task.as_raw_fd());
            for _ in 0..MOST_LAYERS {
                if !matches!(open_dir(task.as_fd(), NAME), Err(Errno::XDEV)) {
                    break;
                }
                unmount(&path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
            }
        }
        Ok(())
    }
}

/// Who runs a task, by its directory: whose that is, and whose the secrets in it are, which is the agent's user where
/// the job names none.
pub(crate) fn users_of(task: impl AsFd) -> Vec<u32> {
    let own = fstat(&task).map(|stat| stat.st_uid);
    let secrets = statat(&task, NAME, AtFlags::SYMLINK_NOFOLLOW).ok();
    // Nobody but its owner can have moved such a directory here from elsewhere.
    let is_private = |stat: &Stat| {
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        is_dir && stat.st_mode & 0o7777 == MODE
    };
    let secrets = secrets.filter(is_private).map(|stat| stat.st_uid);
    own.into_iter().chain(secrets).collect()
}

/// Whose a task's secrets are: without a user of its own, the task runs as the agent's.
pub(super) fn owner(user: Owner) -> Owner {
    user.or_else(|| Some((geteuid().as_raw(), getegid().as_raw())))
}

/// Puts a new file system of this size onto a directory, with its owner and rights. Its id.
fn mount(plain: &OwnedFd, bytes: u64) -> io::Result<String> {
    let stat = fstat(plain)?;
    let fs = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // Empty files take memory as well.
    let inodes = bytes / 1024;
    let options = [
        ("source", "drover-secrets".to_owned()),
        ("size", bytes.to_string()),
        ("nr_inodes", inodes.to_string()),
        ("mode", format!("{:o}", stat.st_mode & 0o7777)),
        ("uid", stat.st_uid.to_string()),
        ("gid", stat.st_gid.to_string()),
    ];
    for (key, value) in options {
        fsconfig_set_string(&fs, key, value)?;
    }
    // Before Linux 6.4 this is no option, and what is in memory may be swapped out.
    let _ = fsconfig_set_flag(&fs, "noswap");
    fsconfig_create(&fs)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let id = write_id(mount.as_fd())?;
    let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&mount, "", plain, "", empty)?;
    Ok(id)
}

/// The id of what is mounted; a new one if there is none that we wrote, because then nobody knows
/// what else is missing.
fn id_of(mounted: &OwnedFd) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = openat(mounted, MARK, flags, Mode::empty()) {
        let stat = fstat(&file)?;
        let mut id = String::new();
        let plain = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_uid == 0;
        if plain && File::from(file).take(64).read_to_string(&mut id).is_ok() && id.len() == 32 {
            return Ok(id);
        }
        crate::dirs::remove_tree(mounted.as_fd(), MARK)?;
    }
    write_id(mounted.as_fd())
}

fn write_id(mount: BorrowedFd<'_>) -> io::Result<String> {
    let id = format!("{:032x}", facts::random());
    match unlinkat(mount, MARK, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
    let file = openat(mount, MARK, flags | OFlags::CLOEXEC, Mode::RUSR)?;
    File::from(file).write_all(id.as_bytes())?;
    Ok(id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::*;
    use crate::dirs::NOBODY;

    #[test]
    fn task_without_a_user_is_run_by_nobody_and_the_agents_user() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root gives directories to others");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let dirs = AllocDirs::new(Arc::new(File::open(dir.path()).unwrap().into()));
        let alloc = AllocId(7);
        dirs.build_alloc(alloc).unwrap();
        dirs.build_task(alloc, "web", None).unwrap();
        dirs.build_task(alloc, "db", Some((1234, 1234))).unwrap();
        let users = |task| users_of(dirs.open(alloc, task).unwrap());
        assert_eq!(users("web"), [NOBODY.0, 0]);
        assert_eq!(users("db"), [1234, 1234]);
        // What was put into its place says nothing.
        let secrets = dir.path().join(alloc.to_string()).join("db").join(NAME);
        fs::remove_dir(&secrets).unwrap();
        fs::create_dir(&secrets).unwrap();
        fs::set_permissions(&secrets, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(users("db"), [1234]);
    }
}
