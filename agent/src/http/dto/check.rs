//! Checks of services.

use drover_core::agent::AllocView;
use drover_core::checks::CheckRunner;
use drover_core::model::check::OnUpdate;
use serde::{Deserialize, Serialize};

/// A check, and its latest result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names of Nomad")]
pub struct CheckDto {
    #[serde(rename = "ID")]
    pub id: String,
    pub check: String,
    pub group: String,
    /// Not there for a service of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub task: String,
    pub service: String,
    pub mode: String,
    pub status: String,
    /// Not there for what is not HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    pub output: String,
    /// Seconds since 1970; 0 before the first result.
    pub timestamp: i64,
}

impl CheckDto {
    pub(crate) fn of(alloc: AllocView<'_>, check: &CheckRunner) -> CheckDto {
        let spec = check.spec();
        let last = check.last();
        let mode = match spec.check.on_update {
            OnUpdate::Ignore => "readiness",
            OnUpdate::RequireHealthy | OnUpdate::IgnoreWarnings => "healthiness",
        };
        let owner = spec.owner.as_ref();
        CheckDto {
            id: check.id(alloc.record().id),
            check: check.name().to_owned(),
            group: alloc.record().name.to_string(),
            task: owner.map(ToString::to_string).unwrap_or_default(),
            service: check.service().to_owned(),
            mode: mode.to_owned(),
            status: check.status().as_str().to_owned(),
            status_code: last.and_then(|last| last.code),
            output: last.map(|last| last.output.to_string()).unwrap_or_default(),
            timestamp: last.map_or(0, |last| last.at.0 / 1_000_000_000),
        }
    }
}
