//! Lists, filters, and how many answers a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::Value;

use crate::api::{Api, quantile};
use crate::jobs::single;
use crate::life::stop;

const TIMES: usize = 30;
const CLIENTS: usize = 4;

async fn median(addr: &str, path: &str) -> (u128, usize) {
    let mut api = Api::new(addr).await;
    let (mut times, mut size) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let begin = Instant::now();
        size = api.bytes("GET", path, "").await.len();
        times.push(begin.elapsed());
    }
    (quantile(&mut times, 50), size)
}

/// Prints how long the list of all allocations takes, and its bytes.
pub(crate) async fn list(addr: &str) {
    let (time, size) = median(addr, "/v1/allocations").await;
    println!("{time} {size}");
}

/// Prints how long a filter over all allocations takes, that takes none.
pub(crate) async fn filter(addr: &str) {
    let filter = "ClientStatus%20==%20%22lost%22%20and%20JobID%20matches%20%22%5Ebatch%22";
    let (time, _) = median(addr, &format!("/v1/allocations?filter={filter}")).await;
    println!("{time}");
}

/// Prints the longest time that a small job took to be taken, and to be read, alone, and while another lists all
/// allocations without end.
pub(crate) async fn meanwhile(addr: &str) {
    let mut api = Api::new(addr).await;
    let alone = (
        longest_submission(&mut api).await,
        longest_read(&mut api).await,
    );
    let ended = Arc::new(AtomicBool::new(false));
    let lister = list_until(addr, ended.clone());
    let busy = (
        longest_submission(&mut api).await,
        longest_read(&mut api).await,
    );
    ended.store(true, Ordering::Relaxed);
    lister.join().unwrap();
    let micros = [alone.0, busy.0, alone.1, busy.1].map(|time| time.as_micros().to_string());
    println!("{}", micros.join(" "));
    stop(&mut api, "small").await;
}

/// Lists all allocations again and again, on a thread of its own: what it does with the answers delays nobody here.
fn list_until(addr: &str, ended: Arc<AtomicBool>) -> JoinHandle<()> {
    let addr = addr.to_owned();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let mut api = Api::new(&addr).await;
            while !ended.load(Ordering::Relaxed) {
                api.bytes("GET", "/v1/allocations", "").await;
            }
        });
    })
}

async fn longest_submission(api: &mut Api) -> Duration {
    let mut longest = Duration::ZERO;
    for number in 0..100_u32 {
        let mut job = single("small", "batch", 0, "/bin/true", &[]);
        job["Meta"] = serde_json::json!({ "number": number.to_string() });
        let begin = Instant::now();
        api.submit(&job).await;
        longest = longest.max(begin.elapsed());
    }
    longest
}

async fn longest_read(api: &mut Api) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..1_000 {
        let begin = Instant::now();
        api.bytes("GET", "/v1/job/small", "").await;
        longest = longest.max(begin.elapsed());
    }
    longest
}

/// Asks one thing again and again over some connections. Prints how many answers a second there
/// were, and the bytes of one. `alloc` is the first running allocation.
pub(crate) async fn rate(addr: &str, what: &str, seconds: u64) {
    let path = match what {
        "alloc" => {
            let allocs = Api::new(addr).await.get("/v1/allocations").await;
            let mut allocs = allocs.as_array().unwrap().iter();
            let runs = |alloc: &&Value| alloc["ClientStatus"] == "running";
            let alloc = allocs.find(runs).expect("nothing runs");
            format!("/v1/allocation/{}", alloc["ID"].as_str().unwrap())
        }
        path => path.to_owned(),
    };
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds);
    let asking = (0..CLIENTS).map(|_| async {
        let mut api = Api::new(addr).await;
        let (mut count, mut size) = (0_u128, 0);
        while Instant::now() < end {
            size = api.bytes("GET", &path, "").await.len();
            count += 1;
        }
        (count, size)
    });
    let answers = join_all(asking).await;
    let count: u128 = answers.iter().map(|(count, _)| count).sum();
    let rate = count * 1_000_000 / begin.elapsed().as_micros();
    println!("{rate} {}", answers[0].1);
}
