//! Image updates (`image_update` of a task): a new version of a job is made when the tag of a task's image means
//! another digest in its registry than before.
//!
//! - **When.** At the times of the task's cron line, at most once a minute ([`APART`]), the registry is asked through
//!   the driver's engine. A registry that cannot be asked is tried again after a pause that doubles up to an hour, and
//!   at the next time; nothing else follows from that. So it is with a time at which a roll-out of the job is under way.
//!   The time of the last look is saved, so a time that passed while the agent was not there is made up for, once, and
//!   a restart of the agent is no reason to look.
//! - **What runs.** A version that was made here names the digest of its image (`Task::image_digest`), and every start of
//!   it gets that content. One that somebody submitted does not, so the engine is asked which digests its launches have;
//!   a copy that has another one is reason for a new version.
//! - **Each digest is tried once.** What was decided about is in the job's record ([`ImageRecord`]), which is saved in the
//!   same commit as the new version. Health decides about that as about any other, so with `auto_revert` the last stable
//!   version comes back, and a digest that did not work is not tried again until the tag moves on. Nothing is made while a
//!   roll-out is under way, nor of answers that are about another version than the latest.
//! - **What comes back runs what it ran.** Of a version that names no digest it is remembered which one its copies had;
//!   when it comes back from one that names a digest, it gets that ([`JobRecord::as_it_ran`]).
//! - **Who submits a job says nothing of digests**: a task whose image is the same as in the latest version keeps the
//!   digest of that ([`Agent::with_known_digests`]). Jobs of a cluster's servers are not known here, and never looked at.
//! - Times are of the wall clock, as those of periodic jobs are ([`super::periodic`]). What is only about this life of the
//!   agent (looks under way, how many of them found nothing out in a row) is not saved.

mod decide;
mod digests;
mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::cron::schedule::{Next, Schedule};
use crate::ids::JobKey;
use crate::input::ImageDigests;
use crate::model::image::ImageUpdate;
use crate::model::job::Job;
use crate::op::Op;
use crate::store::image::{ImageRecord, JobTask, Look, tasks_of};
use crate::store::periodic::{moment_of, second_of};
use crate::store::record::JobRecord;
use crate::time::{Instant, Now, Span, Timestamp};

/// The fewest seconds from one look at an image to the next.
pub const APART: i64 = 60;

/// How long the answer of a registry is awaited.
pub const IMAGE_TIMEOUT: Span = Span::secs(60);

/// The longest pause after failures in a row, in seconds.
const LONGEST_PAUSE: i64 = 3600;

/// The jobs whose images are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct FollowedImages {
    #[serde(with = "crate::pairs")]
    jobs: BTreeMap<JobKey, Followed>,
    /// When each job is looked at next, by time.
    queue: BTreeSet<(i64, JobKey)>,
}

/// A job whose images are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
struct Followed {
    /// When it is looked at next, in seconds since 1970.
    next: Option<i64>,
    /// How many looks in a row found nothing out, in this life of the agent.
    #[serde(with = "crate::pairs")]
    failures: BTreeMap<JobTask, u32>,
    /// The look that is under way.
    round: Option<Round>,
}

/// A look at images of a job: all answers are awaited, so that one version comes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
struct Round {
    /// The version that it is about.
    version: u64,
    /// When it began, in seconds since 1970.
    began: i64,
    #[serde(with = "crate::pairs")]
    asked: BTreeMap<Op, JobTask>,
    #[serde(with = "crate::pairs")]
    found: BTreeMap<JobTask, Result<ImageDigests, String>>,
}

/// When the image of a task is looked at, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageView<'a> {
    /// Whose it is.
    pub task: JobTask,
    /// The image, as the job names it.
    pub image: &'a str,
    /// The digest that it has; that of the tag if empty.
    pub digest: &'a str,
    /// The digest that was decided about last: it is not tried again. Empty if there was none.
    pub decided: String,
    /// When the job is looked at next, if that is known.
    pub next: Option<Timestamp>,
    /// Why the zone of its times is not known, if it is not.
    pub awaits_zone: Option<&'a str>,
    /// When it was looked at last, if it was.
    pub looked: Option<Timestamp>,
    /// What came of that.
    pub last: Look,
}

