//! The races of launches: starts, stops, ends by force, watchers, dying shims and dying agents, in every order.
//!
//! The code that runs here is the driver's own; only the machine below it is another ([`model`], [`fake`]), each call
//! of which is a step. So is each look at the launches in hand ([`super::held`]). Every actor has a thread ([`actor`]),
//! and one of them runs at a time, from its step to the next: the order is chosen ([`explore`]), which for a few actors
//! means that each possible one is tried, and for some more each in which few are interrupted. What must hold then is
//! in [`rules`]. A failure prints the order that led to it.
//!
//! What is sent to the core is no step of its own; nor does time pass here, so what gives up after seconds never does.

mod actor;
mod explore;
mod fake;
mod life;
mod model;
mod rules;

pub(super) use actor::{note, step_here};

use self::explore::{Tally, every_order, some_order};
use self::life::Ask::{Destroy, Forget, Recover, Start, Stop};
use self::life::Scenario;
use self::model::Troubles;

const NONE: Troubles = Troubles {
    kills: 0,
    stops: 0,
    silences: 0,
    refusals: 0,
    deaths: 0,
};

/// A machine with control groups, and no troubles.
const PLAIN: Scenario = Scenario {
    name: "",
    runs: false,
    asks: &[],
    next_asks: &[],
    troubles: NONE,
    has_groups: true,
    interruptions: None,
};

/// Tries the orders of a scenario, with control groups and without.
fn explore(scenario: Scenario) {
    for has_groups in [true, false] {
        explore_one(Scenario {
            has_groups,
            ..scenario
        });
    }
}

fn explore_one(scenario: Scenario) {
    let Scenario {
        name, has_groups, ..
    } = scenario;
    match every_order(scenario) {
        Ok(Tally {
            runs,
            states,
            orders,
        }) => println!(
            "{name} (control groups: {has_groups}): {orders} orders through {states} states, in {runs} runs"
        ),
        Err(broken) => panic!("{broken}"),
    }
}

/// Tries some orders of a scenario, half of them without control groups: always the same ones.
fn explore_some(scenario: Scenario, orders: u64) {
    let mut steps = 0;
    for seed in 0..orders {
        let has_groups = seed % 2 == 0;
        let scenario = Scenario {
            has_groups,
            ..scenario
        };
        match some_order(scenario, seed) {
            Ok(taken) => steps += taken,
            Err(broken) => panic!("{broken}"),
        }
    }
    println!("{}: {orders} orders, {steps} steps", scenario.name);
}

#[test]
fn start_against_destroy_in_every_order_leaves_nothing() {
    explore(Scenario {
        name: "start, destroy",
        asks: &[Start, Destroy, Forget],
        ..PLAIN
    });
}

/// A launch that was destroyed while it started got a successor for its shim if that one was killed, and its
/// destruction was answered while the successor lived. A start that failed between the end of its group and that
/// answer left a group behind.
#[test]
fn start_against_destroy_and_dying_shim_in_every_order_leaves_nothing() {
    explore_one(Scenario {
        name: "start, destroy, a killed shim",
        asks: &[Start, Destroy],
        troubles: Troubles { kills: 1, ..NONE },
        interruptions: Some(2),
        ..PLAIN
    });
}

#[test]
fn dying_shims_in_every_order_lose_no_launch() {
    explore(Scenario {
        name: "start, killed shims",
        asks: &[Start],
        troubles: Troubles { kills: 2, ..NONE },
        ..PLAIN
    });
}

/// Its group was left behind if the first start's launch had ended meanwhile.
#[test]
fn second_start_in_every_order_starts_nothing() {
    explore_one(Scenario {
        name: "start twice",
        asks: &[Start, Start],
        ..PLAIN
    });
    explore_one(Scenario {
        name: "start twice, destroy",
        asks: &[Start, Start, Destroy],
        interruptions: Some(0),
        ..PLAIN
    });
}

