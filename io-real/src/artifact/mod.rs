//! Artifacts: fetched by processes without rights, looked at, and moved to where tasks find them.
//!
//! Three parties. The *agent* (this module) understands what is wanted, makes a fresh directory,
//! starts the *process that fetches* ([`helper`]) in it, and waits. That one has given away its
//! rights: it can write there and nowhere else. When it is over, with everything that it started,
//! the agent looks at what it left ([`place`]) as at anything that an enemy wrote, and moves it
//! into the *task's* directory, handle by handle.

mod cache;
mod cancel;
pub mod helper;
mod links;
mod place;
mod process;
pub mod settings;
pub mod source;
mod sum;
pub mod url;
mod wire;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use drover_core::ids::{AllocId, TaskName};
use drover_core::input::HookOutput;
use drover_core::model::artifact::{Artifact, Checksum, GetterMode};
use drover_core::op::{Failure, Op};
use drover_core::task::destination;
use drover_core::text::quote;
use futures::stream::{self, StreamExt};
use rustix::fs::{Gid, Mode, Uid, chownat, fchmod, fchown, mkdirat};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::cache::Cache;
use self::cancel::Cancel;
use self::place::Owner;
use self::process::Fetched;
pub use self::process::HELPER;
use self::settings::Settings;
use self::source::{Source, Wanted};
use self::wire::{DOWNLOAD, Request, TREE};
use crate::dirs::{AllocDirs, NOBODY};
use crate::user;

/// How many artifacts of one task are fetched at a time.
const OF_ONE_TASK: usize = 3;

/// Fetches artifacts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Artifacts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: Settings,
    dirs: AllocDirs,
    /// Where processes that fetch have their directories.
    work: OwnedFd,
    cache: Cache,
    places: Semaphore,
    nth: AtomicU64,
    running: Mutex<BTreeMap<Op, Arc<Cancel>>>,
    /// Who fetches what has this sum: others wait, and find it in the cache.
    sums: Mutex<BTreeMap<Checksum, Weak<tokio::sync::Mutex<()>>>>,
}

/// What is asked for a task.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) alloc: AllocId,
    pub(crate) task: TaskName,
    pub(crate) artifacts: Vec<Artifact>,
    /// The allocation's directory as destinations may name it.
    pub(crate) root: String,
    /// The task's user; nobody in particular if empty.
    pub(crate) user: String,
}

impl Artifacts {
    /// Works in `home`, which is the agent's alone and on the file system of `dirs`. What an earlier
    /// agent was fetching is removed.
    ///
    /// # Errors
    /// The disk says no.
    pub fn new(settings: Settings, dirs: AllocDirs, home: OwnedFd) -> io::Result<Artifacts> {
        // Tools go to their own directory by its whole path.
        fchmod(&home, Mode::from_raw_mode(0o711))?;
        crate::dirs::remove_tree(home.as_fd(), "work")?;
        let work = own_dir(&home, "work", 0o711)?;
        let cache = Cache::new(own_dir(&home, "cache", 0o700)?, settings.cache);
        Ok(Artifacts(Arc::new(Inner {
            places: Semaphore::new(settings.parallel.max(1)),
            settings,
            dirs,
            work,
            cache,
            nth: AtomicU64::new(0),
            running: Mutex::default(),
            sums: Mutex::default(),
        })))
    }

    /// Makes known that `op` is under way, so that it can be cancelled from now on.
    pub(crate) fn begin(&self, op: Op) {
        let mut running = lock(&self.0.running);
        running.insert(op, Arc::default());
    }

    /// Ends `op` soon, if it is under way. Its answer still comes.
    pub(crate) fn cancel(&self, op: Op) {
        if let Some(cancel) = lock(&self.0.running).get(&op) {
            cancel.cancel();
        }
    }

