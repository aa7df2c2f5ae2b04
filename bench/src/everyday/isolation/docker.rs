//! Containers, beside what the engine takes for them when it is asked directly.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{sleep, sleep_until};

use super::{IMAGE, MEMORY, PROGRAM, all_are, isolated, purge, stamp};
use crate::api::{Api, quantile, wall};
use crate::jobs::allocs_of;
use crate::life::stop;

/// How many containers a bare loop starts at a time.
const IN_FLIGHT: usize = 4;
/// How often it is looked whether all are known again: looking takes the engine's processor away.
const GLANCE: Duration = Duration::from_millis(20);

/// The engine, asked directly. Its containers have what an agent would give them: limits, three directories, bounded
/// output.
struct Engine {
    api: Api,
    dirs: String,
}

impl Engine {
    /// That at this socket. The directories of containers are below `dirs`.
    async fn at(socket: &str, dirs: &str) -> Engine {
        for name in ["alloc", "local", "secrets"] {
            fs::create_dir_all(Path::new(dirs).join(name)).unwrap();
        }
        let api = Api::at_socket(socket).await.expect("no engine");
        let dirs = dirs.to_owned();
        Engine { api, dirs }
    }

    async fn start(&mut self, word: &str) -> String {
        let dirs = ["alloc", "local", "secrets"];
        let bytes = MEMORY << 20;
        let body = json!({
            "Image": IMAGE,
            "Cmd": [PROGRAM, word],
            "HostConfig": {
                "NetworkMode": "none",
                "Memory": bytes,
                "MemorySwap": bytes,
                "CpuShares": 2,
                "PidsLimit": 8192,
                "CapDrop": ["ALL"],
                "LogConfig": {
                    "Type": "json-file",
                    "Config": { "max-file": "2", "max-size": "2m" },
                },
                "Binds": dirs.map(|name| format!("{}/{name}:/{name}", self.dirs)),
            },
        });
        let path = "/containers/create";
        let made = self.api.bytes("POST", path, &body.to_string()).await;
        let made: Value = serde_json::from_slice(&made).unwrap();
        let id = made["Id"].as_str().unwrap().to_owned();
        let path = format!("/containers/{id}/start");
        self.api.bytes("POST", &path, "").await;
        id
    }

    async fn remove(&mut self, id: &str) {
        let path = format!("/containers/{id}?force=true&v=true");
        self.api.bytes("DELETE", &path, "").await;
    }

    /// Runs a container to its end. Gives how long it took until its program ran.
    async fn run(&mut self) -> Duration {
        let begin = wall();
        let id = self.start("stamp").await;
        let path = format!("/containers/{id}/wait");
        self.api.bytes("POST", &path, "").await;
        let path = format!("/containers/{id}/logs?stdout=1");
        let output = self.api.bytes("GET", &path, "").await;
        self.remove(&id).await;
        // Eight bytes say which of the outputs follows, and how much.
        let text = str::from_utf8(&output[8..]).unwrap();
        Duration::from_nanos(text.trim().parse().unwrap()).saturating_sub(begin)
    }
}

/// Runs a container to its end. Gives how long it took until its program ran.
async fn run(api: &mut Api, id: &str) -> Duration {
    let begin = wall();
    api.submit(&isolated(id, "batch", 1, "docker", &["stamp"]))
        .await;
    let list = all_are(api, id, 1, "complete").await;
    let began = stamp(api, list[0]["ID"].as_str().unwrap()).await;
    purge(api, id).await;
    began.saturating_sub(begin)
}

