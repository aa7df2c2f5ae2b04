//! Artifacts: fetched by processes without rights, checked, and moved to where tasks find them.
//!
//! There are three parties:
//!
//! - The *agent* (this module) understands what is wanted ([`source`], pure and fuzzed), makes a
//!   fresh directory below its own `artifacts/work`, starts the fetching process in it as `drover
//!   artifact-helper` ([`process`]), and waits.
//! - The *process that fetches* ([`helper`]) reads one line of JSON, becomes nobody, can never get
//!   rights again, puts landlock's rules and limits around itself (`helper/sandbox.rs`), and only
//!   then talks to others or unpacks. It can write to its directory and nowhere else. It lives in a
//!   process group that is killed when it is over, when its task is, and, by itself, when the agent
//!   is: its standard input ends then. (A signal at the parent's death would come first, and leave
//!   alive what git started.)
//! - What it left is an enemy's. The agent takes the directory back, looks at every entry through
//!   handles, takes unusual rights away ([`place`]), and moves the result into the *task's*
//!   directory, handle by handle. Links may go up before they go down, no further than the top
//!   (`unpack/links.rs`), so they stay inside wherever they lie.
//!
//! [`cache`] keeps downloads by strong sums, which it computes again itself; who wants what another
//! task is just fetching waits for it. A directory that a crash left is removed at the next start.

mod cache;
pub mod helper;
mod job;
mod place;
mod process;
pub mod settings;
pub mod source;
mod sum;
pub mod url;
mod wire;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use drover_core::ids::{AllocId, TaskName};
use drover_core::input::HookOutput;
use drover_core::model::artifact::{Artifact, Checksum};
use drover_core::op::{Failure, Op};
use futures::stream::{self, StreamExt};
use rustix::fs::{Mode, fchmod};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::cache::Cache;
use self::job::Job;
use self::process::Fetched;
pub use self::process::HELPER;
use self::settings::Settings;
use crate::cancel::{Cancel, UnderWay};
use crate::dirs::{AllocDirs, make};
use crate::transfers::{Transfers, in_all};

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
    running: UnderWay,
    transfers: Transfers,
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
    /// Works in `home`, which is the agent's alone and on the file system of `dirs`, and says in
    /// `transfers` how far it is. What an earlier agent was fetching is removed.
    ///
    /// # Errors
    /// The disk says no.
    pub fn new(
        settings: Settings,
        dirs: AllocDirs,
        home: OwnedFd,
        transfers: Transfers,
    ) -> io::Result<Artifacts> {
        // Tools go to their own directory by its whole path.
        fchmod(&home, Mode::from_raw_mode(0o711))?;
        crate::dirs::remove_tree(home.as_fd(), "work")?;
        let work = make(home.as_fd(), "work", 0o711, None)?;
        let cache = Cache::new(make(home.as_fd(), "cache", 0o700, None)?, settings.cache);
        Ok(Artifacts(Arc::new(Inner {
            places: Semaphore::new(settings.parallel.max(1)),
            settings,
            dirs,
            work,
            cache,
            nth: AtomicU64::new(0),
            running: UnderWay::default(),
            transfers,
            sums: Mutex::default(),
        })))
    }

    /// Makes known that `op` is under way, so that it can be cancelled from now on.
    pub(crate) fn begin(&self, op: Op) {
        self.0.running.begin(op);
    }

    /// Ends `op` soon, if it is under way. Its answer still comes.
    pub(crate) fn cancel(&self, op: Op) {
        self.0.running.cancel(op);
    }

    /// Fetches everything, a few at a time. Must have begun.
    pub(crate) async fn fetch(&self, op: Op, asked: Asked) -> Result<HookOutput, Failure> {
        let began = Instant::now();
        let cancel = self.0.running.begin(op);
        let asked = Arc::new(asked);
        let each = (0..asked.artifacts.len()).map(|nth| {
            let (artifacts, asked, cancel) = (self.clone(), asked.clone(), cancel.clone());
            async move { (nth, artifacts.one(&asked, nth, &cancel).await) }
        });
        let mut each = stream::iter(each).buffer_unordered(OF_ONE_TASK);
        let (mut bytes, mut failed) = (0_u64, None);
        while let Some((nth, result)) = each.next().await {
            match result {
                Ok(fetched) => bytes = bytes.saturating_add(fetched.bytes),
                // The others are of no use now.
                Err(failure) if failed.is_none() => {
                    failed = Some((nth, failure));
                    cancel.cancel();
                }
                Err(_) => {}
            }
        }
        self.0.running.ended(op);
        if let Some((nth, failure)) = failed {
            let message = about(&asked.artifacts, nth, &failure.message);
            return Err(Failure { message, ..failure });
        }
        let many = asked.artifacts.len();
        Ok(HookOutput {
            message: describe(many, bytes, began.elapsed()),
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
        let mut coming = self.0.transfers.begin(asked.alloc);
        let (inner, asked, cancel) = (self.0.clone(), asked.clone(), cancel.clone());
        let work = move || {
            let job = Job::new(&inner, &asked, nth, wanted)?;
            job.run(&cancel, &mut coming)
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|lock| lock.into_inner())
}

/// A failure with the artifact it is about.
fn about(artifacts: &[Artifact], nth: usize, why: &str) -> String {
    let artifact = artifacts.get(nth);
    let source = artifact.and_then(|artifact| source::parse(artifact).ok());
    match source {
        Some(wanted) => {
            let source = wanted.source.to_string();
            // It may be about somewhere else that the server sent us to.
            let of_it = why.strip_prefix(&source);
            let why = of_it.and_then(|why| why.strip_prefix(": ")).unwrap_or(why);
            format!("failed to download artifact \"{source}\": {why}")
        }
        None => format!("failed to download artifact {nth}: {why}"),
    }
}

fn describe(many: usize, bytes: u64, time: Duration) -> String {
    let plural = if many == 1 { "artifact" } else { "artifacts" };
    format!("Downloaded {many} {plural}, {}", in_all(bytes, time))
}
