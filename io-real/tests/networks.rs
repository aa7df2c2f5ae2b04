//! Networks of allocations, made and removed without an agent. Each test is in a network namespace that it makes.
//! Without root these tests say so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "common/network_world.rs"]
mod network_world;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

use drover_core::ids::AllocId;
use drover_core::model::network::Dns;
use drover_core::work::BuildNetwork;
use drover_io_real::network::{CniPlugins, Networks, WrongRule};
use network_world::{TIMEOUT, World, says, until};
use rustix::mount::{UnmountFlags, unmount};

/// Links of allocations that this thread's network has.
fn links(networks: &Networks) -> usize {
    networks.links().unwrap().len()
}

fn ports(number: &str) -> usize {
    let map = ["nft", "list", "map", "ip", "drover", "forwards"];
    says(&map).unwrap_or_default().matches(number).count()
}

#[test]
fn hundred_networks_are_made_found_and_removed() {
    let Some(world) = World::new() else { return };
    let networks = &world.networks;
    let mut times = Vec::new();
    let began = Instant::now();
    for number in 0..100 {
        let (alloc, work) = world.wanted(number);
        let began = Instant::now();
        networks.build(alloc, &work).unwrap();
        times.push(began.elapsed());
    }
    let made = began.elapsed();
    assert_eq!(links(networks), 100);
    assert_eq!(networks.owners().unwrap().len(), 100);
    let both: BTreeSet<String> = ["eth0", "lo"].map(str::to_owned).into();
    let again = Instant::now();
    for number in 0..100 {
        let (alloc, work) = world.wanted(number);
        networks.build(alloc, &work).unwrap();
    }
    let again = again.elapsed();
    assert_eq!(links(networks), 100, "what is there is found");
    assert_eq!(world.seen(world.wanted(5).0), both);
    let removal = Instant::now();
    for number in 0..100 {
        networks.remove(world.wanted(number).0, None).unwrap();
    }
    let removed = removal.elapsed();
    while links(networks) > 0 {
        assert!(
            removal.elapsed() < TIMEOUT,
            "{} links stay",
            links(networks)
        );
        std::thread::yield_now();
    }
    let gone = removal.elapsed();
    times.sort();
    eprintln!(
        "100 networks: made in {made:?} (p50 {:?}, p99 {:?}), found in {again:?}, removed in {removed:?}, links gone \
         after {gone:?}",
        times[50], times[98]
    );
    assert_eq!(networks.owners().unwrap(), BTreeSet::new());
    assert_eq!(ports("172.26."), 0);
    networks.remove_host_part().unwrap();
    assert!(
        !fs::read_to_string("/proc/thread-self/net/dev")
            .unwrap()
            .contains("drover")
    );
}

#[test]
fn network_is_completed_from_any_part() {
    let Some(world) = World::new() else { return };
    let networks = &world.networks;
    let (alloc, work) = world.wanted(1);
    networks.build(alloc, &work).unwrap();
    let both: BTreeSet<String> = ["eth0", "lo"].map(str::to_owned).into();
    let (name, owner) = networks.links().unwrap().remove(0);
    assert_eq!(owner, alloc);
    // The link is gone.
    let deleted = Command::new("ip").args(["link", "del", &name]).status();
    if deleted.is_ok_and(|status| status.success()) {
        networks.build(alloc, &work).unwrap();
        assert_eq!(world.seen(alloc), both);
    }
    // The rules are gone.
    let flushed = Command::new("nft").args(["flush", "ruleset"]).status();
    if flushed.is_ok_and(|status| status.success()) {
        networks.build(alloc, &work).unwrap();
        assert_eq!(ports("20001"), 2, "TCP and UDP");
    }
    // As after a restart of the machine: nothing is mounted, and the file is there.
    unmount(networks.path(alloc).join("ns"), UnmountFlags::DETACH).unwrap();
    networks.build(alloc, &work).unwrap();
    assert_eq!(world.seen(alloc), both);
    networks.remove(alloc, work.address).unwrap();
    networks.remove(alloc, work.address).unwrap();
}

#[test]
fn unknown_networks_are_removed_and_no_others() {
    let Some(world) = World::new() else { return };
    let networks = &world.networks;
    let (kept, of_kept) = world.wanted(1);
    let (left, of_left) = world.wanted(2);
    networks.build(kept, &of_kept).unwrap();
    networks.build(left, &of_left).unwrap();
    networks.remove_unknown(|alloc| alloc == kept).unwrap();
    assert_eq!(networks.owners().unwrap(), [kept].into());
    assert_eq!((ports("20001"), ports("20002")), (2, 0));
    networks.remove_host_part().unwrap();
    assert_eq!(ports("20001"), 2, "somebody is behind the bridge");
    networks.remove(kept, None).unwrap();
}

