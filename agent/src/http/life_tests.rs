//! The life of a job: plans, versions, scaling.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use hyper::Method;
use serde_json::{Value, json};

use super::tests::{failure, register};
use crate::testing::{Rig, job};

async fn put(rig: &Rig, path: &str, body: Value) -> Value {
    let (status, text) = failure(rig, Method::PUT, path, &body.to_string()).await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn get(rig: &Rig, path: &str) -> Value {
    let (status, text) = failure(rig, Method::GET, path, "").await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn plan_tells_what_registering_does_and_changes_nothing() {
    let rig = Rig::start().await;
    let plan = |job: Value| {
        let body = json!({ "Job": job, "Diff": true });
        put(&rig, "/v1/job/web/plan", body)
    };
    let updates = |planned: &Value| planned["Annotations"]["DesiredTGUpdates"]["g"].clone();
    let web = || job("web", "service", None);
    let planned = plan(web()).await;
    assert_eq!(updates(&planned)["Place"], json!(1), "{planned}");
    assert_eq!(planned["Diff"]["Type"], json!("Added"));
    assert_eq!(planned["JobModifyIndex"], json!(0));
    assert_eq!(get(&rig, "/v1/jobs").await, json!([]));

    let registered = register(&rig, web()).await;
    let planned = plan(web()).await;
    assert_eq!(updates(&planned)["Ignore"], json!(1), "{planned}");
    assert_eq!(planned["Diff"]["Type"], json!("None"));
    assert_eq!(
        planned["JobModifyIndex"],
        json!(registered.job_modify_index)
    );

    let mut changed = web();
    changed["TaskGroups"][0]["Tasks"][0]["Env"] = json!({ "A": "b" });
    let planned = plan(changed).await;
    assert_eq!(
        updates(&planned)["DestructiveUpdate"],
        json!(1),
        "{planned}"
    );
    let group = &planned["Diff"]["TaskGroups"][0];
    assert_eq!(group["Updates"], json!({ "create/destroy update": 1 }));
    let annotations = &group["Tasks"][0]["Annotations"];
    assert_eq!(*annotations, json!(["forces create/destroy update"]));
    let versions = get(&rig, "/v1/job/web/versions").await;
    assert_eq!(versions["Versions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn plan_of_unplaceable_job_says_why() {
    let rig = Rig::start().await;
    let mut nowhere = job("nowhere", "batch", Some(0));
    nowhere["TaskGroups"][0]["Count"] = json!(2);
    nowhere["Constraints"] =
        json!([{ "LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "=" }]);
    let planned = put(&rig, "/v1/job/nowhere/plan", json!({ "Job": nowhere })).await;
    let failed = &planned["FailedTGAllocs"]["g"];
    assert_eq!(failed["CoalescedFailures"], json!(1), "{planned}");
    assert_eq!(failed["NodesFiltered"], json!(1));
    assert_eq!(planned["Diff"], Value::Null);
}

#[tokio::test]
async fn plan_of_another_job_is_refused() {
    let rig = Rig::start().await;
    let body = json!({ "Job": { "ID": "bbb" } }).to_string();
    let refused = failure(&rig, Method::PUT, "/v1/job/aaa/plan", &body).await;
    assert_eq!(refused, (400, "Job ID does not match".to_owned()));
    let refused = failure(&rig, Method::PUT, "/v1/job/aaa/plan", "{}").await;
    assert_eq!(refused, (400, "Job must be specified".to_owned()));
    let body = json!({ "Job": { "ID": "aaa" } }).to_string();
    let (status, _) = failure(&rig, Method::PUT, "/v1/job/aaa/plan", &body).await;
    assert_eq!(status, 500);
}
