//! Who is told that the directory of its allocation takes more than its job file asks for: whoever was measured so,
//! once, at once, and nobody else.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::NodeEffect;
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::input::NodeInput;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

use super::policy::{JobFiles, group};
use super::{Checker, Property, Verdict};
use crate::world::World;

/// Bytes in what job files count.
const MB: u64 = 1024 * 1024;

/// What is known of the directories.
#[derive(Clone, Debug)]
pub(super) struct DirUsage {
    /// The pause between two questions.
    interval: Span,
    /// The question that is out, and when it was asked.
    asked: Option<(Op, Instant)>,
    /// When it was asked last.
    last: Option<Instant>,
    /// Who took too much, and not clearly less since.
    over: BTreeSet<AllocId>,
    /// Whose tasks may be told in this step, and which of them have to be.
    news: BTreeMap<AllocId, BTreeSet<TaskName>>,
}

impl DirUsage {
    pub(super) fn new(interval: Option<Span>) -> DirUsage {
        DirUsage {
            interval: interval.unwrap_or(Span::ZERO),
            asked: None,
            last: None,
            over: BTreeSet::new(),
            news: BTreeMap::new(),
        }
    }

    /// What an earlier agent knew is nothing to this one.
    pub(super) fn agent_died(&mut self) {
        *self = DirUsage::new(Some(self.interval));
    }

    /// A step begins.
    pub(super) fn begin(&mut self) {
        self.news.clear();
    }
}

impl JobFiles {
    /// The bytes that a job file asks for.
    fn disk_size(&self, alloc: &AllocRunner) -> Option<u64> {
        let group = group(self.of(alloc)?, alloc.record().group.as_str())?;
        let asked = group.ephemeral_disk.map_or(300, |disk| disk.size_mb);
        Some(u64::try_from(asked).unwrap_or(0) * MB)
    }
}

impl Checker {
    /// A directory is limited to what the job file asks for.
    pub(crate) fn disk_quota_is_that_of_job_file(
        &mut self,
        world: &World,
        agent: &Agent,
        alloc: AllocId,
        bytes: u64,
    ) -> Verdict {
        let file = agent
            .view()
            .alloc(alloc)
            .and_then(|alloc| self.files.disk_size(alloc));
        let holds = file.is_none_or(|file| file == bytes) && world.dirs.allocs.contains(&alloc);
        self.holds(Property::DiskQuotaIsThatOfJobFile, holds, || {
            format!("{alloc}: {bytes} bytes, and {file:?} in the file")
        })
    }

    /// Directories are measured in intervals.
    pub(super) fn dirs_are_measured_in_intervals(
        &mut self,
        world: &World,
        effect: &NodeEffect,
    ) -> Verdict {
        let NodeEffect::MeasureDirs { op, .. } = effect else {
            return Ok(());
        };
        let interval = self.dir_usage.interval;
        let last = self.dir_usage.last.replace(world.scene.at);
        self.dir_usage.asked = Some((*op, world.scene.at));
        let waited = last.is_none_or(|last| world.scene.at - last >= interval);
        self.holds(Property::DirsAreMeasuredInIntervals, waited, || {
            format!("it is asked at {:?}, and was at {last:?}", world.scene.at)
        })
    }

    /// What the agent hears of directories.
    pub(super) fn dirs_measured(&mut self, world: &World, agent: &Agent, reported: &NodeInput) {
        let NodeInput::DirUsage { op, result } = reported else {
            return;
        };
        let in_time = |(asked, at): &mut (Op, Instant)| {
            asked == op && world.scene.at < *at + world.scene.timeouts.hook
        };
        let awaited = self.dir_usage.asked.take_if(in_time).is_some();
        let Some(measured) = result.as_ref().ok().filter(|_| awaited && !self.leaving) else {
            return;
        };
        for (id, used) in measured {
            let Some(alloc) = agent.view().alloc(*id) else {
                continue;
            };
            let Some(size) = self.files.disk_size(alloc) else {
                continue;
            };
            if *used * 10 < size * 9 {
                self.dir_usage.over.remove(id);
            }
            if *used + 64 * 1024 >= size && self.dir_usage.over.insert(*id) {
                let running = alloc.tasks().iter().filter(|task| task.runs());
                let running = running.map(|task| task.spec().key.task.clone());
                self.dir_usage.news.insert(*id, running.collect());
            }
        }
    }

    /// A task is told that its allocation's directory takes too much.
    pub(super) fn oversized_directory_is_told_once(
        &mut self,
        key: &TaskKey,
        event: &TaskEvent,
    ) -> Verdict {
        if event.kind != EventType::DiskExceeded {
            return Ok(());
        }
        let news = self.dir_usage.news.get_mut(&key.alloc);
        let expected = news.is_some();
        news.map(|tasks| tasks.remove(&key.task));
        self.holds(Property::OversizedDirectoryIsToldOnce, expected, || {
            format!("{key:?} is told {:?}", event.display_message)
        })
    }

    /// At the end of a step all were told.
    pub(super) fn oversized_directory_is_told(&mut self) -> Verdict {
        let news = core::mem::take(&mut self.dir_usage.news);
        if news.is_empty() {
            return Ok(());
        }
        let silent = news.values().flatten().next();
        self.holds(Property::OversizedDirectoryIsTold, silent.is_none(), || {
            format!("{news:?} were not told")
        })
    }
}
