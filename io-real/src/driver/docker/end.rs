//! A container is signalled, ends, and is removed.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::WaitContainerOptions;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::alloc::ExitResult;
use drover_core::op::Failure;
use futures::StreamExt;
use tokio::runtime::Handle;

use super::engine::Engine;
use super::records::Record;
use super::trouble::Trouble;
use super::users::Use;
use super::{World, exit};
use crate::driver::signal;

/// How long the rest of a task's output is waited for.
pub(super) const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How long a start that is given up may take to be over.
const START_END: Duration = Duration::from_secs(8);

/// How long a container that is killed may take to end. That, and what follows, is less than the core waits.
const KILL_TIME: Duration = Duration::from_secs(4);

/// What an image wants that says nothing.
const USUAL_SIGNAL: &str = "SIGTERM";

impl World {
    /// Asks a container to end: with this signal, or with that of its image.
    pub(super) async fn stop(&self, launch: LaunchId, name: &str) -> Result<(), Failure> {
        if !self.held.is_running(launch) {
            // What is over cannot be asked to end; it did.
            return Ok(());
        }
        let Some(known) = self.containers.get(launch) else {
            return Ok(());
        };
        let engine = self.engine()?;
        let name = match name {
            "" => {
                let found = engine.inspect(&known.id).await.ok();
                let config = found.and_then(|found| found.config);
                let wanted = config.and_then(|config| config.stop_signal);
                wanted
                    .filter(|it| !it.is_empty())
                    .unwrap_or_else(|| USUAL_SIGNAL.to_owned())
            }
            name => checked(name)?,
        };
        match engine.kill(&known.id, &name).await {
            // It ended meanwhile.
            Ok(()) | Err(Trouble::Unknown(_) | Trouble::Conflict(_)) => Ok(()),
            Err(trouble) => Err(trouble.failure("cannot stop the container")),
        }
    }

    /// Sends a signal to a container that runs.
    pub(super) async fn signal(&self, launch: LaunchId, name: &str) -> Result<(), Failure> {
        let known = self
            .containers
            .get(launch)
            .filter(|_| self.held.is_running(launch));
        let known = known.ok_or_else(|| Failure::fatal("task not running"))?;
        let name = checked(if name.is_empty() { USUAL_SIGNAL } else { name })?;
        let sent = self.engine()?.kill(&known.id, &name).await;
        sent.map_err(|trouble| trouble.failure("cannot signal the container"))
    }

    /// An engine says that a container ended.
    pub(super) fn container_ended(self: Arc<Self>, id: &str) {
        if let Some(launch) = self.containers.launch_of(id) {
            tokio::spawn(async move { self.ended(launch).await });
        }
    }

    /// Inspects all that should run, and removes what is nobody's: the engine is there again.
    pub(super) fn inspect_all_launches(self: Arc<Self>) {
        for launch in self.containers.launches() {
            let world = self.clone();
            tokio::spawn(async move { world.inspect_launch(launch).await });
        }
        tokio::spawn(self.clone().sweep());
        tokio::spawn(async move { self.move_to_shared_cores().await });
    }

    /// Checks whether a container still runs, and reports its exit if not.
    pub(super) async fn inspect_launch(&self, launch: LaunchId) {
        let Some(known) = self.containers.get(launch) else {
            return;
        };
        let Ok(engine) = self.engine() else { return };
        match engine.inspect(&known.id).await {
            Ok(found) if exit::runs(&found) => {}
            Ok(_) => self.ended(launch).await,
            Err(Trouble::Unknown(_)) => {
                let result = ExitResult::unknown("somebody removed its container");
                self.report_end(launch, &known.task, result);
            }
            // The next engine is asked again.
            Err(trouble) => {
                tracing::debug!(%launch, %trouble, "a container could not be inspected")
            }
        }
    }

    /// Reports how a container ended, once.
    pub(super) async fn ended(&self, launch: LaunchId) {
        let Some(known) = self
            .containers
            .get(launch)
            .filter(|_| self.held.is_running(launch))
        else {
            return;
        };
        let Ok(engine) = self.engine() else { return };
        if let Err(trouble) = until_ended(&engine, &known.id).await
            && !matches!(trouble, Trouble::Unknown(_))
        {
            tracing::debug!(%launch, %trouble, "the end of a container was not awaited");
            return;
        }
        let result = match engine.inspect(&known.id).await {
            Ok(found) => exit::result(&found, Some(&known), self.containers.oom(launch)),
            Err(Trouble::Unknown(_)) => ExitResult::unknown("somebody removed its container"),
            // The next engine is asked again.
            Err(_) => return,
        };
        known.drained(DRAIN_TIME).await;
        self.report_end(launch, &known.task, result);
    }

    fn report_end(&self, launch: LaunchId, task: &TaskKey, result: ExitResult) {
        if self.held.ended(launch, &result) {
            self.inbox
                .send(task, DriverInput::Exited { launch, result });
        }
    }

    /// Ends whatever of a launch is alive, and removes its container. How it ended, if that is known and was not
    /// told.
    pub(super) async fn destroy(
        &self,
        task: &TaskKey,
        launch: LaunchId,
    ) -> Result<Option<ExitResult>, Failure> {
        let end = self.held.take(launch);
        let has_exit = end.is_some();
        let destroyed = self.destroy_container(launch).await;
        match &destroyed {
            Ok(_) => {
                self.held.remove(launch);
                self.containers.remove(launch);
                self.give_cores_back(launch).await;
            }
            // It goes on, and so does telling its end.
            Err(_) => {
                if let Some(result) = self.held.give_back(launch) {
                    self.inbox
                        .send(task, DriverInput::Exited { launch, result });
                }
            }
        }
        destroyed.map(|result| result.filter(|_| has_exit))
    }

