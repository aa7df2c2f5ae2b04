//! The end of the tasks: what asks for it, and what one task's end means for the others.

use super::{AllocRunner, Phase};
use crate::alloc::coordinator::Coordinator;
use crate::alloc::kill_order::KillOrder;
use crate::cx::Cx;
use crate::ids::TaskName;
use crate::model::alloc::ClientStatus;
use crate::model::event::{EventType, TaskEvent};
use crate::model::task::Stage;
use crate::task::runner::TaskRunner;
use crate::time::Span;

const MAX_RUN_EXCEEDED: &str = "Allocation exceeded its max_run_duration";

impl AllocRunner {
    /// Ends it for good.
    pub fn stop(&mut self, cx: &mut Cx<'_>) {
        self.end(cx, None, false);
    }

    /// Tasks that wait for servers to remove their services are asked to end if that is done. Returns whether there was
    /// one.
    pub fn end_deregistered(&mut self, cx: &mut Cx<'_>) -> bool {
        let mut any = false;
        for task in &mut self.tasks {
            any |= task.end_deregistered(cx);
        }
        any
    }

    /// Its shutdown delays do not count any more, also those that it waits for already.
    pub fn skip_shutdown_delay(&mut self, cx: &mut Cx<'_>) {
        if self.record.finished || self.record.skip_shutdown_delay {
            return;
        }
        self.edit(cx, |record| record.skip_shutdown_delay = true);
        if let Some(order) = &mut self.kill {
            order.end_delay();
        }
        // A task may end by itself before its group does.
        for task in &mut self.tasks {
            task.end_delay(cx);
        }
    }

    pub(super) fn end(&mut self, cx: &mut Cx<'_>, reason: Option<String>, poststop_too: bool) {
        if self.kill.is_some() && !poststop_too {
            return;
        }
        let delay = self
            .job
            .group(self.record.group.as_str())
            .and_then(|g| g.shutdown_delay)
            .filter(|_| !self.record.skip_shutdown_delay);
        let mut order = KillOrder::begin(cx, delay.unwrap_or(Span::ZERO), reason, poststop_too);
        order.at_once = self.record.skip_shutdown_delay;
        self.kill = Some(order);
        self.cancel_prerun(cx);
        let comes_before = |task: &&mut TaskRunner| task.spec().stage() != Stage::Poststop;
        for task in self.tasks.iter_mut().filter(comes_before) {
            task.take_back_start(cx);
        }
    }

    /// A record of it cannot be read: nothing of it is started any more, also not what comes after
    /// the end, and it is over when nothing of it can be alive.
    pub(super) fn quarantine(&mut self, cx: &mut Cx<'_>) {
        // What became of it was told, and stays.
        if self.record.status.is_terminal() && !self.record.forced {
            self.edit(cx, |record| record.forced = true);
        }
        if !self.record.finished {
            self.end(cx, None, true);
        }
    }

    pub(super) fn max_run_duration_passed(&mut self, cx: &mut Cx<'_>) {
        if self.record.finished {
            return;
        }
        // What failed before stays failed: it may be replaced already.
        if !self.record.status.is_terminal() {
            self.edit(cx, |record| {
                record.forced = true;
                record.status = ClientStatus::Complete;
                record.status_description = MAX_RUN_EXCEEDED.into();
            });
        }
        self.end(cx, Some(MAX_RUN_EXCEEDED.to_owned()), true);
    }

    /// What one task's state means for the others, and for the stage. Returns whether anything
    /// follows from it.
    pub(super) fn check_tasks(&mut self, cx: &mut Cx<'_>) -> bool {
        let Phase::Tasks(before) = self.phase else {
            return false;
        };
        let states = self
            .tasks
            .iter()
            .map(|task| (task.spec().stage(), task.state()));
        let alive = self.tasks.iter();
        let alive = alive
            .filter(|task| !task.is_dead())
            .any(TaskRunner::has_remains);
        let stage = before.after(states, alive);
        let mut changed = stage != before;
        self.phase = Phase::Tasks(stage);
        if self.kill.is_none()
            && let Some((kind, message, failed)) = self.reason_to_end(stage)
        {
            changed = true;
            for task in &mut self.tasks {
                let live = task.spec().stage() != Stage::Poststop && !task.is_dead();
                if live {
                    let mut event = TaskEvent::new(kind, cx.now.wall, &message);
                    if let Some(name) = &failed {
                        event = event.detail("failed_sibling", name);
                    }
                    task.push(cx, event);
                }
            }
            self.end(cx, None, false);
        }
        changed
    }

    /// Why the rest of the group has to end, if it has to.
    fn reason_to_end(&self, stage: Coordinator) -> Option<(EventType, String, Option<TaskName>)> {
        let before_end = |task: &&TaskRunner| task.spec().stage() != Stage::Poststop;
        let mut live = self
            .tasks
            .iter()
            .filter(before_end)
            .filter(|task| !task.is_dead());
        live.clone().next()?;
        let dead = |task: &&TaskRunner| task.is_dead();
        if let Some(task) = self
            .tasks
            .iter()
            .filter(dead)
            .find(|task| task.state().failed)
        {
            let name = task.spec().key.task.clone();
            let message = format!("Task's sibling \"{name}\" failed");
            return Some((EventType::SiblingFailed, message, Some(name)));
        }
        if self
            .tasks
            .iter()
            .filter(dead)
            .any(|task| task.spec().task().leader)
        {
            let message = "Leader Task in Group dead".to_owned();
            return Some((EventType::LeaderDead, message, None));
        }
        let only_sidecars = live.all(|task| task.spec().stage().is_sidecar());
        let has_main = self
            .tasks
            .iter()
            .filter(before_end)
            .any(|task| !task.spec().stage().is_sidecar());
        let main_over = only_sidecars && (has_main || stage > Coordinator::Main);
        main_over.then(|| {
            (
                EventType::MainDead,
                "Main tasks in the group died".to_owned(),
                None,
            )
        })
    }
}
