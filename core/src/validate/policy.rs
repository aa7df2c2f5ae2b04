//! The policies: restart, reschedule, update.

use super::Report;
use crate::model::job::JobType;
use crate::model::policy::{
    ReschedulePolicy, RestartMode, RestartPolicy, RestartRules, UpdateStrategy,
};
use crate::time::Span;

/// The shortest interval of restarts and the shortest pause before a replacement.
const LEAST: Span = Span::secs(5);

pub(super) fn not_negative(report: &mut Report, span: Option<Span>, path: &str) {
    if span.is_some_and(|span| span.0 < 0) {
        report.problem(path, "must not be negative");
    }
}

/// Checks a policy by what it makes of the rules that hold without it.
pub(super) fn check_restart(
    report: &mut Report,
    base: RestartRules,
    policy: &RestartPolicy,
    path: &str,
) {
    if policy.attempts.is_some_and(|n| n < 0) {
        report.problem(format!("{path}.attempts"), "must not be negative");
    }
    not_negative(report, policy.delay, &format!("{path}.delay"));
    let rules = base.overridden_by(Some(policy));
    if rules.interval < LEAST {
        report.problem(
            format!("{path}.interval"),
            format!("must be at least {LEAST}, is {}", rules.interval),
        );
    }
    match rules.mode {
        RestartMode::Delay if rules.attempts == 0 => {
            let message = "must not be 0 where mode is delay";
            report.problem(format!("{path}.attempts"), message);
        }
        RestartMode::Delay | RestartMode::Fail => {}
    }
    let needed = rules.delay.0.saturating_mul(i64::from(rules.attempts));
    if needed > rules.interval.0 {
        let message = format!(
            "{} attempts with a delay of {} do not fit into an interval of {}",
            rules.attempts, rules.delay, rules.interval
        );
        report.problem(path, message);
    }
}

pub(super) fn check_reschedule(
    report: &mut Report,
    job_type: JobType,
    policy: &ReschedulePolicy,
    path: &str,
) {
    if job_type.one_per_node() {
        let message = format!("must not be given for a job of type {}", job_type.as_str());
        return report.problem(path, message);
    }
    if policy.attempts.is_some_and(|n| n < 0) {
        report.problem(format!("{path}.attempts"), "must not be negative");
    }
    let unlimited = policy.unlimited.unwrap_or(job_type == JobType::Service);
    if policy.unlimited == Some(true) && policy.attempts.is_some_and(|n| n > 0) {
        let message = "must not be given where unlimited is true";
        report.problem(format!("{path}.attempts"), message);
    }
    not_negative(report, policy.interval, &format!("{path}.interval"));
    // Without attempts there is nothing to pause before.
    if !unlimited && policy.attempts == Some(0) {
        return;
    }
    if let Some(delay) = policy.delay.filter(|delay| *delay < LEAST) {
        let message = format!("must be at least {LEAST}, is {delay}");
        report.problem(format!("{path}.delay"), message);
    }
    let growing = match policy.delay_function.as_deref() {
        None | Some("" | "constant") => false,
        Some("exponential" | "fibonacci") => true,
        Some(_) => {
            let message = "must be constant, exponential or fibonacci";
            report.problem(format!("{path}.delay_function"), message);
            false
        }
    };
    if let (true, Some(delay), Some(most)) = (growing, policy.delay, policy.max_delay)
        && most < delay
    {
        let message = format!("must be at least the delay, which is {delay}");
        report.problem(format!("{path}.max_delay"), message);
    }
}

pub(super) fn check_update(report: &mut Report, update: &UpdateStrategy, path: &str) {
    for (name, number) in [
        ("max_parallel", update.max_parallel),
        ("canary", update.canary),
    ] {
        if number < 0 {
            report.problem(format!("{path}.{name}"), "must not be negative");
        }
    }
    if update.auto_promote && update.canary <= 0 {
        report.problem(
            format!("{path}.auto_promote"),
            "needs canaries, and there are none",
        );
    }
    if !matches!(
        update.health_check.as_str(),
        "" | "checks" | "task_states" | "manual"
    ) {
        report.problem(
            format!("{path}.health_check"),
            "must be checks, task_states or manual",
        );
    }
    for (name, span) in [
        ("stagger", update.stagger),
        ("min_healthy_time", update.min_healthy_time),
        ("progress_deadline", update.progress_deadline),
    ] {
        not_negative(report, Some(span), &format!("{path}.{name}"));
    }
    if update.healthy_deadline.is_zero() {
        report.problem(
            format!("{path}.healthy_deadline"),
            "must be more than nothing",
        );
    } else if update.min_healthy_time >= update.healthy_deadline {
        let message = format!(
            "must be less than healthy_deadline, which is {}",
            update.healthy_deadline
        );
        report.problem(format!("{path}.min_healthy_time"), message);
    }
    if update.progress_deadline.0 > 0 && update.progress_deadline <= update.healthy_deadline {
        let message = format!(
            "must be 0, or more than healthy_deadline, which is {}",
            update.healthy_deadline
        );
        report.problem(format!("{path}.progress_deadline"), message);
    }
}
