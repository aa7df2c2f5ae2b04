//! Cores that a task has for itself: whether any process ever runs elsewhere than it may.

use std::collections::BTreeSet;
use std::fs;
use std::process;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::sleep;

use super::{all_are, isolated, purge, task_of};
use crate::api::{Api, REST};
use crate::life::stop;

/// How long it may take after a task is over until others have its cores again.
const GRACE: Duration = Duration::from_secs(1);

/// Gives a core to a task and takes it back, again and again, while other tasks make processes without end. Prints after
/// how many of these changes a process was allowed to run where it should not be, and how many changes there were: so many,
/// or what could be done in so many seconds.
pub(crate) async fn changes(addr: &str, driver: &str, count: u64, seconds: u64) {
    let mut api = Api::new(addr).await;
    let marks = ["sharing", "pinned"].map(|name| format!("bench-{name}-{}", process::id()));
    let [sharing, pinned] = &marks;
    let load = isolated("sharing", "service", 2, driver, &["load", sharing]);
    api.submit(&load).await;
    all_are(&mut api, "sharing", 2, "running").await;
    let all = of_a_task(sharing, cores).await;
    let mut job = isolated("pinned", "service", 1, driver, &["load", pinned]);
    let task = task_of(&mut job);
    task["Resources"] = json!({ "Cores": 1, "MemoryMB": super::MEMORY });
    task["KillSignal"] = json!("SIGKILL");
    let (mut done, mut outside, begin) = (0, 0, Instant::now());
    while done < count && begin.elapsed() < Duration::from_secs(seconds) {
        api.submit(&job).await;
        all_are(&mut api, "pinned", 1, "running").await;
        outside += u64::from(!is_kept(sharing, pinned).await);
        api.bytes("DELETE", "/v1/job/pinned", "").await;
        all_are(&mut api, "pinned", 1, "complete").await;
        outside += u64::from(!is_given_back(sharing, &all).await);
        purge(&mut api, "pinned").await;
        done += 2;
    }
    stop(&mut api, "sharing").await;
    // Who reads this ends the agent.
    println!("{outside} {done}");
}

/// Whether each process of the task that has a core for itself is there alone, and none of the others.
async fn is_kept(sharing: &str, pinned: &str) -> bool {
    let own = of_a_task(pinned, own_cores).await;
    // Whoever ended meanwhile is nowhere.
    let there = |mark| processes(mark).into_iter().filter_map(cores);
    there(pinned).all(|cores| cores == own) && there(sharing).all(|cores| cores.is_disjoint(&own))
}

/// Whether those who share their cores have all of them again.
async fn is_given_back(sharing: &str, all: &BTreeSet<u32>) -> bool {
    let begin = Instant::now();
    loop {
        let mut found = processes(sharing).into_iter().filter_map(cores);
        if found.all(|cores| cores == *all) {
            return true;
        }
        if begin.elapsed() > GRACE {
            return false;
        }
        sleep(REST).await;
    }
}

/// What is found of one of the processes that make the others.
async fn of_a_task<T>(mark: &str, find: impl Fn(u32) -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        let makes = |pid: &u32| arguments(*pid).contains("\0load\0");
        let mut making = processes(mark).into_iter().filter(makes);
        // One that was made a moment ago looks like its parent until it is another program.
        if let Some(found) = making.find_map(&find) {
            return found;
        }
        assert!(begin.elapsed() < GRACE, "no process has the mark {mark}");
        sleep(REST).await;
    }
}

/// The cores that a process is told to have for itself; none if it ended.
fn own_cores(pid: u32) -> Option<BTreeSet<u32>> {
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let variables = String::from_utf8_lossy(&variables).into_owned();
    let mut variables = variables.split('\0');
    variables
        .find_map(|line| line.strip_prefix("NOMAD_CPU_CORES="))
        .map(ranges)
}

/// The processes that have this among their arguments.
fn processes(mark: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let wanted = format!("\0{mark}\0");
    numbers
        .filter(|pid| arguments(*pid).contains(&wanted))
        .collect()
}

/// The arguments of a process, a NUL after each; nothing if it ended.
fn arguments(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The cores on which a process may run; none if it ended.
fn cores(pid: u32) -> Option<BTreeSet<u32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(ranges(list))
}

/// A list such as `0-2,5`.
fn ranges(list: &str) -> BTreeSet<u32> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse::<u32>().unwrap()
    };
    list.trim().split(',').flat_map(one).collect()
}
