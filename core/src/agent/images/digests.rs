//! Which digests a job's images have when a version of it comes from elsewhere than from a look.

use std::sync::Arc;

use crate::agent::Agent;
use crate::model::job::Job;
use crate::store::image::with_digests;

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

    /// A job that comes from another node, with the digests that it has where it follows tags, and no others.
    pub(in crate::agent) fn with_followed_digests(job: &Arc<Job>) -> Arc<Job> {
        with_digests(job, |_, task| {
            task.image_update.as_ref()?;
            Some(task.image_digest.clone())
        })
    }
}
