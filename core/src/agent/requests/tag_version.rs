//! `job tag apply`: a version of a job gets a name, and is not dropped as long as it has that.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Asked, OperatorRequest, Subject, conflict, unknown_job};
use crate::agent::scheduling::no_version;
use crate::effect::{Refusal, Reply};
use crate::ids::JobKey;
use crate::model::version::{MAX_TAGS, VersionTag, check_tag};

/// Give a version of a job a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TagVersion {
    /// Which job.
    pub job: JobKey,
    /// Which version; the latest one if none.
    pub version: Option<u64>,
    /// The name.
    pub name: Arc<str>,
    /// What there is to say about it. Its size is checked by the API.
    pub description: Arc<str>,
}

impl OperatorRequest for TagVersion {
    fn name(&self) -> &'static str {
        "tag version of"
    }

    fn subject(&self) -> Subject<'_> {
        Subject::Job(self.job.clone())
    }

    fn handle(&self, asked: &mut Asked<'_>) -> Option<Reply> {
        let (key, name) = (&self.job, &self.name);
        let Some(known) = asked.agent.local.jobs.get(key) else {
            return Some(unknown_job());
        };
        if let Err(why) = check_tag(name) {
            return Some(Reply::Refused(Refusal::Invalid(why)));
        }
        let version = self.version.unwrap_or(known.job.version);
        if known.version(version).is_none() {
            return Some(Reply::Refused(no_version(key, version)));
        }
        if known.tagged(name).is_some_and(|other| other != version) {
            let id = &key.id;
            return Some(conflict(&format!(
                "tag \"{name}\" already exists on a different version of job \"{id}\""
            )));
        }
        if known.tags.len() >= MAX_TAGS && !known.tags.contains_key(&version) {
            return Some(conflict(&format!(
                "{MAX_TAGS} versions of the job have a tag already, the maximum: unset one first"
            )));
        }
        let tag = VersionTag {
            name: name.clone(),
            description: self.description.clone(),
            tagged: asked.now.wall,
        };
        asked.agent.set_tag(asked.now, key, version, Some(tag));
        Some(asked.done())
    }
}
