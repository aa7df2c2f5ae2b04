//! The lives of jobs: checked services, batch work, periodic launches, plans.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{Api, REST, TIMEOUT, quantile};
use crate::jobs::{group, job, own, own_service, single, task};

/// Services of one group, so that no job becomes too large.
const PER_GROUP: usize = 100;

/// Stops a job and waits until nothing is left of it.
pub(crate) async fn stop(api: &mut Api, id: &str) {
    api.bytes("DELETE", &format!("/v1/job/{id}?purge=true"), "")
        .await;
    let path = format!("/v1/jobs?prefix={id}");
    let gone = |list: &Value| {
        let of_id = |job: &Value| job["ID"] == id && job["Status"] != "dead";
        !list.as_array().is_some_and(|list| list.iter().any(of_id))
    };
    api.wait_for(&path, gone).await;
    let path = format!("/v1/allocations?filter=JobID%20==%20%22{id}%22");
    let ended = |alloc: &Value| alloc["ClientStatus"] != "running";
    let over = |list: &Value| list.as_array().is_none_or(|list| list.iter().all(ended));
    api.wait_for(&path, over).await;
}

/// Starts services that have an http check each, answered by one task; ends when all pass.
pub(crate) async fn checks(addr: &str, id: &str, count: usize, seconds: u64, port: u16) {
    let mut api = Api::new(addr).await;
    let check = json!({
        "Type": "http",
        "Path": "/",
        "Interval": seconds * 1_000_000_000,
        "Timeout": 1_000_000_000_u64,
    });
    let port_of = |group: usize| (port + u16::try_from(group).unwrap()).to_string();
    let service = |number: usize| {
        json!({
            "Name": format!("{id}-{number}"),
            "Provider": "nomad",
            "PortLabel": port_of(number / PER_GROUP),
            "Address": "127.0.0.1",
            "AddressMode": "auto",
            "Checks": [check],
        })
    };
    let groups: Vec<Value> = (0..count.div_ceil(PER_GROUP))
        .map(|number| {
            let argument = port_of(number);
            let mut group = group(
                &format!("g{number}"),
                1,
                &task(&own(), &["answer", &argument]),
            );
            let of_group = number * PER_GROUP..((number + 1) * PER_GROUP).min(count);
            group["Services"] = of_group.map(&service).collect();
            group
        })
        .collect();
    api.submit(&job(id, "service", &groups)).await;
    let begin = Instant::now();
    loop {
        let path = format!("/v1/job/{id}/allocations");
        let allocs = api.get(&path).await;
        let mut passing = 0;
        for alloc in allocs.as_array().unwrap() {
            let path = format!(
                "/v1/client/allocation/{}/checks",
                alloc["ID"].as_str().unwrap()
            );
            let found = api.get_json(&path).await;
            let found = found.as_object().map_or(0, |found| {
                found
                    .values()
                    .filter(|one| one["Status"] == "success")
                    .count()
            });
            passing += found;
        }
        if passing == count {
            break;
        }
        assert!(
            begin.elapsed() < TIMEOUT,
            "{passing} of {count} checks pass"
        );
        sleep(Duration::from_millis(200)).await;
    }
    println!("{}", begin.elapsed().as_micros());
}

/// Runs a batch job to its end. Prints how long that took.
pub(crate) async fn batch(addr: &str, id: &str, count: u64) {
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    api.submit(&single(id, "batch", count, "/bin/true", &[]))
        .await;
    let dead = |list: &Value| list[0]["Status"] == "dead";
    api.wait_for(&format!("/v1/jobs?prefix={id}"), dead).await;
    println!("{}", begin.elapsed().as_micros());
}

/// Runs so many batch jobs of one allocation to their end and purges them.
pub(crate) async fn batch_jobs(addr: &str, count: u64) {
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    for number in 0..count {
        let job = single(&format!("once-{number}"), "batch", 1, "/bin/true", &[]);
        api.submit(&job).await;
    }
    let over = |list: &Value| {
        let list = list.as_array().unwrap();
        list.iter().all(|job| job["Status"] == "dead")
    };
    api.wait_for("/v1/jobs?prefix=once-", over).await;
    println!("{}", begin.elapsed().as_micros());
    for number in 0..count {
        let path = format!("/v1/job/once-{number}?purge=true");
        api.bytes("DELETE", &path, "").await;
    }
}

