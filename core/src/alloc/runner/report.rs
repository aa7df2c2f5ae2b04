//! What others learn of the allocation: its status, its health, and the reports for listeners.

use super::{AllocRunner, Phase};
use crate::alloc::health::{HealthWatch, Verdict};
use crate::alloc::status;
use crate::broadcast::AllocUpdate;
use crate::cx::Cx;
use crate::model::alloc::DeploymentHealth;
use crate::model::event::{EventType, TaskEvent};
use crate::model::job::Job;
use crate::store::record::AllocRecord;
use crate::task::runner::TaskRunner;

/// What sizes of disks are given in.
const MIB: u64 = 1024 * 1024;

impl AllocRunner {
    pub(super) fn check_health(&mut self, cx: &mut Cx<'_>) {
        let Some(watch) = &self.health else {
            return;
        };
        if self.record.desired.is_terminal() {
            self.health = None;
            return;
        }
        if !matches!(self.phase, Phase::Tasks(_) | Phase::Finished) {
            return;
        }
        let mut watch = watch.clone();
        let failing = watch.considers_checks().then(|| self.failing_check());
        let verdict = watch.check(cx.now, self.tasks.iter(), failing.flatten());
        self.health = Some(watch);
        let Some(verdict) = verdict else {
            return;
        };
        self.health = None;
        let healthy = verdict == Verdict::Healthy;
        let timestamp = cx.now.wall;
        self.edit(cx, |record| {
            record.health = Some(DeploymentHealth { healthy, timestamp })
        });
        if let Verdict::Unhealthy(why) = verdict {
            for task in &mut self.tasks {
                let event = TaskEvent::new(EventType::AllocUnhealthy, cx.now.wall, &why);
                task.push(cx, event.detail("message", &why));
            }
        }
    }

    /// The bytes that its directory should take at most.
    pub fn disk_size(&self) -> u64 {
        let group = self.job.group(self.record.group.as_str());
        let disk = group
            .and_then(|group| group.ephemeral_disk)
            .unwrap_or_default();
        u64::try_from(disk.size_mb).unwrap_or(0).saturating_mul(MIB)
    }

    /// Its directory takes more than it should: those tasks are told that are not over.
    pub(crate) fn disk_exceeded(&mut self, cx: &mut Cx<'_>, used: u64, size: u64) {
        let (used_mb, size_mb) = (used.div_ceil(MIB), size / MIB);
        let words = format!("The allocation's directory takes {used_mb} MiB of {size_mb} MiB");
        for task in self.tasks.iter_mut().filter(|task| !task.is_dead()) {
            let event = TaskEvent::new(EventType::DiskExceeded, cx.now.wall, &words);
            let event = event.detail("disk_limit", size);
            task.push(cx, event.detail("disk_used", used));
        }
    }

    /// Notes the status that follows from the tasks, and tells those who listen.
    pub(super) fn report(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.phase, Phase::Destroyed) {
            return;
        }
        let mut changed = false;
        for task in &mut self.tasks {
            changed |= task.take_changed();
        }
        if !self.record.forced {
            let states = self.tasks.iter().map(TaskRunner::state);
            let (status, why) = status::of_tasks(states);
            if self.record.status != status || *self.record.status_description != *why {
                self.edit(cx, |record| {
                    record.status = status;
                    record.status_description = why.into();
                });
                changed = false;
            }
        }
        // Whoever watches the allocation sees what happens to its tasks.
        if changed {
            self.edit(cx, |_| {});
        }
        self.broadcast(cx);
    }

    pub(super) fn broadcast(&self, cx: &mut Cx<'_>) {
        let changed = AllocUpdate {
            status: self.record.status,
            finished: self.is_gone(),
        };
        cx.shared.broadcasts.send(self.record.id, changed);
    }
}

/// The watch over an allocation of a roll-out whose health is not known yet.
pub(super) fn watch(cx: &Cx<'_>, record: &AllocRecord, job: &Job) -> Option<HealthWatch> {
    let watched = record.deployment.is_some() && record.health.is_none();
    job.group(record.group.as_str())
        .and_then(|group| group.update.as_ref())
        .filter(|update| watched && update.health_check != "manual")
        .map(|update| HealthWatch::new(cx.now, update))
}
