//! Which digests a job's images have when a version of it comes from elsewhere than from a look.

use std::sync::Arc;

use crate::agent::Agent;
use crate::ids::JobKey;
use crate::model::job::Job;
use crate::model::task::Task;
use crate::store::image::{JobTask, tasks_of};

impl Agent {
    /// A job that somebody submits, with the digests that its images have: those of the latest version where that
    /// has the same image, and no others.
    pub(in crate::agent) fn with_known_digests(&self, job: &Arc<Job>) -> Arc<Job> {
        let known = self.local.jobs.get(&job.key());
        with_digests(job, |key, task| {
            task.image_update.as_ref()?;
            let same = key.of(&known?.job)?;
            let is_same = same.image_update.is_some() && same.image() == task.image();
            is_same.then(|| same.image_digest.clone())
        })
    }

    /// A version that comes back. Where it names no digest and the latest version does, it gets the one that its
    /// copies had: its tag means another by now.
    pub(in crate::agent) fn with_former_digests(&self, key: &JobKey, job: &Arc<Job>) -> Arc<Job> {
        let Some(known) = self.local.jobs.get(key) else {
            return job.clone();
        };
        with_digests(job, |key, task| {
            if task.image_update.is_none() || !task.image_digest.is_empty() {
                return Some(task.image_digest.clone());
            }
            let latest = key.of(&known.job)?;
            let record = known.images.get(key)?;
            let is_known = Some(record.image.as_str()) == task.image();
            let moved = !latest.image_digest.is_empty();
            (is_known && moved).then(|| record.ran.clone())
        })
    }
}

/// A job whose images have these digests; none where there is none.
fn with_digests(job: &Arc<Job>, digest: impl Fn(&JobTask, &Task) -> Option<String>) -> Arc<Job> {
    let wanted = tasks_of(job).map(|(key, task)| {
        let digest = digest(&key, task).unwrap_or_default();
        (digest != task.image_digest).then_some((key, digest))
    });
    let changes: Vec<_> = wanted.flatten().collect();
    if changes.is_empty() {
        return job.clone();
    }
    let mut job = Job::clone(job);
    for (key, digest) in changes {
        if let Some(task) = key.of_mut(&mut job) {
            task.image_digest = digest;
        }
    }
    Arc::new(job)
}
