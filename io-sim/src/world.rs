//! The world around the agent: everything but the agent itself.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::config::Patience;
use drover_core::effect::{Effect, HookEffect, HookWork, StoreEffect};
use drover_core::ids::{AllocId, LaunchId, TaskName};
use drover_core::input::{HookInput, HookOutput, Input, StoreInput, TaskKey};
use drover_core::model::alloc::ExitResult;
use drover_core::op::{Failure, Op};
use drover_core::store::{Batch, CommitId};
use drover_core::time::{Instant, Now, Span, Timestamp};

use crate::check::Violation;
use crate::choice::Choices;
use crate::dirs::Dirs;
use crate::disk::Disk;
use crate::faults::{Fault, Faults};
use crate::inbox::{Inbox, Source};
use crate::process::Process;
use crate::trace::Trace;

/// Something that the world does by itself, later.
#[derive(Clone, Debug)]
pub(crate) enum Later {
    Start {
        op: Op,
        launch: LaunchId,
    },
    Recover {
        op: Op,
        launch: LaunchId,
    },
    Signal {
        launch: LaunchId,
    },
    Destroy {
        op: Op,
        launch: LaunchId,
    },
    End {
        launch: LaunchId,
        result: ExitResult,
    },
    PluginGone {
        launch: LaunchId,
    },
    Hook {
        op: Op,
        alloc: AllocId,
        task: Option<TaskName>,
        work: HookWork,
    },
    Commit {
        id: CommitId,
        batch: Batch,
    },
}

/// Everything but the agent.
#[derive(Clone, Debug)]
pub struct World {
    /// What chance decides.
    pub choices: Choices,
    /// What goes wrong.
    pub faults: Faults,
    /// The disk.
    pub disk: Disk,
    /// The directories.
    pub dirs: Dirs,
    /// What happened.
    pub trace: Trace,
    pub(crate) at: Instant,
    pub(crate) wall_offset: i64,
    pub(crate) peace: bool,
    pub(crate) patience: Patience,
    pub(crate) life: u64,
    pub(crate) inbox: Inbox,
    pub(crate) later: BTreeMap<(Instant, u64), (u64, Later)>,
    pub(crate) last_later: u64,
    pub(crate) processes: BTreeMap<LaunchId, Process>,
    pub(crate) latest: BTreeMap<TaskKey, LaunchId>,
    pub(crate) cancelled: BTreeSet<Op>,
    pub(crate) broken: Option<Violation>,
}

impl World {
    /// A world at rest.
    pub fn new(seed: u64, patience: Patience) -> World {
        World {
            choices: Choices::new(seed),
            faults: Faults::none(),
            disk: Disk::default(),
            dirs: Dirs::default(),
            trace: Trace::default(),
            at: Instant(1_000_000_000),
            wall_offset: 1_700_000_000_000_000_000,
            peace: false,
            patience,
            life: 0,
            inbox: Inbox::default(),
            later: BTreeMap::new(),
            last_later: 0,
            processes: BTreeMap::new(),
            latest: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            broken: None,
        }
    }

    /// The clocks.
    pub fn now(&self) -> Now {
        let at = i64::try_from(self.at.0).unwrap_or(i64::MAX);
        let wall = Timestamp(self.wall_offset.saturating_add(at));
        Now { at: self.at, wall }
    }

    /// Everything that was ever launched.
    pub fn processes(&self) -> impl Iterator<Item = (&LaunchId, &Process)> {
        self.processes.iter()
    }

    /// What lives.
    pub fn alive(&self) -> impl Iterator<Item = (&LaunchId, &Process)> {
        self.processes().filter(|(_, process)| process.alive)
    }

    /// How often a task of this name was started, in all allocations.
    pub fn starts_of(&self, task: &str) -> u32 {
        let of_task = self
            .processes
            .values()
            .filter(|process| process.key.task.as_str() == task);
        of_task.map(|process| process.starts).sum()
    }