    async fn destroy_container(&self, launch: LaunchId) -> Result<Option<ExitResult>, Failure> {
        if !self.starts.end(launch, START_END).await {
            return Err(Failure::recoverable("its start does not end"));
        }
        let records = self.records.clone();
        let ours = match self.blocking(move || records.read(launch)).await? {
            None => return Ok(None),
            Some(Record::Ended(result, ours)) => {
                self.remove_of(launch, &ours).await?;
                return Ok(Some(result));
            }
            Some(Record::Asked(ours)) => ours,
        };
        self.remove_of(launch, &ours).await
    }

    /// Kills and removes the container that is ours, if there is one. How it ended.
    pub(super) async fn remove_of(
        &self,
        launch: LaunchId,
        ours: &super::records::Ours,
    ) -> Result<Option<ExitResult>, Failure> {
        let failed = |trouble: Trouble| trouble.failure("cannot remove the container");
        let engine = self.engine()?;
        let known = self.containers.get(launch);
        if known.is_none() {
            // Nobody knows how far its start came.
            self.remove_joining(&engine, ours).await.map_err(failed)?;
        }
        let Some((id, found)) = self.find(&engine, launch, ours).await.map_err(failed)? else {
            return Ok(None);
        };
        let mut result = None;
        if !exit::never_ran(&found) {
            if exit::runs(&found) {
                match engine.kill(&id, "SIGKILL").await {
                    Ok(()) | Err(Trouble::Unknown(_) | Trouble::Conflict(_)) => {}
                    Err(trouble) => return Err(failed(trouble)),
                }
                until_ended(&engine, &id).await.map_err(failed)?;
            }
            let found = engine.inspect(&id).await.map_err(failed)?;
            result = Some(exit::result(
                &found,
                known.as_ref(),
                self.containers.oom(launch),
            ));
            if let Some(known) = known {
                known.drained(DRAIN_TIME).await;
            }
        }
        if let Some(result) = result.clone() {
            // It can be told again when the container is gone.
            let records = self.records.clone();
            self.blocking(move || records.ended(launch, result)).await?;
        }
        if self.settings.collect_containers || result.is_none() {
            engine.remove(&id).await.map_err(failed)?;
        }
        Ok(result)
    }

    /// Removes what nobody knows of whom there is a record, and images that nobody uses.
    async fn sweep(self: Arc<Self>) {
        // Also where no task starts that would wait for it.
        if let Ok(engine) = self.engine()
            && let Err(failure) = self.images.loads.settle(&engine, &self.records).await
        {
            let error = failure.message;
            tracing::warn!(
                error,
                "cannot see which tags an archive took; the next start does"
            );
        }
        for launch in self.orphans() {
            match self.destroy_container(launch).await {
                Ok(_) => {
                    tracing::info!(%launch, "cleared away what a task left behind");
                    self.orphans_mut().remove(&launch);
                    self.give_cores_back(launch).await;
                    self.forget(launch).await;
                }
                Err(failure) => {
                    let error = failure.message;
                    tracing::error!(%launch, error, "cannot remove a lost container");
                }
            }
        }
        // Those of containers that were just removed, too.
        self.sweep_images().await;
    }

    /// Thinks of all images that were brought, and that nobody uses or has thought of.
    async fn sweep_images(self: &Arc<Self>) {
        if let Ok(engine) = self.engine()
            && let Err(trouble) = self.images.pulls.settle(&engine, &self.records).await
        {
            tracing::warn!(%trouble, "cannot see what downloads brought; the next engine is asked");
        }
        let records = self.records.clone();
        let images = self.blocking(move || records.images()).await;
        let is_left = |image: &String| self.images.uses.of(image) == Use::None;
        for image in images.unwrap_or_default().into_iter().filter(is_left) {
            self.collect_image(image);
        }
    }

    /// Forgets a launch that is over.
    pub(super) async fn forget(self: &Arc<Self>, launch: LaunchId) {
        self.held.forget(launch);
        self.containers.remove(launch);
        if let Some(image) = self.images.uses.released(launch) {
            self.collect_image(image);
        }
        let records = self.records.clone();
        if let Err(failure) = self.blocking(move || records.remove(launch)).await {
            let error = failure.message;
            tracing::warn!(%launch, error, "cannot forget a container");
        }
    }

    /// Removes an image later, unless it is used again.
    pub(super) fn collect_image(self: &Arc<Self>, image: String) {
        // At the end of a runtime there is nobody who could.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if !self.settings.collect_images {
            return;
        }
        let world = self.clone();
        // From now on, so that nobody takes it for forgotten.
        let turn = self.images.uses.wait(&image);
        runtime.spawn(async move {
            let (engine, delay) = (|| world.engine().ok(), world.settings.image_delay);
            let image = (image.as_str(), turn);
            let (images, records) = (&world.images, &world.records);
            images.collect(engine, records, image, delay).await;
        });
    }
}

/// Waits until a container runs no more.
async fn until_ended(engine: &Engine, id: &str) -> Result<(), Trouble> {
    let mut waiting = engine
        .docker()
        .wait_container(id, None::<WaitContainerOptions>);
    let ended = Engine::within(KILL_TIME, async {
        Ok(match waiting.next().await {
            // Any end is one.
            None | Some(Ok(_) | Err(bollard::errors::Error::DockerContainerWaitError { .. })) => {
                Ok(())
            }
            Some(Err(error)) => Err(error),
        })
    });
    Ok(ended.await??)
}

/// The name of a signal that there is.
fn checked(name: &str) -> Result<String, Failure> {
    match signal::number(name, 0) {
        Some(number) if number > 0 => Ok(number.to_string()),
        _ => Err(Failure::fatal(format!("there is no signal {name:?}"))),
    }
}