impl FollowedImages {
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn set_next(&mut self, key: &JobKey, at: Option<i64>) {
        let Some(job) = self.jobs.get_mut(key) else {
            return;
        };
        if let Some(before) = core::mem::replace(&mut job.next, at) {
            self.queue.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.queue.insert((at, key.clone()));
        }
    }

    /// The job that is looked at next, and when, by the boot clock. The wall clock is so many nanoseconds `ahead`
    /// of that.
    pub(super) fn deadline(&self, ahead: i64) -> Option<(Instant, &JobKey)> {
        let (at, key) = self.queue.first()?;
        let at = moment_of(*at).0.saturating_sub(ahead);
        Some((Instant(u64::try_from(at).unwrap_or(0)), key))
    }

    /// The answers that are awaited of a job's registries.
    pub(super) fn awaited_of(&self, key: &JobKey) -> impl Iterator<Item = Op> {
        let round = self.jobs.get(key).and_then(|job| job.round.as_ref());
        round.into_iter().flat_map(|it| it.asked.keys().copied())
    }

    /// The time zones in which images of these jobs are looked at.
    pub(super) fn zones<'a>(
        &'a self,
        jobs: &'a BTreeMap<JobKey, Arc<JobRecord>>,
    ) -> impl Iterator<Item = &'a str> {
        let jobs = self.jobs.keys().filter_map(|key| jobs.get(key));
        let updates = jobs.flat_map(|job| followed(&job.job));
        updates.map(|(_, update)| update.time_zone.as_str())
    }

    fn failures(&self, key: &JobKey, task: &JobTask) -> u32 {
        let job = self.jobs.get(key);
        let failures = job.and_then(|job| job.failures.get(task));
        failures.copied().unwrap_or_default()
    }
}

/// When a task's image is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    /// Then.
    At(i64),
    /// Not before that, up to which its zone is known.
    NotBefore(i64),
}

impl Time {
    fn second(self) -> i64 {
        match self {
            Time::At(at) | Time::NotBefore(at) => at,
        }
    }
}

/// The tasks of a job whose images are followed now.
pub(super) fn followed(job: &Job) -> impl Iterator<Item = (JobTask, &ImageUpdate)> {
    let runs = !job.stop && !job.is_template();
    let tasks = tasks_of(job).filter(move |_| runs);
    tasks.filter_map(|(key, task)| Some((key, task.followed_image()?.1)))
}

impl Agent {
    /// Whether anything waits for times of the wall clock.
    pub(super) fn awaits_wall_times(&self) -> bool {
        !(self.launches.is_empty() && self.images.is_empty())
    }

    /// A job is there, or another version of it: its images are followed if it says so.
    pub(super) fn follow_images(&mut self, now: Now, key: &JobKey) {
        if self.begin_to_follow_images(now, key) {
            self.forget_unused_zones();
        }
    }

    /// Follows the images of a job, if it says so; whether it does.
    fn begin_to_follow_images(&mut self, now: Now, key: &JobKey) -> bool {
        let record = self.local.jobs.get(key);
        let Some(record) = record.filter(|it| followed(&it.job).next().is_some()) else {
            self.forget_images(key);
            return false;
        };
        let tasks: BTreeSet<JobTask> = followed(&record.job).map(|(task, _)| task).collect();
        self.begin_wall_times(now);
        let job = self.images.jobs.entry(key.clone()).or_default();
        job.failures.retain(|task, _| tasks.contains(task));
        self.set_next_look(now, key);
        true
    }

    /// A job is forgotten, stopped, or follows no image any more.
    pub(super) fn forget_images(&mut self, key: &JobKey) {
        self.end_round(key);
        self.images.set_next(key, None);
        if self.images.jobs.remove(key).is_some() {
            self.forget_unused_zones();
        }
    }

    /// Nobody wants the answers of a look any more.
    fn end_round(&mut self, key: &JobKey) {
        let job = self.images.jobs.get_mut(key);
        let round = job.and_then(|job| job.round.take());
        for op in round.iter().flat_map(|round| round.asked.keys()) {
            self.shared.operations.end(*op);
        }
    }

    pub(super) fn restore_images(&mut self, now: Now) {
        let jobs: Vec<JobKey> = self.local.jobs.keys().cloned().collect();
        for key in &jobs {
            self.begin_to_follow_images(now, key);
        }
    }

