//! The restart policy: whether a task that ended is started again, when, and at whose cost.
//!
//! Rules and their order are Nomad's, with what its users had to report put right: the
//! budget survives a restart of the agent, and a changed policy holds from its next use.

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

/// Decides, and books the start in `budget`. `on_success` says whether the task is started again
/// even though it succeeded, as those of services are.
pub fn decide(
    rules: &RestartRules,
    budget: &mut RestartBudget,
    on_success: bool,
    ending: &Ending,
    now: Timestamp,
) -> Decision {
    let success = matches!(ending, Ending::Exit(exit) if exit.is_success());
    if *ending == Ending::Asked {
        return Decision::Restart {
            delay: Span::ZERO,
            jitter: false,
            reason: "",
        };
    }
    if success && !on_success {
        return Decision::Done;
    }
    if rules.attempts == 0 {
        return Decision::Fail {
            reason: "Policy allows no restarts".to_owned(),
        };
    }
    if *ending == (Ending::StartFailed { recoverable: false }) {
        return Decision::Fail {
            reason: "Error was unrecoverable".to_owned(),
        };
    }
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

    fn failed() -> Ending {
        Ending::Exit(ExitResult::code(3))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::default() + Span::secs(seconds)
    }

    #[test]
    fn attempts_are_counted_by_interval() {
        let mut budget = RestartBudget::default();
        let mut next = |second| decide(&RULES, &mut budget, false, &failed(), at(second));
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
    fn success_ends_a_batch_task_and_restarts_a_service() {
        let mut budget = RestartBudget::default();
        let good = Ending::Exit(ExitResult::code(0));
        assert_eq!(
            decide(&RULES, &mut budget, false, &good, at(0)),
            Decision::Done
        );
        assert!(matches!(
            decide(&RULES, &mut budget, true, &good, at(0)),
            Decision::Restart { .. }
        ));
    }

    #[test]
    fn an_exit_that_nobody_knows_is_no_success() {
        let mut budget = RestartBudget::default();
        let lost = Ending::Exit(ExitResult::unknown("gone"));
        assert!(matches!(
            decide(&RULES, &mut budget, false, &lost, at(0)),
            Decision::Restart { .. }
        ));
    }

    #[test]
    fn mode_delay_waits_for_the_rest_of_the_interval() {
        let rules = RestartRules {
            mode: RestartMode::Delay,
            attempts: 1,
            ..RULES
        };
        let mut budget = RestartBudget::default();
        decide(&rules, &mut budget, false, &failed(), at(0));
        let Decision::Restart { delay, .. } = decide(&rules, &mut budget, false, &failed(), at(20))
        else {
            panic!("mode delay never fails")
        };
        assert_eq!(delay, Span::secs(40));
    }

    #[test]
    fn what_an_operator_asks_costs_nothing() {
        let mut budget = RestartBudget::default();
        let rules = RestartRules {
            attempts: 0,
            ..RULES
        };
        let decision = decide(&rules, &mut budget, false, &Ending::Asked, at(0));
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
    fn a_clock_set_back_opens_no_new_budget() {
        let mut budget = RestartBudget::default();
        decide(&RULES, &mut budget, false, &failed(), at(1000));
        decide(&RULES, &mut budget, false, &failed(), at(500));
        assert!(matches!(
            decide(&RULES, &mut budget, false, &failed(), at(501)),
            Decision::Fail { .. }
        ));
    }
}
