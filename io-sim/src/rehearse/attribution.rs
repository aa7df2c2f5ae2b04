//! Attribution: which setting of a job file is the cause, where it stands or would stand, and what
//! might help.

use drover_core::model::group::TaskGroup;
use drover_core::model::job::Job;
use drover_core::model::policy::{RestartMode, RestartRules};
use drover_core::model::task::Task;
use drover_core::text::quote;
use drover_core::time::{SECOND, Span};
use serde::Serialize;

use super::measure::Failed;

/// A setting that explains a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Setting {
    /// Where it may be written, as validation names places; the first that is written counts.
    pub paths: Vec<String>,
    /// Its value, with defaults filled in, as a job file would say it.
    pub text: String,
    /// What might help.
    pub suggestion: String,
}

fn group_path(group: &TaskGroup) -> String {
    format!("group[{}]", quote(&group.name))
}

/// A length of time as people write it: without parts that are zero.
pub(super) fn written(span: Span) -> String {
    let text = span.to_string();
    let text = match text.strip_suffix("m0s") {
        Some(rest) => format!("{rest}m"),
        None => text,
    };
    match text.strip_suffix("h0m") {
        Some(rest) => format!("{rest}h"),
        None => text,
    }
}

/// A measured length of time: to the second, or finer where it is short.
pub fn rounded(span: Span) -> String {
    let short = span.0 < 10 * SECOND;
    let unit = if short { SECOND / 1000 } else { SECOND };
    Span(span.0 / unit * unit).to_string()
}

/// The restart rules of a task.
pub(super) fn rules(job: &Job, group: &TaskGroup, task: Option<&Task>) -> RestartRules {
    let rules = RestartRules::default_for(job.job_type);
    let rules = rules.overridden_by(group.restart_policy.as_ref());
    rules.overridden_by(task.and_then(|task| task.restart_policy.as_ref()))
}

/// The restart policy of a task.
pub(super) fn restart(
    job: &Job,
    group: &TaskGroup,
    task: Option<&Task>,
    suggestion: impl FnOnce(&RestartRules) -> String,
) -> Setting {
    let rules = rules(job, group, task);
    let mode = match rules.mode {
        RestartMode::Fail => "fail",
        RestartMode::Delay => "delay",
    };
    let of_task = task.map(|t| format!("{}.task[{}].restart", group_path(group), quote(&t.name)));
    let mut paths: Vec<String> = of_task.into_iter().collect();
    paths.push(format!("{}.restart", group_path(group)));
    Setting {
        paths,
        text: format!(
            "restart {{ attempts = {}, interval = {:?}, delay = {:?}, mode = {mode:?} }}",
            rules.attempts,
            written(rules.interval),
            written(rules.delay),
        ),
        suggestion: suggestion(&rules),
    }
}

/// The reschedule policy of a group; none where Nomad knows none.
pub(super) fn reschedule(job: &Job, group: &TaskGroup, suggestion: &str) -> Option<Setting> {
    if job.job_type.one_per_node() {
        return None;
    }
    let policy = group.reschedule_policy.clone().unwrap_or_default();
    let delay = written(policy.delay.unwrap_or(Span::ZERO));
    let function = policy.delay_function.unwrap_or_default();
    let text = if policy.unlimited.unwrap_or(false) {
        let longest = written(policy.max_delay.unwrap_or(Span::ZERO));
        format!(
            "reschedule {{ delay = {delay:?}, delay_function = {function:?}, \
             max_delay = {longest:?}, unlimited = true }}"
        )
    } else {
        let (attempts, interval) = (policy.attempts, policy.interval.unwrap_or(Span::ZERO));
        let attempts = attempts.unwrap_or(0);
        format!(
            "reschedule {{ attempts = {attempts}, interval = {:?}, delay = {delay:?}, \
             unlimited = false }}",
            written(interval)
        )
    };
    Some(Setting {
        paths: vec![
            format!("{}.reschedule", group_path(group)),
            "job.reschedule".to_owned(),
        ],
        text,
        suggestion: suggestion.to_owned(),
    })
}

/// What made a task fail for good.
pub(super) fn of_failure(
    job: &Job,
    group: &TaskGroup,
    failed: &Failed,
    replaced: bool,
) -> Vec<Setting> {
    let mut settings = Vec::new();
    if failed.by_policy {
        let task = group.tasks.iter().find(|t| t.name == failed.task);
        let reason = &failed.reason;
        settings.push(restart(job, group, task, |rules| help(rules, reason)));
    }
    if !replaced {
        let help = "unlimited = true replaces a failed allocation for as long as it takes";
        settings.extend(reschedule(job, group, help));
    }
    settings
}

fn help(rules: &RestartRules, reason: &str) -> String {
    if rules.attempts == 0 {
        return "attempts = 0 takes the first end for the last; 1 or more would start it again"
            .to_owned();
    }
    if reason.starts_with("Error was unrecoverable") {
        return "no restart policy helps: the driver says that trying again is in vain".to_owned();
    }
    let pauses = rules.delay.0.saturating_mul(i64::from(rules.attempts));
    format!(
        "mode = \"delay\" waits for the next interval instead of giving up; if each start fails, \
         all attempts are over after little more than {}",
        written(Span(pauses)),
    )
}

/// What made a task wait for long between two starts.
pub(super) fn of_pause(job: &Job, group: &TaskGroup, task: Option<&str>, rest: bool) -> Setting {
    let task = task.and_then(|name| group.tasks.iter().find(|t| t.name == name));
    let help = if rest {
        "a shorter interval opens a new budget sooner"
    } else {
        "a shorter delay starts it again sooner"
    };
    restart(job, group, task, |_| help.to_owned())
}

/// What made copies unhealthy that ran.
pub(super) fn of_health(group: &TaskGroup) -> Setting {
    let update = group.update.clone().unwrap_or_default();
    Setting {
        paths: vec![
            format!("{}.update", group_path(group)),
            "job.update".to_owned(),
        ],
        text: format!(
            "update {{ min_healthy_time = {:?}, healthy_deadline = {:?} }}",
            written(update.min_healthy_time),
            written(update.healthy_deadline)
        ),
        suggestion: "a healthy_deadline longer than the slowest start lets the roll-out go on"
            .to_owned(),
    }
}

/// What made a failed allocation wait for its replacement.
pub(super) fn of_replacement(job: &Job, group: &TaskGroup) -> Option<Setting> {
    let help = "a smaller max_delay, or delay_function = \"constant\", replaces it sooner";
    reschedule(job, group, help)
}
