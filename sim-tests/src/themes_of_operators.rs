//! Themes about what operators do: they drain the node, roll jobs out, and watch jobs whose tasks begin badly.

use drover_core::model::drain::{DrainDeadline, DrainSpec, Eligibility};
use drover_core::model::job::{Job, JobType};
use drover_core::model::policy::UpdateStrategy;
use drover_core::model::value::Value;
use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{
    Act, Change, Deregister, Evaluate, EvaluateNode, FailDeployment, ForceReschedule,
    PauseDeployment, PromoteDeployment, Register, Restart, RestartTask, RevertJob, SetAllocHealth,
    SetEligibility, StopAlloc, UpdateDrain, What,
};

use crate::build::GroupExt;
use crate::changes::some_change;
use crate::theme::Theme;

/// Several copies, which leave a drained node as their group says.
pub(crate) fn is_drained(dice: &mut Dice, job: &mut Job) {
    let id = job.id.clone();
    let group = &mut job.task_groups[0];
    group.count = dice.one_of(&[3, 2, 4], "copies to drain", &id);
    let parallel = dice
        .one_of(&[1, 2, 3], "drained at a time", &id)
        .unwrap_or(1);
    let healthy = dice
        .one_of(&[10, 0, 45], "healthy after", &id)
        .unwrap_or(10);
    let block = [
        ("MaxParallel", Value::Int(parallel)),
        ("MinHealthyTime", Value::Int(Span::secs(healthy).0)),
        ("HealthyDeadline", Value::Int(Span::secs(300).0)),
    ];
    let block = block.map(|(name, value)| (name.to_owned(), value));
    group.migrate = (dice.below(4, "says how to drain", &id) > 0).then(|| Value::Map(block.into()));
}

/// What people do about drains.
pub(crate) fn about_drains(dice: &mut Dice, job: String) -> What {
    let deadlines = [
        DrainDeadline::After(Span::secs(60)),
        DrainDeadline::After(Span::secs(600)),
        DrainDeadline::Never,
        DrainDeadline::Force,
    ];
    let spec = DrainSpec {
        deadline: deadlines[dice.below(4, "deadline of the drain", "")],
        ignore_system_jobs: dice.below(3, "system jobs stay", "") == 1,
    };
    let drain = |spec, mark_eligible| {
        UpdateDrain {
            spec,
            mark_eligible,
        }
        .into()
    };
    match dice.below(10, "about drains", &job) {
        0..=2 => drain(Some(spec), true),
        3 | 4 => drain(None, true),
        5 => drain(None, false),
        6 => SetEligibility {
            eligibility: Eligibility::Eligible,
        }
        .into(),
        7 => EvaluateNode.into(),
        8 => StopAlloc { job, nth: None }.into(),
        _ => Evaluate { job }.into(),
    }
}

/// Several copies of a service, which are rolled out in parts or with canaries.
pub(crate) fn is_rolled_out(dice: &mut Dice, job: &mut Job) {
    let id = job.id.clone();
    job.job_type = JobType::Service;
    for group in &mut job.task_groups {
        group.max_run_duration = None;
        group.count = dice.one_of(&[3, 2, 4, 1], "copies to roll out", &id);
        *group = group.clone().rolls(1);
        group.update = Some(UpdateStrategy {
            max_parallel: dice.one_of(&[1, 2, 3], "at a time", &id).unwrap_or(1),
            canary: dice
                .one_of(&[0, 1, 2], "canaries of a theme", &id)
                .unwrap_or(0),
            auto_promote: false,
            auto_revert: dice.below(2, "reverts itself", &id) == 1,
            min_healthy_time: Span::secs(dice.one_of(&[10, 1], "healthy", &id).unwrap_or(10)),
            progress_deadline: Span::secs(dice.one_of(&[600, 305], "progress", &id).unwrap_or(600)),
            ..group.update.clone().unwrap_or_default()
        });
        if let Some(update) = &mut group.update {
            update.auto_promote = update.canary > 0 && dice.below(3, "promotes itself", &id) == 1;
        }
    }
}

