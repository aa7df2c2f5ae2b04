//! Templates of a running task: they are watched, and what changed is told to the task.
//!
//! What is rendered now and what the task knows are two things. A start makes them the same; when
//! they differ while the task runs, it is told in the way that its templates want, once. So nothing
//! is lost where the agent dies between a change and what follows from it, and nothing is told
//! twice.
//!
//! The hook `template` asks for a rendering before a start, and gets for each template a text that stays
//! the same as long as the file does, and the variables of templates with `env`. The renderer
//! (`io-real/src/templates/`) then watches what the templates are made of, and reports each change
//! under the same operation. The task's record holds what its last start found, or was told of
//! since. Where that differs from what is rendered while the task runs, the splay begins, and then
//! the task is told: by one restart if any changed template wants one, else by their signals and
//! scripts ([`super::scripts`]). The record is written before a signal leaves, and a restart is
//! remembered as any other.
//!
//! - An agent that finds a task running asks for the rendering again and compares: what changed
//!   while no agent lived is told by the next one. Of what depends on the time alone, and of
//!   `once`, the file that is there counts.
//! - A restart for a template is like one that an operator asks for: it costs nothing of the
//!   restart budget. As in Nomad, a task that ends by itself before it is told starts again
//!   nevertheless.
//! - A change between two starts is found by the next start and causes nothing else.
//! - What is missing is awaited without a deadline, and the event `Template` names it. A rendering
//!   that fails after the first leaves the file as it is, and an event says why; Nomad ends the
//!   task for that.
//! - Which variables a task may read, `Reads` in `model/variable.rs` says.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hooks::{self, PRESTART, TaskHook};
use super::runner::{Phase, Scope, TaskRunner};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::{HookStart, Pipeline};
use crate::input::{HookOutput, TemplateInput};
use crate::model::event::{EventType, TaskEvent};
use crate::model::template::{ChangeMode, Template};
use crate::op::{Failure, Op};
use crate::task::hooks::template::{check, rendering};
use crate::time::{Instant, Span};

/// How many missing things are named.
const NAMED_MISSING: usize = 3;
/// How long after a failure to watch it is tried again.
const WATCH_AGAIN: Span = Span::secs(600);
/// Instead of what a task knows of a template: it is still to be told for the first time.
pub(super) const NOT_NOTIFIED: &str = "";

/// What is known of a task's templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Templates {
    watch: Watch,
    /// What was rendered last, as the renderer calls it.
    rendered: Vec<Arc<str>>,
    /// When the task is told of what changed.
    due: Option<Instant>,
    /// Whether a new version of the job wants them watched otherwise than it was asked before a start.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    outdated: bool,
}

/// Whether somebody watches what the templates are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum Watch {
    /// Nobody.
    #[default]
    Off,
    /// An agent that found the task running asked for it.
    Asked(Op),
    /// Under this number.
    On(Op),
    /// It failed, and is tried again then, or at the next start.
    Broken(Instant),
}

impl Templates {
    fn op(&self) -> Option<Op> {
        match self.watch {
            Watch::Asked(op) | Watch::On(op) => Some(op),
            Watch::Off | Watch::Broken(_) => None,
        }
    }

    /// When there is something to do by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let watch = match self.watch {
            Watch::Broken(until) => Some(until),
            Watch::Off | Watch::Asked(_) | Watch::On(_) => None,
        };
        self.due.into_iter().chain(watch).min()
    }
}

impl TaskRunner {
    /// Whether its templates are rendered, and watched.
    pub(crate) fn watches_templates(&self) -> bool {
        matches!(self.templates.watch, Watch::On(_))
    }

    /// Before a start that renders everything anew.
    pub(super) fn render_anew(&mut self, cx: &mut Cx<'_>) {
        let policy = self.spec.task().restart_policy;
        if policy.and_then(|policy| policy.render_templates) == Some(true) {
            self.stop_watching(cx);
        }
    }

    /// The renderer did what it was asked for before the start, and watches from now.
    pub(crate) fn templates_rendered(&mut self, cx: &mut Cx<'_>, op: Op, given: &HookOutput) {
        self.templates.watch = Watch::On(op);
        if core::mem::take(&mut self.templates.outdated) {
            self.stop_watching(cx);
        }
        self.templates.rendered = given.rendered.clone();
    }

