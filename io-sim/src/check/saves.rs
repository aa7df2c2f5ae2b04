//! Remember before acting: what leaves the agent rests on what the disk holds, not on what is on
//! its way there.

use drover_core::agent::Agent;
use drover_core::effect::HookEffect;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::model::event::EventType;
use drover_core::store::record::TaskRecord;
use drover_core::store::{Key, Record};

use super::history::{alive_in, saved_alloc, saved_task};
use super::limits::EVENTS_OF_TASK;
use super::{Checker, Property, Verdict};
use crate::hooks;
use crate::world::World;

impl Checker {
    /// When a start leaves, the disk holds its launch id: a crash can never forget it.
    pub(super) fn launch_is_saved_before_start(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key).and_then(|task| task.launch.as_ref());
        self.holds(
            Property::LaunchIsSavedBeforeStart,
            saved.is_some_and(|saved| saved.id == launch),
            || format!("{key:?} {launch}, saved {saved:?}"),
        )
    }

    /// When a stop leaves, the disk says why.
    pub(super) fn stop_is_saved_before_kill(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key);
        let says_why = |task: &TaskRecord| {
            let events = &task.state.events;
            // So many things happened since that the kill's event may be dropped.
            let dropped = events.len() >= EVENTS_OF_TASK;
            let killing = |kind| matches!(kind, EventType::Killing);
            task.restarting || dropped || events.iter().any(|event| killing(event.kind))
        };
        let holds = saved.is_some_and(|task| holds_launch(task, launch) && says_why(task));
        self.holds(Property::StopIsSavedBeforeKill, holds, || {
            format!("{key:?} {launch}, saved {saved:?}")
        })
    }

    /// A launch is still recorded when its destroy is sent.
    pub(super) fn exit_is_saved_before_destroy(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key);
        let holds = saved.is_some_and(|task| holds_launch(task, launch));
        self.holds(Property::ExitIsSavedBeforeDestroy, holds, || {
            format!("{key:?} {launch}, saved {saved:?}")
        })
    }

    /// A launch is forgotten outside when no record on the disk bears it any more.
    pub(super) fn launch_is_forgotten_after_destroy(
        &mut self,
        world: &World,
        launch: LaunchId,
    ) -> Verdict {
        let key = world.processes.get(launch).map(|process| &process.key);
        let saved = key.and_then(|key| saved_task(world, key));
        let holds = saved.is_none_or(|task| !holds_launch(task, launch));
        self.holds(Property::LaunchIsForgottenAfterDestroy, holds, || {
            format!("{launch}, saved {saved:?}")
        })
    }

    pub(super) fn hook_effect(
        &mut self,
        world: &World,
        agent: &Agent,
        hook: &HookEffect,
    ) -> Verdict {
        let (op, alloc, task, work) = match hook {
            HookEffect::Cancel { op } => return self.stop_runs_no_update_hook(world, agent, *op),
            HookEffect::Run {
                op,
                alloc,
                task,
                work,
            } => (op, alloc, task, work),
        };
        let known = agent.view().alloc(*alloc).is_some();
        self.holds(Property::DriverEffectHasKnownAlloc, known, || {
            format!("{hook:?}")
        })?;
        let of = world.of(world.scene.life, *op, *alloc, task.as_ref());
        hooks::of(work).check(self, world, agent, &of)
    }

    /// What is fetched for a task finds its directory.
    pub(crate) fn artifacts_are_fetched_into_existing_task_dir(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let there = world.dirs.has_task(key);
        self.holds(
            Property::ArtifactsAreFetchedIntoExistingTaskDir,
            there,
            || format!("{key:?}"),
        )
    }

    /// Task hooks run only when the allocation's directory exists.
    pub(crate) fn task_hooks_run_after_alloc_hooks(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let there = world.dirs.allocs.contains(&key.alloc);
        self.holds(Property::TaskHooksRunAfterAllocHooks, there, || {
            format!("{key:?}")
        })
    }

    /// Directories are made for allocations that the disk knows: none is left by a crash.
    pub(crate) fn directory_is_built_after_alloc_is_saved(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let saved = saved_alloc(world, alloc).is_some();
        self.holds(Property::DirectoryIsBuiltAfterAllocIsSaved, saved, || {
            alloc.to_string()
        })
    }

    /// An allocation's directory is removed only after it was saved as being destroyed.
    pub(crate) fn destroying_is_saved_before_directory_removal(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let saved = saved_alloc(world, alloc);
        let over = saved.is_some_and(|alloc| alloc.finished && alloc.destroying);
        self.holds(
            Property::DestroyingIsSavedBeforeDirectoryRemoval,
            over,
            || format!("{alloc}, saved {saved:?}"),
        )
    }

    /// No directory is removed while a process lives in it.
    pub(crate) fn directory_with_live_process_is_not_removed(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let alive = alive_in(world, alloc);
        let name = alive.map(|process| process.name.to_string());
        self.holds(
            Property::DirectoryWithLiveProcessIsNotRemoved,
            name.is_none(),
            || format!("{name:?}"),
        )
    }

    /// A once-only hook does not run again after it was saved as done.
    pub(crate) fn done_hook_is_not_run_again(
        &mut self,
        world: &World,
        key: &TaskKey,
        hook: &str,
    ) -> Verdict {
        let TaskKey { alloc, task } = key;
        let record = Key::Task(*alloc, task.clone());
        let done = match world.disk.records().get(&record) {
            // What was fetched into secrets that are gone is fetched again.
            Some(Record::Task(saved)) if hook == "artifacts" => {
                let lost = saved.secrets != world.dirs.secrets_of(key);
                // Who ran had them, whatever is said of the hook; but if those were other secrets,
                // they were fetched again since.
                let had = saved.state.started_at.is_some()
                    && world.dirs.fetched.contains(&(*alloc, task.clone()))
                    && !(lost && world.dirs.has_secret_artifacts(key));
                had || saved.hooks_done.contains_key(hook) && !lost
            }
            Some(Record::Task(saved)) => saved.hooks_done.contains_key(hook),
            _ => false,
        };
        let done = done && !world.dirs.is_lost(*alloc);
        self.holds(Property::DoneHookIsNotRunAgain, !done, || {
            format!("{alloc} {task}: {hook}")
        })
    }
}

fn holds_launch(task: &TaskRecord, launch: LaunchId) -> bool {
    task.launch.as_ref().is_some_and(|saved| saved.id == launch)
}
