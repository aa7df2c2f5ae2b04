//! The agent keeps the order, so worlds in which it is broken are made by hand.

use drover_core::model::alloc::ExitResult;
use drover_core::model::task::{Hook, Lifecycle};

use super::*;

const FIRST: AllocId = AllocId(1);
const SECOND: AllocId = AllocId(2);

fn task(name: &str, hook: Option<Hook>) -> Task {
    Task {
        name: name.to_owned(),
        lifecycle: hook.map(|hook| Lifecycle {
            hook,
            sidecar: false,
        }),
        ..Task::default()
    }
}

fn job() -> Job {
    let group = TaskGroup {
        name: "app".to_owned(),
        tasks: vec![
            task("prepare", Some(Hook::Prestart)),
            task("main", None),
            task("announce", Some(Hook::Poststart)),
            task("clean", Some(Hook::Poststop)),
        ],
        ..TaskGroup::default()
    };
    Job {
        id: "web".to_owned(),
        task_groups: vec![group],
        ..Job::default()
    }
}

/// A world in which these processes began in this order, each with how it ended, if it did.
fn found(began: &[(AllocId, &str, Option<i32>)]) -> Vec<String> {
    let (job, mut sim, mut order) = (job(), Sim::new(1), Order::default());
    let slots = CopySlots::from([(FIRST, (0, 0)), (SECOND, (0, 0))]);
    for (number, (alloc, task, ends)) in (1..).zip(began) {
        let key = TaskKey {
            alloc: *alloc,
            task: (*task).into(),
        };
        let launch = LaunchId(number);
        let process = (sim.world.processes).record(&mut sim.world.scene.names, &key, launch);
        (process.starts, process.alive) = (1, true);
        sim.world.processes.living.insert(launch);
        order.check_start(&job, &slots, &sim, launch);
        if let Some(code) = ends {
            sim.world.end(launch, ExitResult::code(*code));
        }
    }
    order.found.into_iter().map(|found| found.what).collect()
}

#[test]
fn correct_order_is_not_reported() {
    let right = [
        (FIRST, "prepare", Some(1)),
        (FIRST, "prepare", Some(0)),
        (FIRST, "main", Some(1)),
        (FIRST, "announce", Some(0)),
        (FIRST, "main", Some(0)),
        (FIRST, "clean", Some(0)),
        (SECOND, "prepare", Some(0)),
        (SECOND, "main", None),
    ];
    assert_eq!(found(&right), Vec::<String>::new());
}

#[test]
fn main_before_prestart_end_is_reported() {
    for ends in [None, Some(1)] {
        let found = found(&[(FIRST, "prepare", ends), (FIRST, "main", None)]);
        let wanted = "main began before the prestart task prepare had succeeded";
        assert_eq!(found, [wanted]);
    }
}

#[test]
fn overlapping_replacement_is_reported() {
    let found = found(&[
        (FIRST, "prepare", Some(0)),
        (FIRST, "main", None),
        (SECOND, "prepare", Some(0)),
    ]);
    assert_eq!(
        found,
        ["copy 0 began (prepare) while the one before it still ran (main)"]
    );
}

#[test]
fn early_poststart_and_poststop_are_reported() {
    let early = found(&[(FIRST, "prepare", Some(0)), (FIRST, "announce", None)]);
    assert_eq!(early, ["announce began before main had"]);
    let early = found(&[
        (FIRST, "prepare", Some(0)),
        (FIRST, "main", None),
        (FIRST, "clean", None),
    ]);
    assert_eq!(early, ["clean began while main still ran"]);
}