    /// A zone is known better, or the clock was set back.
    pub(super) fn set_next_looks(&mut self, now: Now) {
        let jobs: Vec<JobKey> = self.images.jobs.keys().cloned().collect();
        jobs.iter().for_each(|key| self.set_next_look(now, key));
    }

    /// Finds out when the images of a job are looked at next.
    fn set_next_look(&mut self, now: Now, key: &JobKey) {
        let times = self.times_of_looks(now, key);
        let looks = self
            .images
            .jobs
            .get(key)
            .is_some_and(|it| it.round.is_some());
        let next = times.into_iter().map(|(_, time)| time.second()).min();
        self.images.set_next(key, next.filter(|_| !looks));
    }

    /// When each image of a job is looked at; those that wait for their zone are left out.
    fn times_of_looks(&mut self, now: Now, key: &JobKey) -> Vec<(JobTask, Time)> {
        let Some(record) = self.local.jobs.get(key).cloned() else {
            return Vec::new();
        };
        let submitted = second_of(record.job.submit_time);
        let tasks = followed(&record.job);
        tasks
            .filter_map(|(task, update)| {
                let image = task.of(&record.job)?.image();
                let known = record.images.get(&task);
                let known = known.filter(|it| Some(it.image.as_str()) == image);
                let failures = self.images.failures(key, &task);
                let time = self.time_of_look(now, update, known, failures, submitted)?;
                Some((task, time))
            })
            .collect()
    }

    fn time_of_look(
        &mut self,
        now: Now,
        update: &ImageUpdate,
        known: Option<&ImageRecord>,
        failures: u32,
        submitted: i64,
    ) -> Option<Time> {
        let schedule = Schedule::of(&update.times()).ok()?;
        let zone = self.zone(now, &update.time_zone)?;
        let second = second_of(now.wall);
        // What lies ahead of the clock was before it was set back.
        let passed = |at: &i64| *at <= second;
        let submitted = Some(submitted).filter(passed);
        let submitted = submitted.unwrap_or_else(|| second.saturating_sub(APART));
        let looked = known.and_then(|known| known.looked).filter(passed);
        let soonest = looked.map_or(i64::MIN, |at| at.saturating_add(APART));
        let after = looked.unwrap_or(submitted);
        let regular = match schedule.next(&zone, after) {
            Next::At(at) => Some(Time::At(at.max(soonest))),
            Next::NotBefore(at) => Some(Time::NotBefore(at)),
            Next::Never => None,
        };
        let void = known.is_some_and(|known| known.last.is_void());
        let again = looked.filter(|_| void);
        let again = again.map(|at| Time::At(at.saturating_add(pause(failures))));
        regular
            .into_iter()
            .chain(again)
            .min_by_key(|it| it.second())
    }

    /// What is known of the images of a job that are followed.
    pub(super) fn images_of(&self, key: &JobKey) -> Vec<ImageView<'_>> {
        let Some(record) = self.local.jobs.get(key) else {
            return Vec::new();
        };
        let next = self.images.jobs.get(key).and_then(|job| job.next);
        let tasks = tasks_of(&record.job).filter(|_| self.images.jobs.contains_key(key));
        tasks
            .filter_map(|(key, task)| {
                let (image, update) = task.followed_image()?;
                let known = record.images.get(&key).filter(|it| it.image == image);
                let known = known.cloned().unwrap_or_default();
                let zones = &self.machine.zones;
                let zone = zones.known(&update.time_zone);
                let why = zones.last_error(&update.time_zone);
                Some(ImageView {
                    image,
                    digest: &task.image_digest,
                    decided: known.decided,
                    next: next.map(moment_of),
                    awaits_zone: (zone.is_none())
                        .then(|| why.unwrap_or("it was not looked up yet")),
                    looked: known.looked.map(moment_of),
                    last: known.last,
                    task: key,
                })
            })
            .collect()
    }
}

/// How many seconds pass after so many failures in a row.
fn pause(failures: u32) -> i64 {
    let doubled = failures.saturating_sub(1).min(6);
    APART.saturating_mul(1 << doubled).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_doubles_up_to_an_hour() {
        let pauses: Vec<i64> = (1..9).map(pause).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(pause(u32::MAX), 3600);
    }
}
