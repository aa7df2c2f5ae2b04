//! What is known of a version of a job besides the job itself.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::identifier;
use crate::text::quote;
use crate::time::Timestamp;

/// How many versions of a job may have a tag: tagged versions are not dropped.
pub const MAX_TAGS: usize = 64;
/// The longest description of a tag, in bytes.
pub const MAX_DESCRIPTION: usize = 1024;

/// A name that somebody gave a version, which is not dropped as long as it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionTag {
    /// The name, unique among the versions of the job.
    pub name: Arc<str>,
    /// What somebody has to say about it.
    pub description: Arc<str>,
    /// When it was given.
    pub tagged: Timestamp,
}

/// Whether this may be the name of a tag.
///
/// # Errors
/// Why not.
pub fn check_tag(name: &str) -> Result<(), String> {
    identifier(name).map_err(|why| format!("invalid tag {}: it {why}", quote(name)))
}
