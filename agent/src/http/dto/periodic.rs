//! Launches of periodic jobs.

use drover_core::agent::View;
use drover_core::ids::JobKey;
use drover_core::model::job::Job;
use drover_core::model::periodic::launch_id;
use drover_core::store::periodic::{Outcome, moment_of};
use serde::{Deserialize, Serialize};

use crate::times;

/// The answer to a launch by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct Forced {
    #[serde(rename = "EvalID")]
    pub eval_id: String,
    pub eval_create_index: u64,
    pub index: u64,
}

/// When a periodic job is launched, and what became of its last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PeriodicLaunches {
    /// When it is launched next, if it ever is.
    pub next_launch: Option<String>,
    /// Why its time zone is not known, if it is not.
    pub awaits_time_zone: Option<String>,
    /// The latest time that came.
    pub last_time: Option<String>,
    /// What became of it, in words.
    pub last_outcome: Option<String>,
    /// The job that was made for it, if one was.
    #[serde(rename = "LastLaunchID")]
    pub last_launch_id: Option<String>,
    /// How far that job is, or how it ended, in words; none where it is not there any more.
    pub last_result: Option<String>,
}

impl PeriodicLaunches {
    pub(in crate::http) fn of(view: View<'_>, job: &Job) -> PeriodicLaunches {
        let launches = view.periodic(&job.key()).unwrap_or_default();
        let last = launches.last;
        let launched = last.filter(|last| last.outcome == Outcome::Launched);
        let launch = launched.map(|last| launch_id(&job.id, last.time));
        let result = launch.as_deref().and_then(|id| {
            view.launch_result(&JobKey {
                id: id.into(),
                ..job.key()
            })
        });
        PeriodicLaunches {
            next_launch: launches.next.map(times::to_seconds),
            awaits_time_zone: launches.awaits_zone.map(str::to_owned),
            last_time: last.map(|last| times::to_seconds(moment_of(last.time))),
            last_outcome: last.map(|last| last.outcome.as_str().to_owned()),
            last_result: result.map(|result| result.as_str().to_owned()),
            last_launch_id: launch,
        }
    }
}
