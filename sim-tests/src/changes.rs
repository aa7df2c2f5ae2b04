//! What people of random worlds change of jobs while they run, and what they do in a hurry.

use drover_core::time::Span;
use drover_io_sim::Dice;
use drover_io_sim::script::{
    Act, Change, DeregisterWithoutDelay, Evaluate, ForceReschedule, Register,
    StopAllocWithoutDelay, What,
};

/// In some worlds jobs are changed so that their allocations go on, or get groups and lose them.
pub(crate) fn changes(dice: &mut Dice, jobs: usize, acts: &mut Vec<Act>) {
    for _ in 0..dice.below(5, "changes", "").saturating_sub(1) {
        let job = format!("j{}", dice.below(jobs, "whose change", ""));
        let change = some_change(dice);
        let what = Register {
            job,
            change: Some(change),
        };
        let pauses = [0, 0, 5_000, 60_000];
        let pause = dice.one_of(&pauses, "pause of changes", "").unwrap_or(0);
        let steps = dice.one_of(&[0, 0, 1, 5], "steps of changes", "");
        let act = Act {
            pause: Span::millis(pause),
            steps: steps.unwrap_or(0),
            what: what.into(),
        };
        acts.insert(dice.below(acts.len() + 1, "when changed", ""), act);
    }
}

/// In a few worlds somebody has a job planned again after half a day or a day: what failed once is long ago then.
pub(crate) fn a_day_later(dice: &mut Dice, jobs: usize, acts: &mut Vec<Act>) {
    if dice.below(24, "a day later", "") != 1 {
        return;
    }
    let hours = dice.one_of(&[25, 13], "hours later", "").unwrap_or(25);
    for nth in 0..jobs {
        let pause = if nth == 0 { hours * 3600 } else { 0 };
        let job = format!("j{nth}");
        acts.push(Act {
            pause: Span::secs(pause),
            steps: 0,
            what: Evaluate { job }.into(),
        });
    }
}

/// A change of what a job says of its policies, services and groups.
pub(crate) fn some_change(dice: &mut Dice) -> Change {
    let attempts = [0, 1, 3][dice.below(3, "attempts now", "")];
    let seconds = dice.one_of(&[1, 5, 20], "delay now", "").unwrap_or(1);
    match dice.below(8, "kind of change", "") {
        0 | 1 => Change::Restarts(attempts, Span::secs(seconds)),
        2 => Change::Replacements(attempts, Span::secs(seconds)),
        3 => Change::ShutdownDelay(Span::secs(seconds)),
        4 => Change::CheckInterval([20, 600][dice.below(2, "interval now", "")]),
        5 => Change::Tag(dice.pick("tag now", "")),
        6 => Change::SecondGroup(true),
        _ => Change::SecondGroup(false),
    }
}

/// In some worlds people grow tired: they stop once more what is ending, without its delays, or do not wait for a
/// policy.
pub(crate) fn in_a_hurry(dice: &mut Dice, jobs: usize, acts: &mut Vec<Act>) {
    for act in core::mem::take(acts) {
        let stopped = match &act.what {
            What::Deregister(asked) if !asked.purge => Some(asked.job.clone()),
            _ => None,
        };
        acts.push(act);
        if let Some(job) = stopped.filter(|job| dice.below(4, "grows tired", job) == 1) {
            acts.push(hurried(dice, DeregisterWithoutDelay { job }));
        }
    }
    for _ in 0..dice.below(5, "hurry", "").saturating_sub(2) {
        let job = format!("j{}", dice.below(jobs, "whose hurry", ""));
        let what: What = match dice.below(4, "hurries", "") {
            0 => DeregisterWithoutDelay { job }.into(),
            1 => StopAllocWithoutDelay { job }.into(),
            _ => ForceReschedule { job }.into(),
        };
        let act = hurried(dice, what);
        acts.insert(dice.below(acts.len() + 1, "when hurried", ""), act);
    }
}

fn hurried(dice: &mut Dice, what: impl Into<What>) -> Act {
    let pauses = [0, 1_000, 5_000];
    Act {
        pause: Span::millis(dice.one_of(&pauses, "pause of hurry", "").unwrap_or(0)),
        steps: dice
            .one_of(&[0, 1, 3, 8], "steps of hurry", "")
            .unwrap_or(0),
        what: what.into(),
    }
}
