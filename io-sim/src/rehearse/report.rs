//! The report: sentences about a finding, and the settings that it is attributed to.

use drover_core::model::group::TaskGroup;

use super::Rehearsal;
use super::attribution::{self, Setting, rounded};
use super::findings::{Finding, Found, Kind, Times};
use super::measure::{Cause, Failed, Late};

/// What there is to say of what was found so often.
pub(super) fn finding(
    rehearsal: &Rehearsal,
    found: &Found,
    times: &Times,
    runs: usize,
) -> Option<Finding> {
    let job = &rehearsal.job;
    let in_runs = format!("in {} of {runs} runs", times.runs);
    let group_at = |at: usize| job.task_groups.get(at);
    let (kind, group, what, settings) = match found {
        Found::Lost(at, late, failed) => {
            let group = group_at(*at)?;
            let (why, settings) = lost(rehearsal, group, late.as_ref(), failed.as_ref());
            let what = format!("never whole again by itself {in_runs}: {why}");
            (Kind::Lost, group.name.clone(), what, settings)
        }
        Found::OutOfOrder(group, what) => {
            let what = format!("{in_runs} the order is broken: {what}");
            (Kind::OutOfOrder, group.clone(), what, Vec::new())
        }
        Found::Broken(law) => {
            let what = format!(
                "{in_runs} the agent broke a law of its own, which is a mistake in Drover and not \
                 in the job: {law}: {}",
                times.detail
            );
            (Kind::AgentAtFault, String::new(), what, Vec::new())
        }
        Found::Late(at, late) => {
            let group = group_at(*at)?;
            let (why, setting) = waited(rehearsal, group, late.as_ref());
            let what = format!(
                "whole again late {in_runs}, up to {} after the trouble is over: {why}",
                rounded(times.worst)
            );
            (
                Kind::Late,
                group.name.clone(),
                what,
                setting.into_iter().collect(),
            )
        }
        Found::Failed(failed) => {
            let group = group_at(failed.group)?;
            let what = format!(
                "{} fails {in_runs}, and its whole allocation is replaced: {}",
                failed.task,
                plain(&failed.reason)
            );
            let kind = match failed.by_policy {
                true => Kind::BudgetUsedUp,
                false => Kind::Failed,
            };
            let settings = attribution::of_failure(job, group, failed, true);
            (kind, group.name.clone(), what, settings)
        }
        Found::Unhealthy(at) => {
            let group = group_at(*at)?;
            let what = format!("a roll-out fails {in_runs}: copies run, but not healthily in time");
            let settings = vec![attribution::of_health(group)];
            (Kind::Unhealthy, group.name.clone(), what, settings)
        }
    };
    Some(Finding {
        kind,
        group,
        what,
        runs: times.runs,
        seed: times.seed,
        settings,
    })
}

fn lost(
    rehearsal: &Rehearsal,
    group: &TaskGroup,
    late: Option<&Late>,
    failed: Option<&Failed>,
) -> (String, Vec<Setting>) {
    if late.is_some_and(|late| late.cause == Cause::Failed)
        && let Some(failed) = failed
    {
        let what = match failed.by_policy {
            true => "used up its restarts",
            false => "failed",
        };
        let why = format!(
            "{} {what} ({}), its allocation failed, and nothing replaces it",
            failed.task,
            plain(&failed.reason)
        );
        return (
            why,
            attribution::of_failure(&rehearsal.job, group, failed, false),
        );
    }
    let (why, setting) = waited(rehearsal, group, late);
    (why, setting.into_iter().collect())
}

fn waited(
    rehearsal: &Rehearsal,
    group: &TaskGroup,
    late: Option<&Late>,
) -> (String, Option<Setting>) {
    let job = &rehearsal.job;
    let Some(late) = late else {
        return ("it was whole in between".to_owned(), None);
    };
    let task = late.task.as_deref();
    let who = task.unwrap_or("a task");
    match &late.cause {
        Cause::Failed => (
            "its allocation failed and waits for its replacement".to_owned(),
            attribution::of_replacement(job, group),
        ),
        Cause::Interval => (
            format!("{who} waits for the rest of its restart interval"),
            Some(attribution::of_pause(job, group, task, true)),
        ),
        Cause::Pause => (
            format!("{who} waits between two starts"),
            Some(attribution::of_pause(job, group, task, false)),
        ),
        Cause::PlacementFailed(why) => (format!("it cannot be placed: {why}"), None),
        Cause::UnderWay => (
            "something is still under way, see the story".to_owned(),
            None,
        ),
    }
}

/// A reason of an event as part of a sentence.
fn plain(reason: &str) -> String {
    let mut chars = reason.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "the cause is not known".to_owned(),
    }
}
