//! The restart policy: whether a task that ended is started again, when, and at whose cost.
//!
//! Rules and their order are Nomad's, with what its users had to report put right: the
//! budget survives a restart of the agent, and a changed policy holds from its next use.
//!
//! **What is not the program's doing costs nothing.** A restart of the machine is no exit: a task of a
//! service or system job starts again at once, whatever its policy says, as after a restored client in
//! Nomad. So does batch work, from its beginning, unless its policy has no attempts: `attempts = 0` is how
//! people say that work must not be repeated, and a power cut is no reason to do it twice. It fails
//! then, and the reschedule policy decides; where that allows nothing either, the work is done at most
//! once. A start that was lost because the task's shim was killed is made again after a moment, three
//! times in a row; more look like the task's own doing, and are paid for as any failed start. A restart because of a check
//! that fails is paid for as an exit is, whatever the task's exit code is then.
//!
//! **A policy without pauses takes no node down.** The first starts of an interval are as quick as the policy
//! wants; those after them are a tenth of a second apart at least.

use crate::model::alloc::ExitResult;
use crate::model::policy::{RestartMode, RestartRules};
use crate::store::record::RestartBudget;
use crate::time::{Span, Timestamp};

/// How a run of a task ended, as the policy sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its process ended.
    Exit(ExitResult),
    /// It could not be started, and whether another try may help.
    StartFailed {
        /// Whether another try may help.
        recoverable: bool,
    },
    /// An operator asked for a restart: no cost, no delay.
    Asked,
    /// It was ended because a check failed.
    Unhealthy,
    /// The machine restarted while it ran.
    Rebooted,
    /// What was to start it was killed.
    StartLost,
}

/// What the policy of a task says, and what kind of work the task is.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The rules of its job file.
    pub rules: RestartRules,
    /// Whether it is started again even though it succeeded, as tasks of services are.
    pub on_success: bool,
    /// Whether its job runs to completion.
    pub is_batch: bool,
}

/// What follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The task is done, and did what it should.
    Done,
    /// The task is done, and failed.
    Fail {
        /// Why it is not started again.
        reason: String,
    },
    /// The task is started again.
    Restart {
        /// The pause, to which the caller adds jitter.
        delay: Span,
        /// Whether jitter is added.
        jitter: bool,
        /// Why.
        reason: &'static str,
    },
}

/// Why a restart is nothing special; display messages leave it out.
pub const WITHIN_POLICY: &str = "Restart within policy";

/// Why a task starts again that ran when the machine went down.
pub const REBOOTED: &str = "The machine restarted";

/// Why a task starts again whose start was lost.
pub const START_LOST: &str = "The start was lost through no fault of the task";

/// So many lost starts in a row cost nothing.
pub const FREE_LOST_STARTS: u32 = 3;

/// How long after a lost start the next one is made.
const LOST_START_DELAY: Span = Span::secs(1);

/// So many starts of an interval are as quick as the policy wants.
const QUICK_STARTS: u32 = 20;

/// The shortest pause before the starts that follow them.
const LEAST_PAUSE: Span = Span::millis(100);

/// Decides, and books the start in `budget`.
pub fn decide(
    policy: &Policy,
    budget: &mut RestartBudget,
    ending: &Ending,
    now: Timestamp,
) -> Decision {
    let at_once = |reason| Decision::Restart {
        delay: Span::ZERO,
        jitter: false,
        reason,
    };
    let no_restarts = policy.rules.attempts == 0;
    let unrecoverable = match ending {
        Ending::Asked => return at_once(""),
        Ending::Rebooted if policy.is_batch && no_restarts => false,
        Ending::Rebooted => return at_once(REBOOTED),
        Ending::StartLost => {
            budget.lost_starts = budget.lost_starts.saturating_add(1);
            if budget.lost_starts <= FREE_LOST_STARTS {
                return Decision::Restart {
                    delay: LOST_START_DELAY,
                    jitter: true,
                    reason: START_LOST,
                };
            }
            false
        }
        Ending::Exit(exit) if exit.is_success() && !policy.on_success => return Decision::Done,
        Ending::Exit(_) | Ending::Unhealthy => false,
        Ending::StartFailed { recoverable } => !recoverable,
    };
    if no_restarts {
        return Decision::Fail {
            reason: "Policy allows no restarts".to_owned(),
        };
    }
    if unrecoverable {
        return Decision::Fail {
            reason: "Error was unrecoverable".to_owned(),
        };
    }
    let decision = by_attempts(&policy.rules, budget, now);
    slowed(decision, *budget)
}

