//! Remember before acting: what leaves the agent rests on what the disk holds, not on what is on
//! its way there.

use drover_core::agent::Agent;
use drover_core::effect::HookEffect;
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::model::event::{EventType, MAX_EVENTS};
use drover_core::store::record::TaskRecord;
use drover_core::store::{Key, Record};

use super::lives::{alive_in, saved_alloc, saved_task};
use super::{Checker, Property, Verdict};
use crate::hooks;
use crate::world::World;

impl Checker {
    /// When a start leaves, the disk holds its launch id: a crash can never forget it.
    pub(super) fn a_start_is_remembered_first(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key).and_then(|task| task.launch.as_ref());
        self.holds(
            Property::AStartIsRememberedFirst,
            saved.is_some_and(|saved| saved.id == launch),
            || format!("{key:?} {launch}, saved {saved:?}"),
        )
    }

    /// When a stop leaves, the disk says why.
    pub(super) fn a_stop_is_remembered_first(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key);
        let says_why = |task: &TaskRecord| {
            let events = &task.state.events;
            // So many things happened since that the kill's event may be dropped.
            let dropped = events.len() >= MAX_EVENTS;
            let killing = |kind| matches!(kind, EventType::Killing);
            task.restarting || dropped || events.iter().any(|event| killing(event.kind))
        };
        let holds = saved.is_some_and(|task| holds_launch(task, launch) && says_why(task));
        self.holds(Property::AStopIsRememberedFirst, holds, || {
            format!("{key:?} {launch}, saved {saved:?}")
        })
    }

    /// When an end by force leaves, the disk still holds the launch.
    pub(super) fn a_destroy_is_remembered_first(
        &mut self,
        world: &World,
        key: &TaskKey,
        launch: LaunchId,
    ) -> Verdict {
        let saved = saved_task(world, key);
        let holds = saved.is_some_and(|task| holds_launch(task, launch));
        self.holds(Property::ADestroyIsRememberedFirst, holds, || {
            format!("{key:?} {launch}, saved {saved:?}")
        })
    }

    /// A launch is forgotten outside when no record on the disk bears it any more.
    pub(super) fn a_launch_is_forgotten_last(
        &mut self,
        world: &World,
        launch: LaunchId,
    ) -> Verdict {
        let key = world.processes.get(&launch).map(|process| &process.key);
        let saved = key.and_then(|key| saved_task(world, key));
        let holds = saved.is_none_or(|task| !holds_launch(task, launch));
        self.holds(Property::ALaunchIsForgottenLast, holds, || {
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
            HookEffect::Cancel { op } => return self.a_stop_runs_no_update_hook(world, agent, *op),
            HookEffect::Run {
                op,
                alloc,
                task,
                work,
            } => (op, alloc, task, work),
        };
        let known = agent.view().alloc(*alloc).is_some();
        self.holds(Property::EffectsHaveAnOwner, known, || format!("{hook:?}"))?;
        let of = world.of(world.life, *op, *alloc, task.as_ref());
        hooks::of(work).check(self, world, agent, &of)
    }

    /// What is fetched for a task finds its directory.
    pub(crate) fn artifacts_find_their_directory(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let there = world.dirs.has_task(key);
        self.holds(Property::ArtifactsFindTheirDirectory, there, || {
            format!("{key:?}")
        })
    }

    /// A task is set up when the directory of its allocation is there.
    pub(crate) fn tasks_are_set_up_in_their_allocation(
        &mut self,
        world: &World,
        key: &TaskKey,
    ) -> Verdict {
        let there = world.dirs.allocs.contains(&key.alloc);
        self.holds(Property::TasksAreSetUpInTheirAllocation, there, || {
            format!("{key:?}")
        })
    }

    /// Directories are made for allocations that the disk knows: none is left by a crash.
    pub(crate) fn directories_belong_to_what_is_saved(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let saved = saved_alloc(world, alloc).is_some();
        self.holds(Property::DirectoriesBelongToWhatIsSaved, saved, || {
            alloc.to_string()
        })
    }

    /// A directory is removed when the disk says that its allocation is over and goes away.
    pub(crate) fn a_removal_is_remembered_first(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let saved = saved_alloc(world, alloc);
        let over = saved.is_some_and(|alloc| alloc.finished && alloc.destroying);
        self.holds(Property::ARemovalIsRememberedFirst, over, || {
            format!("{alloc}, saved {saved:?}")
        })
    }

    /// No directory is removed while a process lives in it.
    pub(crate) fn no_directory_is_removed_under_a_process(
        &mut self,
        world: &World,
        alloc: AllocId,
    ) -> Verdict {
        let alive = alive_in(world, alloc);
        let name = alive.map(|process| process.name.to_string());
        self.holds(
            Property::NoDirectoryIsRemovedUnderAProcess,
            name.is_none(),
            || format!("{name:?}"),
        )
    }

    /// A hook that runs once in a task's life does not run again when that is saved.
    pub(crate) fn a_finished_hook_is_not_run_again(
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
        self.holds(Property::AFinishedHookIsNotRunAgain, !done, || {
            format!("{alloc} {task}: {hook}")
        })
    }
}

fn holds_launch(task: &TaskRecord, launch: LaunchId) -> bool {
    task.launch.as_ref().is_some_and(|saved| saved.id == launch)
}
