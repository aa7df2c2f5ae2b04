//! How many copies a group may have, and what was asked of their number.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::value::Value;
use crate::ids::EvalId;
use crate::time::Timestamp;

/// How many scaling events are kept of each group.
pub const MAX_EVENTS: usize = 20;
/// The longest message of a scaling event, in bytes.
pub const MAX_MESSAGE: usize = 4 * 1024;
/// The largest meta of a scaling event, in bytes of JSON.
pub const MAX_META: usize = 16 * 1024;

/// The bounds within which a group is scaled, by people or by an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ScalingPolicy {
    /// Whether an autoscaler shall act on it.
    pub enabled: bool,
    /// Always `horizontal`.
    #[serde(rename = "Type")]
    pub kind: String,
    /// The least count.
    pub min: Option<i64>,
    /// The greatest count.
    pub max: Option<i64>,
    /// What an autoscaler reads.
    pub policy: Option<Value>,
}

impl Default for ScalingPolicy {
    fn default() -> Self {
        ScalingPolicy {
            enabled: true,
            kind: String::new(),
            min: None,
            max: None,
            policy: None,
        }
    }
}

impl ScalingPolicy {
    /// Whether a group may have so many copies.
    ///
    /// # Errors
    /// Why not, in Nomad's words.
    pub fn admits(&self, count: i64) -> Result<(), String> {
        if let Some(max) = self.max.filter(|max| count > *max) {
            return Err(format!(
                "group count was greater than scaling policy maximum: {count} > {max}"
            ));
        }
        if let Some(min) = self.min.filter(|min| count < *min) {
            return Err(format!(
                "group count was less than scaling policy minimum: {count} < {min}"
            ));
        }
        Ok(())
    }
}

/// Something that was asked of the number of a group's copies, or noted about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ScalingEvent {
    /// When.
    pub time: Timestamp,
    /// How many copies there shall be from then on; none for a mere note.
    pub count: Option<i64>,
    /// How many there were to be before.
    pub previous: i64,
    /// Somebody's words.
    pub message: Arc<str>,
    /// Whether it tells of a failure.
    pub error: bool,
    /// Somebody's data.
    pub meta: Value,
    /// The evaluation that followed.
    pub eval: Option<EvalId>,
    /// The state's index of it.
    pub index: u64,
}
