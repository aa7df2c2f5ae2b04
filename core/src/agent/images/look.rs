//! A look at images: asking, the answers, and what comes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decide::{Decision, decide};
use super::{IMAGE_TIMEOUT, Round, Time};
use crate::agent::{Agent, cx};
use crate::driver::config::registry_auth;
use crate::effect::{Effect, ImageQuery, NodeEffect};
use crate::ids::{JobKey, LaunchId};
use crate::input::ImageDigests;
use crate::model::eval::Trigger;
use crate::model::job::Job;
use crate::model::task::Task;
use crate::op::{Failure, Op};
use crate::operations::{Owner, Purpose};
use crate::store::image::{ImageRecord, JobTask, Look};
use crate::store::periodic::second_of;
use crate::store::record::JobRecord;
use crate::time::Now;

/// How much of what a registry says is kept, in bytes.
const MOST_WORDS: usize = 300;

impl Agent {
    /// Looks at the images whose time has come.
    pub(in crate::agent) fn look_at_due_images(&mut self, now: Now) {
        if self.shutdown.is_some() {
            return;
        }
        let second = second_of(now.wall);
        let due = self.images.queue.iter();
        let due = due.take_while(|(at, _)| *at <= second);
        let due: Vec<JobKey> = due.map(|(_, key)| key.clone()).collect();
        for key in due {
            self.look_at_images_of(now, &key);
        }
    }

    fn look_at_images_of(&mut self, now: Now, key: &JobKey) {
        let second = second_of(now.wall);
        let times = self.times_of_looks(now, key).into_iter();
        let due = times.filter(|(_, time)| matches!(time, Time::At(at) if *at <= second));
        let due: Vec<JobTask> = due.map(|(task, _)| task).collect();
        let record = self.local.jobs.get(key).cloned();
        if let Some(record) = record.filter(|_| !due.is_empty()) {
            match self.rolls_out_now(&record) {
                true => self.skip(now, key, &record, &due),
                false => self.ask_registries(now, key, &record, &due),
            }
        }
        self.set_next_look(now, key);
    }

    fn rolls_out_now(&self, record: &JobRecord) -> bool {
        let id = record.deployment;
        let rollout = id.and_then(|id| self.local.deployments.get(&id));
        rollout.is_some_and(|rollout| rollout.is_active())
    }

    /// A roll-out is under way, or came meanwhile: these are looked at later.
    fn skip(&mut self, now: Now, key: &JobKey, record: &JobRecord, due: &[JobTask]) {
        let mut images = record.images.clone();
        for task in due {
            if let Some(spec) = task.of(&record.job) {
                self.count_tries(key, task, true);
                let mut known = known_of(record, task, spec);
                (known.last, known.looked) = (Look::Skipped, Some(second_of(now.wall)));
                images.insert(task.clone(), known);
            }
        }
        self.save_images(key, images);
    }

    fn ask_registries(&mut self, now: Now, key: &JobKey, record: &JobRecord, due: &[JobTask]) {
        let mut round = Round {
            version: record.job.version,
            began: second_of(now.wall),
            ..Round::default()
        };
        for task in due {
            let Some(spec) = task.of(&record.job) else {
                continue;
            };
            let launches = match spec.image_digest.is_empty() {
                true => self.launches_of_version(key, record.job.version, task),
                false => BTreeSet::new(),
            };
            let query = Arc::new(query(spec, launches));
            let mut cx = cx(&self.config, &mut self.shared, now);
            let op = cx.operation(Owner::Job(key.clone()), Purpose::Image, IMAGE_TIMEOUT);
            cx.send(Effect::Node(NodeEffect::LookUpImage { op, query }));
            round.asked.insert(op, task.clone());
        }
        if let Some(job) = self.images.jobs.get_mut(key) {
            job.round = Some(round).filter(|round| !round.asked.is_empty());
        }
    }

    /// The launches of a task that run in copies of this version.
    fn launches_of_version(
        &self,
        key: &JobKey,
        version: u64,
        task: &JobTask,
    ) -> BTreeSet<LaunchId> {
        let allocs = self.view().allocs_of(key).filter(|alloc| {
            let record = alloc.record();
            record.job_version == version && record.group == task.group && !record.of_servers
        });
        let tasks = allocs.filter_map(|alloc| alloc.task(&task.task));
        let running = tasks.filter(|task| task.runs());
        let launches = running.filter_map(|task| task.record().launch.as_ref());
        launches.map(|launch| launch.id).collect()
    }

    /// A registry answers.
    pub(in crate::agent) fn on_image(
        &mut self,
        now: Now,
        op: Op,
        result: Result<ImageDigests, Failure>,
    ) {
        let operations = &mut self.shared.operations;
        let owner = operations.get(op).map(|one| one.owner.clone());
        let key = match owner {
            Some(Owner::Job(key)) => Some(key),
            Some(Owner::Task(_) | Owner::Alloc(_) | Owner::Machine | Owner::Server) | None => None,
        };
        let awaited = key.filter(|key| {
            let owner = Owner::Job(key.clone());
            operations.answered(&owner, op, result.is_ok()).is_some()
        });
        let Some(key) = awaited else {
            return cx(&self.config, &mut self.shared, now).count_stale();
        };
        let result = result.map_err(|failure| failure.message);
        let result = result.and_then(|found| match found.tag.is_empty() {
            true => Err("the registry names no digest".to_owned()),
            false => Ok(found),
        });
        self.image_found(now, &key, op, result);
    }