/// Starts containers by the engine and by the agent in turns, for so many seconds at most. Prints how much longer it takes
/// by the agent until their program runs, and how long by the engine: p50 of each; and how many there were.
pub(crate) async fn starts(addr: &str, (socket, dirs): (&str, &str), count: u64, seconds: u64) {
    let mut engine = Engine::at(socket, dirs).await;
    let mut api = Api::new(addr).await;
    // The first finds nothing prepared.
    engine.run().await;
    run(&mut api, "first").await;
    let (mut bare, mut asked, begin) = (Vec::new(), Vec::new(), Instant::now());
    for number in 0..count {
        bare.push(engine.run().await);
        asked.push(run(&mut api, &format!("container-{number}")).await);
        if begin.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    let [bare_p50, asked_p50] = [&mut bare, &mut asked].map(|times| quantile(times, 50));
    let above = asked_p50.saturating_sub(bare_p50);
    println!("{above} {bare_p50} {}", bare.len());
}

/// Starts containers, one after the other.
async fn start_each(mut engine: Engine, numbers: impl Iterator) -> (Engine, Vec<String>) {
    let mut ids = Vec::new();
    for _ in numbers {
        ids.push(engine.start("stay").await);
    }
    (engine, ids)
}

/// Starts so many containers by the engine, a few at a time, then as many services by the agent. Prints how long each took
/// until all ran: by the agent, and by the engine.
pub(crate) async fn services(addr: &str, (socket, dirs): (&str, &str), id: &str, count: u64) {
    let engines = join_all((0..IN_FLIGHT).map(|_| Engine::at(socket, dirs))).await;
    let begin = Instant::now();
    let lanes = engines.into_iter().zip(0..);
    let lanes = lanes.map(|(engine, lane)| start_each(engine, (lane..count).step_by(IN_FLIGHT)));
    let lanes = join_all(lanes).await;
    let bare = begin.elapsed();
    join_all(lanes.into_iter().map(|(mut engine, ids)| async move {
        for id in ids {
            engine.remove(&id).await;
        }
    }))
    .await;
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    api.submit(&isolated(id, "service", count, "docker", &["stay"]))
        .await;
    all_are(&mut api, id, count, "running").await;
    println!("{} {}", begin.elapsed().as_micros(), bare.as_micros());
    stop(&mut api, id).await;
}

/// The allocations of a job.
async fn allocs(api: &mut Api, id: &str) -> Vec<String> {
    let list = api.get(&allocs_of(id)).await;
    let ids = list.as_array().unwrap().iter().map(|one| &one["ID"]);
    ids.map(|id| id.as_str().unwrap().to_owned()).collect()
}

/// Asks each second what each allocation of a job uses. Prints how many there are.
pub(crate) async fn poll_each_second(addr: &str, id: &str, seconds: u64) {
    let mut api = Api::new(addr).await;
    let allocs = allocs(&mut api, id).await;
    let begin = tokio::time::Instant::now();
    for second in 1..=seconds {
        for alloc in &allocs {
            let path = format!("/v1/client/allocation/{alloc}/stats");
            api.bytes("GET", &path, "").await;
        }
        sleep_until(begin + Duration::from_secs(second)).await;
    }
    println!("{}", allocs.len());
}

/// Waits for an engine that is about to begin, while tasks of a job write lines. Prints how long after its first answer its
/// driver is healthy, and how long until the output of each task goes on, without that any was started again. Gives up
/// after so many seconds.
pub(crate) async fn engine_returns(addr: &str, socket: &str, id: &str, seconds: u64) {
    let mut api = Api::new(addr).await;
    let allocs = allocs(&mut api, id).await;
    let begin = Instant::now();
    let limit = Duration::from_secs(seconds);
    while !answers(socket).await {
        assert!(begin.elapsed() < limit, "the engine does not answer");
        sleep(Duration::from_millis(1)).await;
    }
    let back = Instant::now();
    let before = sizes(&mut api, &allocs).await;
    let mut healthy = None;
    loop {
        let nodes = api.get("/v1/nodes").await;
        if healthy.is_none() && nodes[0]["Drivers"]["docker"]["Healthy"] == true {
            healthy = Some(back.elapsed());
        }
        let now = sizes(&mut api, &allocs).await;
        let all = now.iter().zip(&before).all(|(now, before)| now > before);
        if let Some(healthy) = healthy.filter(|_| all) {
            let known = back.elapsed();
            assert_untouched(&mut api, id, allocs.len()).await;
            println!("{} {}", healthy.as_micros(), known.as_micros());
            return;
        }
        assert!(begin.elapsed() < limit, "not all are known again");
        sleep(GLANCE).await;
    }
}

/// Whether an engine answers at this socket.
async fn answers(socket: &str) -> bool {
    match Api::at_socket(socket).await {
        Some(mut engine) => engine.answers("/_ping").await,
        None => false,
    }
}

/// How much output of each allocation there is.
async fn sizes(api: &mut Api, allocs: &[String]) -> Vec<u64> {
    let mut sizes = Vec::new();
    for alloc in allocs {
        let path = format!("/v1/client/fs/stat/{alloc}?path=alloc/logs/t.stdout.0");
        let file = api.get_json(&path).await;
        sizes.push(file["Size"].as_u64().unwrap_or(0));
    }
    sizes
}

/// All tasks of a job run, and none was started again.
async fn assert_untouched(api: &mut Api, id: &str, count: usize) {
    let list = api.get(&allocs_of(id)).await;
    let untouched = |alloc: &&Value| {
        let task = &alloc["TaskStates"]["t"];
        task["State"] == "running" && task["Restarts"].as_u64().unwrap_or(0) == 0
    };
    let found = list.as_array().unwrap().iter().filter(untouched).count();
    assert_eq!(found, count, "some were started again");
}
