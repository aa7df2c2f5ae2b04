//! Tasks whose containers an engine owns: what is not known of them is waited for.

use drover_core::agent::Agent;
use drover_core::input::{DriverHealth, DriverReport, NodeInput};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::Span;

use super::{Checker, Property, Verdict};
use crate::engine::DRIVER;
use crate::world::World;

impl Checker {
    /// A task whose engine is away is not given up before that had all the time which the node gives engines.
    pub(super) fn engine_is_awaited(
        &mut self,
        world: &World,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let key = &task.spec().key;
        // Whose record cannot be read is given up for that, and who is to end gets as long as a process would: what
        // may be left of it is removed by force once its engine is back.
        let for_itself = world.disk.unread.contains(key) || task.is_ending();
        let gives_up = event.kind == EventType::FailedRestoring && !for_itself;
        if !gives_up || task.spec().task().driver != DRIVER || !world.engine.is_away() {
            return Ok(());
        }
        let waited = Span(world.elapsed().0 - self.lives.began_after.0);
        let limit = world.scene.timeouts.recover_by_engine;
        self.holds(Property::EngineIsAwaited, waited >= limit, || {
            format!("{key:?} is given up after {waited}, and engines have {limit}")
        })
    }

    /// An engine says how it is.
    pub(super) fn engine_reports(&mut self, world: &World, agent: &Agent, reported: &NodeInput) {
        let NodeInput::Driver { driver, report, .. } = reported else {
            return;
        };
        let DriverReport::Fingerprint(fingerprint) = report else {
            return;
        };
        if driver != DRIVER || fingerprint.health == DriverHealth::Healthy {
            return;
        }
        let mut alive = world.alive();
        let beneath = alive.any(|(launch, _)| world.engine.owns(*launch));
        self.sometimes(Property::SometimesEngineDiesBeneathTasks, beneath);
        let mut tasks = agent.view().allocs().flat_map(|alloc| alloc.tasks());
        let waits = tasks.any(|task| {
            let of_engine = task.spec().task().driver == DRIVER;
            of_engine && matches!(task.phase(), Phase::Recovering(_))
        });
        self.sometimes(Property::SometimesTaskWaitsForItsEngine, waits);
    }
}