    /// A new version of the job wants the templates watched otherwise: whoever watches is asked again, now or
    /// when the start that waits for the answer is over.
    pub(crate) fn templates_are_outdated(&mut self, cx: &mut Cx<'_>) {
        let renders = |pipeline: &Pipeline| {
            let hook = pipeline.current(PRESTART).map(TaskHook::name);
            pipeline.awaited().is_some() && hook == Some(hooks::template::Template.name())
        };
        match &self.phase {
            Phase::Preparing(pipeline) if renders(pipeline) => self.templates.outdated = true,
            Phase::Preparing(_)
            | Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => self.stop_watching(cx),
        }
    }

    /// A start finds what is rendered now, and knows all of it but what it is still to be told for
    /// the first time.
    pub(super) fn start_with_templates(&mut self) {
        self.templates.due = None;
        let told = |at: usize| {
            self.record
                .templates
                .get(at)
                .is_some_and(|it| **it != *NOT_NOTIFIED)
        };
        let templates = self.spec.task().templates.iter().enumerate();
        let rendered = self.templates.rendered.iter();
        let known = templates.zip(rendered).map(|((at, template), rendered)| {
            if template.notifies_first_render() && !told(at) {
                Arc::from(NOT_NOTIFIED)
            } else {
                rendered.clone()
            }
        });
        let known = known.collect();
        self.edit().templates = known;
    }

    /// Nobody needs to watch any more.
    pub(crate) fn stop_watching(&mut self, cx: &mut Cx<'_>) {
        if let Some(op) = self.templates.op() {
            cx.shared.operations.end(op);
            cx.send(Effect::Hook(HookEffect::Cancel { op }));
        }
        self.templates = Templates::default();
    }

    /// Of a task that runs: somebody watches, and what changed is told.
    pub(super) fn check_templates(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        if self.spec.task().templates.is_empty() || self.kill.is_some() {
            return;
        }
        match self.templates.watch {
            Watch::Off => self.watch_again(cx, scope),
            Watch::On(_) => {
                self.note_changes(cx);
                self.apply_due_changes(cx, scope);
            }
            Watch::Asked(_) | Watch::Broken(_) => {}
        }
    }

    /// This agent did not start the task.
    fn watch_again(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let work = match rendering(self, cx, scope, true) {
            Ok(work) => work,
            Err(why) => return self.watch_failed(cx, &why),
        };
        if let HookStart::Working(op) = self.hook_work(cx, &hooks::template::Template, work) {
            self.templates.watch = Watch::Asked(op);
        }
    }

    fn watch_failed(&mut self, cx: &mut Cx<'_>, why: &str) {
        self.templates = Templates {
            watch: Watch::Broken(cx.now.at + WATCH_AGAIN),
            ..Templates::default()
        };
        let message = format!("Templates are not watched: {why}");
        let last = self.record.state.events.last();
        if last.is_none_or(|last| last.display_message != message) {
            self.template_event(cx, &message);
        }
    }

    fn note_changes(&mut self, cx: &mut Cx<'_>) {
        if !self.scripts.is_empty() {
            // They are told of what changes when they are over.
            self.templates.due = None;
            return;
        }
        let splay = self.changed().map(|(_, template, known)| match known {
            Some(NOT_NOTIFIED) => Span::ZERO,
            Some(_) | None => template.splay,
        });
        self.templates.due = match (splay.max(), self.templates.due) {
            (None, _) => None,
            (Some(_), Some(due)) => Some(due),
            (Some(splay), None) => Some(cx.now.at + cx.at_most(splay)),
        };
    }

    /// The templates of which something else is rendered than the task knows, each with its place and
    /// with what the task knows.
    fn changed(&self) -> impl Iterator<Item = (usize, &Template, Option<&str>)> {
        let known = &self.record.templates;
        let now = &self.templates.rendered;
        let templates = self.spec.task().templates.iter().enumerate();
        templates
            .filter(|(at, _)| known.get(*at) != now.get(*at))
            .map(|(at, template)| (at, template, known.get(at).map(|known| &**known)))
    }

    fn apply_due_changes(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        if self.templates.due.is_some_and(|due| due <= cx.now.at) {
            self.templates.due = None;
            self.notify_changes(cx, scope);
        }
    }

