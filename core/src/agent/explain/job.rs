//! What a job waits for: a placement, its next time, people.

use super::{Waiting, holders, wall};
use crate::agent::pending::JobWait;
use crate::agent::{ImageView, LaunchResult, View};
use crate::ids::{GroupName, JobKey};
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::group::TaskGroup;
use crate::model::job::JobStatus;
use crate::model::periodic::launch_id;
use crate::scheduler::rollout::healthy_canaries;
use crate::store::image::{JobTask, Look};
use crate::store::periodic::{Considered, Outcome};
use crate::store::record::{AllocRecord, JobRecord};
use crate::text::quote;
use crate::time::{Now, Timestamp};

impl View<'_> {
    pub(super) fn job_waits(self, now: Now, record: &JobRecord) -> Vec<Waiting> {
        let key = record.job.key();
        let mut waits: Vec<Waiting> = (self.agent.waits_of_job(&key))
            .map(|(wait, until)| {
                let (what, then) = self.job_wait(now, &key, wait);
                let (until, then) = (until.map(|at| wall(now, at)), then.to_owned());
                Waiting { what, until, then }
            })
            .collect();
        let deployment = record.deployment.and_then(|id| self.deployment(id));
        let active = deployment.filter(|one| one.is_active() && !record.job.stop);
        waits.extend(active.map(|one| self.rollout_waits(now, record, one)));
        waits.extend(self.next_time(record));
        let images = self.images(&key).into_iter();
        waits.extend(images.filter_map(|image| next_look(&image)));
        waits
    }

    fn job_wait(self, now: Now, key: &JobKey, wait: JobWait) -> (String, &'static str) {
        match wait {
            JobWait::Reschedule => (
                "the reschedule delay of a failed allocation".to_owned(),
                "a replacement is placed",
            ),
            JobWait::TimeZone => (
                "the local time of its zone, which is looked up".to_owned(),
                "it is launched at its times; of those that were missed, once",
            ),
            JobWait::Images => (
                "the registries of its images".to_owned(),
                "a new version of it is made if a tag moved",
            ),
            JobWait::Fingerprint => (
                "the first fingerprints of this node".to_owned(),
                "it is placed",
            ),
            JobWait::Placement => {
                let groups = self.blocked(key).iter();
                let groups = groups.map(|(group, why)| match holders::of_lack(self, now, why) {
                    Some(held) => format!("group {}: {why}, {held}", quote(group)),
                    None => format!("group {}: {why}", quote(group)),
                });
                let why: Vec<String> = groups.collect();
                (
                    format!("a placement on this node ({})", why.join("; ")),
                    "it is placed as soon as that changes",
                )
            }
        }
    }

    /// What a roll-out needs to go on.
    fn rollout_waits(self, now: Now, record: &JobRecord, rollout: &Deployment) -> Waiting {
        let id = rollout.id;
        let allocs: Vec<&AllocRecord> = (self.agent.allocs_of_rollout(rollout))
            .map(|alloc| &**alloc.record())
            .collect();
        let mut unpromoted = rollout.unpromoted().peekable();
        let has_canaries = unpromoted.peek().is_some();
        let healthy = unpromoted.all(|(name, it)| healthy_canaries(name, &allocs) >= it.canaries);
        let by_people = is_manual(record, rollout);
        let (what, then) = if rollout.status == DeploymentStatus::Paused {
            (
                "somebody to resume its deployment, which is paused",
                format!("\"deployment resume {id}\" lets more of it start and be replaced"),
            )
        } else if has_canaries && healthy {
            (
                "somebody to promote its canaries, which are healthy",
                format!("\"deployment promote {id}\" replaces the old version by the new one"),
            )
        } else if by_people {
            (
                "somebody to say that its allocations are healthy (health_check = \"manual\")",
                "it goes on; below each allocation is how to say so. Without progress in time the \
                 deployment fails"
                    .to_owned(),
            )
        } else if has_canaries {
            (
                "its canaries to be healthy",
                "they may be promoted; without progress in time the deployment fails".to_owned(),
            )
        } else {
            (
                "all copies of its new version to be healthy",
                "its version is stable; without progress in time the deployment fails".to_owned(),
            )
        };
        let groups = record.job.task_groups.iter();
        let deadline = |group| self.progress_until(now, rollout, group);
        Waiting {
            what: what.to_owned(),
            until: groups.filter_map(deadline).min(),
            then,
        }
    }

    /// Until when a group has to make progress.
    fn progress_until(
        self,
        now: Now,
        rollout: &Deployment,
        group: &TaskGroup,
    ) -> Option<Timestamp> {
        let known = self.agent.local.progress.get(&rollout.job)?;
        let known = known.get(&GroupName::from(group.name.as_str()))?;
        (known.deployment == rollout.id).then(|| wall(now, known.at))
    }

    /// The next time of a periodic job, and what became of the last one.
    fn next_time(self, record: &JobRecord) -> Option<Waiting> {
        let periodic = record.job.schedule()?;
        let launches = self.periodic(&record.job.key())?;
        let until = launches.next?;
        let what = match launches.last {
            Some(_) => "the next of its times",
            None => "the first of its times",
        };
        let made = match periodic.prohibit_overlap {
            true => "a job is made of it, unless an earlier one is not over then",
            false => "a job is made of it",
        };
        let last = launches.last.map(|last| self.last_time(record, last));
        let then = match last {
            Some(last) => format!("{made}; of the last one: {last}"),
            None => made.to_owned(),
        };
        Some(Waiting {
            what: what.to_owned(),
            until: Some(until),
            then,
        })
    }

    /// What became of the last time of a periodic job.
    fn last_time(self, record: &JobRecord, last: Considered) -> String {
        match last.outcome {
            Outcome::Launched => {
                let id = launch_id(&record.job.id, last.time);
                let mut key = record.job.key();
                key.id = id.as_str().into();
                let end = end_of(self.launch_result(&key));
                format!("job {} was made, {end}", quote(&id))
            }
            Outcome::Overlapping | Outcome::Missed | Outcome::TooMany => {
                last.outcome.as_str().to_owned()
            }
        }
    }
}

