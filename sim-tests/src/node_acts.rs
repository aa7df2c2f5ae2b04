//! What people decide about the node in random worlds: drains, metadata, and how jobs are taken in and placed.

use drover_core::model::drain::{DrainDeadline, DrainSpec, Eligibility};
use drover_core::model::scheduler::{Preemption, SchedulerConfig};
use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{
    Act, ApplyNodeMeta, EvaluateNode, SetEligibility, SetScheduler, UpdateDrain, What,
};

/// In some worlds the node is drained or made ineligible; in most of those it is eligible again in the end.
pub(crate) fn acts_of_the_node(dice: &mut Dice, acts: &mut Vec<Act>) {
    if dice.below(4, "node", "") != 1 {
        return;
    }
    for _ in 0..1 + dice.below(3, "acts of the node", "") {
        let act = act_of_the_node(dice);
        let drains = matches!(&act.what, What::UpdateDrain(asked) if asked.spec.is_some());
        acts.push(act);
        if drains && dice.below(2, "drained in another way", "") == 1 {
            acts.push(another_deadline(dice));
        }
    }
    if dice.below(3, "eligible again", "") != 1 {
        let again = UpdateDrain {
            spec: None,
            mark_eligible: true,
        };
        acts.push(Act {
            pause: Span::secs(120),
            steps: 0,
            what: again.into(),
        });
    }
}

fn act_of_the_node(dice: &mut Dice) -> Act {
    let deadlines = [
        DrainDeadline::After(Span::secs(30)),
        DrainDeadline::Never,
        DrainDeadline::After(Span::secs(900)),
        DrainDeadline::Force,
    ];
    let deadline = deadlines[dice.below(4, "deadline", "")];
    let spec = DrainSpec {
        deadline,
        ignore_system_jobs: dice.below(3, "ignore system jobs", "") == 1,
    };
    let drain = |spec, mark_eligible| {
        UpdateDrain {
            spec,
            mark_eligible,
        }
        .into()
    };
    let rack = [Some("r1"), Some("r1"), Some("r2"), None][dice.below(4, "rack", "")];
    let what = match dice.below(10, "act of the node", "") {
        9 => EvaluateNode.into(),
        7 | 8 => ApplyNodeMeta {
            meta: [("rack".to_owned(), rack.map(str::to_owned))].into(),
        }
        .into(),
        0 => SetEligibility {
            eligibility: Eligibility::Ineligible,
        }
        .into(),
        1 => SetEligibility {
            eligibility: Eligibility::Eligible,
        }
        .into(),
        2 => drain(None, true),
        3 => drain(None, false),
        _ => drain(Some(spec), true),
    };
    let pause = dice.one_of(&[0, 0, 1, 5_000, 60_000], "pause of the node", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: dice
            .one_of(&[0, 0, 2, 8], "steps of the node", "")
            .unwrap_or(0),
        what,
    }
}

/// A drain that may be under way gets another deadline, or the same from now on.
fn another_deadline(dice: &mut Dice) -> Act {
    let seconds = dice.one_of(&[30, 30, 60, 900], "another deadline", "");
    let pause = dice.one_of(&[5, 20, 60], "pause of another deadline", "");
    let spec = DrainSpec {
        deadline: DrainDeadline::After(Span::secs(seconds.unwrap_or(30))),
        ignore_system_jobs: dice.below(3, "ignores system jobs now", "") == 1,
    };
    let what = UpdateDrain {
        spec: Some(spec),
        mark_eligible: true,
    };
    Act {
        pause: Span::secs(pause.unwrap_or(5)),
        steps: 0,
        what: what.into(),
    }
}

/// In some worlds it is set how jobs are taken in and placed.
pub(crate) fn acts_of_the_scheduler(dice: &mut Dice, acts: &mut Vec<Act>) {
    for _ in 0..dice.below(6, "acts of the scheduler", "").saturating_sub(3) {
        acts.push(act_of_the_scheduler(dice));
    }
}

/// Who may preempt, and now and then nobody's job is taken in.
fn act_of_the_scheduler(dice: &mut Dice) -> Act {
    let mut may = |who| dice.below(2, who, "") == 1;
    let preemption = Preemption {
        service: may("services preempt"),
        batch: may("batch jobs preempt"),
        system: may("system jobs preempt"),
        sysbatch: may("sysbatch jobs preempt"),
    };
    let config = SchedulerConfig {
        preemption,
        memory_oversubscription: may("memory_max counts"),
        reject_job_registration: dice.below(4, "jobs are rejected", "") == 1,
        ..SchedulerConfig::default()
    };
    let pause = dice.one_of(&[0, 0, 1, 5_000, 60_000], "pause of the scheduler", "");
    Act {
        pause: Span::millis(pause.unwrap_or(0)),
        steps: dice
            .one_of(&[0, 0, 2, 8], "steps of the scheduler", "")
            .unwrap_or(0),
        what: SetScheduler { config }.into(),
    }
}
