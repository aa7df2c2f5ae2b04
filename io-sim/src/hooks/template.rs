//! Templates that are rendered, and watched from then on.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::input::HookOutput;
use drover_core::op::Failure;
use drover_core::time::Span;
use drover_core::work::Rendering;

use super::{Of, Simulated};
use crate::check::{Checker, Verdict};
use crate::templates::Templates;
use crate::world::World;

impl Simulated for Arc<Rendering> {
    fn can_be_cancelled(&self) -> bool {
        true
    }

    fn time(&self, world: &mut World, of: &Of<'_>) -> Span {
        let missing = of.key();
        let missing = missing
            .and_then(|key| Templates::lacks_something(&mut world.scene, of.op, &key, &of.entity));
        missing.unwrap_or_else(|| world.scene.latency(&of.entity, world.scene.timeouts.hook))
    }

    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure> {
        let key = of.key_with_dir(world)?;
        let World {
            scene, templates, ..
        } = world;
        Ok(templates.render(scene, of.life, of.op, &key, self))
    }

    fn failed(&self, world: &mut World, of: &Of<'_>) {
        if let Some(key) = of.key().filter(|_| of.life == world.scene.life) {
            world.templates.failed(&key);
        }
    }

    fn check(&self, checker: &mut Checker, _: &World, agent: &Agent, of: &Of<'_>) -> Verdict {
        let Some(key) = of.key() else { return Ok(()) };
        checker.rendering_is_that_of_job_file(agent, &key, self)
    }

    fn streams(&self) -> bool {
        true
    }
}
