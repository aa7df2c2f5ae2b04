//! Programs that run beside a task: each under a shim of its own, in the task's control group.
//!
//! A script ends with its task: it is among the group's members, and whoever destroys the launch ends its
//! scripts first. If the agent dies, its record is one of a launch that nobody knows, and the next agent
//! ends it.
//!
//! A script runs with the task's user, variables, directory and control group; in Nomad it runs as
//! the agent's user and outside of the group. What it prints goes nowhere. The audit counts its
//! launch to the task. Drivers that are plugins are asked by `ExecTask`, if they can.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::effect::Program;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::op::Failure;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::launch::LaunchError;
use super::machine::{Machine, Shim};
use super::{World, destroy, exit_result, start_failure};
use crate::driver::shims;
use crate::facts;
use crate::shim::{self, Live, Outcome, StartError};

/// The scripts that run, by the ids of their own launches.
pub(super) struct Scripts<S = Live>(Mutex<BTreeMap<LaunchId, Script<S>>>);

struct Script<S> {
    /// The launch beside which it runs.
    beside: LaunchId,
    /// Its shim, once that is known.
    live: Option<Arc<S>>,
}

impl<S> Default for Scripts<S> {
    fn default() -> Scripts<S> {
        Scripts(Mutex::default())
    }
}

impl<S> Scripts<S> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<LaunchId, Script<S>>> {
        // Nothing that holds the lock can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The launch beside which this one runs, if it is a script.
    pub(super) fn beside(&self, launch: LaunchId) -> Option<LaunchId> {
        self.all().get(&launch).map(|script| script.beside)
    }

    /// Those that run beside this launch.
    pub(super) fn of(&self, launch: LaunchId) -> Vec<Arc<S>> {
        let all = self.all();
        let own = all.values().filter(|script| script.beside == launch);
        own.filter_map(|script| script.live.clone()).collect()
    }
}

/// A script that is being run; nothing is kept of it when this is dropped.
pub(super) struct Running<'a> {
    world: &'a World,
    id: LaunchId,
}

impl<'a> Running<'a> {
    pub(super) fn begin(world: &'a World, beside: LaunchId) -> Running<'a> {
        let id = LaunchId(facts::random());
        let live = None;
        world.scripts.all().insert(id, Script { beside, live });
        Running { world, id }
    }

    /// The id of its own launch.
    pub(super) fn id(&self) -> LaunchId {
        self.id
    }

    /// Notes that it runs. False if its task was destroyed meanwhile: nobody else ends it then.
    pub(super) fn began(&self, beside: LaunchId, live: &Arc<Live>) -> bool {
        if let Some(script) = self.world.scripts.all().get_mut(&self.id) {
            script.live = Some(live.clone());
        }
        // After it was noted: who has not destroyed the task by now sees it when that is done.
        self.world.held.live(beside).is_some()
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.world.scripts.all().remove(&self.id);
    }
}

impl World {
    /// Runs a program beside a launch to its end, or until its time is over. Its exit code.
    pub(super) async fn exec(
        self: Arc<Self>,
        task: TaskKey,
        beside: LaunchId,
        program: Arc<Program>,
    ) -> Result<i32, Failure> {
        if self.held.live(beside).is_none() {
            return Err(Failure::fatal("the task does not run"));
        }
        let running = Running::begin(&self, beside);
        let ended = self
            .clone()
            .run_beside(task, beside, &running, program)
            .await;
        if !matches!(ended, Ok(0)) {
            // What ends with its task has not failed: the core hears of the task's end first.
            self.unless_it_ended(beside).await;
        }
        ended
    }

    async fn run_beside(
        self: Arc<Self>,
        task: TaskKey,
        beside: LaunchId,
        running: &Running<'_>,
        program: Arc<Program>,
    ) -> Result<i32, Failure> {
        let (world, script, time) = (self.clone(), running.id, program.timeout);
        let work = move || world.dependencies.exec(&task, beside, script, &program);
        let started = self.dependencies.gate.run(work).await;
        let lost = |lost: JoinError| io::Error::other(lost).into();
        let live = match started.unwrap_or_else(|error| Err(lost(error))) {
            Ok(live) => Arc::new(live),
            // It may have started all the same.
            Err(error @ LaunchError::Shim(StartError::Spawn(_) | StartError::Lost)) => {
                self.end_script(script).await;
                return Err(start_failure(&error));
            }
            Err(error) => {
                self.forget_script(script).await;
                return Err(start_failure(&error));
            }
        };
        if !running.began(beside, &live) {
            self.end_script(script).await;
            return Err(Failure::fatal("the task ended"));
        }
        let within = Duration::from_nanos(u64::try_from(time.0).unwrap_or(0));
        let why = match timeout(within, shims::outcome(&live, &self.dependencies.gate)).await {
            Ok(Ok(Outcome::Exited(exit))) => {
                self.forget_script(script).await;
                let unknown = || Failure::fatal("how it ended is not known");
                return exit_result(&exit).code.ok_or_else(unknown);
            }
            Ok(Ok(Outcome::ShimLost)) => "its shim was killed".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it did not end within {time}, and was killed"),
        };
        self.end_script(script).await;
        Err(Failure::fatal(why))
    }

    /// Waits until the core has heard of the end of a launch whose main process is gone.
    pub(super) async fn unless_it_ended(&self, launch: LaunchId) {
        let main = self.held.live(launch).map(|live| live.task());
        if main.is_some_and(|main| shim::open_process(main).is_ok()) {
            return;
        }
        loop {
            let mut next_end = pin!(self.changes.notified());
            next_end.as_mut().enable();
            if self.held.is_received(launch) {
                return;
            }
            next_end.await;
        }
    }

    /// Ends a script of which something may be alive. What resists keeps its record, by which the next agent
    /// finds it.
    pub(super) async fn end_script(self: &Arc<Self>, script: LaunchId) {
        let world = self.clone();
        let ended = self.blocking(move || {
            destroy::destroy(&world.dependencies, &world.held, script)?;
            destroy::forget(&world.dependencies, script)
        });
        if let Err(error) = ended.await {
            tracing::warn!(%script, %error, "cannot end a script");
        }
    }

    pub(super) async fn forget_script(self: &Arc<Self>, script: LaunchId) {
        let world = self.clone();
        let forgotten = self.blocking(move || destroy::forget(&world.dependencies, script));
        if let Err(error) = forgotten.await {
            tracing::warn!(%script, %error, "cannot remove the record of a script");
        }
    }
}

/// Ends what runs beside a launch. All are told before any is waited for.
pub(super) fn end_all<M: Machine>(
    machine: &M,
    scripts: &Scripts<M::Shim>,
    launch: LaunchId,
) -> io::Result<()> {
    let all = scripts.of(launch);
    for live in &all {
        // It may be ending; whether it does is seen below.
        let _ = live.kill();
    }
    all.iter()
        .try_for_each(|live| destroy::end(machine, &**live).map(drop))
}
