//! What Nomad's own command line asks for of itself: searches, filters, related evaluations.

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};

use super::dto::EvaluationDto;
use super::tests::{allocs, failure, register};
use crate::cli::client::whole;
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
    assert_eq!(found["Matches"]["allocs"], Value::Null);
    assert_eq!(found["Truncations"]["jobs"], json!(false));
    let found = search(&rig, "all", &alloc[..8]).await;
    assert_eq!(found["Matches"]["allocs"], json!([alloc]));
    assert_eq!(found["Matches"]["jobs"], Value::Null);
    let found = search(&rig, "evals", &registered.eval_id).await;
    assert_eq!(found["Matches"], json!({ "evals": [registered.eval_id] }));
    let body = r#"{ "Prefix": "w", "Context": "shoes" }"#;
    let (status, words) = failure(&rig, Method::PUT, "/v1/search", body).await;
    assert_eq!(status, 500);
    assert_eq!(
        words,
        "context must be one of [allocs jobs nodes node_pools evals deployment plugins volumes \
         scaling_policy vars namespaces host_volumes] or 'all' for all contexts; got \"shoes\""
    );
}

#[tokio::test]
async fn fuzzy_search_finds_names_inside_of_jobs_with_their_scope() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Tasks"][0]["Name"] = json!("server");
    register(&rig, web).await;
    let fuzzy = async |text: &str, context: &str| -> Value {
        let body = json!({ "Text": text, "Context": context });
        let found = rig
            .client
            .change(Method::PUT, "/v1/search/fuzzy", &[], Some(&body));
        found.await.unwrap()
    };
    let found = fuzzy("SERV", "all").await;
    let task = json!([{ "ID": "server", "Scope": ["default", "web", "g"] }]);
    assert_eq!(found["Matches"]["tasks"], task);
    assert_eq!(found["Matches"]["evals"], json!([]));
    assert_eq!(found["Matches"]["jobs"], Value::Null);
    assert_eq!(found["Truncations"]["jobs"], json!(false));
    let found = fuzzy("eb", "jobs").await;
    assert_eq!(
        found["Matches"]["jobs"][0]["Scope"],
        json!(["default", "web"])
    );
    let found = fuzzy("web.", "allocs").await;
    assert_eq!(found["Matches"]["allocs"][0]["ID"], "web.g[0]");
    let short = r#"{ "Text": "w", "Context": "all" }"#;
    let (status, words) = failure(&rig, Method::PUT, "/v1/search/fuzzy", short).await;
    assert_eq!(status, 500);
    assert!(words.contains("at least 2 characters"), "{words}");
}

/// `nomad scaling policy info` shows what it finds by a prefix.
#[tokio::test]
async fn scaling_policy_is_found_by_its_own_prefix_alone() {
    let rig = Rig::start().await;
    for id in ["web", "api"] {
        let mut job = job(id, "service", None);
        job["TaskGroups"][0]["Scaling"] = json!({ "Enabled": true, "Min": 1, "Max": 4 });
        register(&rig, job).await;
    }
    let list = async |query: &[(&str, &str)]| -> Vec<String> {
        let all: Vec<Value> = rig.client.get("/v1/scaling/policies", query).await.unwrap();
        let ids = all.iter().map(|one| one["ID"].as_str().unwrap().to_owned());
        ids.collect()
    };
    let web = list(&[("job", "web")]).await.remove(0);
    assert_eq!(list(&[]).await.len(), 2);
    for prefix in [&web[..8], &web] {
        assert_eq!(list(&[("prefix", prefix)]).await, [web.as_str()]);
        let found = search(&rig, "scaling_policy", prefix).await;
        assert_eq!(found["Matches"]["scaling_policy"], json!([web]));
    }
    assert!(list(&[("prefix", "nope")]).await.is_empty());
    let found = search(&rig, "all", "nope").await;
    assert_eq!(found["Matches"]["scaling_policy"], Value::Null);
    let found = search(&rig, "all", &web).await;
    assert_eq!(found["Matches"]["scaling_policy"], json!([web]));
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
}

