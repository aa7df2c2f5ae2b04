//! Statistics and metrics over HTTP.

use hyper::Method;
use serde_json::Value;

use super::dto::{AllocStats, HostStats};
use super::tests::{allocs, failure, register};
use crate::testing::{Rig, job};

#[tokio::test]
async fn host_stats_are_measured() {
    let rig = Rig::start().await;
    let stats: HostStats = rig.client.get("/v1/client/stats", &[]).await.unwrap();
    assert!(!stats.cpu.is_empty() && stats.memory.total > 0);
    assert!(stats.alloc_dir_stats.size > 0);
    let same: HostStats = rig.client.get("/v1/client/stats", &[]).await.unwrap();
    assert!(same == stats || same.timestamp > stats.timestamp);
    let other = "/v1/client/stats?node_id=00000000-0000-0000-0000-000000000000";
    let (status, text) = failure(&rig, Method::GET, other, "").await;
    assert_eq!(status, 404);
    assert_eq!(text, "Unknown node 00000000-0000-0000-0000-000000000000");
}

#[tokio::test]
async fn unmeasured_task_is_not_listed() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    for query in ["", "?task=t", "?task=unknown"] {
        let path = format!("/v1/client/allocation/{id}/stats{query}");
        let stats: AllocStats = rig.client.get(&path, &[]).await.unwrap();
        assert_eq!(stats.resource_usage.memory_stats.measured, None);
        assert!(stats.tasks.is_empty(), "nobody can measure it here");
        assert_eq!(stats.timestamp, 0);
    }
}

#[tokio::test]
async fn unknown_allocation_has_nomad_message() {
    let rig = Rig::start().await;
    let zero = "00000000-0000-0000-0000-000000000000";
    let path = format!("/v1/client/allocation/{zero}/stats");
    let unknown = failure(&rig, Method::GET, &path, "").await;
    assert_eq!(unknown, (404, format!("Unknown allocation \"{zero}\"")));
    let bad = failure(&rig, Method::GET, "/v1/client/allocation/abc/stats", "").await;
    let words = "alloc lookup failed: index error: UUID must be 36 characters";
    assert_eq!(bad, (500, words.to_owned()));
    let post = failure(&rig, Method::POST, "/v1/metrics", "").await;
    assert_eq!(post, (405, "Invalid method".to_owned()));
    let odd = failure(&rig, Method::GET, "/v1/metrics?format=odd", "").await;
    assert_eq!(odd.0, 400);
}

#[tokio::test]
async fn metrics_count_running_allocs() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    register(&rig, job("work", "batch", Some(0))).await;
    let metrics: Value = rig.client.get("/v1/metrics", &[]).await.unwrap();
    let of = |list: &str, name: &str| {
        let found = metrics[list].as_array().unwrap().iter();
        let found = found.filter(|it| it["Name"] == name);
        let key = if list == "Gauges" { "Value" } else { "Count" };
        found
            .map(|it| it[key].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(of("Gauges", "nomad.client.allocations.running"), [1.0]);
    assert_eq!(of("Gauges", "nomad.client.allocations.terminal"), [1.0]);
    assert_eq!(of("Gauges", "nomad.client.tasks.dead"), [1.0]);
    assert_eq!(of("Gauges", "nomad.client.allocated.cpu"), [20.0]);
    assert_eq!(of("Gauges", "nomad.client.allocs.cpu.allocated"), [20.0]);
    assert_eq!(of("Counters", "nomad.client.allocs.running"), [1.0, 1.0]);
    let complete: f64 = of("Counters", "nomad.client.allocs.complete").iter().sum();
    assert_eq!(complete, 1.0);
    assert!(of("Counters", "drover.core.steps")[0] > 0.0);
    // Nobody measures tasks here, and what is not measured has no metric.
    assert!(of("Gauges", "nomad.client.allocs.memory.rss").is_empty());
}
