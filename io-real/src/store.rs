//! What the core remembers, on disk: sled, one batch and one flush for each commit.
//!
//! A thread of its own owns the database, because a flush blocks. The core has one commit in
//! flight at a time and lets later changes gather behind it, which makes a group commit out of
//! whatever comes meanwhile. What is on disk already is not written again.
//!
//! Below the store's directory, `records/` is the database, and `records.new/` and `check/` are
//! what an agent that died left of making or checking it.

mod codec;
mod db;
mod probe;
mod sync;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use drover_core::store::{Batch, CommitId, Saved};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;

use self::db::Db;

/// How often, and how far apart, to try to take hold of the store: an agent may be about to end, and
/// a process that is just being started holds what its parent holds.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// A commit for the store's thread.
struct Commit {
    id: CommitId,
    batch: Arc<Batch>,
    done: Option<Done>,
}

type Done = Box<dyn FnOnce(CommitId, Result<(), String>) + Send>;

impl Commit {
    fn answer(mut self, result: Result<(), String>) {
        if let Some(done) = self.done.take() {
            done(self.id, result);
        }
    }
}

/// Whatever becomes of a commit, its answer leaves.
impl Drop for Commit {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(self.id, Err("the store's thread ended".to_owned()));
        }
    }
}

/// The way to the store. Dropping it ends the thread, after what was handed in is written.
pub struct Store {
    commits: Option<mpsc::Sender<Commit>>,
    thread: Option<thread::JoinHandle<()>>,
    _lock: OwnedFd,
}

/// Why the store cannot be opened.
#[derive(Debug)]
pub enum StoreError {
    /// Another agent uses it.
    Held(PathBuf),
    /// The disk says no.
    Io(PathBuf, String),
    /// What is there cannot be read as a store.
    Damaged(PathBuf, String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Held(dir) => write!(
                f,
                "another agent uses the state in {}; stop it, or choose another with -data-dir",
                dir.display()
            ),
            StoreError::Io(dir, why) => {
                write!(f, "cannot open the state in {}: {why}", dir.display())
            }
            StoreError::Damaged(dir, why) => {
                let dir = dir.display();
                write!(
                    f,
                    "the state in {dir} is damaged and cannot be read: {why}\n\
                     Nothing was changed. To go on without it: mv {dir} {dir}.damaged\n\
                     and start again; tasks of the lost state that still run are then ended."
                )
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// What was found in the store.
pub struct Opened {
    /// The way to it.
    pub store: Store,
    /// What it held.
    pub saved: Saved,
    /// Records that cannot be read. They stay where they are and cost only what they were about.
    pub damaged: Vec<String>,
}

impl Store {
    /// Opens the store in `dir`, or makes it.
    ///
    /// # Errors
    /// See [`StoreError`]. Nothing that was there is changed then.
    pub fn open(dir: &Path) -> Result<Opened, StoreError> {
        let lock = hold(dir)?;
        let found = probe::find(dir)?;
        let db = Db::open(&dir.join(probe::RECORDS)).map_err(|why| why.into_error(dir))?;
        let (commits, inbox) = mpsc::channel();
        let builder = thread::Builder::new().name("store".to_owned());
        let spawned = builder.spawn({
            let dir = dir.join(probe::RECORDS);
            move || serve(&dir, Some(db), &inbox)
        });
        let failed = |error: io::Error| StoreError::Io(dir.to_owned(), error.to_string());
        let store = Store {
            commits: Some(commits),
            thread: Some(spawned.map_err(failed)?),
            _lock: lock,
        };
        Ok(Opened {
            store,
            saved: found.saved,
            damaged: found.damaged,
        })
    }

    /// Writes a commit and calls `done` when it would survive a crash, or failed.
    pub fn commit(
        &self,
        id: CommitId,
        batch: Arc<Batch>,
        done: impl FnOnce(CommitId, Result<(), String>) + Send + 'static,
    ) {
        let commit = Commit {
            id,
            batch,
            done: Some(Box::new(done)),
        };
        if let Some(commits) = &self.commits {
            // What cannot be sent is dropped, and says so.
            let _ = commits.send(commit);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.commits.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was answered already, as failed commits.
            let _ = thread.join();
        }
    }
}

/// Makes the directory, if need be, and takes hold of it.
fn hold(dir: &Path) -> Result<OwnedFd, StoreError> {
    let failed = |error: io::Error| StoreError::Io(dir.to_owned(), error.to_string());
    std::fs::create_dir_all(dir).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = open(dir, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
    for _ in 0..TRIES {
        match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(held),
            Err(Errno::WOULDBLOCK) => thread::sleep(PAUSE),
            Err(errno) => return Err(failed(errno.into())),
        }
    }
    Err(StoreError::Held(dir.to_owned()))
}

fn serve(dir: &Path, mut db: Option<Db>, inbox: &mpsc::Receiver<Commit>) {
    while let Ok(commit) = inbox.recv() {
        let written = write(dir, &mut db, &commit.batch);
        if written.is_err() {
            // A database that failed once fails for ever; a new one may do better.
            db = None;
        }
        commit.answer(written);
    }
}

fn write(dir: &Path, db: &mut Option<Db>, batch: &Batch) -> Result<(), String> {
    let open = match db.take() {
        Some(open) => open,
        None => Db::open(dir).map_err(|why| why.text)?,
    };
    db.insert(open).commit(batch)
}
