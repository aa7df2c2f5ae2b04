//! Before the tasks start: the table [`PRERUN`] of hooks, from its beginning to its end, its failure, or until
//! the allocation is to end meanwhile.

use serde::{Deserialize, Serialize};

use super::{AllocRunner, Phase};
use crate::alloc::coordinator::Coordinator;
use crate::alloc::hooks::network::NetworkHook;
use crate::alloc::hooks::{AllocHook, Holders, PRERUN};
use crate::alloc::remote::Asking;
use crate::cx::Cx;
use crate::effect::{Effect, HookEffect};
use crate::hooks::{HookOutcome, HookStart, OnError, Pipeline, Progress};
use crate::ids::TaskName;
use crate::input::HookOutput;
use crate::model::event::{EventType, TaskEvent};
use crate::model::task::Stage;
use crate::op::{Failure, Op};
use crate::operations::Owner;
use crate::store::disk::Disk;
use crate::task::runner::TaskRunner;
use crate::time::Instant;
use crate::work::HookWork;

/// The longest message that people are told, in letters.
const MAX_WORDS: usize = 500;

/// How far an allocation is set up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Setup {
    pipeline: Pipeline,
    /// Where asking another node stands.
    asking: Asking,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            pipeline: Pipeline::new(OnError::Stop),
            asking: Asking::default(),
        }
    }
}

impl Setup {
    /// Whose answer is awaited.
    pub fn awaited(&self) -> Option<Op> {
        self.pipeline.awaited()
    }

    /// The hook at which it stands.
    pub fn hook(&self) -> Option<&'static dyn AllocHook> {
        self.pipeline.current(PRERUN)
    }

    /// When another node is asked again, if nobody is being asked.
    pub fn asks_again_at(&self) -> Option<Instant> {
        self.asking.next().filter(|_| self.awaited().is_none())
    }
}

impl AllocRunner {
    pub(super) fn advance_prerun(&mut self, cx: &mut Cx<'_>, mut setup: Setup) -> bool {
        if self.kill.is_some() || self.record.is_terminal() {
            return match self.needs_network_to_end() {
                true => self.advance_network_alone(cx, setup),
                false => self.abandon_prerun(cx, &setup),
            };
        }
        let Setup { pipeline, asking } = &mut setup;
        match pipeline.advance(PRERUN, |hook| hook.prerun(self, asking, cx)) {
            Progress::Pending => {
                self.phase = Phase::Prerun(setup);
                false
            }
            Progress::Finished(_) => {
                self.phase = Phase::Tasks(Coordinator::default());
                true
            }
            Progress::Failed(hook, failure) => {
                self.setup_failed(cx, hook, &failure);
                self.phase = Phase::Tasks(Coordinator::default());
                true
            }
        }
    }

    /// The work of a hook of its setup is over. Returns whether anybody awaited that.
    pub(super) fn set_up(
        &mut self,
        cx: &mut Cx<'_>,
        mut setup: Setup,
        op: Op,
        result: Result<HookOutput, Failure>,
    ) -> bool {
        let Some(hook) = setup.hook().filter(|_| setup.awaited() == Some(op)) else {
            return false;
        };
        match hook.answered(self, &mut setup.asking, cx, result) {
            HookOutcome::Over(result) => drop(setup.pipeline.answer(op, result)),
            HookOutcome::Again => drop(setup.pipeline.again(op)),
            HookOutcome::FromStart => {
                // Others may hold what it waits for now.
                self.granted = false;
                setup = Setup::default();
            }
        }
        self.phase = Phase::Prerun(setup);
        true
    }

    fn setup(&self) -> Option<&Setup> {
        match &self.phase {
            Phase::Prerun(setup) => Some(setup),
            Phase::Tasks(_)
            | Phase::Finished
            | Phase::Destroying(_)
            | Phase::DestroyPause(_)
            | Phase::Destroyed => None,
        }
    }

    /// What is done or awaited before its tasks have their turn, in words; nothing afterwards, and not what
    /// others of this node hold.
    pub fn waits_for(&self, disk: Option<&Disk>) -> Option<String> {
        let setup = self.setup()?;
        setup.hook()?.words(self, &setup.asking, disk)
    }

    /// Whether it waits for claims that others of this node hold.
    pub fn awaits_claims(&self) -> bool {
        self.claims_held() == Some(Holders::Here) && !self.has_claims()
    }

    /// Whether it waits for claims, whoever holds them.
    pub fn awaits_any_claim(&self) -> bool {
        self.awaits_claims() || self.claims_held() == Some(Holders::Elsewhere)
    }

    /// Where those are who hold the claims that it waits for.
    fn claims_held(&self) -> Option<Holders> {
        self.setup()?.hook()?.awaits_claims()
    }

