//! The programs of a plugin directory, found and opened through handles.
//!
//! A plugin's name is one component of a path below its directory, and what is opened there is
//! what is executed: nobody can put something else in its place in between.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2};
use rustix::io::Errno;
use rustix::process::geteuid;

/// A name is never longer.
const MAX_NAME: usize = 255;

/// More files than that are not looked at.
const MAX_FILES: usize = 1000;

/// Who may change it besides its owner: its group and everybody.
const OTHERS_WRITE: u32 = 0o022;

/// Why a program is none that is run.
#[derive(Debug)]
pub enum ProgramError {
    /// Its name is no file name.
    Name,
    /// A link leads out of the directory, or through the system's own.
    LeadsOut,
    /// It is something else than a file.
    NotAFile,
    /// It is not marked as executable.
    NotExecutable,
    /// It belongs to somebody who is neither root nor the agent's user: its owner.
    Foreign(u32),
    /// Others than its owner may write it.
    Writable,
    /// It cannot be opened.
    Io(io::Error),
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("its name must be a plain file name"),
            Self::LeadsOut => f.write_str("it is a link that leads out of the plugin directory"),
            Self::NotAFile => f.write_str("it is no regular file"),
            Self::NotExecutable => f.write_str("it is not executable"),
            Self::Foreign(uid) => write!(
                f,
                "it belongs to user {uid}, and must belong to root or to the agent's user"
            ),
            Self::Writable => f.write_str("others than its owner may write it (chmod go-w)"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProgramError {}

impl From<Errno> for ProgramError {
    fn from(error: Errno) -> ProgramError {
        match error {
            Errno::XDEV | Errno::LOOP => ProgramError::LeadsOut,
            error => ProgramError::Io(error.into()),
        }
    }
}

/// The directory that plugins are taken from.
#[derive(Debug)]
pub struct PluginDir {
    path: PathBuf,
    dir: OwnedFd,
}

/// A plugin's program, open.
#[derive(Debug)]
pub struct Program {
    name: String,
    path: PathBuf,
    file: OwnedFd,
    script: bool,
}

impl PluginDir {
    /// Opens the directory. It must belong to root or the agent's user, and nobody else may write
    /// to it.
    ///
    /// # Errors
    /// It is not there, or not safe.
    pub fn open(path: &Path) -> Result<PluginDir, ProgramError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = open(path, flags, Mode::empty())?;
        trusted(&fstat(&dir)?)?;
        let path = path.to_owned();
        Ok(PluginDir { path, dir })
    }

    /// Opens the program of this name, if it is one that is run.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub fn program(&self, name: &str) -> Result<Program, ProgramError> {
        let plain = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(['/', '\0']);
        if !plain || name == "." || name == ".." {
            return Err(ProgramError::Name);
        }
        let file = self.open_file(name)?;
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ProgramError::NotAFile);
        }
        if stat.st_mode & 0o111 == 0 {
            return Err(ProgramError::NotExecutable);
        }
        trusted(&stat)?;
        let file = File::from(file);
        let mut head = Vec::new();
        // A program that cannot be read is no script.
        let _ = (&file).take(2).read_to_end(&mut head);
        Ok(Program {
            name: name.to_owned(),
            path: self.path.join(name),
            file: file.into(),
            script: head == b"#!",
        })
    }

    /// All names in the directory, sorted: those of programs, and those that are none with the
    /// reason.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&self) -> io::Result<Vec<(String, Result<(), ProgramError>)>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.dir)?.take(MAX_FILES) {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        let names = names.into_iter();
        Ok(names
            .map(|name| {
                let found = self.program(&name).map(drop);
                (name, found)
            })
            .collect())
    }

    fn open_file(&self, name: &str) -> Result<OwnedFd, Errno> {
        // Of a pipe nobody is waited for.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.dir, name, flags, Mode::empty(), resolve) {
                // Something was renamed meanwhile: the kernel asks to look again.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }
}

impl Program {
    /// Its name in the directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it was found; for people and for its own first argument.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same program once more.
    pub(super) fn try_clone(&self) -> io::Result<Program> {
        Ok(Program {
            name: self.name.clone(),
            path: self.path.clone(),
            file: self.file.try_clone()?,
            script: self.script,
        })
    }

    /// Whether an interpreter runs it, which opens it once more.
    pub(super) fn is_script(&self) -> bool {
        self.script
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn trusted(stat: &Stat) -> Result<(), ProgramError> {
    if stat.st_uid != 0 && stat.st_uid != geteuid().as_raw() {
        return Err(ProgramError::Foreign(stat.st_uid));
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(ProgramError::Writable);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn write(path: &Path, mode: u32) {
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_programs_in_plugin_dir_are_run() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("plugins");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        write(&base.path().join("outside"), 0o755);
        write(&path.join("good"), 0o755);
        write(&path.join("plain"), 0o644);
        write(&path.join("shared"), 0o775);
        fs::create_dir(path.join("sub")).unwrap();
        write(&path.join("sub/deep"), 0o755);
        symlink("good", path.join("link")).unwrap();
        symlink("../outside", path.join("out")).unwrap();
        symlink(base.path().join("outside"), path.join("absolute")).unwrap();
        symlink("/proc/self/exe", path.join("magic")).unwrap();
        let dir = PluginDir::open(&path).unwrap();
        let verdict = |name: &str| match dir.program(name) {
            Ok(_) => "good",
            Err(ProgramError::Name) => "name",
            Err(ProgramError::LeadsOut) => "leads out",
            Err(ProgramError::NotAFile) => "no file",
            Err(ProgramError::NotExecutable) => "not executable",
            Err(ProgramError::Foreign(_)) => "foreign",
            Err(ProgramError::Writable) => "writable",
            Err(ProgramError::Io(_)) => "io",
        };
        for (name, wanted) in [
            ("good", "good"),
            ("link", "good"),
            ("plain", "not executable"),
            ("shared", "writable"),
            ("sub", "no file"),
            ("out", "leads out"),
            ("absolute", "leads out"),
            ("magic", "leads out"),
            ("missing", "io"),
            ("", "name"),
            ("..", "name"),
            ("sub/deep", "name"),
            ("../outside", "name"),
        ] {
            assert_eq!(verdict(name), wanted, "{name:?}");
        }
        let listed = dir.list().unwrap();
        let good = listed.iter().filter(|(_, found)| found.is_ok());
        let good: Vec<_> = good.map(|(name, _)| name.as_str()).collect();
        assert_eq!((listed.len(), good), (8, vec!["good", "link"]));
    }

    #[test]
    fn writable_plugin_dir_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            PluginDir::open(dir.path()),
            Err(ProgramError::Writable)
        ));
    }
}
