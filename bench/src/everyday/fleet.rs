//! Many nodes, many allocations, and two clusters side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use http_body_util::BodyExt;
use hyper::body::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::sleep;

use crate::api::{Api, TIMEOUT, quantile, wall};
use crate::jobs::{allocs_of, own, single};

const SECOND: Duration = Duration::from_secs(1);
/// Servers that found nobody to send figures to try again after five seconds.
const DEAF: Duration = Duration::from_secs(6);
/// For how long calls are counted after a leader is gone: longer than a node waits that heard of no leader.
const AFTER: Duration = Duration::from_secs(60);
/// Under this name a server counts each call that comes to it.
const CALL: &str = "nomad.nomad.rpc.request";
/// And the leader each heartbeat, under this one.
const BEAT: &str = "nomad.nomad.client.update_status";

/// Waits until the servers have so many nodes that are ready.
pub(crate) async fn nodes(servers: &str, count: usize) {
    let mut api = Api::new(servers).await;
    api.await_change("/v1/nodes", |nodes| ready(nodes) == count)
        .await;
}

fn ready(nodes: &Value) -> usize {
    let all = nodes.as_array().into_iter().flatten();
    all.filter(|node| node["Status"] == "ready").count()
}

/// Prints p50 from submission to the start of a process in two clusters, whose turns alternate: whatever else this
/// machine has to do slows both.
pub(crate) async fn beside(one: &str, other: &str, count: u64, socket: &str) {
    let mut clusters = [Api::new(one).await, Api::new(other).await];
    let mut times = [Vec::new(), Vec::new()];
    let stamps = UnixDatagram::bind(socket).unwrap();
    stamps.set_read_timeout(Some(TIMEOUT)).unwrap();
    for number in 0..count {
        let id = format!("beside-{number}");
        for (api, times) in clusters.iter_mut().zip(&mut times) {
            let begin = wall();
            api.submit(&single(&id, "batch", 1, &own(), &["stamp", socket]))
                .await;
            let mut stamp = [0; 16];
            stamps.recv(&mut stamp).expect("the process says nothing");
            let nanos = u64::try_from(u128::from_le_bytes(stamp)).unwrap();
            times.push(Duration::from_nanos(nanos).saturating_sub(begin));
            api.await_change(&allocs_of(&id), |list| {
                list[0]["ClientStatus"] == "complete"
            })
            .await;
        }
    }
    let [one, other] = times.map(|mut times| quantile(&mut times, 50));
    println!("{one} {other}");
}

/// Places so many allocations on the only node at once. Prints how long it took from there, as the servers tell it,
/// until the node has decided on the last of them, as its events tell it; and the same from its first.
pub(crate) async fn pulled(servers: &str, node: &str, count: usize) {
    let mut api = Api::new(servers).await;
    let mut events = events(node).await;
    api.submit(&single(
        "pulled",
        "service",
        count as u64,
        &own(),
        &["wait", "600000"],
    ))
    .await;
    api.await_change("/v1/job/pulled/summary", |summary| {
        let of = |what: &str| summary["Summary"]["g"][what].as_u64().unwrap_or(0);
        of("Starting") + of("Running") >= count as u64
    })
    .await;
    let placed = Instant::now();
    let (mut first, mut known) = (None, BTreeSet::new());
    let mut line = Vec::new();
    loop {
        let (at, bytes) = events.recv().await.expect("the node hung up");
        line.extend_from_slice(&bytes);
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let rest = line.split_off(end + 1);
            let step: Value = serde_json::from_slice(&line).unwrap_or_default();
            line = rest;
            known.extend(allocs_in(&step));
            if !known.is_empty() {
                first.get_or_insert(at);
            }
        }
        assert!(placed.elapsed() < TIMEOUT, "{} of {count}", known.len());
        if known.len() == count {
            let first = at.saturating_duration_since(first.unwrap_or(at));
            let placed = at.saturating_duration_since(placed);
            println!("{} {}", placed.as_micros(), first.as_micros());
            return;
        }
    }
}

/// The allocations of the job that a line of events is about.
fn allocs_in(step: &Value) -> Vec<String> {
    let events = step["Events"].as_array().into_iter().flatten();
    let allocs = events.map(|event| &event["Payload"]["Allocation"]);
    let ours = allocs.filter(|alloc| alloc["JobID"] == "pulled");
    ours.filter_map(|alloc| Some(alloc["ID"].as_str()?.to_owned()))
        .collect()
}

