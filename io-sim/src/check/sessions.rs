//! Exec sessions: each is a part of the launch that runs, and ends with it.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::LaunchId;
use drover_core::operations::Purpose;
use drover_core::task::runner::{Phase, TaskRunner};

use super::limits::SESSIONS;
use super::{Checker, Property, Verdict};
use crate::world::World;

impl Checker {
    /// A session leaves the agent.
    pub(super) fn session_effect(
        &mut self,
        agent: &Agent,
        alloc: &AllocRunner,
        task: &TaskRunner,
        runs: bool,
        launch: LaunchId,
    ) -> Verdict {
        let own = task.record().launch.as_ref().map(|launch| launch.id);
        let waits = matches!(task.phase(), Phase::Delaying(_) | Phase::Deregistering(_));
        let runs = (runs || waits) && own == Some(launch);
        let detail = || {
            let key = &task.spec().key;
            let phase = task.phase();
            format!("{key:?} is {phase:?}, its launch is {own:?}, the session's {launch}")
        };
        self.holds(Property::SessionOpensOnlyWhileTaskRuns, runs, detail)?;
        let of = |alloc: &AllocRunner| alloc.tasks().iter().map(TaskRunner::sessions).sum();
        let (own, all): (usize, usize) = (of(alloc), agent.view().allocs().map(of).sum());
        let bounded = all <= SESSIONS.0 && own <= SESSIONS.1;
        self.holds(Property::SessionsAreBounded, bounded, || {
            format!("{own} of the allocation, {all} in all")
        })
    }

    /// What the agent holds open belongs to a launch that it believes to run, and what is open in the world
    /// to a launch that the agent still has to destroy.
    pub(super) fn session_ends_with_its_launch(
        &mut self,
        world: &World,
        task: &TaskRunner,
    ) -> Verdict {
        let key = &task.spec().key;
        let launch = task.record().launch.as_ref();
        let runs = launch.is_some_and(|launch| launch.exit.is_none());
        let mut open = world.sessions.open.values().filter(|one| one.key == *key);
        let left = open.find(|one| Some(one.launch) != launch.map(|launch| launch.id));
        let held = task.sessions();
        let so = (held == 0 || runs) && left.is_none();
        self.holds(Property::SessionEndsWithItsLaunch, so, || {
            format!(
                "{key:?} is {:?}, holds {held}, left is {left:?}",
                task.phase()
            )
        })
    }

    /// Every session has ended long ago.
    pub(super) fn ended_session_is_forgotten(&mut self, agent: &Agent) -> Verdict {
        let tasks = agent.view().allocs().flat_map(AllocRunner::tasks);
        let held: usize = tasks.map(TaskRunner::sessions).sum();
        let asked = agent.view().operations().iter();
        let counted = asked.filter(|(_, one)| one.purpose == Purpose::Session);
        let counted = counted.count();
        let none = held == 0 && counted == 0;
        self.holds(Property::EndedSessionIsForgotten, none, || {
            format!("{held} are held, {counted} count")
        })
    }
}
