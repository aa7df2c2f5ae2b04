//! The work of hooks in the simulated world: an adapter for each payload, in a file named as its hook in
//! `core/src/task/hooks/` or `core/src/alloc/hooks/`. The table of payloads (`core/src/work.rs`) declares these files.

use std::sync::Arc;

use drover_core::agent::{Agent, Input};
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::input::{HookInput, HookOutput};
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_core::work::HookWork;
use serde::Serialize;

use crate::check::{Checker, Verdict};
use crate::faults::Fault;
use crate::inbox::Source;
use crate::later::Later;
use crate::world::World;

/// Work that was asked for.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Asked {
    pub(crate) op: Op,
    pub(crate) alloc: AllocId,
    pub(crate) task: Option<TaskName>,
    pub(crate) work: HookWork,
}

/// Whose hook it is.
#[derive(Clone, Debug)]
pub(crate) struct Of<'a> {
    /// Of which life of the agent.
    pub(crate) life: u64,
    pub(crate) op: Op,
    pub(crate) alloc: AllocId,
    pub(crate) task: Option<&'a TaskName>,
    pub(crate) entity: Arc<str>,
}

impl Of<'_> {
    /// The task, where it is one's.
    pub(crate) fn key(&self) -> Option<TaskKey> {
        let task = self.task?.clone();
        let alloc = self.alloc;
        Some(TaskKey { alloc, task })
    }

    /// The task, which has a directory.
    fn key_with_dir(&self, world: &World) -> Result<TaskKey, Failure> {
        let key = self.key().filter(|key| world.dirs.has_task(key));
        key.ok_or_else(|| Failure::fatal("the task has no directory"))
    }
}

/// How a hook works in the simulated world.
pub(crate) trait Simulated {
    /// Whether work that nobody awaits any more is broken off. What is done in directories is done to its end,
    /// however late.
    fn can_be_cancelled(&self) -> bool {
        false
    }

    /// Whether it works in the allocation's directory, so that removing that waits for its end.
    fn delays_removal(&self) -> bool {
        !self.can_be_cancelled()
    }

    /// How long it takes.
    fn time(&self, world: &mut World, of: &Of<'_>) -> Span {
        world.scene.latency(&of.entity, world.scene.timeouts.hook)
    }

    /// Does it. Doing it twice is doing it once.
    ///
    /// # Errors
    /// It cannot be done.
    fn work(&self, world: &mut World, of: &Of<'_>) -> Result<HookOutput, Failure>;

    /// It never answers, or fails.
    fn failed(&self, _world: &mut World, _of: &Of<'_>) {}

    /// Whether its answer comes in one breath with what is reported of it later.
    fn streams(&self) -> bool {
        false
    }

    /// What must be true when it is asked for.
    ///
    /// # Errors
    /// It is not.
    fn check(
        &self,
        _checker: &mut Checker,
        _world: &World,
        _agent: &Agent,
        _of: &Of<'_>,
    ) -> Verdict {
        Ok(())
    }
}

/// The table of payloads as adapters: the file of each hook, and who does which work.
macro_rules! adapters {
    ($($hook:ident { $($name:ident($payload:ty) $words:literal,)* })*) => {
        $(mod $hook;)*

        /// The adapter of this work.
        pub(crate) fn of(work: &HookWork) -> &dyn Simulated {
            match work {
                $($(HookWork::$name(work) => work,)*)*
            }
        }
    };
}

drover_core::payloads!(adapters);

pub(crate) use network::leaves_half_a_network;

impl World {
    pub(crate) fn of<'a>(
        &self,
        life: u64,
        op: Op,
        alloc: AllocId,
        task: Option<&'a TaskName>,
    ) -> Of<'a> {
        let key = task.cloned().map(|task| TaskKey { alloc, task });
        let entity = match &key {
            Some(key) => self.scene.names.task(key),
            None => self.scene.names.alloc(alloc),
        };
        Of {
            life,
            op,
            alloc,
            task,
            entity,
        }
    }

    pub(crate) fn begin_hook(&mut self, asked: Asked) {
        let of = self.of(self.scene.life, asked.op, asked.alloc, asked.task.as_ref());
        let entity = of.entity.clone();
        let work = self::of(&asked.work);
        if self.scene.fires(Fault::HangHook, &entity) {
            return work.failed(self, &of);
        }
        let delay = work.time(self, &of);
        self.scene.after(delay, &entity, Later::Hook(asked));
    }

    /// Work that is under way, or hangs, ends soon.
    pub(crate) fn cancel_hook(&mut self, op: Op) {
        self.scene.cancelled.insert(op);
        self.templates.cancelled(op);
        let mut laters = self.scene.later.iter();
        let at = laters.find(|(_, due)| matches!(&due.what, Later::Hook(it) if it.op == op));
        let at = at.map(|(at, _)| *at);
        if let Some(due) = at.and_then(|at| self.scene.later.remove(&at)) {
            let delay = self.scene.latency(&due.entity, self.scene.timeouts.hook);
            self.scene.after(delay, &due.entity, due.what);
        }
    }

    pub(crate) fn end_hook(&mut self, life: u64, asked: &Asked) {
        let of = self.of(life, asked.op, asked.alloc, asked.task.as_ref());
        let work = self::of(&asked.work);
        let result = if self.scene.cancelled.contains(&of.op) && work.can_be_cancelled() {
            Err(Failure::recoverable("cancelled"))
        } else if self.scene.fires(Fault::FailHook, &of.entity) {
            Err(Failure::recoverable("the hook failed"))
        } else {
            work.work(self, &of)
        };
        if result.is_err() {
            work.failed(self, &of);
        }
        let input = Input::Hook(HookInput {
            op: of.op,
            alloc: of.alloc,
            task: asked.task.clone(),
            result,
        });
        if work.streams() && life == self.scene.life {
            return self
                .scene
                .deliver(Source::Stream(of.op), self.scene.at, &of.entity, input);
        }
        self.scene
            .answer(life, of.op, &of.entity, self.scene.timeouts.hook, input);
    }
}
