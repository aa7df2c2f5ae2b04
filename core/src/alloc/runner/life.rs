//! How an allocation goes on: each check of all its tasks, and the way from phase to phase.

use std::sync::Arc;

use super::{AllocRunner, Phase, report};
use crate::cx::Cx;
use crate::hooks::{OnError, Pipeline};
use crate::model::task::Stage;
use crate::task::runner::{Scope, TaskRunner};

impl AllocRunner {
    /// Does all that can be done without an answer from outside.
    pub fn settle(&mut self, cx: &mut Cx<'_>) {
        loop {
            let mut changed = self.advance_phase(cx);
            let record = self.record.clone();
            let ending = self.kill.is_some();
            for task in &mut self.tasks {
                let stage = task.spec().stage();
                let in_turn = match self.phase {
                    Phase::Tasks(coordinator) => coordinator.is_open(stage),
                    Phase::Prerun(_)
                    | Phase::Finished
                    | Phase::Destroying(_)
                    | Phase::DestroyPause(_)
                    | Phase::Destroyed => false,
                };
                // A group that is being ended starts nothing but what comes after the end, and
                // what a task is told of its machine has to be known.
                let wanted =
                    (!ending || stage == Stage::Poststop) && !cx.shared.fingerprint_pending;
                let open = in_turn && wanted;
                changed |= task.advance(
                    cx,
                    Scope {
                        alloc: &record,
                        gate_open: open,
                    },
                );
            }
            changed |= self.check_tasks(cx);
            if let Some(kill) = &mut self.kill {
                changed |= kill.advance(cx, &mut self.tasks);
            }
            if !changed {
                break;
            }
        }
        self.note_launches(cx);
        self.advance_checks(cx);
        self.check_health(cx);
        self.report(cx);
        self.unclean = self.has_remains();
    }

    /// Notes which launches its tasks have.
    fn note_launches(&mut self, cx: &mut Cx<'_>) {
        let launch = |task: &TaskRunner| {
            let launch = task.record().launch.as_ref()?;
            Some((task.spec().key.task.clone(), launch.id))
        };
        let same = |task: &TaskRunner| {
            let known = self.record.launches.get(&task.spec().key.task);
            known == task.record().launch.as_ref().map(|launch| &launch.id)
        };
        if !self.tasks.iter().all(same) {
            let launches = self.tasks.iter().filter_map(launch).collect();
            Arc::make_mut(&mut self.record).launches = launches;
            self.save(cx);
        }
    }

    /// Returns whether the phase changed.
    fn advance_phase(&mut self, cx: &mut Cx<'_>) -> bool {
        match &self.phase {
            Phase::Prerun(setup) => {
                let setup = setup.clone();
                let over = self.advance_prerun(cx, setup);
                if over {
                    // What it waited for before that says nothing of its health.
                    self.health = report::watch(cx, &self.record, &self.job);
                }
                over
            }
            Phase::Tasks(_) => {
                let over = self.tasks.iter().all(TaskRunner::is_finished);
                if over {
                    self.edit(cx, |record| record.finished = true);
                    self.phase = Phase::Finished;
                }
                over
            }
            Phase::Finished => {
                self.advance_network(cx);
                let alive = self.tasks.iter().any(TaskRunner::has_remains);
                let clean = self.record.destroying && !alive;
                let begin = clean && cx.shared.destroys.has_permit(&self.record);
                if begin {
                    self.phase = Phase::Destroying(Pipeline::new(OnError::Collect));
                }
                begin
            }
            Phase::Destroying(pipeline) => {
                let pipeline = pipeline.clone();
                self.advance_network(cx);
                self.advance_destroy(cx, pipeline)
            }
            Phase::DestroyPause(_) => {
                self.advance_network(cx);
                false
            }
            Phase::Destroyed => false,
        }
    }
}
