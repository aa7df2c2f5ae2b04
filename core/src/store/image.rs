//! What is remembered of the image of a task that follows its tag, as a part of its job's record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{GroupName, TaskName};
use crate::model::job::Job;
use crate::model::task::Task;
use crate::store::record::JobRecord;

/// Which task of a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobTask {
    /// The group.
    pub group: GroupName,
    /// The task in it.
    pub task: TaskName,
}

impl JobTask {
    /// The task of a job that this is.
    pub fn of<'a>(&self, job: &'a Job) -> Option<&'a Task> {
        let group = job.group(self.group.as_str())?;
        let mut tasks = group.tasks.iter();
        tasks.find(|task| task.name == self.task.as_str())
    }

    /// The same, to change it.
    pub fn of_mut<'a>(&self, job: &'a mut Job) -> Option<&'a mut Task> {
        let mut groups = job.task_groups.iter_mut();
        let group = groups.find(|group| group.name == self.group.as_str())?;
        let mut tasks = group.tasks.iter_mut();
        tasks.find(|task| task.name == self.task.as_str())
    }
}

/// The tasks of a job, each with what it is.
pub fn tasks_of(job: &Job) -> impl Iterator<Item = (JobTask, &Task)> {
    let groups = job.task_groups.iter();
    groups.flat_map(|group| {
        group.tasks.iter().map(|task| {
            let key = JobTask {
                group: group.name.as_str().into(),
                task: task.name.as_str().into(),
            };
            (key, task)
        })
    })
}

/// What is remembered of the image of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageRecord {
    /// The image, as the job names it: of another one nothing is known.
    pub image: String,
    /// The digest that was decided about last. It is decided about once, so that one that was reverted is not
    /// tried again until the tag moves on. Empty if there was none.
    pub decided: String,
    /// The digest of what copies ran while the job named no digest. A version of that time that comes back gets it.
    pub ran: String,
    /// When it was looked at last, in seconds since 1970: times after that are still to come.
    pub looked: Option<i64>,
    /// What came of looking the last time.
    pub last: Look,
}

/// What comes of looking at a tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// It was not looked at.
    #[default]
    Never,
    /// There is nothing new.
    Unchanged,
    /// The tag had moved, and a new version of the job was made.
    Updated,
    /// A roll-out of the job was under way, which nothing was to disturb.
    Skipped,
    /// The registry could not be asked, for this reason.
    Failed(String),
}

impl Look {
    /// Whether it found nothing out, so that another look makes up for it.
    pub fn is_void(&self) -> bool {
        match self {
            Look::Skipped | Look::Failed(_) => true,
            Look::Never | Look::Unchanged | Look::Updated => false,
        }
    }
}

impl JobRecord {
    /// A version of the job, as it would come back. Where it names no digest and the latest version does, it gets the
    /// one that its copies had: its tag means another by now.
    pub fn as_it_ran(&self, version: &Arc<Job>) -> Arc<Job> {
        with_digests(version, |key, task| {
            if task.image_update.is_none() || !task.image_digest.is_empty() {
                return Some(task.image_digest.clone());
            }
            let latest = key.of(&self.job)?;
            let record = self.images.get(key)?;
            let is_known = Some(record.image.as_str()) == task.image();
            let moved = !latest.image_digest.is_empty();
            (is_known && moved).then(|| record.ran.clone())
        })
    }
}

/// A job whose images have these digests; none where there is none.
pub(crate) fn with_digests(
    job: &Arc<Job>,
    digest: impl Fn(&JobTask, &Task) -> Option<String>,
) -> Arc<Job> {
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
