//! Random jobs, requests and trouble.

use drover_sim_tests::{chaos, for_seeds};

#[test]
fn whatever_happens_everything_converges() {
    for_seeds(400, chaos::run);
}