    /// Fetches everything, a few at a time. Must have begun.
    pub(crate) async fn fetch(&self, op: Op, asked: Asked) -> Result<HookOutput, Failure> {
        let began = Instant::now();
        let cancel = lock(&self.0.running).get(&op).cloned().unwrap_or_default();
        let asked = Arc::new(asked);
        let each = (0..asked.artifacts.len()).map(|nth| {
            let (artifacts, asked, cancel) = (self.clone(), asked.clone(), cancel.clone());
            async move { artifacts.one(&asked, nth, &cancel).await }
        });
        let results: Vec<_> = stream::iter(each).buffered(OF_ONE_TASK).collect().await;
        lock(&self.0.running).remove(&op);
        let many = results.len();
        let mut bytes = 0_u64;
        for (nth, result) in results.into_iter().enumerate() {
            let fetched = result.map_err(|failure| Failure {
                message: about(&asked.artifacts, nth, &failure.message),
                ..failure
            })?;
            bytes = bytes.saturating_add(fetched.bytes);
        }
        Ok(HookOutput {
            message: told(many, bytes, began.elapsed()),
            ..HookOutput::default()
        })
    }

    /// Fetches one, when there is a place for it.
    async fn one(
        &self,
        asked: &Arc<Asked>,
        nth: usize,
        cancel: &Arc<Cancel>,
    ) -> Result<Fetched, Failure> {
        let Some(artifact) = asked.artifacts.get(nth) else {
            return Err(Failure::fatal("there is no such artifact"));
        };
        let wanted = source::parse(artifact).map_err(Failure::fatal)?;
        let sum = wanted.checksum.clone();
        let sum = sum
            .filter(|sum| self.0.cache.keeps(sum))
            .map(|sum| self.sum(&sum));
        let ready = async {
            let alone = match &sum {
                Some(sum) => Some(sum.lock().await),
                None => None,
            };
            (alone, self.0.places.acquire().await)
        };
        let _held = tokio::select! {
            ready = ready => ready,
            () = cancel.cancelled() => return Err(Failure::recoverable("it was cancelled")),
        };
        let (inner, asked, cancel) = (self.0.clone(), asked.clone(), cancel.clone());
        let work = move || {
            let job = Job::new(&inner, &asked, nth, wanted)?;
            job.run(&cancel)
        };
        let lost = |error| Failure::recoverable(format!("its work was lost: {error}"));
        spawn_blocking(work).await.map_err(lost)?
    }

    /// Held by whoever fetches what has this sum.
    fn sum(&self, sum: &Checksum) -> Arc<tokio::sync::Mutex<()>> {
        let mut sums = lock(&self.0.sums);
        sums.retain(|_, held| held.strong_count() > 0);
        if let Some(held) = sums.get(sum).and_then(Weak::upgrade) {
            return held;
        }
        let held = Arc::default();
        sums.insert(sum.clone(), Arc::downgrade(&held));
        held
    }
}

/// One artifact, on a thread of its own.
struct Job<'a> {
    inner: &'a Inner,
    asked: &'a Asked,
    artifact: &'a Artifact,
    wanted: Wanted,
    /// Where it goes, below the allocation's directory.
    place: String,
    owner: Owner,
}

