//! Blocking queries and events: from a commit to those who wait for it.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::api::{Api, quantile};
use crate::jobs::single;
use crate::life::stop;

const CHANGES: u32 = 50;
/// Changes whose events all subscribers get: each is a line, unless some are committed together.
const EVENTS: u32 = 300;
/// How many clients make them.
const CHANGERS: u32 = 4;
/// Without a line for so long, all have come.
const QUIET: Duration = Duration::from_secs(3);

/// Submits a job that never runs, and differs by a number. Gives when it was sent.
async fn change(api: &mut Api, number: u32) -> Instant {
    let mut job = single("watched", "batch", 0, "/bin/true", &[]);
    job["Meta"] = json!({ "number": number.to_string() });
    let sent = Instant::now();
    api.submit(&job).await;
    sent
}

/// The index of the job once nothing changes it any more, as its evaluation does.
async fn index_at_rest(api: &mut Api) -> u64 {
    let mut before = 0;
    loop {
        let answer = api.send("GET", "/v1/job/watched", "").await;
        let index = answer.headers()["x-nomad-index"].to_str().unwrap();
        let index = index.parse().unwrap();
        answer.into_body().collect().await.unwrap();
        if index == before {
            return index;
        }
        before = index;
        sleep(Duration::from_millis(200)).await;
    }
}

/// Prints how long after a change was sent a blocking query of the job answers, p50; and with so many
/// that wait, p50 of the last of them. The commit lies between.
pub(crate) async fn blocking(addr: &str, count: usize) {
    let mut api = Api::new(addr).await;
    change(&mut api, 0).await;
    let mut medians = Vec::new();
    for (waiting, changes) in [(1, CHANGES), (count, 5)] {
        let mut clients = join_all((0..waiting).map(|_| Api::new(addr))).await;
        let mut times = Vec::new();
        for number in 1..=changes {
            let index = index_at_rest(&mut api).await;
            let path = format!("/v1/job/watched?index={index}&wait=60s");
            let asking = clients.drain(..).map(|mut client| {
                let path = path.clone();
                async move {
                    client.bytes("GET", &path, "").await;
                    (client, Instant::now())
                }
            });
            let mut asking: JoinSet<_> = asking.collect();
            // They are to wait before the change.
            sleep(Duration::from_millis(if waiting > 1 { 1_500 } else { 20 })).await;
            let sent = change(&mut api, number + 100 * u32::from(waiting > 1)).await;
            let mut last = Duration::ZERO;
            while let Some(done) = asking.join_next().await {
                let (client, at) = done.unwrap();
                last = last.max(at.saturating_duration_since(sent));
                clients.push(client);
            }
            times.push(last);
        }
        medians.push(quantile(&mut times, 50));
    }
    println!("{} {}", medians[0], medians[1]);
    stop(&mut api, "watched").await;
}

/// The lines of an event stream, without its heartbeats.
struct Lines {
    body: Incoming,
    _api: Api,
    /// How many bytes of the line that has not ended yet came.
    begun: usize,
}

impl Lines {
    async fn open(addr: &str) -> Lines {
        let mut api = Api::new(addr).await;
        let answer = api.send("GET", "/v1/event/stream", "").await;
        assert!(answer.status().is_success(), "{}", answer.status());
        let body = answer.into_body();
        Lines {
            body,
            _api: api,
            begun: 0,
        }
    }

    /// How many lines came in the next piece; nothing once the stream ends.
    async fn next(&mut self) -> Option<usize> {
        let frame = self.body.frame().await?.ok()?;
        let data = frame.into_data().ok()?;
        let (mut count, mut begin) = (0, 0);
        for end in memchr::memchr_iter(b'\n', &data) {
            // A heartbeat is shorter.
            count += usize::from(self.begun + end - begin > 2);
            (self.begun, begin) = (0, end + 1);
        }
        self.begun += data.len() - begin;
        Some(count)
    }
}

/// Prints how long after a change was sent its event comes, p50.
pub(crate) async fn event(addr: &str) {
    let mut api = Api::new(addr).await;
    change(&mut api, 1_000).await;
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut lines = Lines::open(addr).await;
    let reading = tokio::spawn(async move {
        while let Some(count) = lines.next().await {
            if count > 0 && sender.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    sleep(Duration::from_millis(500)).await;
    while receiver.try_recv().is_ok() {}
    let mut times = Vec::new();
    for number in 0..CHANGES {
        let sent = change(&mut api, 2_000 + number).await;
        let at = receiver.recv().await.unwrap();
        times.push(at.saturating_duration_since(sent));
        // What else the change caused is not asked for.
        sleep(Duration::from_millis(100)).await;
        while receiver.try_recv().is_ok() {}
    }
    reading.abort();
    println!("{}", quantile(&mut times, 50));
    stop(&mut api, "watched").await;
}

/// Prints how many lines a second all subscribers got together.
pub(crate) async fn subscribers(addr: &str, count: usize) {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(Lines::open(addr).await);
    }
    let mut reading: JoinSet<(usize, Instant)> = JoinSet::new();
    for mut lines in all {
        reading.spawn(async move {
            let (mut got, mut last) = (0, Instant::now());
            while let Ok(Some(count)) = timeout(QUIET, lines.next()).await {
                if count > 0 {
                    got += count;
                    last = Instant::now();
                }
            }
            (got, last)
        });
    }
    sleep(Duration::from_millis(100)).await;
    let begin = Instant::now();
    let changing = (0..CHANGERS).map(|changer| async move {
        let mut api = Api::new(addr).await;
        for number in (changer..EVENTS).step_by(CHANGERS as usize) {
            change(&mut api, 10_000 + number).await;
        }
    });
    join_all(changing).await;
    let (mut got, mut last) = (0, begin);
    while let Some(done) = reading.join_next().await {
        let (count, at) = done.unwrap();
        got += count;
        last = last.max(at);
    }
    let micros = last.duration_since(begin).as_micros().max(1);
    println!(
        "{} {got}",
        u128::try_from(got).unwrap() * 1_000_000 / micros
    );
    stop(&mut Api::new(addr).await, "watched").await;
}
