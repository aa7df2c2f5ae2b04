//! Random jobs, requests and trouble.

use drover_sim_tests::report::report;
use drover_sim_tests::soak::{Plan, soak};

#[test]
fn random_worlds_converge() {
    let plan = Plan {
        from: 0,
        seeds: 1000,
        seconds: 1500,
        threads: 2,
        first_only: false,
    };
    let soaked = soak(plan, |_, _| {});
    assert_eq!(soaked.seeds, 1000);
    if let Some((_, world, violation)) = soaked.violated.values().next() {
        panic!("{}", report(world, violation, None));
    }
}
