//! What the core remembers, on disk: sled, one batch and one flush for each commit, then
//! `fdatasync` of its file and of its files of large values ([`sync`]).
//!
//! A thread of its own owns the database, because a flush blocks. The core has one commit in flight
//! at a time and lets later changes gather behind it, which makes a group commit out of whatever
//! comes meanwhile. What is on disk already is not written again.
//!
//! In the data directory, `state/records/` is the database, and `state/records.new/` and
//! `state/check/` are what an agent that died left of making or checking it. `last-commit` has the
//! number of the last commit ([`counter`]), by which an earlier state is noticed. A state can be
//! saved as one file ([`snapshot`]) and replaced by one ([`restore`]).
//!
//! Variables are encrypted before they get here ([`sealed`], [`crate::keyring`]).
//!
//! Each batch also holds the number of all records and the sum of their hashes, because a damaged
//! sled may open as something else. At start a *copy* is opened first ([`probe`]): if it is
//! damaged, the agent says so, changes nothing, and ends. One unreadable record costs only what it
//! was about (`core/src/store/mod.rs`). Panics of sled are caught and are errors.
//!
//! After a power cut in the middle of a commit the commit is there whole or not at all, and nothing
//! that waited for it was done. This holds by construction: the tests kill processes and fill
//! disks, and none cuts the power.

mod codec;
mod counter;
mod db;
mod probe;
mod readable;
mod restore;
mod sealed;
mod snapshot;
mod sync;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::Duration;

use drover_core::store::freshness::{Evidence, Refusal, Verdict};
use drover_core::store::{Batch, CommitId, Saved};
use rustix::fs::{Mode, OFlags, open};

use self::counter::Counter;
pub(crate) use self::counter::FILE;
use self::db::Db;
pub use self::readable::{Readable, readable};
pub use self::restore::stage;
use self::sealed::Sealing;
use self::snapshot::Writer;
pub use self::snapshot::{About, KindOf, MAX_SNAPSHOT, Snapshot, SnapshotError, load};
use crate::flock::lock_within;
use crate::keyring::root::RootKey;
use crate::keyring::{self, KeyFacts, KeyId, Keyring, KeyringError};

/// The store's directory, in the data directory.
const STATE: &str = "state";

/// Where launches have their records, in the data directory.
const LAUNCHES: [&str; 2] = ["run", "plugin-logs"];

/// How long to try to take hold of the store: an agent may be about to end, and a process that is
/// just being started holds what its parent holds.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// What the store's thread is to do.
enum Work {
    Commit(Commit),
    EndLoss,
    Keys(KeyWork),
    Snapshot(SnapshotDone),
}

type SnapshotDone = Box<dyn FnOnce(Result<Vec<u8>, String>) + Send>;

/// What is to be done with keys. It happens on the store's thread, between two commits.
enum KeyWork {
    Rotate { full: bool, done: KeyDone<KeyFacts> },
    Remove { key: KeyId, done: KeyDone<()> },
}

type KeyDone<T> = Box<dyn FnOnce(Result<T, KeyringError>) + Send>;

/// How many variables are encrypted anew between two commits.
const RESEALED: usize = 64;

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
    work: Option<Arc<mpsc::Sender<Work>>>,
    keyring: Arc<Keyring>,
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
    /// It is not the state that was acknowledged last. The path is the data directory.
    Lost(PathBuf, Refusal),
    /// Its variables cannot be decrypted.
    Keyring(KeyringError),
    /// A snapshot that is to replace it cannot be used; with where it lies.
    Restore(PathBuf, SnapshotError),
}

