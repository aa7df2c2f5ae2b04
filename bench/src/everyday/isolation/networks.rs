//! Networks of groups: how many a second come and go.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{all_are, group_of, purge};
use crate::api::{Api, REST, TIMEOUT};
use crate::jobs::single;

/// Runs so many allocations with networks of their own to their end. Prints how many a second came and went, until the
/// last link was gone, and until the last task was over, whatever was left.
pub(crate) async fn rate(addr: &str, id: &str, count: u64) {
    let mut api = Api::new(addr).await;
    // What all have in common is made with the first.
    run(&mut api, "first", 1).await;
    all_gone().await;
    let begin = Instant::now();
    run(&mut api, id, count).await;
    let over = begin.elapsed();
    all_gone().await;
    let gone = begin.elapsed();
    let [gone, over] = [gone, over].map(|time| u128::from(count) * 1_000_000 / time.as_micros());
    println!("{gone} {over}");
    for id in ["first", id] {
        purge(&mut api, id).await;
    }
}

async fn run(api: &mut Api, id: &str, count: u64) {
    let mut job = single(id, "batch", count, "/bin/true", &[]);
    group_of(&mut job)["Networks"] = json!([{ "Mode": "bridge" }]);
    api.submit(&job).await;
    let dead = |list: &Value| list[0]["ID"] == id && list[0]["Status"] == "dead";
    api.wait_for(&format!("/v1/jobs?prefix={id}"), dead).await;
    all_are(api, id, count, "complete").await;
}

/// Waits until no group has a link any more: the kernel takes them away in its own time.
async fn all_gone() {
    let begin = Instant::now();
    while links() > 0 {
        assert!(begin.elapsed() < TIMEOUT, "{} links stay", links());
        sleep(REST).await;
    }
}

/// How many links of groups this network has.
fn links() -> usize {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    names.filter(|(name, _)| is_of_group(name.trim())).count()
}

/// Whether a link is called as agents call the host's end of a group's network.
fn is_of_group(name: &str) -> bool {
    name.starts_with("veth") || (name.starts_with("dr") && name.len() == 15)
}
