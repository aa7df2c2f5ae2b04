//! Which server is talked to: the list, its order, and who is left alone for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use drover_rpc::servers::{Backoff, Choice, Servers};

const SECOND: Duration = Duration::from_secs(1);

fn names(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("10.0.0.{number}:4647"))
        .collect()
}

fn servers(count: usize, seed: u64) -> Servers {
    Servers::new(names(count), Backoff::default(), seed)
}

fn used(servers: &mut Servers, now: Duration) -> String {
    match servers.choose(now) {
        Choice::Use(address) => address,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answering_server_is_kept() {
    let mut servers = servers(3, 1);
    let first = used(&mut servers, Duration::ZERO);
    for beat in 1..100 {
        servers.succeeded(&first);
        servers.update(&names(3));
        assert_eq!(used(&mut servers, beat * SECOND), first);
    }
}

#[test]
fn failed_server_is_skipped_for_the_next() {
    let mut servers = servers(3, 1);
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        let address = used(&mut servers, SECOND);
        servers.failed(&address, SECOND);
        assert!(seen.insert(address));
    }
    let Choice::Wait(until) = servers.choose(SECOND) else {
        panic!("all have failed")
    };
    let first = Backoff::default().initial;
    assert!(until > SECOND && until <= SECOND + first, "{until:?}");
    used(&mut servers, until);
}

#[test]
fn server_backoff_doubles_up_to_a_bound() {
    let backoff = Backoff::default();
    let mut servers = servers(1, 1);
    let mut now = Duration::ZERO;
    let mut bound = backoff.initial;
    for _ in 0..100 {
        let address = used(&mut servers, now);
        servers.failed(&address, now);
        let Choice::Wait(until) = servers.choose(now) else {
            panic!("it has just failed")
        };
        assert!(
            until - now >= bound / 2 && until - now <= bound,
            "{:?} of {bound:?}",
            until - now
        );
        now = until;
        bound = (bound * 2).min(backoff.max);
    }
    assert_eq!(bound, backoff.max);
    let address = used(&mut servers, now);
    servers.succeeded(&address);
    servers.failed(&address, now);
    let Choice::Wait(until) = servers.choose(now) else {
        panic!("it has just failed")
    };
    assert!(until - now <= backoff.initial, "one answer makes good");
}

#[test]
fn nodes_spread_over_the_servers() {
    let mut counts = std::collections::BTreeMap::<String, u32>::new();
    for seed in 0..3000 {
        *counts
            .entry(used(&mut servers(3, seed), Duration::ZERO))
            .or_default() += 1;
    }
    assert!(
        counts.values().all(|count| (800..1200).contains(count)),
        "{counts:?}"
    );
    assert_eq!(counts.len(), 3);
}

#[test]
fn same_seed_gives_same_server_order() {
    assert_eq!(servers(9, 7), servers(9, 7));
    assert_ne!(servers(9, 7), servers(9, 8));
}

#[test]
fn new_server_list_replaces_old_and_keeps_configured_last() {
    let mut servers = servers(2, 1);
    let before = used(&mut servers, SECOND);
    let advertised: Vec<String> = ["a:4647", "b:4647", "c:4647"].map(String::from).into();
    servers.update(&advertised);
    let order: Vec<String> = servers.addresses().map(String::from).collect();
    assert_eq!(order.len(), 5);
    assert_eq!(
        order[..3].iter().collect::<BTreeSet<_>>(),
        advertised.iter().collect()
    );
    // The connection that there is stays.
    assert_eq!(used(&mut servers, SECOND), before);
    // From it, all others are reached; the next list has no more of them.
    for _ in 0..5 {
        let address = used(&mut servers, SECOND);
        servers.failed(&address, SECOND);
    }
    assert!(matches!(servers.choose(SECOND), Choice::Wait(_)));
    servers.update(&advertised[..1]);
    assert_eq!(servers.addresses().count(), 3);
    assert!(
        matches!(servers.choose(SECOND), Choice::Wait(_)),
        "failures are remembered"
    );
}

#[test]
fn empty_server_list_is_ignored_and_endless_one_is_cut() {
    let mut servers = servers(2, 1);
    let before = servers.clone();
    servers.update(&[]);
    servers.update(&[String::new(), "x".repeat(10_000)]);
    assert_eq!(servers, before);
    servers.update(&names(100_000));
    assert_eq!(servers.addresses().count(), 64);
    assert_eq!(
        Servers::new(Vec::new(), Backoff::default(), 1).choose(SECOND),
        Choice::Empty
    );
}

#[test]
fn outcome_of_unknown_server_changes_nothing() {
    let mut servers = servers(2, 1);
    let before = servers.clone();
    servers.failed("elsewhere:4647", SECOND);
    servers.succeeded("elsewhere:4647");
    assert_eq!(servers, before);
}