#[test]
fn start_after_destroy_in_every_order_starts_nothing() {
    explore(Scenario {
        name: "destroy, then start",
        asks: &[Destroy, Forget, Start],
        ..PLAIN
    });
    explore_one(Scenario {
        name: "destroy, start",
        asks: &[Destroy, Start, Forget],
        ..PLAIN
    });
}

#[test]
fn second_destroy_in_every_order_is_answered() {
    explore_one(Scenario {
        name: "start, destroy twice",
        asks: &[Start, Destroy, Destroy],
        interruptions: Some(1),
        ..PLAIN
    });
}

#[test]
fn stop_against_destroy_in_every_order_is_answered() {
    explore_one(Scenario {
        name: "start, stop, destroy",
        asks: &[Start, Stop, Destroy],
        interruptions: Some(1),
        ..PLAIN
    });
}

#[test]
fn stopped_shim_in_every_order_is_continued() {
    let troubles = Troubles { stops: 1, ..NONE };
    explore(Scenario {
        name: "start, a stopped shim",
        asks: &[Start],
        troubles,
        ..PLAIN
    });
    explore_one(Scenario {
        name: "start, destroy, a stopped shim",
        asks: &[Start, Destroy],
        troubles,
        interruptions: Some(1),
        ..PLAIN
    });
}

/// The shim was killed, and got a successor.
#[test]
fn busy_shim_in_every_order_is_ended() {
    explore(Scenario {
        name: "start, destroy, a shim that is kept busy",
        asks: &[Start, Destroy],
        troubles: Troubles {
            silences: 1,
            ..NONE
        },
        interruptions: Some(1),
        ..PLAIN
    });
}

#[test]
fn program_that_cannot_be_executed_in_every_order_leaves_nothing() {
    explore_one(Scenario {
        name: "start, destroy, no program",
        asks: &[Start, Destroy],
        troubles: Troubles {
            refusals: 1,
            ..NONE
        },
        ..PLAIN
    });
}

#[test]
fn next_agent_in_every_order_goes_on_with_launch() {
    let troubles = Troubles { deaths: 1, ..NONE };
    explore(Scenario {
        name: "start, next agent",
        asks: &[Start],
        next_asks: &[Recover],
        troubles,
        ..PLAIN
    });
    explore_one(Scenario {
        name: "start, destroy, next agent",
        asks: &[Start, Destroy],
        next_asks: &[Recover, Destroy, Forget],
        troubles,
        interruptions: Some(1),
        ..PLAIN
    });
}

#[test]
fn recovery_against_destroy_in_every_order_leaves_nothing() {
    explore_one(Scenario {
        name: "recover, destroy",
        runs: true,
        asks: &[Recover, Destroy, Forget],
        ..PLAIN
    });
    explore_one(Scenario {
        name: "recover, destroy, a killed shim",
        runs: true,
        asks: &[Recover, Destroy],
        troubles: Troubles { kills: 1, ..NONE },
        interruptions: Some(1),
        ..PLAIN
    });
    explore_one(Scenario {
        name: "recover what never started, destroy",
        asks: &[Recover, Destroy, Forget],
        ..PLAIN
    });
}

#[test]
fn more_at_once_in_random_orders_leaves_nothing() {
    let orders = 400;
    let twice = Scenario {
        name: "start twice, destroy twice",
        asks: &[Start, Start, Destroy, Destroy],
        ..PLAIN
    };
    explore_some(twice, orders);
    let everything = Scenario {
        name: "everything at once",
        asks: &[Start, Stop, Destroy, Destroy, Forget],
        next_asks: &[Recover, Stop, Destroy, Destroy, Forget],
        troubles: Troubles {
            kills: 3,
            stops: 2,
            silences: 1,
            refusals: 0,
            deaths: 1,
        },
        ..PLAIN
    };
    explore_some(everything, 2 * orders);
    let nothing_by_force = Scenario {
        name: "nothing by force",
        asks: &[Start, Stop],
        next_asks: &[Recover, Stop],
        troubles: Troubles {
            silences: 0,
            ..everything.troubles
        },
        ..PLAIN
    };
    explore_some(nothing_by_force, orders);
}
