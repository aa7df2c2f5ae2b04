//! The health check that an image brings with it. The engine runs it, at the times that the image says; here it is asked
//! what was found last.

use bollard::models::HealthStatusEnum;
use drover_core::effect::request::Health;
use drover_core::ids::LaunchId;
use drover_core::op::Failure;

use super::World;

/// The most letters of what a check printed.
const MAX_OUTPUT: usize = 1024;

impl World {
    /// What the health check of a container found last, as a code of [`Health`], and what it printed.
    pub(super) async fn health(&self, launch: LaunchId) -> Result<(i32, String), Failure> {
        let known = self.containers.get(launch);
        let known = known.ok_or_else(|| Failure::fatal("task not running"))?;
        let inspected = self.engine()?.inspect(&known.id).await;
        let inspected =
            inspected.map_err(|trouble| trouble.failure("cannot inspect its health"))?;
        let health = inspected.state.and_then(|state| state.health);
        let code = match health.as_ref().and_then(|health| health.status) {
            Some(HealthStatusEnum::HEALTHY) => Health::HEALTHY,
            Some(HealthStatusEnum::STARTING) => Health::STARTING,
            Some(HealthStatusEnum::UNHEALTHY) => Health::UNHEALTHY,
            Some(HealthStatusEnum::NONE | HealthStatusEnum::EMPTY) | None => {
                let why = "the image has no HEALTHCHECK, or healthchecks { disable } turned it off";
                return Err(Failure::fatal(why));
            }
        };
        let last = health.and_then(|health| health.log?.pop());
        let output = match (last.and_then(|last| last.output), code) {
            (Some(output), _) => output.trim().chars().take(MAX_OUTPUT).collect(),
            (None, Health::STARTING) => "it was not run yet".to_owned(),
            (None, _) => String::new(),
        };
        Ok((code, output))
    }
}
