//! What people decide about the node.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use hyper::Method;
use serde_json::{Value, json};

use super::tests::{failure, register};
use crate::testing::{Rig, job};

const NONE: &str = "00000000-0000-0000-0000-000000000000";

async fn node(rig: &Rig) -> Value {
    let (_, text) = failure(rig, Method::GET, "/v1/nodes", "").await;
    let nodes: Value = serde_json::from_str(&text).unwrap();
    let path = format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap());
    let (status, text) = failure(rig, Method::GET, &path, "").await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Says something of the node.
async fn put(rig: &Rig, part: &str, body: Value) -> (u16, String) {
    let node = node(rig).await;
    let path = format!("/v1/node/{}/{part}", node["ID"].as_str().unwrap());
    failure(rig, Method::PUT, &path, &body.to_string()).await
}

async fn changed(rig: &Rig, part: &str, body: Value) -> Value {
    let (status, text) = put(rig, part, body).await;
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn last_event(node: &Value) -> (&str, &str) {
    let last = node["Events"].as_array().unwrap().last().unwrap();
    let text = |name: &str| last[name].as_str().unwrap();
    (text("Subsystem"), text("Message"))
}

#[tokio::test]
async fn ineligible_node_says_so_and_blocks_jobs() {
    let rig = Rig::start().await;
    let set = |it: &str| changed(&rig, "eligibility", json!({ "Eligibility": it }));
    let answer = set("ineligible").await;
    assert!(answer["Index"].as_u64().unwrap() > 0);
    assert_eq!(answer["EvalIDs"], Value::Null);
    assert_eq!(set("ineligible").await["Index"], json!(0), "nothing new");
    let shown = node(&rig).await;
    assert_eq!(shown["SchedulingEligibility"], json!("ineligible"));
    let words = "Node marked as ineligible for scheduling";
    assert_eq!(last_event(&shown), ("Cluster", words));

    let registered = register(&rig, job("web", "service", None)).await;
    let path = format!("/v1/evaluation/{}", registered.eval_id);
    let (_, text) = failure(&rig, Method::GET, &path, "").await;
    let eval: Value = serde_json::from_str(&text).unwrap();
    let failed = &eval["FailedTGAllocs"]["g"];
    assert_eq!(failed["NodesEvaluated"], json!(0), "{eval}");
    let (_, text) = failure(&rig, Method::GET, "/v1/job/web/explain", "").await;
    assert!(text.contains("the node is ineligible"), "{text}");

    let answer = set("eligible").await;
    let evals = answer["EvalIDs"].as_array().unwrap().len();
    assert_eq!(evals, 1, "{answer}");
    assert!(answer["EvalCreateIndex"].as_u64() > answer["Index"].as_u64());
    let (_, text) = failure(&rig, Method::GET, "/v1/job/web/allocations", "").await;
    let allocs: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(allocs.as_array().unwrap().len(), 1, "it is placed");
}

#[tokio::test]
async fn drain_is_shown_until_it_is_over() {
    let rig = Rig::start().await;
    register(&rig, job("long", "batch", None)).await;
    // Here every time comes at once, so that there must be none.
    let spec = json!({ "Deadline": 0, "IgnoreSystemJobs": true });
    let meta = json!({ "message": "new disks" });
    let answer = changed(&rig, "drain", json!({ "DrainSpec": spec, "Meta": meta })).await;
    assert_eq!(answer["Index"], answer["NodeModifyIndex"]);
    let shown = node(&rig).await;
    assert_eq!(shown["Drain"], json!(true));
    assert_eq!(shown["SchedulingEligibility"], json!("ineligible"));
    assert_eq!(shown["DrainStrategy"]["Deadline"], spec["Deadline"]);
    assert_eq!(shown["DrainStrategy"]["IgnoreSystemJobs"], json!(true));
    assert_eq!(shown["LastDrain"]["Status"], json!("draining"));
    assert_eq!(shown["LastDrain"]["Meta"], meta);
    assert_eq!(last_event(&shown), ("Drain", "Node drain strategy set"));
    let (status, text) = put(&rig, "eligibility", json!({ "Eligibility": "eligible" })).await;
    assert_eq!(status, 500, "{text}");
    let (_, text) = failure(&rig, Method::GET, "/v1/job/long/explain", "").await;
    assert!(text.contains("the drain of this node waits"), "{text}");

    let off = json!({ "DrainSpec": null, "MarkEligible": true });
    changed(&rig, "drain", off).await;
    let shown = node(&rig).await;
    assert_eq!(shown["Drain"], json!(false));
    assert_eq!(shown["DrainStrategy"], Value::Null);
    assert_eq!(shown["SchedulingEligibility"], json!("eligible"));
    assert_eq!(shown["LastDrain"]["Status"], json!("canceled"));
}

#[tokio::test]
async fn evaluated_node_evaluates_each_job_that_is_not_dead() {
    let rig = Rig::start().await;
    let none = changed(&rig, "evaluate", json!({})).await;
    assert_eq!(
        (&none["EvalIDs"], &none["EvalCreateIndex"]),
        (&Value::Null, &json!(0))
    );
    register(&rig, job("web", "service", None)).await;
    register(&rig, job("db", "service", None)).await;
    register(&rig, job("old", "service", None)).await;
    let (status, text) = failure(&rig, Method::DELETE, "/v1/job/old", "").await;
    assert_eq!(status, 200, "{text}");
    let mut dead = false;
    while !dead {
        let (_, text) = failure(&rig, Method::GET, "/v1/job/old", "").await;
        dead = serde_json::from_str::<Value>(&text).unwrap()["Status"] == "dead";
    }
    let answer = changed(&rig, "evaluate", json!({})).await;
    let evals = answer["EvalIDs"].as_array().unwrap();
    assert_eq!(evals.len(), 2, "{answer}");
    assert_eq!(answer["EvalCreateIndex"], answer["Index"]);
    let path = format!("/v1/evaluation/{}", evals[0].as_str().unwrap());
    let (_, text) = failure(&rig, Method::GET, &path, "").await;
    let eval: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(eval["TriggeredBy"], "node-update", "{eval}");
    let (status, text) = put(&rig, "purge", json!({})).await;
    assert_eq!(status, 501, "{text}");
    assert!(text.contains("drover system destroy"), "{text}");
}

#[tokio::test]
async fn bad_change_of_a_node_is_refused_in_nomads_words() {
    let rig = Rig::start().await;
    let zz = put(&rig, "eligibility", json!({ "Eligibility": "zz" })).await;
    let words = "invalid scheduling eligibility \"zz\"";
    assert_eq!((zz.0, zz.1.as_str()), (500, words));
    let id = node(&rig).await["ID"].as_str().unwrap().to_owned();
    for part in ["evaluate", "purge"] {
        let path = format!("/v1/node/{NONE}/{part}");
        let other = failure(&rig, Method::PUT, &path, "").await;
        assert_eq!((other.0, other.1.as_str()), (500, "node not found"));
    }
    for part in ["drain", "eligibility"] {
        let path = format!("/v1/node/{id}/{part}");
        let empty = failure(&rig, Method::PUT, &path, "").await;
        assert_eq!((empty.0, empty.1.as_str()), (400, "Request body is empty"));
        let path = format!("/v1/node/{NONE}/{part}");
        let other = failure(&rig, Method::PUT, &path, "{}").await;
        assert_eq!((other.0, other.1.as_str()), (500, "node not found"));
    }
    let meta = json!({ "message": "x".repeat(20_000) });
    let large = put(&rig, "drain", json!({ "Meta": meta })).await;
    assert_eq!(large.0, 400, "{}", large.1);
}

async fn post(rig: &Rig, body: &str) -> (u16, Value) {
    let path = "/v1/client/metadata";
    let (status, text) = failure(rig, Method::POST, path, body).await;
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    (status, value)
}

#[tokio::test]
async fn metadata_is_applied_and_unset() {
    let rig = Rig::start().await;
    let mut racked = job("racked", "service", None);
    racked["Constraints"] = json!([
        { "LTarget": "${meta.rack}", "RTarget": "r7", "Operand": "=" }
    ]);
    register(&rig, racked).await;
    // As it was recorded of Nomad: what is unset and was not there leaves nothing.
    let (status, answer) = post(&rig, r#"{"Meta":{"rack":"r7","k2":null}}"#).await;
    assert_eq!(status, 200, "{answer}");
    let wanted = json!({ "Dynamic": { "rack": "r7" }, "Meta": { "rack": "r7" }, "Static": {} });
    assert_eq!(answer, wanted);
    let (_, text) = failure(&rig, Method::GET, "/v1/job/racked/allocations", "").await;
    let allocs: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(allocs.as_array().unwrap().len(), 1, "it is placed");
    assert_eq!(node(&rig).await["Meta"], json!({ "rack": "r7" }));
    let (_, answer) = post(&rig, r#"{"Meta":{"rack":null},"NodeID":""}"#).await;
    assert_eq!(answer["Dynamic"], json!({}));
    assert_eq!(answer["Meta"], json!({}));
}

#[tokio::test]
async fn bad_metadata_is_refused() {
    let rig = Rig::start().await;
    let words = json!("missing required Meta object");
    assert_eq!(post(&rig, r#"{"Meta":{}}"#).await, (400, words));
    let words = json!("Request body is empty");
    assert_eq!(post(&rig, "").await, (400, words));
    for body in [
        json!({ "Meta": { "a b": "c" } }),
        json!({ "Meta": { "": "c" } }),
        json!({ "Meta": { "a": "x".repeat(20_000) } }),
        json!({ "Meta": { "a": 7 } }),
    ] {
        let (status, answer) = post(&rig, &body.to_string()).await;
        assert_eq!(status, 400, "{answer}");
    }
    let body = json!({ "Meta": { "a": "b" }, "NodeID": NONE }).to_string();
    assert_eq!(post(&rig, &body).await.0, 404);
    let path = "/v1/client/metadata";
    let put = failure(&rig, Method::PUT, path, r#"{"Meta":{"k":null}}"#).await;
    assert_eq!((put.0, put.1.as_str()), (405, "Invalid method"));
    assert_eq!(node(&rig).await["Meta"], json!({}), "nothing was changed");
}

#[tokio::test]
async fn pools_have_their_jobs() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    for (pool, count) in [("default", 1), ("all", 0)] {
        let path = format!("/v1/node/pool/{pool}/jobs");
        let (status, text) = failure(&rig, Method::GET, &path, "").await;
        let jobs: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, jobs.as_array().unwrap().len()), (200, count));
    }
    let none = failure(&rig, Method::GET, "/v1/node/pool/zz/jobs", "").await;
    assert_eq!((none.0, none.1.as_str()), (404, "node pool not found"));
}
