//! Whether a node takes new allocations, and the drain that empties it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// Whether a node takes new allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Eligibility {
    /// It does.
    #[default]
    Eligible,
    /// It does not; what runs goes on.
    Ineligible,
}

impl Eligibility {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Eligibility::Eligible => "eligible",
            Eligibility::Ineligible => "ineligible",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Eligibility> {
        let all = [Eligibility::Eligible, Eligibility::Ineligible];
        all.into_iter().find(|one| one.as_str() == name)
    }
}

/// How long a drain lets allocations end in their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainDeadline {
    /// Not at all: all are stopped at once.
    Force,
    /// As long as it takes.
    Never,
    /// So long since the drain was asked for.
    After(Span),
}

/// What somebody asks of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DrainSpec {
    /// When everything that is left is stopped.
    pub deadline: DrainDeadline,
    /// Whether system jobs go on.
    pub ignore_system_jobs: bool,
}

/// A drain that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DrainStrategy {
    /// What was asked.
    pub spec: DrainSpec,
    /// Since when the node drains.
    pub started_at: Timestamp,
    /// When everything that is left is stopped, by the wall clock. None if never, or at once.
    pub force_at: Option<Timestamp>,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrainStatus {
    /// Under way.
    Draining,
    /// Nothing is left that was to be stopped.
    Complete,
    /// Somebody called it off.
    Canceled,
}

impl DrainStatus {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DrainStatus::Draining => "draining",
            DrainStatus::Complete => "complete",
            DrainStatus::Canceled => "canceled",
        }
    }
}

/// The last drain of a node, for people to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LastDrain {
    /// When it began.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How far it is.
    pub status: DrainStatus,
    /// What people noted of it; `message` is what commands show.
    pub meta: BTreeMap<String, String>,
}