#[test]
fn bridge_is_one_agents_until_it_and_its_tasks_are_gone() {
    let Some(world) = World::new() else { return };
    let (alloc, work) = world.wanted(1);
    let (of_second, wanted) = world.wanted(2);
    let (first, second) = (world.another("first"), world.another("second"));
    // One without networks keeps nobody off.
    assert_eq!(second.fault(), None);
    first.build(alloc, &work).unwrap();
    let refused = second.build(of_second, &wanted).unwrap_err().to_string();
    assert!(
        refused.contains("another agent on this host uses"),
        "{refused}"
    );
    assert!(refused.contains("bridge_network_name"), "{refused}");
    assert_eq!(second.fault(), Some(refused));
    assert!(second.resume([]).is_err());
    second.remove(of_second, work.address).unwrap();
    assert_eq!(ports("20001"), 2, "nothing of the first one's is touched");
    // The first one is down, and its tasks are not.
    drop(first);
    until(|| {
        second
            .fault()
            .unwrap()
            .contains("networks of another agent")
    });
    assert!(second.build(of_second, &wanted).is_err());
    second.remove(of_second, work.address).unwrap();
    assert_eq!(ports("20001"), 2, "nothing of the first one's is touched");
    let first = world.another("first");
    assert_eq!(first.fault(), None);
    first
        .resume([(alloc, work.address.unwrap(), work.ports)])
        .unwrap();
    first.remove(alloc, None).unwrap();
    assert_eq!(ports("20001"), 0);
    drop(first);
    // The link goes a little later than its namespace.
    until(|| second.build(of_second, &wanted).is_ok());
    assert_eq!((second.fault(), ports("20002")), (None, 2));
    second.remove(of_second, None).unwrap();
}

#[test]
fn rules_that_somebody_removes_are_there_again() {
    let Some(world) = World::new() else { return };
    let networks = &world.networks;
    if says(&["nft", "list", "tables"]).is_none() {
        eprintln!("skipped: there is no nft");
        return;
    }
    for number in 1..=3 {
        let (alloc, work) = world.wanted(number);
        networks.build(alloc, &work).unwrap();
    }
    let are_whole = || {
        let chain = ["nft", "list", "chain", "ip", "drover", "postrouting"];
        let rules = says(&chain).unwrap_or_default();
        let all = ["20001", "20002", "20003"].map(ports) == [2; 3];
        all && rules.matches("masquerade").count() == 3
    };
    until(are_whole);
    for words in [
        &["flush", "ruleset"][..],
        &["delete", "table", "ip", "drover"],
        &["flush", "map", "ip", "drover", "forwards"],
        &["flush", "chain", "ip", "drover", "postrouting"],
    ] {
        says(&[&["nft"], words].concat()).unwrap();
        until(are_whole);
    }
    assert_eq!(networks.wrong_rules().unwrap(), []);
    // The agent's own changes bring nothing about.
    let handle = || {
        let table = says(&["nft", "-a", "list", "table", "ip", "drover"]).unwrap();
        let line = table.lines().find(|line| line.starts_with("table"));
        line.unwrap().to_owned()
    };
    let before = handle();
    for number in 4..20 {
        let (alloc, work) = world.wanted(number);
        networks.build(alloc, &work).unwrap();
        networks.remove(alloc, None).unwrap();
    }
    assert_eq!(handle(), before, "the table was not made anew");
    // A firewall that comes later drops what is forwarded.
    if says(&["iptables", "-P", "FORWARD", "DROP"]).is_some() {
        let pass = || {
            says(&["iptables", "-S", "FORWARD"])
                .unwrap()
                .contains("-i drover -j ACCEPT")
        };
        until(pass);
        says(&["iptables", "-F", "FORWARD"]).unwrap();
        until(pass);
    }
    for number in 1..=3 {
        networks.remove(world.wanted(number).0, None).unwrap();
    }
}

#[test]
fn dangling_network_rules_are_reported_and_removable() {
    let Some(world) = World::new() else { return };
    let networks = &world.networks;
    let (alloc, work) = world.wanted(1);
    networks.build(alloc, &work).unwrap();
    assert_eq!(networks.wrong_rules().unwrap(), []);
    let element = "{ 0.0.0.0 . tcp . 9999 : 172.26.64.77 . 80 }";
    let words = ["nft", "add", "element", "ip", "drover", "forwards", element];
    if says(&words).is_none() {
        eprintln!("skipped: there is no nft");
        return;
    }
    let stale = "tcp 0.0.0.0:9999 to 172.26.64.77:80".to_owned();
    let found = networks.wrong_rules().unwrap();
    assert_eq!(found, [WrongRule::Stale(stale.clone())]);
    networks.remove_stale_rule(&stale).unwrap();
    assert_eq!(networks.wrong_rules().unwrap(), []);
    assert_eq!((ports("9999"), ports("20001")), (0, 2));
    networks.remove(alloc, None).unwrap();
}

