//! Scripts of templates: each tells of one change, once, and runs beside what runs.

use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::effect::Program;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::DriverInput;
use drover_core::op::Op;
use drover_core::operations::Operation;
use drover_core::task::runner::{Phase, Stop, TaskRunner};
use drover_core::time::Span;

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// The longest grace that agents give if nobody says otherwise.
const LONGEST_GRACE: Span = Span::secs(30);

/// Whether it runs, or was asked to end at this very moment: a script that had left before that is
/// seen afterwards.
pub(super) fn runs_until_now(agent: &Agent, world: &World, task: &TaskRunner) -> bool {
    let (spec, now) = (task.spec(), world.scene.at);
    let grace = policy::kill_timeout(spec.task(), LONGEST_GRACE);
    match task.phase() {
        Phase::Running => true,
        Phase::Delaying(until) => *until >= now + spec.task().shutdown_delay,
        Phase::Stopping(Stop::Sent(until)) => *until >= now + grace,
        Phase::Stopping(Stop::Asked(op)) => {
            let stop = agent.view().operations().get(*op);
            let until = stop.and_then(Operation::until);
            until.is_none_or(|until| until >= now + grace)
        }
        Phase::Waiting
        | Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Deregistering(_)
        | Phase::Cleaning(_)
        | Phase::Pausing(_)
        | Phase::Dead(_) => false,
    }
}

impl Checker {
    /// A script leaves the agent. In the simulated world its first argument is its template's place.
    pub(super) fn script_effect(
        &mut self,
        world: &World,
        task: &TaskRunner,
        runs: bool,
        op: Op,
        launch: LaunchId,
        program: &Program,
    ) -> Verdict {
        let number = program.args.first().and_then(|at| at.parse().ok());
        let Some(at) = number else {
            return Ok(());
        };
        self.change_script_runs_for_template_change(task, at)?;
        let own = task.record().launch.as_ref().map(|launch| launch.id);
        let runs = runs && own == Some(launch);
        let until = world.scene.at + program.timeout;
        let before = self.templates.scripts.insert((launch, at), (op, until));
        let alone = before.is_none_or(|(_, until)| until <= world.scene.at);
        self.holds(
            Property::ChangeScriptRunsOnlyWhileTaskRuns,
            runs && alone,
            || {
                let key = &task.spec().key;
                let (phase, alone) = (
                    task.phase(),
                    if alone {
                        "alone"
                    } else {
                        "the script runs already"
                    },
                );
                format!(
                    "{key:?} is {phase:?}, its launch is {own:?}, the script's {launch}: {alone}"
                )
            },
        )
    }

    /// The driver says what became of a script; the agent does not know that yet.
    pub(super) fn change_script_ended(
        &mut self,
        world: &World,
        agent: &Agent,
        key: &TaskKey,
        reported: &DriverInput,
    ) {
        let DriverInput::Executed {
            op, launch, result, ..
        } = reported
        else {
            return;
        };
        // Who leaves its tasks does nothing about them any more.
        if self.leaving {
            return;
        }
        let alloc = agent.view().alloc(key.alloc);
        let Some(task) = alloc.and_then(|alloc| alloc.task(&key.task)) else {
            return;
        };
        let own = task.record().launch.as_ref().map(|launch| launch.id);
        let runs = matches!(task.phase(), Phase::Running) && own == Some(*launch);
        let mut begun = self.templates.scripts.iter();
        let awaited = begun
            .find(|((of, _), (open, until))| of == launch && open == op && *until > world.scene.at);
        let template = awaited.and_then(|((_, at), _)| task.spec().task().templates.get(*at));
        let script = template.and_then(|template| template.change_script.as_ref());
        let fatal = script.is_some_and(|script| script.fail_on_error) && *result != Ok(0);
        if runs && fatal {
            self.templates.doomed.insert(key.clone());
        }
    }

    /// Whose script failed ends for that, if that is asked for. If what is saved of it says that it
    /// is to end, the next agent sees to it.
    pub(super) fn fatal_change_script_kills_task(&mut self, task: &TaskRunner) -> Verdict {
        let doomed = self.templates.doomed.remove(&task.spec().key);
        let lives_on = (doomed || task.record().failing)
            && matches!(
                task.phase(),
                Phase::Running | Phase::Preparing(_) | Phase::Pausing(_)
            );
        self.holds(Property::FatalChangeScriptKillsTask, !lives_on, || {
            format!("{:?} is {:?}", task.spec().key, task.phase())
        })
    }

    fn change_script_runs_for_template_change(&mut self, task: &TaskRunner, at: usize) -> Verdict {
        let key = &task.spec().key;
        let now = task.record().templates.get(at).cloned();
        let now = now.unwrap_or_else(|| Arc::from("nothing"));
        let known = self.templates.known.entry(key.clone()).or_default();
        let before = known.get(at).cloned();
        if let Some(known) = known.get_mut(at) {
            *known = now.clone();
        }
        let first = before.as_deref() == Some("");
        self.sometimes(Property::SometimesChangeScriptRunsAfterFirstRender, first);
        self.sometimes(Property::SometimesTemplateRunsChangeScript, !first);
        // Versions only rise, so none is ever told a second time, whoever dies when.
        let version = now.parse().unwrap_or_default();
        let place = (key.clone(), at);
        let last = self.templates.scripted.insert(place, version);
        let so = before.as_ref() != Some(&now) && last.is_none_or(|last| last < version);
        self.holds(Property::ChangeScriptRunsForTemplateChange, so, || {
            format!("{key:?} knew {before:?} of template {at}, and is notified of {now:?}")
        })
    }
}