    /// A registry does not answer in time.
    pub(in crate::agent) fn image_is_overdue(&mut self, now: Now, key: &JobKey, op: Op) {
        let why = "the registry was not reached in time".to_owned();
        self.image_found(now, key, op, Err(why));
    }

    fn image_found(
        &mut self,
        now: Now,
        key: &JobKey,
        op: Op,
        result: Result<ImageDigests, String>,
    ) {
        if self.shutdown.is_some() {
            return self.end_round(key);
        }
        let Some(job) = self.images.jobs.get_mut(key) else {
            return;
        };
        let Some(round) = &mut job.round else { return };
        if let Some(task) = round.asked.remove(&op) {
            round.found.insert(task, result);
        }
        if round.asked.is_empty()
            && let Some(round) = job.round.take()
        {
            self.conclude(now, key, round);
        }
    }

    /// All registries answered: one new version is made of all that moved.
    fn conclude(&mut self, now: Now, key: &JobKey, round: Round) {
        if let Some(record) = self.local.jobs.get(key).cloned() {
            match record.job.version == round.version {
                true => self.decide_about(now, key, &record, round),
                // Somebody changed it meanwhile: the answers are not about what runs now.
                false => {
                    let asked: Vec<JobTask> = round.found.into_keys().collect();
                    self.skip(now, key, &record, &asked);
                }
            }
        }
        self.set_next_look(now, key);
    }

    fn decide_about(&mut self, now: Now, key: &JobKey, record: &JobRecord, round: Round) {
        let mut job = Job::clone(&record.job);
        let mut images = record.images.clone();
        let mut update = false;
        for (task, found) in round.found {
            let Some(spec) = task.of_mut(&mut job) else {
                continue;
            };
            self.count_tries(key, &task, found.is_err());
            let mut known = known_of(record, &task, spec);
            match found {
                Ok(found) => {
                    let decision: Decision = decide(&known, &spec.image_digest, &found);
                    if decision.update {
                        spec.image_digest = found.tag;
                        update = true;
                    }
                    known = decision.record;
                    // What moves after this is found at the times after it.
                    known.looked = Some(round.began);
                }
                Err(why) => {
                    known.last = Look::Failed(shortened(why));
                    known.looked = Some(second_of(now.wall));
                }
            }
            images.insert(task, known);
        }
        self.save_images(key, images);
        if update {
            let version = (key.clone(), record.job.version);
            let submission = self.local.submissions.get(&version).cloned();
            let submission = submission.as_ref();
            self.register_by(now, &Arc::new(job), submission, Trigger::JobRegister);
        }
    }

    fn count_tries(&mut self, key: &JobKey, task: &JobTask, failed: bool) {
        let Some(job) = self.images.jobs.get_mut(key) else {
            return;
        };
        match failed {
            true => {
                let failures = job.failures.entry(task.clone()).or_default();
                *failures = failures.saturating_add(1);
            }
            false => drop(job.failures.remove(task)),
        }
    }

    /// Remembers what is known of the images of a job, if that is something new.
    fn save_images(&mut self, key: &JobKey, mut images: BTreeMap<JobTask, ImageRecord>) {
        let Some(known) = self.local.jobs.get(key) else {
            return;
        };
        let follows = |task: &JobTask| {
            let task = task.of(&known.job);
            task.is_some_and(|task| task.image_update.is_some())
        };
        images.retain(|task, _| follows(task));
        if images != known.images {
            let mut record = JobRecord::clone(known);
            record.images = images;
            self.save_job(key, record);
        }
    }
}

/// What is known of the image that a task has now.
fn known_of(record: &JobRecord, task: &JobTask, spec: &Task) -> ImageRecord {
    let image = spec.image().unwrap_or_default();
    let known = record.images.get(task).filter(|it| it.image == image);
    known.cloned().unwrap_or_else(|| ImageRecord {
        image: image.to_owned(),
        ..ImageRecord::default()
    })
}

fn query(task: &Task, launches: BTreeSet<LaunchId>) -> ImageQuery {
    let (auth, auth_soft_fail) = registry_auth(&task.config);
    ImageQuery {
        driver: task.driver.as_str().into(),
        image: task.image().unwrap_or_default().to_owned(),
        auth,
        auth_soft_fail,
        launches,
    }
}

/// The beginning of what a registry says.
fn shortened(mut words: String) -> String {
    if words.len() > MOST_WORDS {
        words.truncate(words.floor_char_boundary(MOST_WORDS));
        words.push('…');
    }
    words
}
