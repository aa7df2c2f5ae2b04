//! Which checks of services do not pass, what waits for that, and how near they are to restart tasks.

use super::{Waiting, wall};
use crate::agent::View;
use crate::alloc::runner::AllocRunner;
use crate::checks::judge::Judgement;
use crate::checks::{About, CheckRunner};
use crate::model::check::{CheckRestart, CheckStatus};
use crate::model::eval::DeploymentStatus;
use crate::model::policy::UpdateStrategy;
use crate::task::runner::{Phase as TaskPhase, TaskRunner};
use crate::text::quote;
use crate::time::{Instant, Now, SECOND, Span};

/// So many runs of a check that goes on failing are thought through; a restart that is farther away has no time.
const FORESEEN: u32 = 100;

impl View<'_> {
    /// What the health of an allocation waits for; nothing if nobody watches it.
    pub(super) fn health_wait(self, now: Now, alloc: &AllocRunner) -> Option<Waiting> {
        let until = Some(wall(now, alloc.health_deadline()?));
        let failing: Vec<String> = (alloc.checks().iter())
            .filter(|check| holds_up_health(alloc, check))
            .map(|check| words(now, check))
            .collect();
        let deployment = alloc.record().deployment;
        let deployment = deployment.and_then(|id| self.deployment(id));
        let runs = deployment.is_some_and(|it| it.status == DeploymentStatus::Running);
        let follows = if runs {
            ", and the deployment fails"
        } else {
            ""
        };
        if failing.is_empty() {
            return Some(Waiting {
                what: "its tasks to be healthy, as its deployment demands".to_owned(),
                until,
                then: format!("it is healthy if its tasks run until then, else unhealthy{follows}"),
            });
        }
        let long = update_of(alloc).map_or(Span::ZERO, |update| update.min_healthy_time);
        Some(Waiting {
            what: format!(
                "its tasks to be healthy and these checks to pass, as its deployment demands: {}",
                failing.join("; ")
            ),
            until,
            then: format!(
                "it is unhealthy{follows}, unless before that they all pass while its tasks run, \
                 for {long}"
            ),
        })
    }

    /// The checks that fail, or are about to, and hold up no health: nothing waits for them but those who use the
    /// service.
    pub(super) fn check_waits(self, now: Now, alloc: &AllocRunner) -> Vec<Waiting> {
        let watched = alloc.health_deadline().is_some();
        let fails = |check: &&CheckRunner| {
            let told = watched && holds_up_health(alloc, check);
            check.is_on() && does_not_pass(check.status()) && !told
        };
        let waiting = |check: &CheckRunner| Waiting {
            what: format!("{} to pass", words(now, check)),
            until: None,
            then: once_it_passes(check).to_owned(),
        };
        alloc.checks().iter().filter(fails).map(waiting).collect()
    }
}

/// The check that restarts a running task first if it goes on failing, and when.
pub(super) fn restart_wait(now: Now, alloc: &AllocRunner, task: &TaskRunner) -> Option<Waiting> {
    let runs = matches!(task.phase(), TaskPhase::Running) && !task.is_ending();
    if !runs || alloc.is_ending() {
        return None;
    }
    let is_meant = |check: &&CheckRunner| match &check.spec().about {
        About::Task(name) => task.spec().key.task == *name,
        About::Group => true,
    };
    let counting = (alloc.checks().iter().filter(is_meant))
        .filter_map(|check| Some((countdown(now, check)?, check)));
    let (next, check) = counting.min_by_key(|(next, _)| (next.at.is_none(), next.at))?;
    let counted = match next.counted {
        Some(counted) => format!("{counted} of {} failures in a row are counted", next.limit),
        None => format!("it may fail {} times in a row", next.limit),
    };
    Some(Waiting {
        what: format!("{} to pass: {counted}", words(now, check)),
        until: next.at.map(|at| wall(now, at)),
        then: "it is ended because of the check, and its restart policy decides whether it starts again"
            .to_owned(),
    })
}

/// How near a check is to restart its tasks.
struct Countdown {
    /// How many failures in a row are counted; none if that is not known.
    counted: Option<u32>,
    /// How many are one too many.
    limit: u32,
    /// When that is, if it goes on failing.
    at: Option<Instant>,
}

/// A copy of the check is told that it goes on failing: so nobody but itself knows what it counts.
fn countdown(now: Now, check: &CheckRunner) -> Option<Countdown> {
    let restart = check.spec().check.restart?;
    let counts = match check.status() {
        CheckStatus::Failure => true,
        CheckStatus::Warning => !restart.ignore_warnings,
        CheckStatus::Pending | CheckStatus::Success => false,
    };
    if !counts || !check.is_on() {
        return None;
    }
    let limit = restart.limit;
    let mut copy = check.clone();
    for run in 1..=FORESEEN {
        // Without a time of its next run it is being asked now.
        let at = copy.deadline().unwrap_or(now.at).max(now.at);
        let then = Now { at, ..now };
        if copy.judged(then, Judgement::failed("")) {
            return Some(Countdown {
                counted: Some(limit.saturating_sub(run)),
                limit,
                at: Some(at),
            });
        }
    }
    Some(Countdown {
        counted: None,
        limit,
        at: None,
    })
}

/// Whether an allocation that is watched cannot be healthy because of a check.
fn holds_up_health(alloc: &AllocRunner, check: &CheckRunner) -> bool {
    let considered = update_of(alloc).is_some_and(|update| update.health_check != "task_states");
    considered && !check.lets_be_healthy()
}

fn update_of(alloc: &AllocRunner) -> Option<&UpdateStrategy> {
    let group = alloc.job().group(alloc.record().group.as_str())?;
    group.update.as_ref()
}

/// What is different once a check passes.
fn once_it_passes(check: &CheckRunner) -> &'static str {
    let restart = check.spec().check.restart;
    let counts =
        |restart: &CheckRestart| check.status() == CheckStatus::Failure || !restart.ignore_warnings;
    match restart.filter(counts) {
        Some(_) => "its failures are counted anew; what they lead to stands at its tasks",
        None => "its service is relied on again; no task is restarted for it",
    }
}

fn does_not_pass(status: CheckStatus) -> bool {
    match status {
        CheckStatus::Failure | CheckStatus::Warning => true,
        CheckStatus::Pending | CheckStatus::Success => false,
    }
}

/// Which check it is, how it is, and what its latest run said, and when.
fn words(now: Now, check: &CheckRunner) -> String {
    let how = match check.status() {
        CheckStatus::Pending => "pending",
        CheckStatus::Success => "passing",
        CheckStatus::Warning => "warning",
        CheckStatus::Failure => "failing",
    };
    let (service, name) = (quote(check.service()), quote(check.name()));
    let Some(last) = check.last() else {
        return format!("check {name} of service {service} ({how}, without a result yet)");
    };
    let ago = Span::secs((now.wall - last.at).0.max(0) / SECOND);
    let why = check.why().filter(|why| !why.is_empty());
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("check {name} of service {service} ({how}, last asked {ago} ago{why})")
}