    /// Does what is due.
    pub(super) fn templates_are_due(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now.at;
        if matches!(self.templates.watch, Watch::Broken(until) if until <= now) {
            self.templates.watch = Watch::Off;
        }
        // One that is about to end finds what is new when it starts again.
        let told = matches!(self.phase, Phase::Running) && self.kill.is_none();
        if !told && self.templates.due.is_some_and(|due| due <= now) {
            self.templates.due = None;
        }
    }

    fn notify_changes(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let mut restart = false;
        let mut signals = BTreeSet::new();
        let mut scripts = Vec::new();
        for (at, template, known) in self.changed() {
            match template.change_mode {
                ChangeMode::Noop => {}
                ChangeMode::Restart => restart = true,
                ChangeMode::Script => scripts.push((at, known == Some(NOT_NOTIFIED))),
                ChangeMode::Signal => drop(signals.insert(template.change_signal.clone())),
            }
        }
        if restart {
            // The next start makes known what is rendered.
            self.restart(cx, "Template with change_mode restart re-rendered");
            return;
        }
        self.edit().templates = self.templates.rendered.clone();
        self.save(cx);
        for signal in signals {
            self.signal_of_change(cx, &signal, "Template re-rendered");
        }
        for (template, first) in scripts {
            self.run_script(cx, scope, template, first);
        }
    }

    /// The renderer answers an agent that asked while the task ran. `false` if nobody asked.
    pub(super) fn watched_again(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        result: &Result<HookOutput, Failure>,
    ) -> bool {
        if self.templates.watch != Watch::Asked(op) {
            return false;
        }
        match result {
            Ok(output) => {
                self.templates.watch = Watch::On(op);
                self.rendered_anew(cx, output);
            }
            Err(failure) => self.watch_failed(cx, &failure.message),
        }
        true
    }

    /// Something happens to the templates after they were asked for.
    pub fn on_template(&mut self, cx: &mut Cx<'_>, input: TemplateInput) {
        let op = input.op();
        let preparing = match &self.phase {
            Phase::Preparing(pipeline) => pipeline.awaited() == Some(op),
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => false,
        };
        if !preparing && self.templates.op() != Some(op) {
            return cx.count_stale();
        }
        match input {
            TemplateInput::Missing { missing, .. } => self.missing(cx, op, &missing),
            // Before the answer there is nothing that could change.
            TemplateInput::Rendered { .. } if self.templates.watch != Watch::On(op) => {
                cx.count_stale();
            }
            TemplateInput::Rendered { output, .. } => self.rendered_anew(cx, &output),
            TemplateInput::Failed { why, .. } => {
                self.template_event(cx, &format!("Template is not rendered anew: {why}"));
            }
        }
    }

    /// For what is missing it is waited; the time for the answer begins when nothing is.
    fn missing(&mut self, cx: &mut Cx<'_>, op: Op, missing: &[String]) {
        if self.templates.watch != Watch::On(op) {
            let limit = missing.is_empty().then_some(cx.config.timeouts.hook);
            cx.shared.operations.extend(cx.now.at, op, limit);
        }
        if !missing.is_empty() {
            self.template_event(cx, &describe_missing(missing));
        }
    }

    fn rendered_anew(&mut self, cx: &mut Cx<'_>, output: &HookOutput) {
        if let Err(why) = check(output) {
            return self.template_event(cx, &format!("Template is not rendered anew: {why}"));
        }
        self.templates.rendered = output.rendered.clone();
        let name = hooks::template::Template.name();
        if self.record.hooks_done.get(name) != Some(&output.env) {
            let env = output.env.clone();
            self.edit().hooks_done.insert(name.to_owned(), env);
            self.save(cx);
        }
    }

    fn template_event(&mut self, cx: &mut Cx<'_>, message: &str) {
        self.push(
            cx,
            TaskEvent::new(EventType::Template, cx.now.wall, message),
        );
    }
}

/// As in Nomad: a few by name, and how many more.
fn describe_missing(missing: &[String]) -> String {
    let named: Vec<&str> = missing
        .iter()
        .take(NAMED_MISSING)
        .map(String::as_str)
        .collect();
    let named = named.join(", ");
    match missing.len().saturating_sub(NAMED_MISSING) {
        0 => format!("Missing: {named}"),
        more => format!("Missing: {named}, and {more} more"),
    }
}
