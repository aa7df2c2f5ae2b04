//! Stores that earlier versions wrote are read, with everything in them.
//!
//! A fixture is a data directory without its allocations, packed: `state`, `last-commit`, `secret-id`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

use std::fs::File;
use std::path::Path;

use drover_core::agent::Agent;
use drover_core::config::Config;
use drover_core::model::node::Node;
use drover_core::store::record::AllocRecord;
use drover_core::time::{Instant, Now, Timestamp};
use drover_io_real::store::{Opened, Store};
use flate2::read::GzDecoder;
use tempfile::TempDir;

/// A store of an earlier version, opened.
fn opened(name: &str) -> (TempDir, Opened) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/stores");
    let packed = File::open(fixtures.join(format!("{name}.tar.gz"))).unwrap();
    let dir = TempDir::new().unwrap();
    tar::Archive::new(GzDecoder::new(packed))
        .unpack(dir.path())
        .unwrap();
    let opened = Store::open(dir.path()).unwrap();
    (dir, opened)
}

#[test]
fn store_of_0_1_0_is_read_whole() {
    let (_dir, Opened { saved, damaged, .. }) = opened("0.1.0-first-names");
    assert!(damaged.is_empty(), "{damaged:?}");
    assert!(saved.unreadable.is_empty(), "{:?}", saved.unreadable);
    let jobs: Vec<&str> = saved.jobs.keys().map(|key| &*key.id).collect();
    let expected = ["big", "once", "web", "work"];
    assert!(
        jobs.len() == 5 && expected.iter().all(|id| jobs.contains(id)),
        "expected {expected:?} and a dispatched job, found {jobs:?}"
    );
    let allocs = || saved.allocs.values().map(|alloc| &**alloc);
    let job = |alloc: &AllocRecord| alloc.job.id.split('/').next().unwrap().to_owned();
    let mut found: Vec<_> = allocs()
        .map(|alloc| (job(alloc), alloc.status.as_str()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("once", "complete"),
        ("web", "complete"),
        ("web", "running"),
        ("web", "running"),
        ("web", "running"),
        ("work", "running"),
    ];
    assert_eq!(
        found,
        expected.map(|(job, status)| (job.to_owned(), status))
    );
    assert_eq!(
        saved.tasks.len(),
        found.len(),
        "each allocation has one task"
    );
    assert_eq!(saved.variables.len(), 1);
    let web = allocs().filter(|alloc| &*alloc.job.id == "web");
    assert!(web.clone().count() >= 3 && web.clone().all(|alloc| alloc.ports.len() == 1));
}

#[test]
fn agent_restored_from_store_of_0_1_0_knows_its_allocs() {
    let (_dir, Opened { saved, .. }) = opened("0.1.0-first-names");
    let expected = saved.allocs.len();
    let now = Now {
        at: Instant(1),
        wall: Timestamp(1_800_000_000_000_000_000),
    };
    let agent = Agent::restore(Config::new(1, Node::default(), "/alloc"), saved, now);
    assert_eq!(agent.view().allocs().count(), expected);
    let status = |id: &str| {
        let key = agent.view().jobs().map(|job| job.job.key());
        let key = { key }.find(|key| &*key.id == id).unwrap();
        agent.view().job_status(&key).as_str()
    };
    let found = ["big", "once", "web", "work"].map(status);
    assert_eq!(found, ["pending", "dead", "running", "running"]);
}
