//! The data directory of an agent that is only to try things out: new, and removed at the end.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use drover_io_real::destroy::DestroyGuard;
use tokio::task::spawn_blocking;

use crate::cli::args::AgentArgs;
use crate::config::CGROUP_PARENT;

/// A data directory that lasts as long as its agent.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one, if the agent is to have one, and makes it the agent's.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn of(args: &mut AgentArgs) -> Result<Option<Scratch>, String> {
        if !args.dev {
            return Ok(None);
        }
        let dir = std::env::temp_dir().join(format!("drover-dev-{}", uuid::Uuid::new_v4()));
        let made = DirBuilder::new().mode(0o700).create(&dir);
        made.map_err(|error| format!("cannot make the directory {}: {error}", dir.display()))?;
        args.data_dir = Some(dir.clone());
        Ok(Some(Scratch(dir)))
    }

    /// Removes it, with all that its agent made on this machine.
    ///
    /// # Errors
    /// Something in it still runs, or resists: it stays.
    pub(super) async fn remove(self) -> Result<(), String> {
        let dir = self.0.clone();
        let removed = spawn_blocking(move || {
            let doomed = DestroyGuard::open(&dir, CGROUP_PARENT, true, None)?;
            match doomed.running()?.len() {
                0 => doomed.remove().map(|_| 0),
                running => Ok(running),
            }
        });
        let why = match removed.await {
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(running)) => format!("processes of tasks still run: {running}"),
            Ok(Err(error)) => error.to_string(),
            Err(lost) => lost.to_string(),
        };
        let dir = self.0.display();
        Err(format!(
            "the data directory {dir} stays: {why}\nRemove it with `drover system destroy -data-dir {dir} -stop-tasks`."
        ))
    }
}