impl Job<'_> {
    fn new<'a>(
        inner: &'a Inner,
        asked: &'a Asked,
        nth: usize,
        wanted: Wanted,
    ) -> Result<Job<'a>, Failure> {
        let artifact = asked.artifacts.get(nth);
        let artifact = artifact.ok_or_else(|| Failure::fatal("there is no such artifact"))?;
        allowed(&inner.settings, &wanted.source).map_err(Failure::fatal)?;
        let dest = &artifact.relative_dest;
        let place = destination::place(dest, asked.task.as_str(), &asked.root);
        let place = place.map_err(|why| Failure::fatal(format!("destination: {why}")))?;
        let owner = match (artifact.chown, asked.user.as_str()) {
            (false, _) | (true, "") => None,
            (true, name) => {
                let found = user::find(name).map_err(|error| Failure::fatal(error.to_string()))?;
                Some((found.uid, found.gid))
            }
        };
        Ok(Job {
            inner,
            asked,
            artifact,
            wanted,
            place,
            owner,
        })
    }

    fn run(&self, cancel: &Cancel) -> Result<Fetched, Failure> {
        let failed = |error: io::Error| Failure::recoverable(error.to_string());
        let scratch = Scratch::new(self.inner).map_err(failed)?;
        let there = self.from_cache(&scratch).map_err(failed)?;
        let settings = &self.inner.settings;
        let request = Request {
            wanted: self.wanted.clone(),
            headers: self.artifact.getter_headers.clone(),
            insecure: self.artifact.getter_insecure,
            there,
            limits: settings.limits,
            user: is_root().then_some(NOBODY),
            readable: (settings.extra_paths.iter())
                .map(|path| path.to_string_lossy().into_owned())
                .collect(),
            whole_filesystem: settings.whole_filesystem,
        };
        let fetched = process::run(&scratch.dir, &request, &settings.variables, cancel)?;
        // From here on only the agent can change what is in it.
        scratch.take_back().map_err(failed)?;
        if !there {
            self.to_cache(&scratch);
        }
        self.put(&scratch, fetched).map_err(failed)?;
        Ok(fetched)
    }

    fn from_cache(&self, scratch: &Scratch<'_>) -> io::Result<bool> {
        let Some(sum) = &self.wanted.checksum else {
            return Ok(false);
        };
        let there = self.inner.cache.get(sum, &scratch.dir, DOWNLOAD)?;
        if there && is_root() {
            let (user, group) = (Uid::from_raw(NOBODY.0), Gid::from_raw(NOBODY.1));
            let links = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            chownat(&scratch.dir, DOWNLOAD, Some(user), Some(group), links)?;
        }
        Ok(there)
    }

    /// Keeps what came. If that fails, it is fetched again the next time. What is one packed file
    /// is not there any more as it came.
    fn to_cache(&self, scratch: &Scratch<'_>) {
        let as_it_came =
            (self.wanted.archive).is_none_or(|archive| archive.holds != source::Holds::File);
        if let Some(sum) = self.wanted.checksum.as_ref().filter(|_| as_it_came)
            && let Err(error) = self.inner.cache.put(sum, &scratch.dir, DOWNLOAD)
        {
            tracing::debug!(%error, "an artifact is not kept");
        }
    }

    /// Looks at what was fetched, and moves it to its place.
    fn put(&self, scratch: &Scratch<'_>, fetched: Fetched) -> io::Result<()> {
        let (from, name) = match fetched.tree {
            false => (scratch.dir.try_clone()?, Some(CString::new(DOWNLOAD)?)),
            true => self.part(scratch)?,
        };
        match &name {
            Some(name) => place::check_file(&from, name, self.owner)?,
            None => place::check(&from, self.owner)?,
        }
        let top = self.inner.dirs.open(self.asked.alloc, "")?;
        let owner = self.owner;
        match (self.artifact.getter_mode, name) {
            (GetterMode::File, name) => {
                let (dir, last) = self.place.rsplit_once('/').unwrap_or(("", &self.place));
                let name = name.map_or_else(|| only_file(&from), Ok)?;
                let into = place::make_dirs(&top, dir, owner)?;
                place::move_file(&from, &name, &into, &CString::new(last)?)
            }
            (GetterMode::Dir, Some(_)) => {
                let why = "mode is dir, and it is one file: give its archive, or another mode";
                Err(io::Error::other(why))
            }
            (GetterMode::Any, Some(name)) => {
                let into = place::make_dirs(&top, &self.place, owner)?;
                let as_named = CString::new(self.file_name())?;
                place::move_file(&from, &name, &into, &as_named)
            }
            (GetterMode::Any | GetterMode::Dir, None) => {
                place::merge(&from, &place::make_dirs(&top, &self.place, owner)?)
            }
        }
    }

    /// The part of a tree that is wanted: a directory, or a file in one.
    fn part(&self, scratch: &Scratch<'_>) -> io::Result<(OwnedFd, Option<CString>)> {
        let open = |path: &str| -> io::Result<OwnedFd> {
            Ok(place::open_dir(scratch.dir.as_fd(), &CString::new(path)?)?)
        };
        let part = &self.wanted.part;
        if part.is_empty() {
            return Ok((open(TREE)?, None));
        }
        if let Ok(dir) = open(&format!("{TREE}/{part}")) {
            return Ok((dir, None));
        }
        let (dir, name) = part.rsplit_once('/').unwrap_or(("", part));
        let missing = |_| io::Error::other(format!("there is no {} in it", quote(part)));
        let dir = open(&format!("{TREE}/{dir}")).map_err(missing)?;
        let name = CString::new(name)?;
        let stat = rustix::fs::statat(&dir, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
        stat.map_err(|error| missing(error.into()))?;
        Ok((dir, Some(name)))
    }

    fn file_name(&self) -> &str {
        let name = self.wanted.part.rsplit('/').next();
        name.filter(|name| !name.is_empty())
            .unwrap_or(&self.wanted.file_name)
    }
}