/// The same, with a pause if there were many starts in this interval.
fn slowed(decision: Decision, budget: RestartBudget) -> Decision {
    match decision {
        Decision::Restart {
            delay,
            jitter,
            reason,
        } if budget.used > QUICK_STARTS => Decision::Restart {
            delay: delay.max(LEAST_PAUSE),
            jitter,
            reason,
        },
        Decision::Restart { .. } | Decision::Done | Decision::Fail { .. } => decision,
    }
}

/// One more attempt, if the interval has room for it.
fn by_attempts(rules: &RestartRules, budget: &mut RestartBudget, now: Timestamp) -> Decision {
    let since = open_interval(rules, budget, now);
    budget.used = budget.used.saturating_add(1);
    if budget.used <= rules.attempts {
        return Decision::Restart {
            delay: rules.delay,
            jitter: true,
            reason: WITHIN_POLICY,
        };
    }
    match rules.mode {
        RestartMode::Fail => Decision::Fail {
            reason: format!(
                "Exceeded allowed attempts {} in interval {} and mode is \"fail\"",
                rules.attempts, rules.interval
            ),
        },
        RestartMode::Delay => Decision::Restart {
            delay: rest_of_interval(rules, since, now),
            jitter: true,
            reason: "Exceeded allowed attempts, applying a delay",
        },
    }
}

/// The beginning of the interval that `now` falls into. A wall clock that was set back opens no
/// new budget; one that was set forward does, as if the time had passed.
fn open_interval(rules: &RestartRules, budget: &mut RestartBudget, now: Timestamp) -> Timestamp {
    match budget.since {
        Some(since) if now <= since + rules.interval => since,
        Some(_) | None => {
            *budget = RestartBudget {
                used: 0,
                since: Some(now),
                ..*budget
            };
            now
        }
    }
}