/// What people do about roll-outs.
pub(crate) fn about_rollouts(dice: &mut Dice, job: String) -> What {
    let changed = |job, change| {
        Register {
            job,
            change: Some(change),
        }
        .into()
    };
    match dice.below(14, "about roll-outs", &job) {
        0..=3 => changed(job, Change::Env(dice.pick("env", ""))),
        4 => changed(job, Change::Count([1, 2, 4][dice.below(3, "count", "")])),
        5 => changed(job, some_change(dice)),
        6 | 7 => PromoteDeployment { job }.into(),
        8 => FailDeployment { job }.into(),
        9 => PauseDeployment { job, pause: true }.into(),
        10 => PauseDeployment { job, pause: false }.into(),
        11 => SetAllocHealth {
            job,
            healthy: dice.below(2, "healthy", "") == 1,
        }
        .into(),
        12 => RevertJob {
            job,
            back: 1,
            checked: false,
        }
        .into(),
        _ => StopAlloc { job, nth: None }.into(),
    }
}

/// Versions of a job that have time to prove themselves, one after the other, and a last one that fails.
pub(crate) fn versions_in_turn(dice: &mut Dice, job: &mut Job) -> Vec<Act> {
    Theme::Rollouts.suit(dice, job);
    if let Some(update) = &mut job.task_groups[0].update {
        update.auto_revert |= dice.below(2, "reverts the last", &job.id) == 1;
    }
    let job = job.id.as_str();
    let changed = |dice: &mut Dice| {
        let changed = Register {
            job: job.to_owned(),
            change: Some(Change::Env(dice.pick("env", ""))),
        };
        after(700, changed.into())
    };
    let mut acts = Vec::new();
    for _ in 0..2 {
        acts.push(changed(dice));
        // Longer than a roll-out may take to go on, or never.
        let promoted = [Some(60), Some(60), Some(650), None][dice.below(4, "promoted after", job)];
        let promote = |seconds| {
            let job = job.to_owned();
            after(seconds, PromoteDeployment { job }.into())
        };
        acts.extend(promoted.map(promote));
    }
    acts.push(changed(dice));
    let job = job.to_owned();
    acts.push(after(1, FailDeployment { job }.into()));
    acts
}

/// A drain that stops all at once, and when everything runs again one that takes its time.
pub(crate) fn drains_in_turn(dice: &mut Dice, job: &mut Job) -> Vec<Act> {
    Theme::Drains.suit(dice, job);
    let drain = |seconds: i64, deadline| {
        let spec = DrainSpec {
            deadline,
            ignore_system_jobs: false,
        };
        let what = UpdateDrain {
            spec: Some(spec),
            mark_eligible: true,
        };
        after(seconds, what.into())
    };
    let over = |seconds: i64| {
        let what = UpdateDrain {
            spec: None,
            mark_eligible: true,
        };
        after(seconds, what.into())
    };
    let forced = [DrainDeadline::Force, DrainDeadline::After(Span::secs(5))];
    let forced = forced[dice.below(2, "forced at once", "")];
    vec![
        drain(30, forced),
        over(60),
        drain(120, DrainDeadline::Never),
        over(300),
    ]
}

fn after(seconds: i64, what: What) -> Act {
    Act {
        pause: Span::secs(seconds),
        steps: 0,
        what,
    }
}

/// What people do about tasks that do not begin as they should.
pub(crate) fn about_starts(dice: &mut Dice, job: String, nth: usize) -> What {
    match dice.below(8, "about starts", &job) {
        0 => Restart { job, all: false }.into(),
        1 => Restart { job, all: true }.into(),
        2 => RestartTask { job, nth }.into(),
        3 => StopAlloc { job, nth: None }.into(),
        4 => ForceReschedule { job }.into(),
        5 => Deregister { job, purge: false }.into(),
        6 => Register { job, change: None }.into(),
        _ => Register {
            job,
            change: Some(some_change(dice)),
        }
        .into(),
    }
}