    /// The wall clock jumps.
    pub fn jump_wall(&mut self, by: Span) {
        self.wall_offset = self.wall_offset.saturating_add(by.0);
        self.note(&format!("world: the wall clock jumps by {by}"));
    }

    pub(crate) fn note(&mut self, text: &str) {
        let now = self.now();
        self.trace.line(now, text);
    }

    pub(crate) fn violated(&mut self, invariant: &'static str, detail: String) {
        self.broken.get_or_insert(Violation { invariant, detail });
    }

    pub(crate) fn strikes(&mut self, fault: Fault, entity: &str) -> bool {
        let strikes = !self.peace && self.faults.strikes(&mut self.choices, fault, entity);
        if strikes {
            self.note(&format!("fault: {fault:?} {entity}"));
        }
        strikes
    }

    /// How long something takes that the core awaits for `patience`.
    pub(crate) fn latency(&mut self, entity: &str, patience: Span) -> Span {
        let near = [
            Span::ZERO,
            Span::ZERO,
            Span::ZERO,
            Span::millis(1),
            Span::secs(1),
        ];
        let far = [
            Span(patience.0 - 1),
            patience,
            Span(patience.0 + 1),
            Span::secs(3600),
        ];
        let grid: &[Span] = if self.peace {
            &near[..4]
        } else if self.strikes(Fault::SlowAnswer, entity) {
            &far
        } else {
            &near
        };
        let at = self.choices.below(grid.len(), "latency", entity);
        grid.get(at).copied().unwrap_or(Span::ZERO)
    }

    /// Does `what` after `delay`.
    pub(crate) fn after(&mut self, delay: Span, what: Later) {
        self.last_later += 1;
        self.later
            .insert((self.at + delay, self.last_later), (self.life, what));
    }

    /// Says `input`, in answer to `op`, to the agent that asked.
    pub(crate) fn answer(&mut self, life: u64, op: Op, entity: &str, patience: Span, input: Input) {
        if life != self.life {
            return;
        }
        let at = self.at + self.latency(entity, patience);
        if self.strikes(Fault::DoubledAnswer, entity) {
            let again = self.at + self.latency(entity, patience);
            self.inbox.push(Source::Answer(op, 1), again, input.clone());
        }
        self.inbox.push(Source::Answer(op, 0), at, input);
    }