    /// Whether others of this node hold nothing of what it claims: that was granted once, and whatever ran
    /// in an earlier life of the agent had it.
    pub fn has_claims(&self) -> bool {
        self.granted || !self.never_ran()
    }

    /// What it claims is its own from now on.
    pub fn grant(&mut self) {
        self.granted = true;
    }

    pub(crate) fn task_names(&self) -> Vec<TaskName> {
        let names = self.tasks.iter().map(|task| task.spec().key.task.clone());
        names.collect()
    }

    /// Changes what is known of the disk of its slot.
    pub(crate) fn edit_disk(&self, cx: &mut Cx<'_>, change: impl FnOnce(&mut Disk)) {
        cx.edit_disk(&self.record.slot(), change);
    }

    /// All its tasks are told.
    pub(crate) fn notify_tasks(&mut self, cx: &mut Cx<'_>, words: &str) {
        let words: String = words.chars().take(MAX_WORDS).collect();
        for task in &mut self.tasks {
            let event = TaskEvent::new(EventType::HookMessage, cx.now.wall, &words);
            task.push(cx, event.detail("message", &words));
        }
    }

    /// Asks for the work of a hook.
    pub(crate) fn hook_work(
        &self,
        cx: &mut Cx<'_>,
        hook: &dyn AllocHook,
        work: impl Into<HookWork>,
    ) -> HookStart {
        let alloc = self.record.id;
        let limit = hook.timeout(&cx.config.timeouts);
        let op = cx.operation(Owner::Alloc(alloc), hook.purpose(), limit);
        let effect = Effect::Hook(HookEffect::Run {
            op,
            alloc,
            task: None,
            work: work.into(),
        });
        match hook.only_asks() {
            true => cx.send(effect),
            false => cx.send_after_save(effect),
        }
        HookStart::Working(op)
    }

    fn setup_failed(&mut self, cx: &mut Cx<'_>, hook: &dyn AllocHook, failure: &Failure) {
        let why = format!(
            "failed to setup alloc: {}: {}",
            hook.name(),
            failure.message
        );
        for task in &mut self.tasks {
            let event = TaskEvent::new(EventType::SetupFailure, cx.now.wall, &why)
                .detail("setup_error", &why)
                .fails_task();
            task.push(cx, event);
        }
        self.end(cx, Some(why), true);
    }

    /// What is being set up is not wanted any more. What was not even asked for is taken back.
    pub(super) fn cancel_prerun(&mut self, cx: &mut Cx<'_>) {
        let Some(op) = self.setup().and_then(Setup::awaited) else {
            return;
        };
        let hook = self.setup().and_then(Setup::hook);
        if hook.is_some_and(is_network) && self.needs_network_to_end() {
            return;
        }
        if cx.withdraw(op) {
            self.phase = Phase::Prerun(Setup::default());
        } else {
            cx.send(Effect::Hook(HookEffect::Cancel { op }));
        }
    }

    /// Whether something is left to run when the tasks have ended, in a network that a reboot of the machine may
    /// have removed.
    fn needs_network_to_end(&self) -> bool {
        let comes_after =
            |task: &TaskRunner| task.spec().stage() == Stage::Poststop && !task.is_dead();
        !self.never_ran() && self.record.has_network() && self.tasks.iter().any(comes_after)
    }

    /// Of all that is set up only the network is wanted.
    fn advance_network_alone(&mut self, cx: &mut Cx<'_>, mut setup: Setup) -> bool {
        let Setup { pipeline, asking } = &mut setup;
        loop {
            let progress = pipeline.advance(PRERUN, |hook| match is_network(hook) {
                true => hook.prerun(self, asking, cx),
                false => HookStart::Done,
            });
            match progress {
                Progress::Pending => {
                    self.phase = Phase::Prerun(setup);
                    return false;
                }
                Progress::Finished(_) => return self.abandon_prerun(cx, &setup),
                // It may be there nevertheless; if not, no driver starts a task that wants it.
                Progress::Failed(..) => {}
            }
        }
    }

    /// What was to be set up is not wanted any more. An answer that is under way is awaited, so
    /// that nothing is made after it was garbage-collected.
    fn abandon_prerun(&mut self, cx: &mut Cx<'_>, setup: &Setup) -> bool {
        cx.shared.broadcasts.leave(self.record.id);
        if setup.awaited().is_some() {
            return false;
        }
        if self.never_ran() {
            // Nothing ran that something should come after, and there is no directory for it.
            self.end(cx, None, true);
        } else if self.kill.is_none() {
            self.stop(cx);
        }
        self.phase = Phase::Tasks(Coordinator::default());
        true
    }
}

fn is_network(hook: &dyn AllocHook) -> bool {
    hook.name() == NetworkHook.name()
}
