//! Files of the user that commands write: a new one never replaces another, and one that is changed is
//! the old or the new one at all times.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use super::exit_code::Failure;

/// Writes a new file.
///
/// # Errors
/// There is one already, or it cannot be written.
pub(super) fn create(path: &Path, text: &str) -> Result<(), Failure> {
    let shown = path.display();
    let mut file = open_new(path, 0o666)?;
    let written = file.write_all(text.as_bytes());
    written.map_err(|error| {
        // Half an example is of no use.
        let _ = fs::remove_file(path);
        Failure::new(format!("cannot write {shown}: {error}"))
    })
}

/// Opens a new file with these permissions, less those that the user's mask takes away.
///
/// # Errors
/// There is one already, or it cannot be made.
pub(super) fn open_new(path: &Path, mode: u32) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(path);
    let shown = path.display();
    opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::new(format!(
            "{shown} is there already and stays as it is; name another file"
        )),
        _ => Failure::new(format!("cannot write {shown}: {error}")),
    })
}

/// Gives a file another content, with the owner and the permissions that it has.
///
/// # Errors
/// It cannot be written; it has its old content then.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let replaced = beside(path, text);
    replaced.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
}

fn beside(path: &Path, text: &str) -> io::Result<()> {
    // What a link names is changed, and not the link.
    let path = fs::canonicalize(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write_like(&path, &new, text).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // Nothing is there if it could not be made.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_like(old: &Path, new: &Path, text: &str) -> io::Result<()> {
    let like = fs::metadata(old)?;
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(new)?;
    fchown(&file, Some(like.uid()), Some(like.gid()))?;
    file.set_permissions(like.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn replaced_file_keeps_permissions_and_links() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("a", &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn new_file_replaces_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        create(&file, "one").unwrap();
        assert!(create(&file, "two").is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    }
}
