//! What is shown of a job's versions besides the jobs themselves.

use std::collections::BTreeMap;

use drover_core::model::submission::Submission;
use drover_core::model::version::VersionTag;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::diff::JobDiff;

/// A job's versions, newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Versions {
    pub versions: Vec<Value>,
    pub diffs: Option<Vec<JobDiff>>,
    pub index: u64,
    pub last_contact: u64,
    pub known_leader: bool,
    pub next_token: String,
}

/// The name of a version, and the answer to giving it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Tagged {
    pub name: String,
    pub description: String,
    pub tagged_time: i64,
    pub index: u64,
    pub last_contact: u64,
    pub known_leader: bool,
    pub next_token: String,
}

impl Tagged {
    /// A tag as it is shown.
    pub fn of(tag: &VersionTag) -> Tagged {
        Tagged {
            name: tag.name.to_string(),
            description: tag.description.to_string(),
            tagged_time: tag.tagged.0,
            ..Tagged::default()
        }
    }
}

/// What a version of a job was made from.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct SubmissionDto {
    pub source: String,
    pub format: String,
    pub variable_flags: Option<BTreeMap<String, String>>,
    pub variables: String,
}

impl core::fmt::Debug for SubmissionDto {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a submission")
    }
}

impl SubmissionDto {
    /// A submission as it is shown.
    pub fn of(submission: &Submission) -> SubmissionDto {
        let flags = &submission.variable_flags;
        SubmissionDto {
            source: submission.source.to_string(),
            format: submission.format.to_string(),
            variable_flags: Some(flags.clone()).filter(|flags| !flags.is_empty()),
            variables: submission.variables.to_string(),
        }
    }

    /// As the core keeps it.
    pub fn into_submission(self) -> Submission {
        Submission {
            source: self.source.into(),
            format: self.format.into(),
            variable_flags: self.variable_flags.unwrap_or_default(),
            variables: self.variables.into(),
        }
    }
}
