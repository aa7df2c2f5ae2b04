//! The output of plugins' tasks: it goes through named pipes to a shim, which writes and rotates
//! the log files as it does for the agent's own driver. The shim outlives the agent and the plugin.
//!
//! The shim is of a kind of its own (`shim/collect.rs`): it has no task, holds both ends of the
//! pipes, and writes until it is asked to end. One that is killed gets a replacement. The pipes lie in
//! `plugin-logs/`, out of the reach of tasks, which could put a link where a driver, often root,
//! opens a file.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::task::LogConfig;

use super::World;
use crate::dirs::AllocDirs;
use crate::driver::Orphans;
use crate::driver::shims::{self, LogNames};
use crate::shim::{Live, Outcome, Recovered, ShimHome};

/// Where the shims that collect have their records, below the data directory.
const DIRECTORY: &str = "plugin-logs";

/// How long a shim that is killed may take to be gone.
const SHIM_TIME: Duration = Duration::from_secs(2);

/// Those who collect the output of plugins' tasks. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub struct Collectors(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: ShimHome,
    path: PathBuf,
    dirs: AllocDirs,
    /// For whom a shim that dies gets a successor.
    wanted: Mutex<BTreeSet<LaunchId>>,
}

impl Collectors {
    /// Collectors that use the same program as `home`, with records of their own in `data_dir`,
    /// and write to the log directories of `dirs`.
    ///
    /// # Errors
    /// What the file system says, with the path.
    pub fn open(home: &ShimHome, data_dir: &Path, dirs: AllocDirs) -> io::Result<Collectors> {
        Ok(Collectors(Arc::new(Inner {
            home: home.beside(data_dir, DIRECTORY)?,
            path: std::path::absolute(data_dir)?.join(DIRECTORY),
            dirs,
            wanted: Mutex::default(),
        })))
    }

    /// Ends what collects for launches that nobody knows. Blocks for as long as that takes. Returns
    /// how many were left running.
    ///
    /// # Errors
    /// The records cannot be listed. A shim that does not end is left for the next time.
    pub fn end_unknown(&self, known: &BTreeSet<LaunchId>, orphans: Orphans) -> io::Result<usize> {
        let mut left = 0;
        for name in self.0.home.list()? {
            let Ok(launch) = name.parse() else { continue };
            if known.contains(&launch) {
                continue;
            }
            if orphans == Orphans::Leave && self.0.home.may_run(&name)? {
                left += 1;
                continue;
            }
            if let Err(error) = self.end(launch) {
                tracing::error!(%launch, %error, "cannot stop orphaned log collectors");
            }
        }
        Ok(left)
    }

    /// What a driver is to open for stdout and stderr.
    pub(super) fn pipes(&self, launch: LaunchId) -> [PathBuf; 2] {
        ["o", "e"].map(|suffix| self.0.path.join(format!("{launch}.{suffix}")))
    }

    /// Begins to collect, or goes on where a shim that was killed stood.
    fn begin(&self, task: &TaskKey, launch: LaunchId, logs: LogConfig) -> io::Result<Arc<Live>> {
        self.wanted().insert(launch);
        let dir = self.0.dirs.open(task.alloc, "alloc/logs")?;
        let names = LogNames::of(task);
        let logs = names.logs(dir.as_fd(), logs);
        let live = self.0.home.collect(&launch.to_string(), &logs);
        live.map(Arc::new).map_err(io::Error::other)
    }

    /// The collector of an earlier agent, or another one in its place; none if there was none.
    fn find(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
    ) -> io::Result<Option<Arc<Live>>> {
        let name = launch.to_string();
        if self.0.home.read_record(&name)?.is_none() {
            return Ok(None);
        }
        match self.0.home.recover(&name)? {
            Recovered::Running(live) => {
                self.wanted().insert(launch);
                Ok(Some(Arc::new(live)))
            }
            Recovered::Silent(live) => {
                live.end_shim(SHIM_TIME)?;
                self.begin(task, launch, logs).map(Some)
            }
            Recovered::Rebooted | Recovered::Vanished { .. } => {
                self.begin(task, launch, logs).map(Some)
            }
            Recovered::Exited(_) | Recovered::Failed { .. } | Recovered::NeverStarted => Ok(None),
        }
    }

    /// Another collector, unless none is wanted any more.
    fn succeed(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
    ) -> io::Result<Option<Arc<Live>>> {
        if !self.wanted().contains(&launch) {
            return Ok(None);
        }
        self.begin(task, launch, logs).map(Some)
    }

    /// Ends it when all that came is written.
    fn end(&self, launch: LaunchId) -> io::Result<()> {
        self.wanted().remove(&launch);
        self.0.home.end_collecting(&launch.to_string())
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeSet<LaunchId>> {
        // Nothing that holds the lock can panic half way.
        (self.0.wanted.lock()).unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// Begins to collect the output of a launch, unless it is thrown away. Blocks.
    pub(super) fn collect(
        self: &Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
    ) -> io::Result<()> {
        if !logs.disabled {
            let live = self.collectors.begin(task, launch, logs)?;
            tokio::spawn(self.clone().keep(task.clone(), launch, live, logs));
        }
        Ok(())
    }

    /// Goes on with what an earlier agent began to collect.
    pub(super) async fn collect_on(
        self: &Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
    ) {
        let (collectors, key) = (self.collectors.clone(), task.clone());
        let found = self.blocking(move || collectors.find(&key, launch, logs));
        match found.await {
            Ok(Some(live)) => {
                tokio::spawn(self.clone().keep(task.clone(), launch, live, logs));
            }
            Ok(None) => {}
            Err(failure) => {
                let error = failure.message;
                tracing::warn!(%launch, error, "cannot go on collecting a task's output");
            }
        }
    }

    /// Sees to it that somebody collects, for as long as that is wanted.
    async fn keep(
        self: Arc<Self>,
        task: TaskKey,
        launch: LaunchId,
        mut live: Arc<Live>,
        logs: LogConfig,
    ) {
        while let Ok(Outcome::ShimLost) = shims::outcome(&live, &self.gate).await {
            let (collectors, key) = (self.collectors.clone(), task.clone());
            let next = self.blocking(move || collectors.succeed(&key, launch, logs));
            match next.await {
                Ok(Some(next)) => live = next,
                Ok(None) => return,
                Err(failure) => {
                    let error = failure.message;
                    tracing::error!(%launch, error, "a task's output is not collected any more");
                    return;
                }
            }
        }
    }

    /// Ends the collecting, when all that came is written.
    pub(super) async fn end_collecting(&self, launch: LaunchId) {
        let collectors = self.collectors.clone();
        if let Err(failure) = self.blocking(move || collectors.end(launch)).await {
            let error = failure.message;
            tracing::warn!(%launch, error, "cannot end the collecting of a task's output");
        }
    }
}
