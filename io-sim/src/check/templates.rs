//! Templates: what a start finds of them, and what a task learns when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::{Agent, Input};
use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::input::{DriverInput, HookOutput, TemplateInput};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::task::Task;
use drover_core::model::template::{ChangeMode, Template};
use drover_core::op::Op;
use drover_core::operations::Wait;
use drover_core::store::{Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};
use drover_core::work::{Rendering, TemplateWork};

use super::{Checker, Property, Verdict, policy};
use crate::templates::variable;
use crate::world::World;

/// What is known of templates in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Templates {
    /// The newest that the agent was told of each task.
    reported: BTreeMap<TaskKey, HookOutput>,
    /// What each task knows, as far as it is saved or happened in this life.
    pub(super) known: BTreeMap<TaskKey, Vec<Arc<str>>>,
    /// Which scripts were begun in this life and when they are over at the latest.
    pub(super) scripts: BTreeMap<(LaunchId, usize), (Op, Instant)>,
    /// Whose script failed just now, and who is to end for that.
    pub(super) doomed: BTreeSet<TaskKey>,
    /// What the agent found to be told when it began.
    found_told: BTreeSet<(TaskKey, usize)>,
    /// The watches that were answered in this life.
    answered: BTreeSet<Op>,
    /// The renderings for which nothing is missing any more.
    complete: BTreeSet<Op>,
    /// Of which version of each template a script told last, through all lives of the agent.
    pub(super) scripted: BTreeMap<(TaskKey, usize), u32>,
}

impl Templates {
    /// What an earlier agent left.
    pub(super) fn agent_restored(&mut self, world: &World) {
        *self = Templates {
            scripted: core::mem::take(&mut self.scripted),
            ..Templates::default()
        };
        for (key, record) in world.disk.records() {
            if let (Key::Task(alloc, task), Record::Task(record)) = (key, record) {
                let (alloc, task) = (*alloc, task.clone());
                let known = record.templates.clone();
                let key = TaskKey { alloc, task };
                let reported = known
                    .iter()
                    .enumerate()
                    .filter(|(_, known)| !known.is_empty());
                let reported = reported.map(|(at, _)| (key.clone(), at));
                self.found_told.extend(reported);
                self.known.insert(key, known);
            }
        }
    }

    pub(super) fn delivered(&mut self, input: &Input) {
        if let Input::Driver(_, DriverInput::Executed { op, .. }) = input {
            self.scripts.retain(|_, (open, _)| open != op);
        }
        let (key, output) = match input {
            Input::Hook(hook) => match (&hook.task, &hook.result) {
                (Some(task), Ok(output)) => {
                    if !output.rendered.is_empty() {
                        self.answered.insert(hook.op);
                    }
                    let (alloc, task) = (hook.alloc, task.clone());
                    (TaskKey { alloc, task }, output)
                }
                _ => return,
            },
            Input::Template(key, TemplateInput::Rendered { output, .. }) => (key.clone(), output),
            Input::Template(_, TemplateInput::Missing { op, missing }) => {
                match missing.is_empty() {
                    true => self.complete.insert(*op),
                    false => self.complete.remove(op),
                };
                return;
            }
            _ => return,
        };
        if output.rendered.is_empty() {
            return;
        }
        // What comes late is older: versions only rise.
        let versions = |output: &HookOutput| -> Vec<u32> {
            let numbers = output.rendered.iter().map(|one| one.parse::<u32>());
            numbers.map(Result::unwrap_or_default).collect()
        };
        let newer = |reported: &HookOutput| versions(reported) <= versions(output);
        if self.reported.get(&key).is_none_or(newer) {
            self.reported.insert(key, output.clone());
        }
    }
}

/// Whether a template is rendered as its job file says.
fn is_as_written(written: &Template, asked: &TemplateWork) -> bool {
    let wait = written.wait.unwrap_or_default();
    (written.once, written.envvars, written.err_missing_key)
        == (asked.once, asked.env, asked.error_on_missing_key)
        && (wait.min, wait.max) == asked.wait
        && (written.uid, written.gid) == (asked.uid, asked.gid)
}

impl Checker {
    /// Whoever waits for something that is missing waits as long as that takes; when it is there, rendering has a
    /// limit like all other work.
    pub(super) fn rendering_has_a_limit(&mut self, agent: &Agent) -> Verdict {
        let operations = agent.view().operations();
        let awaited = |op: &Op| operations.get(*op).is_some();
        self.templates.complete.retain(awaited);
        // An agent that leaves its tasks alone listens to nobody.
        if self.templates.complete.is_empty() || self.leaving {
            return Ok(());
        }
        let is_open = |op: &&Op| operations.get(**op).is_some_and(|it| it.wait == Wait::Open);
        let open = self.templates.complete.iter().find(is_open).copied();
        self.holds(Property::RenderingHasALimit, open.is_none(), || {
            format!("{open:?} is awaited for ever")
        })
    }