    /// Carries out what the agent asks for.
    pub(crate) fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Driver(_, key, effect) => self.drive(key, effect),
            Effect::Hook(HookEffect::Run {
                op,
                alloc,
                task,
                work,
            }) => {
                self.begin_hook(op, alloc, task, work);
            }
            Effect::Forget(_, launch) => {
                if let Some(process) = self.processes.get_mut(&launch) {
                    process.forgotten = true;
                }
            }
            Effect::Hook(HookEffect::Cancel { op }) => self.cancel_hook(op),
            Effect::Store(StoreEffect::Commit(id, batch)) => self.begin_commit(id, batch),
            Effect::Reply(..) | Effect::Tell(_) | Effect::Stopped => {}
        }
    }

    fn begin_hook(&mut self, op: Op, alloc: AllocId, task: Option<TaskName>, work: HookWork) {
        let entity = match &task {
            Some(task) => format!("hook of {task}"),
            None => "hook".to_owned(),
        };
        if self.strikes(Fault::HangHook, &entity) {
            return;
        }
        let delay = self.latency(&entity, self.patience.hook);
        self.after(
            delay,
            Later::Hook {
                op,
                alloc,
                task,
                work,
            },
        );
    }

    /// Work that is under way, or hangs, ends soon.
    fn cancel_hook(&mut self, op: Op) {
        self.cancelled.insert(op);
        let of_op = |later: &Later| matches!(later, Later::Hook { op: of, .. } if *of == op);
        let at = self
            .later
            .iter()
            .find(|(_, (_, later))| of_op(later))
            .map(|(at, _)| *at);
        if let Some((_, later)) = at.and_then(|at| self.later.remove(&at)) {
            let delay = self.latency("cancelled hook", self.patience.hook);
            self.after(delay, later);
        }
    }

    fn end_hook(
        &mut self,
        life: u64,
        op: Op,
        alloc: AllocId,
        task: Option<TaskName>,
        work: HookWork,
    ) {
        let result = if self.cancelled.contains(&op) {
            Err(Failure::recoverable("cancelled"))
        } else if self.strikes(Fault::FailHook, "hook") {
            Err(Failure::recoverable("the hook failed"))
        } else {
            self.dirs.work(alloc, task.as_ref(), &work)
        };
        let result = result.map(|()| HookOutput::default());
        let patience = self.patience.hook;
        let input = Input::Hook(HookInput {
            op,
            alloc,
            task,
            result,
        });
        self.answer(life, op, "hook", patience, input);
    }

    fn begin_commit(&mut self, id: CommitId, batch: Batch) {
        if self.disk.full || self.strikes(Fault::FailCommit, "store") {
            let at = self.at + self.latency("store", Span::secs(1));
            let input = StoreInput::Failed(id, "no space left on device".to_owned());
            return self.inbox.push(Source::Store, at, Input::Store(input));
        }
        let delay = self.latency("store", Span::secs(1));
        self.after(delay, Later::Commit { id, batch });
    }

    fn end_commit(&mut self, life: u64, id: CommitId, batch: Batch) {
        if let Some(key) = self.disk.write(id, batch) {
            self.violated("an_unchanged_record_is_not_written", format!("{key:?}"));
        }
        if life == self.life {
            let at = self.at + self.latency("store", Span::secs(1));
            self.inbox
                .push(Source::Store, at, Input::Store(StoreInput::Saved(id)));
        }
    }

    /// Does the next thing that is due.
    pub(crate) fn act(&mut self) {
        let Some(entry) = self.later.first_entry() else {
            return;
        };
        let (life, later) = entry.remove();
        self.do_later(life, later);
    }

    fn do_later(&mut self, life: u64, later: Later) {
        match later {
            Later::Start { op, launch } => self.start(life, op, launch),
            Later::Recover { op, launch } => self.recover(life, op, launch),
            Later::Signal { launch } => self.signal_lands(launch),
            Later::Destroy { op, launch } => self.destroy(life, op, launch),
            Later::End { launch, result } => self.end(launch, result),
            Later::PluginGone { launch } => self.plugin_gone(launch),
            Later::Hook {
                op,
                alloc,
                task,
                work,
            } => self.end_hook(life, op, alloc, task, work),
            Later::Commit { id, batch } => self.end_commit(life, id, batch),
        }
    }

    /// The agent died: what was under way happened, or did not.
    pub(crate) fn agent_died(&mut self) {
        self.inbox.agent_died();
        let life = self.life;
        self.life += 1;
        for process in self.processes.values_mut() {
            process.watched = false;
        }
        for ((at, number), (of, later)) in core::mem::take(&mut self.later) {
            let keep = matches!(later, Later::End { .. } | Later::PluginGone { .. });
            if keep {
                self.later.insert((at, number), (of, later));
            } else if of == life && self.choices.below(2, "under way at a crash", "") == 0 {
                match later {
                    // A shim may be made and not have begun yet.
                    Later::Start { .. } => {
                        self.later.insert((at, number), (of, later));
                    }
                    _ => self.do_later(of, later),
                }
            }
        }
        self.cancelled.clear();
        self.disk.agent_died();
    }

    /// The machine starts again: nothing that lived lives, and nobody knows how it ended.
    pub(crate) fn rebooted(&mut self) {
        self.later.clear();
        for process in self.processes.values_mut() {
            if process.alive {
                process.alive = false;
                process.unknowable = true;
            } else if process.starts == 0 && process.claims > 0 {
                process.tombstone = true;
            }
        }
        let wall = self.now().wall;
        self.at = Instant(1_000_000_000);
        self.wall_offset = wall.0 - 1_000_000_000;
    }
}
