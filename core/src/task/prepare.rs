//! From the open gate to the start: the hooks of the table [`PRESTART`], and what they give.

use super::hooks::{PRESTART, Runs, TaskHook};
use super::restart::Ending;
use super::runner::{Phase, Scope, TaskRunner};
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::{HookStart, OnError, Pipeline, Progress};
use crate::input::HookOutput;
use crate::model::event::{EventType, TaskEvent};
use crate::op::{Failure, Op};
use crate::time::Span;
use crate::work::HookWork;

/// The longest message of a hook that people are told, in letters.
const MAX_MESSAGE: usize = 500;

impl TaskRunner {
    pub(super) fn prepare(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        self.render_anew(cx);
        self.phase = Phase::Preparing(Pipeline::new(OnError::Stop));
        self.continue_prestart(cx, scope);
    }

    pub(super) fn continue_prestart(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>) {
        let Phase::Preparing(pipeline) = &mut self.phase else {
            return;
        };
        let mut pipeline = pipeline.clone();
        if self.kill.is_some() {
            if pipeline.awaited().is_none() {
                self.set_dead(cx);
            }
            return;
        }
        let progress = pipeline.advance(PRESTART, |hook| self.begin_hook(cx, scope, hook));
        match progress {
            Progress::Pending => self.phase = Phase::Preparing(pipeline),
            Progress::Finished(_) if scope.gate_open => self.launch(cx, scope),
            // Its turn is over for now: its group ends, or begins again.
            Progress::Finished(_) => self.phase = Phase::Waiting,
            Progress::Failed(hook, failure) => self.hook_failed(cx, hook, failure),
        }
    }

    fn begin_hook(&mut self, cx: &mut Cx<'_>, scope: Scope<'_>, hook: &dyn TaskHook) -> HookStart {
        let once = hook.runs(cx.config) == Runs::Once;
        if once && self.has_run(hook) && !hook.is_lost(self, cx, scope) {
            return HookStart::Done;
        }
        hook.begin(self, cx, scope)
    }

    /// The hook at which its prestart hooks stand, by its name.
    pub fn prestart_hook(&self) -> Option<&'static str> {
        match &self.phase {
            Phase::Preparing(pipeline) => pipeline.current(PRESTART).map(TaskHook::name),
            Phase::Waiting
            | Phase::Starting(_)
            | Phase::Recovering(_)
            | Phase::Running
            | Phase::Delaying(_)
            | Phase::Deregistering(_)
            | Phase::Stopping(_)
            | Phase::Cleaning(_)
            | Phase::Pausing(_)
            | Phase::Dead(_) => None,
        }
    }

    /// Whether the record says that this hook ran.
    pub(crate) fn has_run(&self, hook: &dyn TaskHook) -> bool {
        self.record.hooks_done.contains_key(hook.name())
    }

    /// Asks for the work of a hook.
    pub(crate) fn hook_work(
        &self,
        cx: &mut Cx<'_>,
        hook: &dyn TaskHook,
        work: impl Into<HookWork>,
    ) -> HookStart {
        let limit = hook.timeout(&cx.config.timeouts);
        self.hook_work_within(cx, hook, work, limit)
    }

    /// Asks for the work of a hook, which may take so long.
    pub(crate) fn hook_work_within(
        &self,
        cx: &mut Cx<'_>,
        hook: &dyn TaskHook,
        work: impl Into<HookWork>,
        limit: Span,
    ) -> HookStart {
        let op = self.operation(cx, hook.purpose(), limit);
        cx.send(Effect::Hook(HookEffect::Run {
            op,
            alloc: self.spec.key.alloc,
            task: Some(self.spec.key.task.clone()),
            work: work.into(),
        }));
        HookStart::Working(op)
    }

    /// The work of the hook at which the table stands succeeded. What it gave is kept for every start.
    ///
    /// # Errors
    /// It gave what cannot be.
    pub(super) fn hook_done(
        &mut self,
        cx: &mut Cx<'_>,
        op: Op,
        given: HookOutput,
    ) -> Result<(), Failure> {
        let Phase::Preparing(pipeline) = &self.phase else {
            return Ok(());
        };
        let Some(hook) = pipeline.current(PRESTART) else {
            return Ok(());
        };
        hook.check(&given).map_err(Failure::fatal)?;
        if !given.message.is_empty() {
            let words: String = given.message.chars().take(MAX_MESSAGE).collect();
            let event = TaskEvent::new(EventType::HookMessage, cx.now.wall, &words);
            self.push(cx, event.detail("message", &words));
        }
        hook.done(self, cx, op, &given);
        let noted = match hook.runs(cx.config) {
            Runs::EachTime => false,
            Runs::EachTimeKnown => !self.has_run(hook),
            Runs::Once => true,
        };
        if noted
            || !given.env.is_empty()
            || !given.mounts.is_empty()
            || !given.nodes.is_empty()
            || !given.rendered.is_empty()
        {
            let record = self.edit();
            record.reserved.mounts.extend(given.mounts);
            record.reserved.nodes.extend(given.nodes);
            record.hooks_done.insert(hook.name().to_owned(), given.env);
            self.save(cx);
        }
        Ok(())
    }

    /// What this hook prepares is not there: its event, and what follows by the restart policy.
    pub(super) fn hook_failed(&mut self, cx: &mut Cx<'_>, hook: &dyn TaskHook, failure: Failure) {
        let why = failure.message;
        let (kind, key, message) = match hook.failure_event() {
            Some((kind, key)) => (kind, key, why),
            None => (
                EventType::HookFailed,
                "message",
                format!("{}: {why}", hook.name()),
            ),
        };
        let event = TaskEvent::new(kind, cx.now.wall, &message).detail(key, &message);
        self.push(cx, event);
        let recoverable = failure.recoverable;
        self.follow(cx, Ending::StartFailed { recoverable });
    }
}