    /// Templates are rendered as the job file says, from the variables that its job may read: those of the job that it was
    /// made of.
    pub(crate) fn rendering_is_that_of_job_file(
        &mut self,
        agent: &Agent,
        key: &TaskKey,
        work: &Rendering,
    ) -> Verdict {
        let Some(alloc) = agent.view().alloc(key.alloc) else {
            return Ok(());
        };
        let (record, files) = (alloc.record(), self.files.tasks(alloc, key));
        let is_of = |task: &&Task| {
            let pairs = task.templates.iter().zip(&work.templates);
            task.templates.len() == work.templates.len()
                && pairs
                    .into_iter()
                    .all(|(written, asked)| is_as_written(written, asked))
        };
        let as_written = files.is_empty() || files.iter().any(is_of);
        let known_as = policy::maker_of(&record.job);
        let reads = &work.reads;
        let own = (&*reads.namespace, &*reads.job) == (&*known_as.namespace, &*known_as.id)
            && (&*reads.group, &*reads.task) == (record.group.as_str(), key.task.as_str());
        self.holds(Property::RenderingIsThatOfJobFile, as_written && own, || {
            format!("{key:?} as in its file: {as_written}, it may read what is of {reads:?}: {work:?}")
        })
    }

    /// A task starts with what was rendered of its templates when that was decided, and that is
    /// remembered of it.
    pub(super) fn start_has_its_templates(
        &mut self,
        task: &TaskRunner,
        config: &TaskConfig,
    ) -> Verdict {
        let templates = task.spec().task().templates.iter().enumerate();
        if templates.len() == 0 {
            return Ok(());
        }
        let key = &task.spec().key;
        let reported = self.templates.reported.contains_key(key);
        let known = task.record().templates.clone();
        let found = |at: usize, template: &Template| {
            let variable = config.env.get(&variable(at)).map(String::as_str);
            let remembered = known.get(at).map(|version| &**version);
            // Of what it is still to be told for the first time: only a script that left told it.
            let untold = template.notifies_first_render() && remembered == Some("");
            let place = (key.clone(), at);
            let was_told = self.templates.scripted.contains_key(&place)
                || self.templates.found_told.contains(&place);
            let honest = !template.notifies_first_render() || untold || was_told;
            let same = !template.envvars || untold || variable == remembered;
            remembered.is_some() && honest && same
        };
        let mut templates = templates;
        let so = reported && templates.all(|(at, template)| found(at, template));
        self.templates.known.insert(key.clone(), known.clone());
        self.holds(Property::StartHasItsTemplates, so, || {
            format!("{key:?} starts with {known:?}, was notified: {reported}")
        })
    }

    /// Each template change is applied to a task once, by its change mode.
    pub(super) fn template_change_is_applied_once(
        &mut self,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let mode = match event.kind {
            EventType::RestartSignaled => ChangeMode::Restart,
            EventType::Signaling => ChangeMode::Signal,
            _ => return Ok(()),
        };
        if !event.display_message.starts_with("Template") {
            return Ok(());
        }
        let key = &task.spec().key;
        let reported = self.templates.reported.get(key);
        let reported = reported
            .map(|reported| reported.rendered.clone())
            .unwrap_or_default();
        let known = self.templates.known.entry(key.clone()).or_default();
        let before = known.clone();
        let templates = task.spec().task().templates.iter().enumerate();
        *known = reported.clone();
        for (at, _) in templates.clone().filter(|(_, one)| one.script().is_some()) {
            // Those are told by their scripts, which leave later.
            if let (Some(now), Some(before)) = (known.get_mut(at), before.get(at)) {
                *now = before.clone();
            }
        }
        let known = before;
        let mut changed = templates.filter(|(at, _)| known.get(*at) != reported.get(*at));
        let wanted = changed.any(|(_, template)| template.change_mode == mode);
        if mode == ChangeMode::Restart {
            // It is as if somebody had asked: it costs nothing, and a task that succeeds before it is
            // told runs again nevertheless, with what changed.
            self.lives.task(key).asks += 1;
            self.lives.asked_again.insert(key.alloc);
        }
        self.sometimes(
            Property::SometimesTemplateRestartsTask,
            mode == ChangeMode::Restart,
        );
        self.sometimes(
            Property::SometimesTemplateSignalsTask,
            mode == ChangeMode::Signal,
        );
        self.holds(Property::TemplateChangeIsAppliedOnce, wanted, || {
            format!("{key:?} knows {known:?} and is notified of {reported:?} by {mode:?}")
        })
    }

