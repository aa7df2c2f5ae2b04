//! What servers are told of allocations is true, and all that they wait for.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::AllocReport;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::task::Stage;

use super::{Checker, Property, Verdict};
use crate::process::Process;
use crate::world::World;

impl Checker {
    pub(super) fn report_to_servers_is_true(
        &mut self,
        world: &World,
        agent: &Agent,
        report: &AllocReport,
    ) -> Verdict {
        let id = report.id;
        let mut all = world.processes().filter(|(_, it)| it.key.alloc == id);
        // What nobody can find, and what does not end by any means, is said to be over.
        let is_known = |launch: &LaunchId, it: &Process| {
            !it.unknowable
                && !world.disk.unread.contains(&it.key)
                && !self.ending.is_destroyed(*launch)
        };
        let alive = all.clone().filter(|(_, it)| it.alive);
        let alive = alive.filter(|(launch, it)| is_known(launch, it));
        let mut alive = alive.map(|(_, it)| it.key.clone());
        let tasks = agent.view().alloc(id).map(AllocRunner::tasks);
        // What ran for too long is said to be over when its tasks are asked to end.
        let group = agent.view().alloc(id);
        let group = group.and_then(|it| it.job().group(it.record().group.as_str()));
        let limited = group.is_some_and(|it| it.max_run_duration.is_some());
        // Poststop tasks come after.
        let is_main = |key: &TaskKey| {
            let mut tasks = tasks.into_iter().flatten();
            let task = tasks.find(|it| it.spec().key == *key);
            task.is_none_or(|it| it.spec().stage() != Stage::Poststop)
        };
        let is_true = match report.status {
            ClientStatus::Running => all.any(|(_, it)| it.claims > 0),
            ClientStatus::Complete => limited || !alive.any(|key| is_main(&key)),
            // One of its tasks failed: the others are about to end.
            ClientStatus::Failed => alive.count() < tasks.map_or(usize::MAX, <[_]>::len),
            ClientStatus::Pending => true,
            ClientStatus::Lost | ClientStatus::Unknown => false,
        };
        let was_over = self.cluster.over.contains(&id);
        let is_over = report.status.is_terminal();
        if is_over {
            self.cluster.over.insert(id);
        }
        let holds = is_true && (is_over || !was_over);
        self.holds(Property::ReportToServersIsTrue, holds, || {
            let name = world.scene.names.alloc(id);
            let before = if was_over {
                ", and was over before"
            } else {
                ""
            };
            format!("{name} is reported as {}{before}", report.status.as_str())
        })
    }

    /// What failed of a roll-out, as servers placed it, is reported as healthy or not.
    pub(super) fn failed_alloc_is_reported_with_health(&mut self, report: &AllocReport) -> Verdict {
        let placed = self.cluster.newest.get(&report.id);
        let rolls = placed.is_some_and(|it| it.rolls);
        // What could not be run at all has no tasks, and the reason as its description.
        let ran = !report.tasks.is_empty();
        if !rolls || !ran || report.status != ClientStatus::Failed {
            return Ok(());
        }
        let has_one = report.health.is_some();
        self.holds(Property::FailedAllocIsReportedWithHealth, has_one, || {
            format!("{report:?}")
        })
    }
}