/// A plugin that makes nothing, and writes down what it was asked for, and whether there was a namespace.
const PLUGIN: &str = r#"#!/bin/sh
echo "$CNI_COMMAND $([ -e "$CNI_NETNS" ] && echo there)" >> "${0%/*}/calls"
echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.99.0.7/24"}]}'
"#;

#[test]
fn network_of_plugins_is_taken_back_by_whoever_finds_it() {
    let Some(world) = World::new() else { return };
    let home = tempfile::tempdir().unwrap();
    let plugin = home.path().join("plugin");
    let set_mode = |mode| fs::set_permissions(&plugin, fs::Permissions::from_mode(mode)).unwrap();
    fs::write(&plugin, PLUGIN).unwrap();
    set_mode(0o755);
    let list = home.path().join("mine.conf");
    let text = r#"{"cniVersion": "1.0.0", "name": "mine", "type": "plugin"}"#;
    fs::write(&list, text).unwrap();
    let networks = world.another("agent").with_plugins(CniPlugins {
        path: vec![home.path().to_owned()],
        config_dir: home.path().to_owned(),
    });
    let (alloc, mut work) = world.wanted(1);
    (work.mode, work.address) = ("cni/mine".parse().unwrap(), None);
    let made = networks.build(alloc, &work).unwrap().unwrap();
    assert_eq!(made.reached_at(), "10.99.0.7".parse().ok());
    // As after a restart of the machine: the namespace is gone.
    unmount(networks.path(alloc).join("ns"), UnmountFlags::DETACH).unwrap();
    assert_eq!(networks.build(alloc, &work).unwrap(), Some(made.clone()));
    // The agent goes on, while somebody uses it.
    assert_eq!(networks.build(alloc, &work).unwrap(), Some(made));
    // A plugin that is gone for a while leaves the network to who comes later.
    set_mode(0o644);
    let why = networks.remove(alloc, None).unwrap_err().to_string();
    assert!(why.contains("there is no CNI plugin plugin in"), "{why}");
    assert_eq!(networks.owners().unwrap(), [alloc].into());
    set_mode(0o755);
    // Another agent knows neither the allocation nor the configuration.
    fs::remove_file(&list).unwrap();
    let why = networks.build(AllocId(9), &work).unwrap_err().to_string();
    assert!(why.contains("describes a network mine"), "{why}");
    drop(networks);
    let next = world.another("agent");
    next.remove_unknown(|_| false).unwrap();
    until(|| next.owners().unwrap().is_empty());
    let calls = fs::read_to_string(home.path().join("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().map(str::trim).collect();
    let expected = ["ADD there", "DEL", "ADD there", "CHECK there", "DEL there"];
    assert_eq!(calls, expected);
}

/// A plugin that makes nothing, and takes nothing back while a file says so.
const LOCKED: &str = r#"#!/bin/sh
[ "$CNI_COMMAND" = DEL ] && [ -e "$0.locked" ] && exit 1
echo '{"cniVersion": "1.0.0"}'
"#;

#[test]
fn network_stays_until_each_of_its_plugins_took_it_back() {
    let Some(world) = World::new() else { return };
    let home = tempfile::tempdir().unwrap();
    for name in ["first", "last"] {
        let plugin = home.path().join(name);
        fs::write(&plugin, LOCKED).unwrap();
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let text = r#"{"cniVersion": "1.0.0", "name": "mine", "plugins": [{"type": "first"}, {"type": "last"}]}"#;
    fs::write(home.path().join("mine.conflist"), text).unwrap();
    let networks = world.another("agent").with_plugins(CniPlugins {
        path: vec![home.path().to_owned()],
        config_dir: home.path().to_owned(),
    });
    let (alloc, mut work) = world.wanted(1);
    (work.mode, work.address) = ("cni/mine".parse().unwrap(), None);
    networks.build(alloc, &work).unwrap();
    // They are asked in the opposite order, and the first one works.
    let locked = home.path().join("last.locked");
    fs::write(&locked, "").unwrap();
    let why = networks.remove(alloc, None).unwrap_err().to_string();
    assert!(why.contains("CNI plugin last (DEL)"), "{why}");
    assert_eq!(networks.owners().unwrap(), [alloc].into());
    fs::remove_file(locked).unwrap();
    networks.remove(alloc, None).unwrap();
    assert_eq!(networks.owners().unwrap(), BTreeSet::new());
}

#[test]
fn hostile_values_make_nothing() {
    let Some(world) = World::new() else { return };
    for change in [
        |work: &mut BuildNetwork| work.hostname = "a\n6.6.6.6 bank".to_owned(),
        |work: &mut BuildNetwork| {
            work.dns = Some(Dns {
                servers: vec!["1.1.1.1\nsearch x".to_owned()],
                ..Dns::default()
            });
        },
    ] {
        let (alloc, mut work) = world.wanted(1);
        change(&mut work);
        assert!(world.networks.build(alloc, &work).is_err());
        assert_eq!(world.networks.owners().unwrap(), BTreeSet::new());
    }
}