fn rest_of_interval(rules: &RestartRules, since: Timestamp, now: Timestamp) -> Span {
    let rest = (since + rules.interval) - now;
    Span(rest.0.clamp(0, rules.interval.0.max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: RestartRules = RestartRules {
        attempts: 2,
        interval: Span::secs(60),
        delay: Span::secs(1),
        mode: RestartMode::Fail,
    };

    fn policy(rules: RestartRules, is_batch: bool) -> Policy {
        Policy {
            rules,
            on_success: !is_batch,
            is_batch,
        }
    }

    /// What follows a first failure of a batch task.
    fn decide_batch(
        rules: RestartRules,
        budget: &mut RestartBudget,
        ending: &Ending,
        now: Timestamp,
    ) -> Decision {
        decide(&policy(rules, true), budget, ending, now)
    }

    fn failed() -> Ending {
        Ending::Exit(ExitResult::code(3))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::default() + Span::secs(seconds)
    }

    #[test]
    fn attempts_are_counted_by_interval() {
        let mut budget = RestartBudget::default();
        let mut next = |second| decide_batch(RULES, &mut budget, &failed(), at(second));
        let again = Decision::Restart {
            delay: RULES.delay,
            jitter: true,
            reason: WITHIN_POLICY,
        };
        assert_eq!(next(0), again);
        assert_eq!(next(1), again);
        assert!(matches!(next(2), Decision::Fail { .. }));
        assert_eq!(next(120), again, "a new interval");
    }

    #[test]
    fn success_completes_batch_and_restarts_service() {
        let mut budget = RestartBudget::default();
        let good = Ending::Exit(ExitResult::code(0));
        assert_eq!(
            decide_batch(RULES, &mut budget, &good, at(0)),
            Decision::Done
        );
        assert!(matches!(
            decide(&policy(RULES, false), &mut budget, &good, at(0)),
            Decision::Restart { .. }
        ));
    }

    #[test]
    fn unknown_exit_is_not_success() {
        let mut budget = RestartBudget::default();
        let lost = Ending::Exit(ExitResult::unknown("gone"));
        assert!(matches!(
            decide_batch(RULES, &mut budget, &lost, at(0)),
            Decision::Restart { .. }
        ));
    }

    #[test]
    fn delay_mode_waits_for_rest_of_interval() {
        let rules = RestartRules {
            mode: RestartMode::Delay,
            attempts: 1,
            ..RULES
        };
        let mut budget = RestartBudget::default();
        decide_batch(rules, &mut budget, &failed(), at(0));
        let Decision::Restart { delay, .. } = decide_batch(rules, &mut budget, &failed(), at(20))
        else {
            panic!("mode delay never fails")
        };
        assert_eq!(delay, Span::secs(40));
    }

    #[test]
    fn many_starts_without_delay_get_a_pause() {
        let rules = RestartRules {
            attempts: 1000,
            interval: Span::secs(5),
            delay: Span::ZERO,
            mode: RestartMode::Fail,
        };
        let mut budget = RestartBudget::default();
        let mut pause =
            |rules, second| match decide_batch(rules, &mut budget, &failed(), at(second)) {
                Decision::Restart { delay, .. } => delay,
                other @ (Decision::Done | Decision::Fail { .. }) => panic!("{other:?}"),
            };
        for _ in 0..QUICK_STARTS {
            assert_eq!(pause(rules, 0), Span::ZERO);
        }
        assert_eq!(pause(rules, 0), LEAST_PAUSE);
        let slow = RestartRules {
            delay: Span::secs(1),
            ..rules
        };
        assert_eq!(pause(slow, 5), Span::secs(1), "a longer one stays");
        assert_eq!(pause(rules, 6), Span::ZERO, "a new interval");
    }

    #[test]
    fn operator_restart_uses_no_attempt() {
        let mut budget = RestartBudget::default();
        let rules = RestartRules {
            attempts: 0,
            ..RULES
        };
        let decision = decide_batch(rules, &mut budget, &Ending::Asked, at(0));
        assert!(matches!(
            decision,
            Decision::Restart {
                delay: Span::ZERO,
                ..
            }
        ));
        assert_eq!(budget, RestartBudget::default());
    }

    #[test]
    fn clock_set_back_keeps_restart_budget() {
        let mut budget = RestartBudget::default();
        decide_batch(RULES, &mut budget, &failed(), at(1000));
        decide_batch(RULES, &mut budget, &failed(), at(500));
        assert!(matches!(
            decide_batch(RULES, &mut budget, &failed(), at(501)),
            Decision::Fail { .. }
        ));
    }

    #[test]
    fn reboot_uses_no_attempt_except_batch_without_attempts() {
        let none = RestartRules {
            attempts: 0,
            ..RULES
        };
        let at_once = Decision::Restart {
            delay: Span::ZERO,
            jitter: false,
            reason: REBOOTED,
        };
        for (rules, is_batch) in [(RULES, false), (RULES, true), (none, false)] {
            let mut budget = RestartBudget::default();
            for second in 0..5 {
                let policy = policy(rules, is_batch);
                let decision = decide(&policy, &mut budget, &Ending::Rebooted, at(second));
                assert_eq!(decision, at_once);
            }
            assert_eq!(budget, RestartBudget::default());
        }
        let mut budget = RestartBudget::default();
        let decision = decide_batch(none, &mut budget, &Ending::Rebooted, at(0));
        assert!(matches!(decision, Decision::Fail { .. }), "{decision:?}");
    }

    #[test]
    fn three_lost_starts_use_no_attempt() {
        let mut budget = RestartBudget::default();
        let mut next = |second| decide_batch(RULES, &mut budget, &Ending::StartLost, at(second));
        for second in 0..3 {
            let free = Decision::Restart {
                delay: LOST_START_DELAY,
                jitter: true,
                reason: START_LOST,
            };
            assert_eq!(next(second), free);
        }
        let paid = Decision::Restart {
            delay: RULES.delay,
            jitter: true,
            reason: WITHIN_POLICY,
        };
        assert_eq!([next(3), next(4)], [paid.clone(), paid]);
        assert!(matches!(next(5), Decision::Fail { .. }));
    }
}