/// The one file that a tree has if it stands for a file.
fn only_file(dir: &OwnedFd) -> io::Result<CString> {
    let mut found = None;
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        match entry.file_name().to_bytes() {
            b"." | b".." => {}
            _ if found.is_none() && entry.file_type().is_file() => {
                found = Some(entry.file_name().to_owned());
            }
            _ => {
                return Err(io::Error::other(
                    "mode is file, and there is more than one file in it",
                ));
            }
        }
    }
    found.ok_or_else(|| io::Error::other("mode is file, and there is no file in it"))
}

/// A fresh directory for one process, removed with everything in it in the end.
struct Scratch<'a> {
    work: &'a OwnedFd,
    name: String,
    dir: OwnedFd,
}

impl Scratch<'_> {
    fn new(inner: &Inner) -> io::Result<Scratch<'_>> {
        let name = inner.nth.fetch_add(1, Ordering::Relaxed).to_string();
        let dir = own_dir(&inner.work, &name, 0o700)?;
        let scratch = Scratch {
            work: &inner.work,
            name,
            dir,
        };
        if is_root() {
            scratch.give(NOBODY)?;
        }
        Ok(scratch)
    }

    fn take_back(&self) -> io::Result<()> {
        if is_root() {
            self.give((0, 0))?;
        }
        Ok(fchmod(&self.dir, Mode::RWXU)?)
    }

    fn give(&self, (user, group): (u32, u32)) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(fchown(&self.dir, Some(user), Some(group))?)
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Err(error) = crate::dirs::remove_tree(self.work.as_fd(), &self.name) {
            tracing::warn!(%error, "what an artifact left is not removed; the next start tries again");
        }
    }
}

/// Whether this machine's own files may be artifacts.
fn allowed(settings: &Settings, source: &Source) -> Result<(), String> {
    let path = match source {
        Source::File(path) => path.as_path(),
        Source::Git { url, .. } if url.scheme == "file" => Path::new(&url.path),
        Source::Git { .. } | Source::Http(_) | Source::S3 { .. } => return Ok(()),
    };
    let extra = settings
        .extra_paths
        .iter()
        .any(|extra| path.starts_with(extra));
    if settings.whole_filesystem || extra {
        return Ok(());
    }
    Err(
        "files of the node are no artifacts unless the agent allows it: client { artifact { \
         filesystem_isolation_extra_paths or disable_filesystem_isolation } }"
            .to_owned(),
    )
}

fn own_dir(at: &OwnedFd, name: &str, mode: u32) -> io::Result<OwnedFd> {
    match mkdirat(at, name, Mode::RWXU) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let dir = place::open_dir(at.as_fd(), &CString::new(name)?)?;
    fchmod(&dir, Mode::from_raw_mode(mode))?;
    Ok(dir)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// A failure with the artifact it is about.
fn about(artifacts: &[Artifact], nth: usize, why: &str) -> String {
    let artifact = artifacts.get(nth);
    let source = artifact.and_then(|artifact| source::parse(artifact).ok());
    match source {
        Some(wanted) => format!("failed to download artifact \"{}\": {why}", wanted.source),
        None => format!("failed to download artifact {nth}: {why}"),
    }
}

fn told(many: usize, bytes: u64, time: Duration) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    let millis = time.as_millis();
    let plural = if many == 1 { "artifact" } else { "artifacts" };
    format!(
        "Downloaded {many} {plural}, {}.{} MiB in {}.{} s",
        tenths / 10,
        tenths % 10,
        millis / 1000,
        millis % 1000 / 100
    )
}
