//! The lives of single tasks: how soon they run, how soon they are over, how little memory they need.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{all_are, group_of, isolated, purge, stamp, task_of};
use crate::api::{Api, quantile, wall};
use crate::jobs::allocs_of;

/// A task that does not end within this time hangs.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How long tasks took.
#[derive(Default)]
struct Lives {
    /// From their submission until their program ran.
    starts: Vec<Duration>,
    /// From the wish to stop them until it was known that they are over.
    stops: Vec<Duration>,
}

impl Lives {
    /// Lets a task live.
    async fn add(&mut self, api: &mut Api, job: &Value) {
        let id = job["ID"].as_str().unwrap();
        let begin = wall();
        api.submit(job).await;
        let list = all_are(api, id, 1, "running").await;
        let began = stamp(api, list[0]["ID"].as_str().unwrap()).await;
        self.starts.push(began.saturating_sub(begin));
        let begin = Instant::now();
        api.bytes("DELETE", &format!("/v1/job/{id}"), "").await;
        all_are(api, id, 1, "complete").await;
        self.stops.push(begin.elapsed());
        purge(api, id).await;
    }

    /// p50 and p99 of the starts, p50 of the stops, in microseconds.
    fn figures(&mut self) -> [u128; 3] {
        let [p50, p99] = [50, 99].map(|percent| quantile(&mut self.starts, percent));
        [p50, p99, quantile(&mut self.stops, 50)]
    }
}

/// Lets tasks that handle no signal live, one after the other, for so many seconds at most. Prints how long they took to
/// start, p50 and p99, and to stop, p50; and how many there were.
pub(crate) async fn lives(addr: &str, driver: &str, count: u64, seconds: u64) {
    let mut api = Api::new(addr).await;
    let job = |number: u64| isolated(&format!("life-{number}"), "service", 1, driver, &["stay"]);
    // The first finds nothing prepared.
    Lives::default().add(&mut api, &job(count)).await;
    let (mut lives, begin) = (Lives::default(), Instant::now());
    for number in 0..count {
        lives.add(&mut api, &job(number)).await;
        if begin.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    let [p50, p99, stop] = lives.figures();
    println!("{p50} {p99} {stop} {}", lives.starts.len());
}

/// Lets tasks in the host's network and tasks in networks of their own live in turns. Prints how much longer the latter
/// took: the same figures as for [`lives`].
pub(crate) async fn added_by_networks(addr: &str, driver: &str, count: u64, seconds: u64) {
    let mut api = Api::new(addr).await;
    let job = |name: &str, number: u64| {
        let mut job = isolated(&format!("{name}-{number}"), "service", 1, driver, &["stay"]);
        // How long a task is waited for that handles no signal is not asked here.
        task_of(&mut job)["KillSignal"] = json!("SIGKILL");
        if name == "bridged" {
            group_of(&mut job)["Networks"] = json!([{ "Mode": "bridge" }]);
        }
        job
    };
    for name in ["plain", "bridged"] {
        Lives::default().add(&mut api, &job(name, count)).await;
    }
    let (mut plain, mut bridged) = (Lives::default(), Lives::default());
    let begin = Instant::now();
    for number in 0..count {
        plain.add(&mut api, &job("plain", number)).await;
        bridged.add(&mut api, &job("bridged", number)).await;
        if begin.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    let (without, with) = (plain.figures(), bridged.figures());
    let added = [0, 1, 2].map(|which| with[which].saturating_sub(without[which]).to_string());
    println!("{} {}", added.join(" "), plain.starts.len());
}

/// Prints whether `true` succeeds as a task of `exec` with so many megabytes of memory: 1 or 0.
pub(crate) async fn fits(addr: &str, id: &str, megabytes: u64) {
    let mut api = Api::new(addr).await;
    let mut job = isolated(id, "batch", 1, "exec", &[]);
    group_of(&mut job)["Volumes"] = Value::Null;
    let task = task_of(&mut job);
    task["VolumeMounts"] = Value::Null;
    task["Config"] = json!({ "command": "/bin/true" });
    task["Resources"]["MemoryMB"] = json!(megabytes);
    api.submit(&job).await;
    let over = |list: &Value| {
        let status = list[0]["ClientStatus"].as_str().unwrap_or_default();
        !matches!(status, "" | "pending" | "running")
    };
    let list = timeout(START_TIMEOUT, api.await_change(&allocs_of(id), over)).await;
    let succeeds = list.is_ok_and(|list| list[0]["ClientStatus"] == "complete");
    println!("{}", u8::from(succeeds));
    // What was given up is not answered any more.
    purge(&mut Api::new(addr).await, id).await;
}