/// Starts a service. Prints how long it took until all of it ran.
pub(crate) async fn service(addr: &str, id: &str, count: u64) {
    let mut api = Api::new(addr).await;
    let begin = Instant::now();
    api.submit(&single(id, "service", count, "/bin/sleep", &["86400"]))
        .await;
    let all = |summary: &Value| summary["Summary"]["g"]["Running"] == count;
    api.wait_for(&format!("/v1/job/{id}/summary"), all).await;
    println!("{}", begin.elapsed().as_micros());
}

fn at_times(mut job: Value, spec: &str) -> Value {
    job["Periodic"] = json!({
        "Enabled": true,
        "SpecType": "cron",
        "Spec": spec,
        "ProhibitOverlap": false,
        "TimeZone": "UTC",
    });
    job
}

/// Registers jobs that are launched once a year.
pub(crate) async fn periodic(addr: &str, count: u64) {
    let mut api = Api::new(addr).await;
    for number in 0..count {
        let job = single(&format!("yearly-{number}"), "batch", 1, "/bin/true", &[]);
        api.submit(&at_times(job, &format!("{} 0 1 1 *", number % 60)))
            .await;
    }
    println!("{count}");
}

/// Launches a job each second. Prints how long after its time its process starts, p50 and p99.
pub(crate) async fn lateness(addr: &str, count: usize, socket: &str) {
    let mut api = Api::new(addr).await;
    let stamps = UnixDatagram::bind(socket).unwrap();
    stamps.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut job = own_service("secondly", &["stamp", socket]);
    job["Type"] = json!("batch");
    api.submit(&at_times(job, "* * * * * * *")).await;
    let mut times = Vec::new();
    for _ in 0..count {
        let mut bytes = [0; 16];
        assert_eq!(stamps.recv(&mut bytes).expect("no launch"), 16);
        let nanos = u128::from_le_bytes(bytes) % 1_000_000_000;
        times.push(Duration::from_nanos(u64::try_from(nanos).unwrap()));
    }
    api.bytes("DELETE", "/v1/job/secondly?purge=true", "").await;
    sleep(REST).await;
    let [p50, p99] = [50, 99].map(|percent| quantile(&mut times, percent));
    println!("{p50} {p99}");
    fs::remove_file(socket).unwrap();
}

/// Prints how long the plan of a job of so many running groups takes, in which nothing changed.
pub(crate) async fn plan(addr: &str, groups: usize) {
    let mut api = Api::new(addr).await;
    let sleeping = task("/bin/sleep", &["86400"]);
    let groups: Vec<Value> = (0..groups)
        .map(|number| group(&format!("g{number}"), 1, &sleeping))
        .collect();
    let wide = job("wide", "service", &groups);
    api.submit(&wide).await;
    let runs = |alloc: &Value| alloc["ClientStatus"] == "running";
    let all = |list: &Value| {
        let list = list.as_array().unwrap();
        list.len() == groups.len() && list.iter().all(runs)
    };
    api.wait_for("/v1/job/wide/allocations", all).await;
    let mut times = Vec::new();
    for _ in 0..30 {
        let begin = Instant::now();
        let body = json!({ "Job": wide, "Diff": true });
        let plan = api.put("/v1/job/wide/plan", &body).await;
        times.push(begin.elapsed());
        assert_eq!(plan["Diff"]["Type"], "None", "{}", plan["Diff"]);
    }
    println!("{}", quantile(&mut times, 50));
    stop(&mut api, "wide").await;
}

/// Has what is over collected.
pub(crate) async fn collect(addr: &str) {
    let mut api = Api::new(addr).await;
    api.bytes("PUT", "/v1/system/gc", "").await;
}
