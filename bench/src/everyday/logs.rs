//! Logs: from a task's write to who follows, and how much goes through.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use serde_json::json;

use crate::api::{Api, quantile, wall};
use crate::jobs::own_service;
use crate::life::stop;

const LINES: usize = 100;

/// Prints how long after it was written a line reaches a follower, p50.
pub(crate) async fn follower(addr: &str) {
    let mut api = Api::new(addr).await;
    api.submit(&own_service("chatter", &["chatter", "100000", "50"]))
        .await;
    let alloc = api.running("chatter").await;
    let mut following = Api::new(addr).await;
    let path = format!("/v1/client/fs/logs/{alloc}?task=t&type=stdout&follow=true&plain=true");
    let answer = following
        .send("GET", &format!("{path}&origin=end"), "")
        .await;
    let mut body = answer.into_body();
    let (mut times, mut rest) = (Vec::new(), Vec::new());
    while times.len() < LINES {
        let frame = body.frame().await.expect("the log ends").unwrap();
        let now = wall();
        rest.extend_from_slice(&frame.into_data().unwrap_or_default());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest.drain(..=end);
            if let Ok(written) = line.parse::<u64>() {
                times.push(now.saturating_sub(Duration::from_nanos(written)));
            }
        }
    }
    // The first were there already.
    println!("{}", quantile(&mut times[5..], 50));
    stop(&mut api, "chatter").await;
}

/// Prints the MB a second that a follower of so many mebibytes gets.
pub(crate) async fn follow(addr: &str, mebibytes: usize) {
    let mut api = Api::new(addr).await;
    let mut job = own_service("bulk", &["bulk", &mebibytes.to_string()]);
    let group = &mut job["TaskGroups"][0];
    group["EphemeralDisk"] = json!({ "SizeMB": 2 * mebibytes });
    let sizes = json!({ "MaxFiles": 1, "MaxFileSizeMB": mebibytes + 1 });
    group["Tasks"][0]["LogConfig"] = sizes;
    api.submit(&job).await;
    let alloc = api.running("bulk").await;
    let all = mebibytes << 20;
    let path = format!("/v1/client/fs/stat/{alloc}?path=alloc/logs/t.stdout.0");
    api.wait_for(&path, |file| file["Size"].as_u64() >= Some(all as u64))
        .await;
    let path = format!("/v1/client/fs/logs/{alloc}?task=t&type=stdout&follow=true&plain=true");
    let mut times = Vec::new();
    for _ in 0..5 {
        let begin = Instant::now();
        let mut following = Api::new(addr).await;
        let mut body = following.send("GET", &path, "").await.into_body();
        let mut received = 0;
        while received < all {
            let frame = body.frame().await.expect("the log ends").unwrap();
            received += frame.into_data().unwrap_or_default().len();
        }
        times.push(begin.elapsed());
    }
    println!(
        "{}",
        u128::try_from(all).unwrap() / quantile(&mut times, 50)
    );
    stop(&mut api, "bulk").await;
}
