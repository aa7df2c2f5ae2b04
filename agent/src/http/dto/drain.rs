//! A node's drain, as it is shown.

use std::collections::BTreeMap;

use drover_core::model::drain::{DrainDeadline, DrainStrategy, LastDrain};
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::times;

/// What stands where there is no time, as in Go.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// The drain that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DrainStrategyDto {
    /// In nanoseconds; 0 for none, -1 for no time at all.
    pub deadline: i64,
    /// Whether system jobs go on.
    pub ignore_system_jobs: bool,
    /// When what is left is stopped.
    pub force_deadline: String,
    /// Since when it is under way.
    pub started_at: String,
}

/// The last drain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LastDrainDto {
    /// When it began.
    pub started_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// `draining`, `complete` or `canceled`.
    pub status: String,
    /// Whose token asked for it; nobody's here.
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    /// What people noted of it.
    pub meta: Option<BTreeMap<String, String>>,
}

impl DrainStrategyDto {
    /// As it is shown.
    pub fn of(drain: &DrainStrategy) -> DrainStrategyDto {
        DrainStrategyDto {
            deadline: match drain.spec.deadline {
                DrainDeadline::Force => -1,
                DrainDeadline::Never => 0,
                DrainDeadline::After(span) => span.0,
            },
            ignore_system_jobs: drain.spec.ignore_system_jobs,
            force_deadline: drain.force_at.map_or(NO_TIME.to_owned(), times::to_nanos),
            started_at: times::to_nanos(drain.started_at),
        }
    }

    /// When what is left is stopped, if there is such a time.
    pub fn force_at(&self) -> Option<Timestamp> {
        times::parse(&self.force_deadline).filter(|_| self.deadline > 0)
    }
}

impl LastDrainDto {
    /// As it is shown. Without access control nobody has a name.
    pub fn of(last: &LastDrain) -> LastDrainDto {
        LastDrainDto {
            started_at: times::to_seconds(last.started_at),
            updated_at: times::to_seconds(last.updated_at),
            status: last.status.as_str().to_owned(),
            accessor_id: String::new(),
            meta: (!last.meta.is_empty()).then(|| last.meta.clone()),
        }
    }
}