/// What a node tells of its allocations, and when each piece came.
async fn events(node: &str) -> UnboundedReceiver<(Instant, Bytes)> {
    let mut api = Api::new(node).await;
    let answer = api.send("GET", "/v1/event/stream?topic=Allocation", "");
    let mut body = answer.await.into_body();
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let _api = api;
        while let Some(Ok(frame)) = body.frame().await {
            let now = Instant::now();
            if let Ok(data) = frame.into_data()
                && sender.send((now, data)).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// When servers counted what.
#[derive(Clone, Default)]
struct Figures(Arc<Mutex<Vec<(Instant, String)>>>);

impl Figures {
    /// What servers send there from now on, in statsd's form.
    fn of(addr: &str) -> Figures {
        let socket = UdpSocket::bind(addr).unwrap();
        let figures = Figures::default();
        let own = figures.clone();
        thread::spawn(move || {
            let mut packet = vec![0; 1 << 16];
            while let Ok(size) = socket.recv(&mut packet) {
                let now = Instant::now();
                let text = String::from_utf8_lossy(&packet[..size]);
                let names = text.lines().filter_map(|line| line.split(':').next());
                let of_nodes =
                    |name: &&str| *name == CALL || name.starts_with("nomad.nomad.client.");
                let counted = names.filter(of_nodes).map(|name| (now, name.to_owned()));
                own.0.lock().unwrap().extend(counted);
            }
        });
        figures
    }

    /// How often each thing was counted from then on, for so long.
    fn counts(&self, from: Instant, long: Duration) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (at, name) in &*self.0.lock().unwrap() {
            if *at >= from && *at < from + long {
                *counts.entry(name.clone()).or_default() += 1;
            }
        }
        counts
    }

    fn calls(&self, from: Instant, long: Duration) -> u64 {
        self.counts(from, long).get(CALL).copied().unwrap_or(0)
    }
}

/// Kills the leader of three servers. Prints how long it took until each of the agents had a heartbeat acknowledged;
/// the most calls in a second after that, in hundredths of the heartbeats in a second before; and how many nodes are not
/// ready a minute later. What servers ask of each other is among the calls: so it is too much rather than too little.
///
/// `servers` are the addresses of their API, and `pids` their processes in the same order; agents have their API at
/// `agents`.
pub(crate) async fn failover(
    servers: &str,
    figures: &str,
    pids: &str,
    seconds: u32,
    agents: &[&str],
) {
    let figures = Figures::of(figures);
    let all: Vec<&str> = servers.split(',').collect();
    sleep(DEAF).await;
    let began = Instant::now();
    sleep(SECOND * seconds).await;
    let before = figures.counts(began, SECOND * seconds);
    eprintln!("bench: counted in {seconds} s: {before:?}");
    // Two of three come to another server first, which counts them, too.
    let steady = (before.get(BEAT).copied().unwrap_or(0) * 5 / 3).max(1);
    let leads = leader(&mut Api::new(all[0]).await).await;
    let at = all.iter().position(|http| rpc_of(http) == leads);
    let at = at.expect("none of the servers leads");
    let pid = pids.split(',').nth(at).expect("no process of it");
    let killed = Instant::now();
    let kill = Command::new("kill").args(["-KILL", pid]).status();
    assert!(kill.unwrap().success(), "the leader lives");
    let beats = join_all(agents.iter().map(|agent| beat_after(agent, killed))).await;
    let last = beats.into_iter().max().unwrap_or_default();
    sleep((killed + AFTER).saturating_duration_since(Instant::now())).await;
    let whole = u32::try_from(AFTER.as_secs()).unwrap();
    let each = (0..whole).map(|second| figures.calls(killed + SECOND * second, SECOND));
    let each: Vec<u64> = each.collect();
    eprintln!("bench: calls in each second after: {each:?}");
    let peak = each.into_iter().max().unwrap_or(0);
    let ratio = peak * 100 * u64::from(seconds) / steady;
    let left = all[(at + 1) % all.len()];
    let list = Api::new(left).await.get("/v1/nodes").await;
    let lost = agents.len() - ready(&list).min(agents.len());
    println!("{} {ratio} {lost}", last.as_micros());
}

async fn leader(api: &mut Api) -> String {
    let leader = api.get("/v1/status/leader").await;
    leader.as_str().expect("no leader").to_owned()
}

/// Where a server is called whose API is there: the scripts give it the next port.
fn rpc_of(http: &str) -> String {
    let (host, port) = http.rsplit_once(':').expect("no port");
    format!("{host}:{}", port.parse::<u16>().unwrap() + 1)
}

/// How long after a moment an agent had its heartbeat acknowledged first, or soon after.
async fn beat_after(agent: &str, moment: Instant) -> Duration {
    let mut api = Api::new(agent).await;
    loop {
        let own = api.get("/v1/agent/self").await;
        let ago = own["stats"]["client"]["last_heartbeat"].as_str();
        let ago = ago.and_then(span).unwrap_or(Duration::MAX);
        let passed = moment.elapsed();
        if ago < passed {
            return passed - ago;
        }
        assert!(passed < TIMEOUT, "{agent} has no heartbeat");
        sleep(SECOND).await;
    }
}

/// `1m2.5s`, `250ms`.
fn span(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [
        ("ns", 1e-9),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
    ];
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let (number, behind) = rest.split_at(end);
        let (unit, scale) = UNITS.iter().find(|(unit, _)| behind.starts_with(unit))?;
        seconds += number.parse::<f64>().ok()? * scale;
        rest = &behind[unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}
