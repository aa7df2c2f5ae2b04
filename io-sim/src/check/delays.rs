//! Shutdown delays: between the end of a group and the end of its tasks lies what their job file says, unless somebody
//! did not want to wait.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::agent::requests::Request;
use drover_core::alloc::runner::AllocRunner;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::task::Stage;
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// What is remembered in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    /// Since when allocations end.
    ends: BTreeMap<AllocId, Instant>,
    /// Since when tasks are to end for good.
    kills: BTreeMap<TaskKey, Instant>,
    /// Tasks that are to end in order to start again.
    restarts: BTreeSet<TaskKey>,
    /// Allocations whose delays somebody skipped.
    skipped: BTreeSet<AllocId>,
}

impl Delays {
    pub(super) fn agent_died(&mut self) {
        // What was asked may have been saved or lost.
        let skipped = core::mem::take(&mut self.skipped);
        *self = Delays {
            skipped,
            ..Delays::default()
        };
    }

    /// Somebody is about to ask.
    pub(super) fn asked(&mut self, agent: &Agent, asked: &Request) {
        match asked {
            Request::StopAlloc(asked) if asked.no_shutdown_delay => {
                self.skipped.insert(asked.alloc);
            }
            Request::Deregister(asked) if asked.no_shutdown_delay => {
                let of_job = agent.view().allocs_of(&asked.job);
                self.skipped.extend(of_job.map(|it| it.record().id));
            }
            _ => {}
        }
    }
}

impl Checker {
    /// What the files of an allocation's job say, of the group and of a task of it; empty if there is none.
    fn delays_of(&self, alloc: &AllocRunner, task: Option<&TaskKey>) -> Vec<Span> {
        match task {
            None => {
                let groups = self.files.groups(alloc).into_iter();
                groups.map(policy::group_delay).collect()
            }
            Some(key) => {
                let tasks = self.files.tasks(alloc, key).into_iter();
                tasks.map(|task| task.shutdown_delay).collect()
            }
        }
    }

    fn skips_delays(&self, alloc: &AllocRunner) -> bool {
        self.delays.skipped.contains(&alloc.record().id) || alloc.record().skip_shutdown_delay
    }

    /// A task is told to end for good, to wait before it, or to start again.
    pub(super) fn ending_reported(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        task: &TaskRunner,
        event: &TaskEvent,
    ) -> Verdict {
        let (key, now) = (&task.spec().key, world.scene.at);
        match event.kind {
            EventType::Killing => {
                self.delays.kills.entry(key.clone()).or_insert(now);
                // What follows the end is taken back at once where the time of the group is over.
                match task.spec().stage() {
                    Stage::Poststop => Ok(()),
                    // It is not the group that ends this one.
                    _ if event.fails_task => Ok(()),
                    _ => self.kill_waits_for_delay_of_group(now, alloc, key),
                }
            }
            EventType::RestartSignaled => {
                self.delays.restarts.insert(key.clone());
                Ok(())
            }
            EventType::Started => {
                self.delays.restarts.remove(key);
                Ok(())
            }
            EventType::WaitingShutdownDelay => {
                let said = self.delays_of(alloc, Some(key));
                let Phase::Delaying(until) = task.phase() else {
                    return Ok(());
                };
                let holds = said.is_empty() || said.contains(&(*until - now));
                self.holds(Property::ShutdownDelayIsThatOfJobFile, holds, || {
                    format!("{key:?} waits {}, its job file says {said:?}", *until - now)
                })
            }
            _ => Ok(()),
        }
    }

    /// Tasks are left alone as long as the group's delay lasts.
    fn kill_waits_for_delay_of_group(
        &mut self,
        now: Instant,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let since = self.delays.ends.get(&key.alloc).copied();
        let Some(since) = since.filter(|_| !self.skips_delays(alloc)) else {
            return Ok(());
        };
        let said = self.delays_of(alloc, None);
        let least = said.iter().min().copied().unwrap_or(Span::ZERO);
        self.holds(
            Property::StopWaitsForShutdownDelay,
            now >= since + least,
            || {
                format!(
                    "{key:?} is to end {} after its group, which said {said:?}",
                    now - since
                )
            },
        )
    }

    /// A task that is asked to end for good had its delay before.
    pub(super) fn stop_waits_for_shutdown_delay(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let since = self.delays.kills.get(key).copied();
        let restarts = self.delays.restarts.contains(key);
        let Some(since) = since.filter(|_| !restarts && !self.skips_delays(alloc)) else {
            return Ok(());
        };
        let said = self.delays_of(alloc, Some(key));
        let least = said.iter().min().copied().unwrap_or(Span::ZERO);
        let now = world.scene.at;
        self.stop_waits_for_removed_services(now, (alloc, key), since + least)?;
        self.holds(
            Property::StopWaitsForShutdownDelay,
            now >= since + least,
            || {
                format!(
                    "{key:?} is asked {} after it was to end; its file says {said:?}",
                    now - since
                )
            },
        )
    }

    /// Looks at the delay of a group that begins to end, and at delays that do not count any more.
    pub(super) fn delays_of_ending_alloc(&mut self, world: &World, alloc: &AllocRunner) -> Verdict {
        let record = alloc.record();
        if !alloc.is_ending() || record.finished || self.leaving {
            return Ok(());
        }
        let until = alloc.shutdown_delay_until();
        if record.skip_shutdown_delay {
            let delays = |task: &&TaskRunner| matches!(task.phase(), Phase::Delaying(_));
            let waits = alloc.tasks().iter().find(delays);
            let holds = until.is_none() && waits.is_none();
            return self.holds(Property::SkippedShutdownDelayIsOver, holds, || {
                let task = waits.map(|task| &task.spec().key);
                format!("{} waits until {until:?}, {task:?} waits too", record.name)
            });
        }
        if self.delays.ends.contains_key(&record.id) {
            return Ok(());
        }
        self.delays.ends.insert(record.id, world.scene.at);
        let said = self.delays_of(alloc, None);
        let waits = until.map_or(Span::ZERO, |until| until - world.scene.at);
        let holds = said.is_empty() || said.contains(&waits);
        self.holds(Property::ShutdownDelayIsThatOfJobFile, holds, || {
            format!("{} waits {waits}, its job file says {said:?}", record.name)
        })
    }
}
