//! Other names of foreign files: a task that may make hard links of any file puts the host's into its own directory,
//! and lets the agent read there what it may not read itself.
//!
//! The kernel refuses such links where `fs.protected_hardlinks` is 1, and then nothing is asked here. Where it is 0, a
//! file with several names is read for others only if everybody may read it, or if a user of the allocation owns it.

use std::fs;
use std::io;

use rustix::fs::{FileType, Stat};

/// Whether links to files of others can be made.
const PROTECTED: &str = "/proc/sys/fs/protected_hardlinks";

/// Permission of everybody to read.
const FOR_ALL: u32 = 0o004;

/// Whether this is a foreign file under another name, which is not to be read for others. `users` are those of the
/// allocation.
pub(crate) fn is_foreign(stat: &Stat, users: impl FnOnce() -> Vec<u32>) -> bool {
    // Without root, the agent reads nothing that its tasks may not. Few files get as far as the second question.
    may_not(stat, users) && rustix::process::geteuid().is_root() && !are_refused()
}

/// The same, as an error.
pub(crate) fn refuse_foreign(stat: &Stat, users: impl FnOnce() -> Vec<u32>) -> io::Result<()> {
    match is_foreign(stat, users) {
        true => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            why(stat.st_uid),
        )),
        false => Ok(()),
    }
}

/// Why a file is not read.
pub(crate) fn why(owner: u32) -> String {
    format!(
        "it is another name of a file of user {owner}, who runs no task here (set fs.protected_hardlinks to 1, so that \
         nobody can make such names)"
    )
}

/// Whether these users might not read it under its other names.
fn may_not(stat: &Stat, users: impl FnOnce() -> Vec<u32>) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_nlink > 1
        && stat.st_mode & FOR_ALL == 0
        && !users().contains(&stat.st_uid)
}

/// What an operator should know.
#[must_use]
pub fn remark() -> Option<String> {
    let are_made = rustix::process::geteuid().is_root() && !are_refused();
    are_made.then(|| {
        "fs.protected_hardlinks is 0: who writes to a file system may give any file there another name. Files of \
         others that have several are not read out of the directories of allocations; set it to 1"
            .to_owned()
    })
}

/// Whether the kernel makes no such names. What is not known counts as not.
fn are_refused() -> bool {
    fs::read_to_string(PROTECTED).is_ok_and(|text| text.trim() != "0")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A file with two names, and who owns it.
    fn linked(mode: u32) -> (tempfile::TempDir, Stat) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "private").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        fs::hard_link(&file, dir.path().join("other")).unwrap();
        let stat = rustix::fs::stat(&file).unwrap();
        (dir, stat)
    }

    #[test]
    fn private_file_with_another_name_is_read_for_its_owner_only() {
        let (dir, stat) = linked(0o640);
        let (owner, another) = (stat.st_uid, stat.st_uid.wrapping_add(1));
        assert!(may_not(&stat, || vec![another]));
        assert!(may_not(&stat, Vec::new));
        assert!(!may_not(&stat, || vec![another, owner]));
        fs::remove_file(dir.path().join("other")).unwrap();
        let stat = rustix::fs::stat(dir.path().join("file")).unwrap();
        assert!(!may_not(&stat, Vec::new));
    }

    #[test]
    fn file_that_everybody_may_read_has_any_names() {
        let (_dir, stat) = linked(0o644);
        assert!(!may_not(&stat, Vec::new));
    }
}