impl From<KeyringError> for StoreError {
    fn from(error: KeyringError) -> StoreError {
        StoreError::Keyring(error)
    }
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
                     Nothing was changed. Restore {dir} from a backup. To go on without it: \
                     mv {dir} {dir}.damaged\n{ACCEPT}"
                )
            }
            StoreError::Keyring(error) => error.fmt(f),
            StoreError::Restore(dir, why) => {
                let dir = dir.display();
                write!(
                    f,
                    "the snapshot in {dir}, which is to replace the state, cannot be used: {why}\n\
                     Nothing was changed. To go on with the state as it is: rm -r {dir}"
                )
            }
            StoreError::Lost(dir, refusal) => {
                let dir = dir.display();
                match refusal {
                    Refusal::Behind { store, last } => write!(
                        f,
                        "the state in {dir}/{STATE} is an earlier one: it ends with commit {store}, \
                         and commit {last} was acknowledged ({dir}/{FILE})"
                    ),
                    Refusal::Missing(Some(last)) => write!(
                        f,
                        "the state in {dir}/{STATE} is not there (commit 0), and commit {last} was \
                         acknowledged ({dir}/{FILE})"
                    ),
                    Refusal::Missing(None) => write!(
                        f,
                        "the state in {dir}/{STATE} is not there, and tasks were started from \
                         {dir} before (see {dir}/run)"
                    ),
                    Refusal::Unknown(store) => write!(
                        f,
                        "{dir}/{FILE} is damaged, so nobody can tell whether the state in \
                         {dir}/{STATE}, which ends with commit {store}, is the last one"
                    ),
                }?;
                write!(
                    f,
                    "\nNothing was changed. Restore {dir}/{STATE} from a backup, or go on with what \
                     is there.\n{ACCEPT}"
                )
            }
        }
    }
}

/// How to go on with an earlier state, and what becomes of tasks.
const ACCEPT: &str = "Either way, start the agent once with -accept-state-loss. Tasks that its state \
                      does not know are left running; `drover system audit` lists them, and \
                      `drover system audit -fix` ends them.";

impl std::error::Error for StoreError {}

/// What was found in the store.
pub struct Opened {
    /// The way to it.
    pub store: Store,
    /// What it held.
    pub saved: Saved,
    /// Records that cannot be read. They stay where they are and cost only what they were about.
    pub damaged: Vec<String>,
    /// Whether a loss was accepted, now or earlier: tasks that the store does not know may be of the
    /// lost state, and are not to be ended. Until [`Store::end_loss`].
    pub lossy: bool,
    /// Whether it was made of a snapshot just now.
    pub restored: bool,
}

impl Store {
    /// Opens the store in `data_dir`, or makes it.
    ///
    /// # Errors
    /// See [`StoreError`]. Nothing that was there is changed then.
    pub fn open(data_dir: &Path) -> Result<Opened, StoreError> {
        Store::open_with(data_dir, false, None)
    }

