//! A node of a cluster, seen from its servers: how soon it is ready, how soon what they placed runs and ends.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::sleep;

use crate::api::{Api, TIMEOUT, quantile, wall};
use crate::jobs::{allocs_of, own, own_service, single};

/// Starts an agent and waits until the servers have a new node that is ready. Prints its pid and how long that
/// took.
pub(crate) async fn join(servers: &str, log: &str, command: &[&str]) {
    let mut api = Api::new(servers).await;
    let known = ids_of(&api.get("/v1/nodes").await);
    let begin = Instant::now();
    let pid = start(log, command);
    let is_new = |node: &Value| {
        let id = node["ID"].as_str().unwrap_or_default();
        node["Status"] == "ready" && !known.iter().any(|known| known == id)
    };
    api.await_change("/v1/nodes", |nodes| {
        nodes.as_array().is_some_and(|all| all.iter().any(is_new))
    })
    .await;
    println!("{pid} {}", begin.elapsed().as_micros());
}

/// Starts an agent that outlives this program. Gives its pid.
pub(crate) fn start(log: &str, command: &[&str]) -> u32 {
    let log = OpenOptions::new().append(true).create(true).open(log);
    let log: File = log.unwrap();
    let [program, args @ ..] = command else {
        panic!("no command");
    };
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    child.id()
}

/// Starts so many allocations of a service, and waits until the servers know that all run.
pub(crate) async fn stay(servers: &str, id: &str, count: u64) {
    let mut api = Api::new(servers).await;
    let job = single(id, "service", count, &own(), &["wait", "6000000"]);
    api.submit(&job).await;
    api.await_change(&allocs_of(id), |list| {
        let list = list.as_array().unwrap();
        let run = list.iter().filter(|one| one["ClientStatus"] == "running");
        run.count() as u64 == count
    })
    .await;
}

/// Forgets all nodes.
pub(crate) async fn purge(servers: &str) {
    let mut api = Api::new(servers).await;
    for id in ids_of(&api.get("/v1/nodes").await) {
        api.put(&format!("/v1/node/{id}/purge"), &Value::Null).await;
    }
}

fn ids_of(nodes: &Value) -> Vec<String> {
    let all = nodes.as_array().unwrap().iter();
    all.map(|node| node["ID"].as_str().unwrap().to_owned())
        .collect()
}

/// Prints how long one batch job after the other took from its submission to the start of its process, p50 and p99.
pub(crate) async fn placed(servers: &str, count: u64, socket: &str) {
    let mut api = Api::new(servers).await;
    let stamps = UnixDatagram::bind(socket).unwrap();
    stamps.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut times = Vec::new();
    for number in 0..count {
        let id = format!("placed-{number}");
        let begin = wall();
        api.submit(&single(&id, "batch", 1, &own(), &["stamp", socket]))
            .await;
        let mut stamp = [0; 16];
        stamps.recv(&mut stamp).expect("the process says nothing");
        let nanos = u64::try_from(u128::from_le_bytes(stamp)).unwrap();
        let started = Duration::from_nanos(nanos);
        times.push(started.saturating_sub(begin));
        api.await_change(&allocs_of(&id), |list| {
            list[0]["ClientStatus"] == "complete"
        })
        .await;
    }
    let p50 = quantile(&mut times, 50);
    println!("{p50} {}", quantile(&mut times, 99));
}

/// Prints how long services took from their submission until the servers knew that they run, and from their stop
/// until the servers knew that they are over: p50 of each.
pub(crate) async fn lives(servers: &str, count: u64) {
    let mut api = Api::new(servers).await;
    let (mut starts, mut stops) = (Vec::new(), Vec::new());
    for number in 0..count {
        let id = format!("life-{number}");
        let path = allocs_of(&id);
        let begin = Instant::now();
        api.submit(&own_service(&id, &["wait", "600000"])).await;
        api.await_change(&path, |list| list[0]["ClientStatus"] == "running")
            .await;
        starts.push(begin.elapsed());
        // What has just begun may still be told of.
        sleep(Duration::from_millis(500)).await;
        let begin = Instant::now();
        api.bytes("DELETE", &format!("/v1/job/{id}"), "").await;
        api.await_change(&path, |list| list[0]["ClientStatus"] == "complete")
            .await;
        stops.push(begin.elapsed());
    }
    let start = quantile(&mut starts, 50);
    println!("{start} {}", quantile(&mut stops, 50));
}

/// Lets so many allocations end at the same time. Prints how long it took until the servers knew all of it.
pub(crate) async fn together(servers: &str, id: &str, count: u64) {
    let mut api = Api::new(servers).await;
    let end = wall() + Duration::from_secs(30 + count / 20);
    let moment = end.as_millis().to_string();
    api.submit(&single(id, "batch", count, &own(), &["until", &moment]))
        .await;
    let path = allocs_of(id);
    let all = |list: &Value, status: &str| {
        let list = list.as_array().unwrap();
        let so = list.iter().filter(|one| one["ClientStatus"] == status);
        so.count() as u64 == count
    };
    api.await_change(&path, |list| all(list, "running")).await;
    // Whoever counts what is sent at their end begins to count now.
    let rest = end.saturating_sub(wall());
    assert!(rest > Duration::from_secs(5), "they start too slowly");
    sleep(end.saturating_sub(wall())).await;
    api.await_change(&path, |list| all(list, "complete")).await;
    println!("{}", wall().saturating_sub(end).as_micros());
}

/// Writes the name of each figure that servers send in statsd's form to a file, a line each, for ever.
pub(crate) fn figures(addr: &str, file: &str) {
    let socket = UdpSocket::bind(addr).unwrap();
    let mut file = File::create(file).unwrap();
    let mut packet = vec![0; 1 << 16];
    while let Ok(size) = socket.recv(&mut packet) {
        let text = String::from_utf8_lossy(&packet[..size]);
        let names = text.lines().filter_map(|line| line.split(':').next());
        let lines: String = names.map(|name| format!("{name}\n")).collect();
        file.write_all(lines.as_bytes()).unwrap();
    }
}

/// A task that ends at this moment, in milliseconds of wall time.
pub(crate) fn until(moment: u64) {
    thread::sleep(Duration::from_millis(moment).saturating_sub(wall()));
}

/// A task that runs for so many milliseconds.
pub(crate) fn rest(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}