/// The next look at the image of a task, and what came of the last one.
fn next_look(image: &ImageView<'_>) -> Option<Waiting> {
    let JobTask { group, task } = &image.task;
    let whose = format!(
        "task {} of group {}",
        quote(task.as_str()),
        quote(group.as_str())
    );
    let name = quote(image.image);
    let what = match (image.next, image.awaits_zone) {
        (_, Some(why)) => {
            format!("the time zone by which image {name} is checked for updates ({whose}): {why}")
        }
        (Some(_), None) => {
            format!("the next check whether the tag of image {name} moved ({whose})")
        }
        // It is looked at now, or no time comes any more.
        (None, None) => return None,
    };
    let last = last_look(image);
    Some(Waiting {
        what,
        until: image.next,
        then: format!("a new version is made if it did; {last}"),
    })
}

/// What came of the last look at an image, in words.
fn last_look(image: &ImageView<'_>) -> String {
    if image.looked.is_none() {
        return "it was not checked yet".to_owned();
    }
    let decided = &image.decided;
    let found = match &image.last {
        Look::Never => "nothing was asked".to_owned(),
        Look::Unchanged if image.digest.is_empty() || image.digest == *decided => {
            "it had not".to_owned()
        }
        Look::Unchanged => {
            format!(
                "it meant {decided}, which was tried and is not tried again until the tag moves"
            )
        }
        Look::Updated => format!("it had, to {decided}"),
        Look::Skipped => "nothing was asked, as a new version of the job was on its way".to_owned(),
        Look::Failed(why) => format!("nothing was found out: {why}"),
    };
    format!("at the last look {found}")
}

/// How far a job is that was made for a time, in words.
fn end_of(result: Option<LaunchResult>) -> &'static str {
    match result {
        None => "which was garbage-collected since",
        Some(LaunchResult::Pending) => "and is to start",
        Some(LaunchResult::Running) => "and runs",
        Some(LaunchResult::Stopped) => "and was stopped",
        Some(LaunchResult::Failed) => "and failed",
        Some(LaunchResult::Succeeded) => "and is complete",
        Some(LaunchResult::Over) => "and is over",
    }
}

/// Whether people say what is healthy of a roll-out, and some of it waits for that.
fn is_manual(record: &JobRecord, rollout: &Deployment) -> bool {
    let job = record.version(rollout.job_version);
    let groups = job.into_iter().flat_map(|job| &job.task_groups);
    let mut updates = groups.filter_map(|group| group.update.as_ref());
    updates.any(|update| update.health_check == "manual")
}

/// What becomes of a job that waits for nothing.
pub(super) fn next(record: &JobRecord, status: JobStatus) -> &'static str {
    match (record.job.stop, record.job.is_parameterized()) {
        (true, _) => "it is stopped; \"job run\" starts it again",
        (false, true) => "\"job dispatch\" makes jobs of it",
        (false, false) if record.job.schedule().is_some() => {
            "none of its times is to come; \"job periodic force\" makes a job of it"
        }
        (false, false) if record.job.is_periodic() => {
            "it is periodic and switched off; \"job periodic force\" makes a job of it"
        }
        (false, false) if status == JobStatus::Dead => {
            "it is over, and nothing more of it is started"
        }
        (false, false) => "it goes on until it ends or somebody stops it",
    }
}