    /// The same. If `accept_loss`, also a store that is older than its data directory is opened. `root` is the
    /// root key of the keyring, unless it lies in the data directory.
    ///
    /// # Errors
    /// See [`StoreError`]. Nothing that was there is changed then.
    pub fn open_with(
        data_dir: &Path,
        accept_loss: bool,
        root: Option<RootKey>,
    ) -> Result<Opened, StoreError> {
        let dir = data_dir.join(STATE);
        let failed = |error: io::Error| StoreError::Io(data_dir.to_owned(), error.to_string());
        let lock = hold(&dir)?;
        let restored = restore::apply(data_dir, root.as_ref())?;
        let keyring = keyring::Found::read(data_dir, root)?;
        let found = probe::find(&dir, &keyring.keys)?;
        let evidence = Evidence {
            store: found.as_ref().map(|found| found.number),
            counter: counter::read(data_dir).map_err(failed)?,
            launches: launches(data_dir).map_err(failed)?,
        };
        let lossy = match evidence.check_freshness(accept_loss) {
            Verdict::Complete => false,
            Verdict::Lossy => true,
            Verdict::Refused(why) => return Err(StoreError::Lost(data_dir.to_owned(), why)),
        };
        let keyring = Arc::new(keyring.complete()?);
        let sealing = Sealing(keyring.clone());
        if found.is_none() {
            probe::create(&dir)?;
        }
        let found = found.unwrap_or_default();
        if found.plain {
            probe::seal(&dir, &sealing)?;
        }
        let records = dir.join(probe::RECORDS);
        let mut db = Db::open(&records).map_err(|why| why.into_error(&dir))?;
        let counter = match evidence.resumes_at() {
            Some(number) => accept(data_dir, &mut db, number),
            None => Counter::open(data_dir)
                .map(|found| found.unwrap_or_else(|| Counter::begin(data_dir, db.number()))),
        };
        let mut counter = counter.map_err(failed)?;
        counter.saved(db.number());
        let (work, inbox) = mpsc::channel();
        let builder = thread::Builder::new().name("store".to_owned());
        let spawned = builder.spawn(move || {
            let mut thread = StoreThread {
                dir: records,
                db: Some(db),
                counter,
                sealing,
                resealing: Vec::new(),
            };
            thread.serve(&inbox);
        });
        let store = Store {
            work: Some(Arc::new(work)),
            keyring,
            thread: Some(spawned.map_err(failed)?),
            _lock: lock,
        };
        Ok(Opened {
            store,
            saved: found.saved,
            damaged: found.damaged,
            lossy,
            restored,
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
        // What cannot be sent is dropped, and says so.
        self.send(Work::Commit(commit));
    }

    /// Notes that no task of a lost state runs any more: see [`Opened::lossy`].
    pub fn end_loss(&self) {
        self.send(Work::EndLoss);
    }

    /// The way to the keys with which variables are encrypted.
    pub fn keys(&self) -> StoreKeys {
        StoreKeys {
            keyring: self.keyring.clone(),
            work: self.work.as_ref().map_or_else(Weak::new, Arc::downgrade),
        }
    }

    fn send(&self, work: Work) {
        if let Some(inbox) = &self.work {
            // A thread that ended needs nothing.
            let _ = inbox.send(work);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        drop(self.work.take());
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
    match lock_within(&held, LOCK_TIMEOUT).map_err(failed)? {
        true => Ok(held),
        false => Err(StoreError::Held(dir.to_owned())),
    }
}

/// Whether an agent with a store was here: it leaves records of what it launched.
fn launches(data_dir: &Path) -> io::Result<bool> {
    for name in LAUNCHES {
        let entries = match std::fs::read_dir(data_dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            if entry?
                .path()
                .extension()
                .is_some_and(|suffix| suffix == "r")
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Goes on with an earlier state from `number`, which is beyond all that was acknowledged. What was
/// lost is noted first: an agent that dies in between is refused again.
fn accept(data_dir: &Path, db: &mut Db, number: u64) -> io::Result<Counter> {
    let counter = Counter::create(data_dir, number.saturating_sub(1), true)?;
    db.resume_at(number).map_err(io::Error::other)?;
    Ok(counter)
}

/// Whoever asks about the keys of a store, or changes them. Does not keep the store's thread alive.
#[derive(Clone, Debug)]
pub struct StoreKeys {
    keyring: Arc<Keyring>,
    work: Weak<mpsc::Sender<Work>>,
}

impl StoreKeys {
    /// What is known of each key, the oldest first.
    pub fn list(&self) -> Vec<KeyFacts> {
        self.keyring.list()
    }

    /// Makes another key, and calls `done` when new variables are encrypted with it; if `full`, when all are.
    pub fn rotate(
        &self,
        full: bool,
        done: impl FnOnce(Result<KeyFacts, KeyringError>) + Send + 'static,
    ) {
        let done = Box::new(done);
        self.send(KeyWork::Rotate { full, done });
    }

    /// Removes a key that no variable needs, and calls `done`.
    pub fn remove(&self, key: KeyId, done: impl FnOnce(Result<(), KeyringError>) + Send + 'static) {
        let done = Box::new(done);
        self.send(KeyWork::Remove { key, done });
    }

    /// Makes a snapshot of the state as of one commit, and calls `done` with it.
    pub fn snapshot(&self, done: impl FnOnce(Result<Vec<u8>, String>) + Send + 'static) {
        self.hand_in(Work::Snapshot(Box::new(done)));
    }

    /// Checks a snapshot and puts it to where the next agent in this data directory makes its state of it. Takes
    /// a while, and blocks.
    ///
    /// # Errors
    /// See [`SnapshotError`]. Nothing is changed then.
    pub fn restore(&self, data_dir: &Path, bytes: &[u8]) -> Result<About, SnapshotError> {
        let snapshot = Snapshot::read(bytes)?;
        let keys = self.keyring.open_sealed(&snapshot.keys)?;
        restore::check(&snapshot, &keys)?;
        restore::put(data_dir, bytes)?;
        Ok(snapshot.about)
    }

    fn send(&self, work: KeyWork) {
        self.hand_in(Work::Keys(work));
    }

    /// What cannot be sent, because the agent ends, is dropped with whoever waits for it.
    fn hand_in(&self, work: Work) {
        if let Some(inbox) = self.work.upgrade() {
            let _ = inbox.send(work);
        }
    }
}

/// What the store's thread has.
struct StoreThread {
    dir: PathBuf,
    db: Option<Db>,
    counter: Counter,
    sealing: Sealing,
    /// Who waits until every variable is encrypted with the active key.
    resealing: Vec<(KeyFacts, KeyDone<KeyFacts>)>,
}

impl StoreThread {
    fn serve(&mut self, inbox: &mpsc::Receiver<Work>) {
        while let Some(work) = self.next(inbox) {
            match work {
                Work::Commit(commit) => {
                    let written = self.write(|db, sealing| db.commit(&commit.batch, sealing));
                    commit.answer(written);
                }
                Work::EndLoss => self.counter.end_loss(),
                Work::Keys(KeyWork::Rotate { full, done }) => self.rotate(full, done),
                Work::Keys(KeyWork::Remove { key, done }) => done(self.remove(key)),
                Work::Snapshot(done) => done(self.write(snapshot_of)),
            }
        }
        self.counter.sync();
    }

    /// The next work. While variables are encrypted anew, commits go first.
    fn next(&mut self, inbox: &mpsc::Receiver<Work>) -> Option<Work> {
        while !self.resealing.is_empty() {
            match inbox.try_recv() {
                Ok(work) => return Some(work),
                Err(mpsc::TryRecvError::Disconnected) => return None,
                Err(mpsc::TryRecvError::Empty) => self.reseal(),
            }
        }
        inbox.recv().ok()
    }

    fn rotate(&mut self, full: bool, done: KeyDone<KeyFacts>) {
        match self.sealing.0.rotate() {
            Ok(key) if full => self.resealing.push((key, done)),
            result => done(result),
        }
    }

    /// Encrypts some variables anew. Where that fails, those that are left keep their key.
    fn reseal(&mut self) {
        match self.write(|db, sealing| db.reseal(sealing, RESEALED)) {
            Ok(RESEALED) => {}
            Ok(_) => {
                for (key, done) in self.resealing.drain(..) {
                    done(Ok(key));
                }
            }
            Err(why) => {
                for (_, done) in std::mem::take(&mut self.resealing) {
                    done(Err(self.failed(why.clone())));
                }
            }
        }
    }

    fn remove(&mut self, key: KeyId) -> Result<(), KeyringError> {
        let used = self.write(|db, _| db.sealed_with(key));
        let used = used.map_err(|why| self.failed(why))?;
        self.sealing.0.remove(key, used)
    }

    fn failed(&self, why: String) -> KeyringError {
        KeyringError::Io(self.dir.clone(), io::Error::other(why))
    }

    /// Writes to the database. One that failed once fails for ever; a new one may do better.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Db, &Sealing) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut db = match self.db.take() {
            Some(open) => open,
            None => Db::open(&self.dir).map_err(|why| why.text)?,
        };
        let (number, last) = (db.number(), self.counter.last());
        if number < last {
            return Err(format!(
                "the store was opened again as an earlier one, which ends with commit {number} and \
                 not {last}; stop the agent, and start it to see what to do"
            ));
        }
        let done = work(&mut db, &self.sealing)?;
        self.counter.saved(db.number());
        self.db = Some(db);
        Ok(done)
    }
}

/// The state as it is between two commits.
fn snapshot_of(db: &mut Db, sealing: &Sealing) -> Result<Vec<u8>, String> {
    let mut writer = Writer::new(&sealing.0);
    db.each(|name, value| writer.add(name, value))?;
    writer.finish(db.number(), crate::clock::now().wall.0)
}
