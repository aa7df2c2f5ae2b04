//! One seed, one run: twice in one process, and in two processes.

use std::process::Command;

use drover_io_sim::script::Watch;
use drover_sim_tests::chaos;

#[test]
fn same_seed_gives_same_trace() {
    let watch = Watch {
        story: true,
        choices: false,
    };
    for seed in 0..60 {
        let (one, two) = (
            chaos::script(seed).run(watch),
            chaos::script(seed).run(watch),
        );
        let (one, two) = (&one.sim.world.scene.trace, &two.sim.world.scene.trace);
        let differs = (one.hashes().iter().zip(two.hashes())).position(|(one, two)| one != two);
        assert_eq!(differs, None, "seed {seed}: the first step that differs");
        assert_eq!(one.hashes().len(), two.hashes().len(), "seed {seed}");
        assert_eq!(one.events(), two.events(), "seed {seed}");
    }
}

#[test]
fn two_processes_give_same_hashes() {
    let hashes = || {
        let run = Command::new(env!("CARGO_BIN_EXE_drover-sim-tests"))
            .args(["hashes", "--seeds", "60"])
            .output();
        run.map(|run| String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let (one, two) = (hashes().unwrap_or_default(), hashes().unwrap_or_default());
    assert_eq!(one.lines().count(), 60);
    assert_eq!(one, two, "seeds and the numbers of their runs");
}
