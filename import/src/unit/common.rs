//! What units of services and quadlets have in common: restarts, times, memory, and what they are.

use super::read::{Entry, Unit};
use crate::container;
use crate::error::Result;
use crate::hcl::Body;
use crate::job::Job;
use crate::measure::{self, Duration};

const SERVICE: &str = "Service";
/// The most attempts that are carried over.
const MAX_ATTEMPTS: u64 = 1_000;

/// Whether the service runs to its end.
pub(crate) fn is_oneshot(unit: &mut Unit) -> bool {
    unit.last(SERVICE, "Type")
        .is_some_and(|entry| entry.value == "oneshot")
}

/// What the unit says about itself.
pub(crate) fn about(unit: &mut Unit, job: &mut Job) {
    for key in ["Description", "Documentation"] {
        for entry in unit.all("Unit", key) {
            let apart = if job.head.is_empty() { "\n" } else { "" };
            job.head.push(format!("{apart}{key}: {}", entry.value));
        }
    }
}

/// A span of time; none if it is `infinity` or none at all, which is told.
fn span(entry: &Entry, notes: &mut Body) -> Option<Duration> {
    let span = measure::span(&entry.value);
    if span.is_none() {
        let what = format!("{}={}", entry.key, super::short_value(&entry.value));
        notes.lost(
            entry.line,
            &what,
            "a span of time such as 1min 30s is needed",
        );
    }
    span
}

/// The restart block of the group.
pub(crate) fn restart(unit: &mut Unit, group: &mut Body, is_batch: bool) -> Result<()> {
    let restart = unit.last(SERVICE, "Restart");
    let policy = restart.as_ref().map_or("no", |entry| entry.value.as_str());
    let line = restart.as_ref().map_or(0, |entry| entry.line);
    let delay = unit
        .last(SERVICE, "RestartSec")
        .and_then(|entry| span(&entry, group));
    let delay = delay.unwrap_or(Duration(100_000_000));
    let mut limit = |keys: [&str; 2]| {
        let found = unit
            .last("Unit", keys[0])
            .or_else(|| unit.last(SERVICE, keys[0]));
        found
            .or_else(|| unit.last("Unit", keys[1]))
            .or_else(|| unit.last(SERVICE, keys[1]))
    };
    let burst = limit(["StartLimitBurst", "StartLimitBurst"]);
    let interval = limit(["StartLimitIntervalSec", "StartLimitInterval"]);
    let burst = match &burst {
        Some(entry) => entry
            .value
            .parse::<u64>()
            .map_err(|_| entry.mistake(format!("{} must be a number", entry.key)))?,
        None => 5,
    };
    let interval = interval
        .and_then(|entry| span(&entry, group))
        .unwrap_or(Duration::secs(10));
    match policy {
        "no" => {
            container::never_again(group, is_batch);
            return Ok(());
        }
        "always" | "on-failure" => {}
        "on-success" | "on-abnormal" | "on-abort" | "on-watchdog" => {
            let words = "here it is started again after each failure, and in a job of type service after each end";
            group.remark(line, &format!("Restart={policy}"), words);
        }
        _ => {
            let message = format!("Restart={policy} is not known");
            return Err(restart.map_or_else(
                || crate::error::Mistake::new(crate::error::Place::default(), message.as_str()),
                |entry| entry.mistake(message.as_str()),
            ));
        }
    }
    if policy == "on-failure" && !is_batch {
        let words =
            "in a job of type service it is started again also when it ends with exit code 0";
        group.remark(line, "Restart=on-failure", words);
    }
    if policy == "always" && is_batch {
        let words = "a job of type batch is over when it ends with exit code 0";
        group.remark(line, "Restart=always", words);
    }
    let never_reached = delay.0.saturating_mul(u128::from(burst)) >= interval.0;
    match never_reached || burst == 0 || interval == Duration(0) {
        true => container::always_again(group, delay),
        // The first start counts for systemd, too.
        false => {
            let attempts = burst.saturating_sub(1).clamp(1, MAX_ATTEMPTS);
            container::again(group, attempts, delay, interval);
        }
    }
    Ok(())
}

/// How the task is asked to end, and how long it has.
pub(crate) fn ends(unit: &mut Unit, task: &mut Body, usual: Duration) {
    if let Some(entry) = unit.last(SERVICE, "KillSignal") {
        task.set("kill_signal", entry.value);
    }
    let both = unit.last(SERVICE, "TimeoutSec");
    let stop = unit.last(SERVICE, "TimeoutStopSec").or(both);
    let line = stop.as_ref().map_or(0, |entry| entry.line);
    let grace = stop.and_then(|entry| span(&entry, task)).unwrap_or(usual);
    container::end_within(task, grace, line);
    match unit.last(SERVICE, "KillMode") {
        Some(entry) if !matches!(entry.value.as_str(), "control-group" | "mixed") => {
            let what = format!("KillMode={}", entry.value);
            task.lost(entry.line, &what, "whatever the task leaves is killed");
        }
        Some(_) | None => {}
    }
}

/// How long it may run at all.
pub(crate) fn longest(unit: &mut Unit, group: &mut Body, is_batch: bool) {
    let Some(entry) = unit.last(SERVICE, "RuntimeMaxSec") else {
        return;
    };
    if entry.value == "infinity" {
        return;
    }
    let Some(span) = span(&entry, group).filter(|span| *span > Duration(0)) else {
        return;
    };
    match is_batch {
        true => group.set("max_run_duration", span.text()),
        false => group.lost(
            entry.line,
            "RuntimeMaxSec",
            "max_run_duration is for jobs of type batch",
        ),
    }
}

/// `resources` of the task.
pub(crate) fn resources(unit: &mut Unit, resources: &mut Body) {
    let mut bytes = |key: &str, resources: &mut Body| {
        let entry = unit.last(SERVICE, key)?;
        let bytes = measure::bytes(&entry.value).filter(|bytes| *bytes > 0);
        if bytes.is_none() && entry.value != "infinity" {
            let what = format!("{key}={}", super::short_value(&entry.value));
            resources.lost(entry.line, &what, "say how many megabytes");
        }
        bytes
    };
    let max = bytes("MemoryMax", resources);
    let limit = max.or_else(|| bytes("MemoryLimit", resources));
    let high = bytes("MemoryHigh", resources);
    if let Some(entry) = unit.last(SERVICE, "CPUQuota") {
        let percent = entry
            .value
            .strip_suffix('%')
            .and_then(|it| measure::decimal(it.trim(), 10));
        match percent
            .and_then(|it| u64::try_from(it).ok())
            .filter(|it| *it > 0)
        {
            Some(thousandths) => container::cpu(resources, thousandths, entry.line, "CPUQuota"),
            None => {
                let what = format!("CPUQuota={}", super::short_value(&entry.value));
                resources.lost(entry.line, &what, "say how many MHz: cpu");
            }
        }
    }
    container::memory(
        resources,
        high.filter(|high| Some(*high) < limit || limit.is_none()),
        limit,
    );
}
