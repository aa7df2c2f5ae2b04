//! What Nomad's own command line asks for of itself: searches, filters, related evaluations.

use hyper::Method;
use serde_json::{Value, json};

use super::dto::EvaluationDto;
use super::tests::{allocs, failure, register};
use crate::testing::{Rig, job};

async fn search(rig: &Rig, context: &str, prefix: &str) -> Value {
    let body = json!({ "Prefix": prefix, "Context": context });
    let found = rig
        .client
        .change(Method::PUT, "/v1/search", &[], Some(&body));
    found.await.unwrap()
}

#[tokio::test]
async fn search_by_id_prefix_reports_context() {
    let rig = Rig::start().await;
    let registered = register(&rig, job("web", "service", None)).await;
    register(&rig, job("web-2", "batch", Some(0))).await;
    let alloc = allocs(&rig, "web").await[0].id.clone();
    let found = search(&rig, "all", "web").await;
    assert_eq!(found["Matches"]["jobs"], json!(["web", "web-2"]));
    assert_eq!(found["Matches"]["allocs"], json!([]));
    assert_eq!(found["Truncations"]["jobs"], json!(false));
    let found = search(&rig, "all", &alloc[..8]).await;
    assert_eq!(found["Matches"]["allocs"], json!([alloc]));
    assert_eq!(found["Matches"]["jobs"], json!([]));
    let found = search(&rig, "evals", &registered.eval_id).await;
    assert_eq!(found["Matches"], json!({ "evals": [registered.eval_id] }));
    let body = r#"{ "Prefix": "w", "Context": "shoes" }"#;
    let (status, words) = failure(&rig, Method::PUT, "/v1/search", body).await;
    assert_eq!(status, 500);
    assert!(words.contains("jobs"), "{words}");
}

#[tokio::test]
async fn search_with_over_twenty_matches_is_truncated() {
    let rig = Rig::start().await;
    for number in 0..21 {
        let job = job(&format!("work-{number:02}"), "batch", Some(0));
        register(&rig, job).await;
    }
    let found = search(&rig, "jobs", "work").await;
    assert_eq!(found["Matches"]["jobs"].as_array().unwrap().len(), 20);
    assert_eq!(found["Truncations"]["jobs"], json!(true));
}

#[tokio::test]
async fn filter_of_a_dispatch_lists_parameterized_jobs_only() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let mut template = job("work", "batch", Some(0));
    template["ParameterizedJob"] = json!({ "Payload": "optional" });
    register(&rig, template).await;
    let list = async |filter: &str| -> Vec<String> {
        let query = [("prefix", "w"), ("filter", filter)];
        let jobs: Vec<Value> = rig.client.get("/v1/jobs", &query).await.unwrap();
        let ids = jobs
            .iter()
            .map(|job| job["ID"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let dispatchable = r#"ParentID == "" and ParameterizedJob is not nil"#;
    assert_eq!(list(dispatchable).await, ["work"]);
    assert!(list("Periodic is not nil").await.is_empty());
    // What is not understood is not left out silently, neither here nor where there are no jobs.
    for path in [
        "/v1/jobs?filter=Type%20%3D%3D%20%22batch%22",
        "/v1/nodes?filter=Periodic%20is%20not%20nil",
    ] {
        let (status, words) = failure(&rig, Method::GET, path, "").await;
        assert_eq!(status, 501, "{path}");
        // With these words Nomad's command line filters by itself where it can.
        assert!(words.starts_with("failed to create result paginator"));
    }
}

#[tokio::test]
async fn blocked_evaluation_is_related_to_its_previous_one() {
    let rig = Rig::start().await;
    let mut wanting = job("web", "service", None);
    wanting["Constraints"] =
        json!([{ "LTarget": "${attr.kernel.name}", "RTarget": "beos", "Operand": "=" }]);
    let id = register(&rig, wanting).await.eval_id;
    let path = format!("/v1/evaluation/{id}");
    let eval: EvaluationDto = rig.client.get(&path, &[("related", "true")]).await.unwrap();
    // The command puts its own words around the bare constraint.
    let filtered = &eval.failed_groups["g"].constraint_filtered;
    assert_eq!(filtered["${attr.kernel.name} = beos"], 1);
    let related = eval.related_evals.unwrap();
    assert_eq!(related.len(), 1);
    assert_eq!(related[0].id, eval.blocked_eval);
    assert_eq!(
        (&*related[0].status, &*related[0].previous_eval),
        ("blocked", &*id)
    );
    let back = format!("/v1/evaluation/{}", eval.blocked_eval);
    let blocked: EvaluationDto = rig.client.get(&back, &[("related", "true")]).await.unwrap();
    assert_eq!(blocked.related_evals.unwrap()[0].id, id);
    let plain: EvaluationDto = rig.client.get(&path, &[]).await.unwrap();
    assert_eq!(plain.related_evals, None);
}
