//! The container of an earlier agent is found again.
//!
//! Only the engine knows what became of it. That the engine is away says nothing of a container, which may run on
//! without it: so whoever asks waits for the engine, while the driver is unhealthy.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, Found};
use drover_core::model::alloc::DriverNetwork;
use drover_core::model::task::LogConfig;
use drover_core::op::{Failure, Op};
use tokio::time::sleep;

use super::engine::Engine;
use super::proof::Claimed;
use super::records::{Ours, Record};
use super::starting::Start;
use super::trouble::Trouble;
use super::{World, create, exit, link, network};
use crate::driver::answer::Answer;

/// The pause before an engine is asked again that ended while it was asked.
const AGAIN: Duration = Duration::from_secs(1);

/// A container, and what the engine knows of it.
type Inspected = (String, ContainerInspectResponse);

impl World {
    pub(super) async fn recover(
        self: Arc<Self>,
        start: Start,
        owed: Answer,
        task: TaskKey,
        op: Op,
        launch: LaunchId,
        logs: LogConfig,
    ) {
        let found = tokio::select! {
            found = self.try_recover(&task, launch, logs) => found,
            () = start.given_up() => Err(Failure::fatal("it was destroyed meanwhile")),
        };
        drop(start);
        let (found, network) = found.unwrap_or_else(|failure| {
            let why = format!("cannot be recovered: {}", failure.message);
            (Found::Gone(why), None)
        });
        let runs = found == Found::Running;
        owed.give(DriverInput::Recovered {
            op,
            launch,
            found,
            network,
        });
        if runs {
            // It may have ended since it was looked at, before anybody listened for that.
            self.inspect_launch(launch).await;
        }
    }

    async fn try_recover(
        self: &Arc<Self>,
        task: &TaskKey,
        launch: LaunchId,
        logs: LogConfig,
    ) -> Result<(Found, Option<DriverNetwork>), Failure> {
        let records = self.records.clone();
        let ours = match self.blocking(move || records.read(launch)).await? {
            None => {
                self.held.never(launch);
                return Ok((Found::NeverStarted, None));
            }
            Some(Record::Ended(result, _)) => return Ok((Found::Exited(result), None)),
            Some(Record::Asked(ours)) => ours,
        };
        let found = self.find_when_it_answers(launch, &ours).await;
        let found = found.map_err(|trouble| trouble.failure("the container"))?;
        let Some((id, found)) = found else {
            if ours.container.as_deref() == Some("") {
                return Ok((self.never_started(launch, &ours).await?, None));
            }
            return Ok((Found::Gone("its container is not there".to_owned()), None));
        };
        if exit::never_ran(&found) {
            return Ok((self.never_started(launch, &ours).await?, None));
        }
        if let Some(image) = &found.image {
            self.images.uses.used(image, launch);
        }
        let has_terminal = found
            .config
            .as_ref()
            .and_then(|it| it.tty)
            .unwrap_or_default();
        let output = self.files(task, launch, logs, &id, has_terminal).await?;
        let drained = self.collect(output);
        let network = network::of(&found, &ours.network);
        self.known(task, launch, id, &found, drained);
        if !exit::runs(&found) {
            let known = self.containers.get(launch);
            let result = exit::result(&found, known.as_ref(), None);
            if let Some(known) = known {
                known.drained(super::end::DRAIN_TIME).await;
            }
            let found = match ours.is_of_earlier_boot() && exit::is_unseen(&found) {
                true => Found::Rebooted,
                false => Found::Exited(result),
            };
            return Ok((found, None));
        }
        if !self.held.runs(launch) {
            return Ok((Found::Gone("it was destroyed".to_owned()), None));
        }
        Ok((Found::Running, network))
    }

    /// Clears away what a start left that was interrupted before the container ran.
    async fn never_started(&self, launch: LaunchId, ours: &Ours) -> Result<Found, Failure> {
        if self.remove_of(launch, ours).await?.is_some() {
            let why = "the agent died while it was being started";
            return Ok(Found::Gone(why.to_owned()));
        }
        self.held.never(launch);
        self.give_cores_back(launch).await;
        // An engine may still be making it that was asked to before. So its record stays until the next engine.
        self.orphans_mut().insert(launch);
        Ok(Found::NeverStarted)
    }

    /// The container of a launch, as soon as there is an engine that can say.
    async fn find_when_it_answers(
        &self,
        launch: LaunchId,
        ours: &Ours,
    ) -> Result<Option<Inspected>, Trouble> {
        let mut link = self.link.subscribe();
        self.wanted.notify_one();
        loop {
            let Some(engine) = link::next(&mut link).await else {
                return Err(Trouble::Silent("nobody looks for it".to_owned()));
            };
            match self.find(&engine, launch, ours).await {
                Err(Trouble::Silent(why)) => {
                    tracing::debug!(%launch, why, "a container is inspected again");
                    sleep(AGAIN).await;
                }
                found => return found,
            }
        }
    }

    /// The container of a launch, and nobody else's ([`super::proof`]): it has the name that was remembered, or at
    /// least the launch's label.
    pub(super) async fn find(
        &self,
        engine: &Engine,
        launch: LaunchId,
        ours: &Ours,
    ) -> Result<Option<Inspected>, Trouble> {
        let mut names = vec![ours.name.clone()];
        let mut asked_for_labels = false;
        loop {
            while let Some(name) = names.pop() {
                match engine.inspect(&name).await {
                    Ok(found) if is_ours(&found, ours) => {
                        let id = found.id.clone().unwrap_or(name);
                        return Ok(Some((id, found)));
                    }
                    Ok(_) | Err(Trouble::Unknown(_)) => {}
                    Err(trouble) => return Err(trouble),
                }
            }
            if asked_for_labels {
                return Ok(None);
            }
            asked_for_labels = true;
            // Somebody may have renamed it.
            let label = format!("{}={}", create::LAUNCH_LABEL, launch);
            names = engine.labelled(&label).await?;
        }
    }
}

fn is_ours(found: &ContainerInspectResponse, ours: &Ours) -> bool {
    let claimed = Claimed {
        id: found.id.as_deref().unwrap_or_default(),
        name: found.name.as_deref().unwrap_or_default(),
        labels: found.config.as_ref().and_then(|it| it.labels.as_ref()),
    };
    claimed.is_task_of(ours)
}

#[cfg(test)]
#[path = "recover_tests.rs"]
mod tests;
