//! Every order in small worlds, and how many states that is: fewer than there were means that
//! something is no longer tried.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use drover_io_sim::Violation;
use drover_sim_tests::small::{Small, WORLDS};

const KNOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/states.txt");

#[test]
fn small_worlds_hold_in_every_order() {
    let worlds = WORLDS.iter().filter(|world| !world.large).enumerate();
    let (one, two): (Vec<_>, Vec<_>) = worlds.partition(|(at, _)| at.is_multiple_of(2));
    let explore = |worlds: Vec<(usize, &'static Small)>| {
        let explored = worlds
            .into_iter()
            .map(|(_, world)| (world.name, states(world)));
        explored.collect::<BTreeMap<_, _>>()
    };
    let mut found = thread::scope(|scope| {
        let other = scope.spawn(|| explore(two));
        let mut found = explore(one);
        found.extend(other.join().unwrap_or_default());
        found
    });
    assert!(found.len() >= 10, "{found:?}");
    if std::env::var_os("DROVER_BLESS").is_some() {
        let lines: String = found
            .iter()
            .map(|(name, states)| format!("{name} {states}\n"))
            .collect();
        return fs::write(KNOWN, lines).unwrap_or_else(|why| panic!("{KNOWN}: {why}"));
    }
    let known = fs::read_to_string(KNOWN).unwrap_or_default();
    for line in known.lines() {
        let (name, states) = line.split_once(' ').unwrap_or((line, ""));
        let states: usize = states.parse().unwrap_or_else(|_| panic!("{KNOWN}: {line}"));
        let now = found.remove(name).unwrap_or_default();
        assert!(
            now * 10 >= states * 9,
            "{name} had {states} states and has {now}; if that is meant: DROVER_BLESS=1"
        );
    }
    assert!(
        found.is_empty(),
        "not in {KNOWN}, DROVER_BLESS=1 adds them: {found:?}"
    );
}

fn states(world: &Small) -> usize {
    let explored = world.explore(200_000);
    if let Some((steps, Violation { invariant, detail })) = explored.failure {
        panic!("{}violates {invariant}: {detail}", world.draw(&steps));
    }
    assert!(explored.complete, "{} is too large", world.name);
    explored.states
}