    /// What runs knows what is rendered now: it was started with it or told of it, and that is
    /// remembered.
    pub(super) fn task_has_current_templates(&mut self, world: &World, agent: &Agent) -> Verdict {
        let allocs = agent.view().allocs();
        let running = |task: &&TaskRunner| {
            let templates = !task.spec().task().templates.is_empty();
            templates && matches!(task.phase(), Phase::Running)
        };
        for task in allocs.flat_map(|alloc| alloc.tasks()).filter(running) {
            let key = &task.spec().key;
            let Some(now) = world.templates.known(key) else {
                continue;
            };
            let saved = &task.record().templates;
            let reported = self.templates.known.get(key).cloned().unwrap_or_default();
            let mut templates = task.spec().task().templates.iter().enumerate();
            let knows = templates.all(|(at, template)| {
                template.change_mode == ChangeMode::Noop || reported.get(at) == now.get(at)
            });
            let so = *saved == now && knows;
            self.holds(Property::TaskHasCurrentTemplates, so, || {
                format!(
                    "{key:?} was notified of {reported:?}, saved {saved:?}, and {now:?} is rendered"
                )
            })?;
        }
        Ok(())
    }

    /// The templates of a running task are watched if they can change.
    pub(super) fn templates_of_running_task_are_watched(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let allocs = agent.view().allocs();
        let running = |task: &&TaskRunner| {
            let mut templates = task.spec().task().templates.iter();
            let can_change = templates.any(|template| !template.once);
            can_change && matches!(task.phase(), Phase::Running)
        };
        for task in allocs.flat_map(|alloc| alloc.tasks()).filter(running) {
            let key = &task.spec().key;
            let watch = world.templates.watched().find(|(one, _)| *one == key);
            self.holds(
                Property::TemplatesOfRunningTaskAreWatched,
                watch.is_some(),
                || format!("{key:?}"),
            )?;
            let waits = watch.and_then(|(_, op)| Some(world.templates.watched_as(op)?.1));
            let wanted = waits_of(task);
            self.holds(
                Property::TemplateWatchUsesCurrentJobVersion,
                waits == Some(&wanted),
                || format!("{key:?}: {wanted:?} is wanted, {waits:?} was asked"),
            )?;
        }
        Ok(())
    }

    /// The template watch of a running task keeps its settings while the allocation stops: a stop runs no update hook.
    pub(super) fn stop_runs_no_update_hook(
        &mut self,
        world: &World,
        agent: &Agent,
        op: Op,
    ) -> Verdict {
        if !self.templates.answered.contains(&op) {
            return Ok(());
        }
        let Some((key, waits)) = world.templates.watched_as(op) else {
            return Ok(());
        };
        let alloc = agent.view().alloc(key.alloc);
        let Some(task) = alloc.and_then(|alloc| alloc.task(&key.task)) else {
            return Ok(());
        };
        let runs = matches!(
            task.phase(),
            Phase::Running | Phase::Delaying(_) | Phase::Deregistering(_) | Phase::Stopping(_)
        );
        let wanted = waits == waits_of(task);
        self.holds(Property::StopRunsNoUpdateHook, !runs || !wanted, || {
            format!("{key:?} is watched no more in {:?}", task.phase())
        })
    }

    /// The templates of a dead task are not watched.
    pub(super) fn templates_of_dead_task_are_not_watched(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let over = |key: &&TaskKey| {
            let alloc = agent.view().alloc(key.alloc);
            let task = alloc.and_then(|alloc| alloc.task(&key.task));
            task.is_none_or(TaskRunner::is_dead)
        };
        let vain = world.templates.watched().map(|(key, _)| key).find(over);
        self.holds(
            Property::TemplatesOfDeadTaskAreNotWatched,
            vain.is_none(),
            || format!("{vain:?}"),
        )
    }
}

/// How long the changes of each template are to be collected.
fn waits_of(task: &TaskRunner) -> Vec<(Span, Span)> {
    let templates = task.spec().task().templates.iter();
    let waits = templates.map(|template| template.wait.unwrap_or_default());
    waits.map(|wait| (wait.min, wait.max)).collect()
}
