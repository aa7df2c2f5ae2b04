//! The directories that shims and their records live in.

use super::live::Live;
use super::lock;
use super::process::ShimProcess;
use super::program;
use super::record::{Record, State};
use super::sealed::Sealed;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The place of an agent's shims, below its data directory.
#[derive(Clone, Debug)]
pub struct ShimHome {
    pub(super) program: PathBuf,
    /// Why there is none, if there is none.
    pub(super) sealed: Arc<Mutex<Result<Arc<Sealed>, io::Error>>>,
    pub(super) run: Arc<OwnedFd>,
    pub(super) null: Arc<OwnedFd>,
}

impl ShimHome {
    /// Opens the home in `data_dir`, which must exist; makes `bin/` and `run/` and writes the shim
    /// program where they are missing.
    ///
    /// # Errors
    /// What the file system says, with the path. Programs must be executable there (no `noexec`).
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        let data_dir = std::path::absolute(data_dir)?;
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| named(&error, format!("shim directory {}", path.display()))
        };
        let data = File::open(&data_dir).map_err(at(&data_dir))?;
        let bin = data_dir.join("bin");
        make_dir(data.as_fd(), "bin", 0o700).map_err(at(&bin))?;
        // Whatever a task does to the program's file, as which it can be run: no other user reaches it.
        fs::set_permissions(&bin, fs::Permissions::from_mode(0o700)).map_err(at(&bin))?;
        let run = data_dir.join("run");
        make_dir(data.as_fd(), "run", 0o700).map_err(at(&run))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let run_fd =
            openat(&data, "run", flags, Mode::empty()).map_err(|errno| at(&run)(errno.into()))?;
        let program = program::install(&bin).map_err(at(&bin))?;
        Ok(Self {
            sealed: Arc::new(Mutex::new(
                Sealed::new(program::PROGRAM, &program).map(Arc::new),
            )),
            program,
            run: Arc::new(run_fd),
            null: Arc::new(
                File::options()
                    .read(true)
                    .write(true)
                    .open("/dev/null")?
                    .into(),
            ),
        })
    }

    /// The same program, with records and sockets of its own in `name` below the same data
    /// directory.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn beside(&self, data_dir: &Path, name: &str) -> io::Result<Self> {
        let at = |error: io::Error| {
            let path = data_dir.join(name);
            named(&error, format!("shim directory {}", path.display()))
        };
        let data = File::open(data_dir).map_err(at)?;
        make_dir(data.as_fd(), name, 0o700).map_err(at)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let run = openat(&data, name, flags, Mode::empty()).map_err(|errno| at(errno.into()))?;
        Ok(Self {
            program: self.program.clone(),
            sealed: self.sealed.clone(),
            run: Arc::new(run),
            null: self.null.clone(),
        })
    }

    /// What operators should know of how shims run here, if anything.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        let error = sealed.as_ref().err()?;
        Some(format!(
            "shims run from {}, which tasks of root can change: no memory can be executed ({error}); set \
             vm.memfd_noexec to 0 or 1, or let no task be root",
            self.program.display()
        ))
    }

    /// The program in sealed memory, if there is one.
    pub(super) fn sealed(&self) -> Option<Arc<Sealed>> {
        let sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        sealed.as_ref().ok().cloned()
    }

    /// Another copy of the program in sealed memory, from which shims run from now on.
    pub(super) fn seal_again(&self) -> io::Result<Arc<Sealed>> {
        let copy = Arc::new(Sealed::new(program::PROGRAM, &self.program)?);
        let mut sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        *sealed = Ok(copy.clone());
        Ok(copy)
    }

    /// The program's file, for whoever else has a use for it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The directory of records and sockets.
    pub(crate) fn run_dir(&self) -> BorrowedFd<'_> {
        self.run.as_fd()
    }

    /// Reads a launch's record without its lock: a snapshot. `None` if there is none, or only an
    /// empty one.
    ///
    /// # Errors
    /// What the file system says; `InvalidData` if the record is damaged.
    pub fn read_record(&self, launch: &str) -> io::Result<Option<Record>> {
        lock::parse_id(launch)?;
        let file = match lock::open(self.run.as_fd(), launch, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        match lock::read(&file)? {
            lock::Content::Empty => Ok(None),
            lock::Content::Valid(record) => Ok(Some(*record)),
            lock::Content::Damaged => {
                let message = format!("record of launch {launch}: damaged or of another version");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }

    /// Whether something of a launch may be alive: its record says so, in this boot, or cannot be
    /// read.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn may_run(&self, launch: &str) -> io::Result<bool> {
        match self.read_record(launch) {
            Ok(None) => Ok(false),
            Ok(Some(record)) => {
                let is_final = match record.state {
                    State::Starting | State::Running | State::Ended => false,
                    State::Exited | State::Failed | State::Abandoned => true,
                };
                Ok(!is_final && record.boot == lock::boot_id()?)
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Removes a launch's record, socket and pipes; it is no error if they are gone.
    ///
    /// Only for a launch that is over or was never started: without its record, nothing stops a
    /// shim on its way from starting it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn forget(&self, launch: &str) -> io::Result<()> {
        lock::parse_id(launch)?;
        // The record last: as long as it is there, the launch is still listed.
        for suffix in ["s", "o", "e", "r"] {
            match self.remove(launch, suffix) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// All launches that have a record, in no order.
    ///
    /// # Errors
    /// What the file system says.
    pub fn list(&self) -> io::Result<Vec<String>> {
        self.named("r")
    }

    /// All launches that have a file with this suffix.
    pub(super) fn named(&self, suffix: &str) -> io::Result<Vec<String>> {
        let mut launches = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.run)? {
            let entry = entry?;
            let name = entry.file_name().to_str().unwrap_or_default();
            if let Some((launch, last)) = name.split_once('.')
                && last == suffix
                && lock::parse_id(launch).is_ok()
            {
                launches.push(launch.to_owned());
            }
        }
        Ok(launches)
    }

    /// Puts together the handle of a running launch.
    pub(super) fn live(
        &self,
        launch: &str,
        shim: ShimProcess,
        task: super::record::Process,
        pipes: Option<[OwnedFd; 2]>,
    ) -> Live {
        Live {
            launch: launch.to_owned(),
            home: self.clone(),
            shim,
            task,
            pipes,
        }
    }
}

fn make_dir(parent: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<()> {
    match mkdirat(parent, name, Mode::from_raw_mode(mode)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// The error with what it happened to in front.
pub(super) fn named(error: &io::Error, what: String) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
