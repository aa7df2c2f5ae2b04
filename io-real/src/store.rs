//! What the core remembers, on disk: sled, one batch and one flush for each commit.
//!
//! A thread of its own owns the database, because a flush blocks. The core has one commit in
//! flight at a time and lets later changes gather behind it, which makes a group commit out of
//! whatever comes meanwhile; an unchanged record never gets here.
//!
//! Values are JSON with named fields, so that the version before and the version after this one
//! read them.

use std::fmt;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use drover_core::ids::JobKey;
use drover_core::store::{Batch, CommitId, Key, Record, Saved};

/// A commit for the store's thread.
struct Commit {
    id: CommitId,
    batch: Batch,
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
}

/// Why the store cannot be opened.
#[derive(Debug)]
pub enum StoreError {
    /// The disk says no.
    Io(PathBuf, String),
    /// What is there cannot be read as a store.
    Damaged(PathBuf, String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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
    /// See [`StoreError`]. Nothing on disk is changed then.
    pub fn open(dir: &Path) -> Result<Opened, StoreError> {
        let dir = dir.to_owned();
        let db = open_db(&dir)?;
        let (saved, damaged) = read_all(&db, &dir)?;
        let (commits, inbox) = mpsc::channel();
        let builder = thread::Builder::new().name("store".to_owned());
        let spawned = builder.spawn({
            let dir = dir.clone();
            move || serve(&dir, Some(db), &inbox)
        });
        let thread = spawned.map_err(|error| StoreError::Io(dir, error.to_string()))?;
        let store = Store {
            commits: Some(commits),
            thread: Some(thread),
        };
        Ok(Opened {
            store,
            saved,
            damaged,
        })
    }

    /// Writes a commit and calls `done` when it would survive a crash, or failed.
    pub fn commit(
        &self,
        id: CommitId,
        batch: Batch,
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

fn serve(dir: &Path, mut db: Option<sled::Db>, inbox: &mpsc::Receiver<Commit>) {
    while let Ok(commit) = inbox.recv() {
        let written = write(dir, &mut db, &commit.batch);
        if written.is_err() {
            // A database that failed once fails for ever; a new one may do better.
            db = None;
        }
        commit.answer(written);
    }
}

fn write(dir: &Path, db: &mut Option<sled::Db>, batch: &Batch) -> Result<(), String> {
    let open = match db.take() {
        Some(open) => open,
        None => open_db(dir).map_err(|error| error.to_string())?,
    };
    let mut writes = sled::Batch::default();
    for (key, record) in batch {
        match record {
            Some(record) => writes.insert(key_text(key).as_bytes(), encode(record)?),
            None => writes.remove(key_text(key).as_bytes()),
        }
    }
    let db = db.insert(open);
    guarded(|| {
        db.apply_batch(writes)?;
        db.flush().map(|_| ())
    })?;
    sync(dir)
}

/// Makes the disk keep what sled wrote. sled's own flush ends with `sync_file_range`, which passes
/// the pages on, but neither how long the file is now nor the order to empty the disk's cache: a
/// commit would survive a crash of the agent, and not a power cut.
fn sync(dir: &Path) -> Result<(), String> {
    let file = fs::File::open(dir.join("db")).and_then(|file| file.sync_data());
    file.map_err(|error| format!("cannot sync the state: {error}"))
}

/// sled panics where data is missing from the end of its file: that is an error like any other.
fn guarded<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, String> {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(text.unwrap_or("the database gave up").to_owned())
        }
    }
}

fn open_db(dir: &Path) -> Result<sled::Db, StoreError> {
    let config = sled::Config::new()
        .path(dir)
        .cache_capacity(1 << 20)
        .flush_every_ms(None)
        .mode(sled::Mode::LowSpace);
    fs::create_dir_all(dir).map_err(|error| StoreError::Io(dir.to_owned(), error.to_string()))?;
    quietly(|| guarded(|| config.open())).map_err(|why| {
        if why.starts_with("IO error") {
            StoreError::Io(dir.to_owned(), why)
        } else {
            StoreError::Damaged(dir.to_owned(), why)
        }
    })
}

/// Opening happens once, before anything else runs: a panic in it becomes an error with words of
/// our own, and its own words would only confuse.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(hook);
    result
}

fn read_all(db: &sled::Db, dir: &Path) -> Result<(Saved, Vec<String>), StoreError> {
    let mut records = Vec::new();
    let mut damaged = Vec::new();
    let mut entries = db.iter();
    loop {
        let entry = quietly(|| guarded(|| entries.next().transpose()));
        let entry = entry.map_err(|why| StoreError::Damaged(dir.to_owned(), why))?;
        let Some((key, value)) = entry else { break };
        match decode(&key, &value) {
            Ok(record) => records.push(record),
            Err(why) => damaged.push(format!("{}: {why}", String::from_utf8_lossy(&key))),
        }
    }
    Ok((Saved::from_records(records), damaged))
}

/// The separator of a key's parts: no namespace, job id or task name has it.
const SEPARATOR: char = '\0';

fn key_text(key: &Key) -> String {
    match key {
        Key::Meta => "meta".to_owned(),
        Key::Job(job) => format!("job/{}{SEPARATOR}{}", job.namespace, job.id),
        Key::Eval(id) => format!("eval/{id}"),
        Key::Deployment(id) => format!("deployment/{id}"),
        Key::Alloc(id) => format!("alloc/{id}"),
        Key::Task(alloc, task) => format!("task/{alloc}{SEPARATOR}{task}"),
    }
}

fn encode(record: &Record) -> Result<Vec<u8>, String> {
    let encoded = match record {
        Record::Meta(record) => serde_json::to_vec(record),
        Record::Job(record) => serde_json::to_vec(record),
        Record::Eval(record) => serde_json::to_vec(record),
        Record::Deployment(record) => serde_json::to_vec(record),
        Record::Alloc(record) => serde_json::to_vec(record),
        Record::Task(record) => serde_json::to_vec(record),
    };
    encoded.map_err(|error| format!("cannot encode a record: {error}"))
}

fn decode(key: &[u8], value: &[u8]) -> Result<(Key, Record), String> {
    let key = std::str::from_utf8(key).map_err(|_| "its key is no text".to_owned())?;
    let (kind, rest) = key.split_once('/').unwrap_or((key, ""));
    let parts = rest.split_once(SEPARATOR);
    let id_error = |_| "its key has no id".to_owned();
    Ok(match (kind, parts) {
        ("meta", None) => (Key::Meta, Record::Meta(json(value)?)),
        ("job", Some((namespace, id))) => {
            let key = JobKey {
                namespace: namespace.into(),
                id: id.into(),
            };
            (Key::Job(key), Record::Job(json(value)?))
        }
        ("eval", None) => (
            Key::Eval(rest.parse().map_err(id_error)?),
            Record::Eval(json(value)?),
        ),
        ("deployment", None) => {
            let id = rest.parse().map_err(id_error)?;
            (Key::Deployment(id), Record::Deployment(json(value)?))
        }
        ("alloc", None) => (
            Key::Alloc(rest.parse().map_err(id_error)?),
            Record::Alloc(json(value)?),
        ),
        ("task", Some((alloc, task))) => {
            let alloc = alloc.parse().map_err(id_error)?;
            (Key::Task(alloc, task.into()), Record::Task(json(value)?))
        }
        _ => return Err("this version does not know its kind".to_owned()),
    })
}

fn json<T: serde::de::DeserializeOwned>(value: &[u8]) -> Result<T, String> {
    serde_json::from_slice(value).map_err(|error| error.to_string())
}