#[tokio::test]
async fn filter_applies_to_the_stored_object_of_each_list() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["Meta"] = json!({ "owner": "me" });
    web["TaskGroups"][0]["Count"] = json!(3);
    register(&rig, web).await;
    register(&rig, job("calc", "batch", Some(0))).await;
    for (path, filter, count) in [
        ("/v1/jobs", r#"Type == "batch" and Name matches "^c""#, 1),
        ("/v1/jobs", r#"Meta.owner == "me""#, 1),
        ("/v1/jobs", "Status == dead", 1),
        ("/v1/jobs", "any TaskGroups as g { g.Count == 3 }", 1),
        ("/v1/allocations", "ClientStatus == running", 3),
        ("/v1/allocations", "Job.Type == batch", 1),
        ("/v1/allocations", r#"Name == "web.g[1]""#, 1),
        ("/v1/allocations", "TaskStates.t.State == running", 3),
        (
            "/v1/allocations",
            "AllocatedResources.Tasks.t.Memory.MemoryMB == 16",
            4,
        ),
        ("/v1/evaluations", "Status == complete", 2),
        (
            "/v1/evaluations",
            r#"PreviousEval == "" and JobID == calc"#,
            1,
        ),
        ("/v1/nodes", "Status == ready", 1),
        ("/v1/nodes", r#"Attributes["x"] == "x""#, 0),
        ("/v1/nodes", "Drivers.mock_driver.Healthy == true", 1),
        ("/v1/deployments", "JobID == calc", 0),
    ] {
        let found: Vec<Value> = rig.client.get(path, &[("filter", filter)]).await.unwrap();
        assert_eq!(found.len(), count, "{path} {filter}: {found:?}");
    }
    for (path, words) in [
        ("/v1/jobs", "error finding value in datum: /Nope at part 0"),
        ("/v1/allocations", "struct field with name \"Nope\""),
        ("/v1/nodes", "struct field with name \"Nope\""),
    ] {
        let path = format!("{path}?filter=Nope%20is%20empty");
        let (status, message) = failure(&rig, Method::GET, &path, "").await;
        assert_eq!(status, 400, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let (status, message) = failure(&rig, Method::GET, "/v1/jobs?filter=Type+%3D%3D", "").await;
    assert_eq!(status, 400);
    assert!(
        message.starts_with("failed to create result paginator: "),
        "{message}"
    );
}

#[tokio::test]
async fn filtered_pages_hold_each_element_once() {
    let rig = Rig::start().await;
    for number in 0..7 {
        let kind = if number % 2 == 0 { "service" } else { "batch" };
        register(&rig, job(&format!("work-{number}"), kind, None)).await;
    }
    for (path, reverse) in [("/v1/jobs", "false"), ("/v1/allocations", "true")] {
        let mut token = String::new();
        let mut ids = Vec::new();
        for _ in 0..4 {
            let query = [
                ("per_page", "2"),
                ("filter", "Name matches `work-[0246]`"),
                ("reverse", reverse),
                ("next_token", token.as_str()),
            ];
            let target = rig.client.target(path, &query).unwrap();
            let answer = rig.client.exchange(Method::GET, target, Bytes::new());
            let answer = answer.await.unwrap();
            let next = answer.headers().get("x-nomad-nexttoken").cloned();
            let page = whole(answer).await.unwrap();
            let page: Vec<Value> = serde_json::from_slice(&page).unwrap();
            assert!(page.len() <= 2);
            ids.extend(
                page.iter()
                    .map(|one| one["Name"].as_str().unwrap().to_owned()),
            );
            match next {
                Some(next) => token = next.to_str().unwrap().to_owned(),
                None => break,
            }
        }
        assert_eq!(ids.len(), 4, "{ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{ids:?}");
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

#[tokio::test]
async fn evaluation_says_what_its_plan_did() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Count"] = json!(2);
    let first = register(&rig, web.clone()).await.eval_id;
    web["TaskGroups"][0]["Count"] = json!(3);
    let second = register(&rig, web).await.eval_id;
    // All copies take the new version, as they run.
    for (id, place, in_place) in [(first, 2, 0), (second, 1, 2)] {
        let path = format!("/v1/evaluation/{id}");
        let eval: Value = rig.client.get(&path, &[]).await.unwrap();
        let annotations = &eval["PlanAnnotations"];
        let found = &annotations["DesiredTGUpdates"]["g"];
        let wanted = (&json!(place), &json!(in_place), &json!(0));
        let counts = (&found["Place"], &found["InPlaceUpdate"], &found["Ignore"]);
        assert_eq!(counts, wanted);
        assert_eq!(annotations["PreemptedAllocs"], Value::Null);
    }
}
