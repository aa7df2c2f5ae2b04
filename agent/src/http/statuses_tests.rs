//! Overviews of jobs, as a real agent of Nomad's answered.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use hyper::Method;
use serde_json::{Value, json};

use super::tests::{failure, register};
use crate::testing::{Rig, job};

const PATH: &str = "/v1/jobs/statuses";

/// A service, a batch job that ended, and one that others are made of, with one of these.
async fn with_jobs() -> Rig {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Count"] = json!(2);
    web["TaskGroups"][0]["Update"] = json!({ "MinHealthyTime": 0 });
    register(&rig, web).await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let mut param = job("param", "batch", Some(0));
    param["ParameterizedJob"] = json!({ "Payload": "optional" });
    register(&rig, param).await;
    let (status, body) = failure(&rig, Method::PUT, "/v1/job/param/dispatch", "{}").await;
    assert_eq!(status, 200, "{body}");
    rig
}

fn ids(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|job| job["ID"].as_str().unwrap()).collect()
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(' ').collect()
}

async fn get(rig: &Rig, query: &[(&str, &str)]) -> Value {
    rig.client.get(PATH, query).await.unwrap()
}

async fn post(rig: &Rig, body: &Value) -> Value {
    let (status, body) = failure(rig, Method::POST, PATH, &body.to_string()).await;
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn overview_has_the_fields_that_nomad_sends() {
    let rig = with_jobs().await;
    let web = &post(
        &rig,
        &json!({ "Jobs": [{ "ID": "web", "Namespace": "default" }] }),
    )
    .await[0];
    let fields = "Allocs ChildStatuses Datacenters GroupCountSum ID IsPack LatestDeployment ModifyIndex Name \
                  Namespace NodePool ParentID Priority Status Stop SubmitTime Type Version";
    assert_eq!(keys(web), words(fields));
    assert_eq!(
        (
            &web["Status"],
            &web["GroupCountSum"],
            &web["ChildStatuses"],
            &web["IsPack"]
        ),
        (&json!("running"), &json!(2), &Value::Null, &json!(false))
    );
    let alloc = &web["Allocs"][1];
    let fields =
        "ClientStatus DeploymentStatus FollowupEvalID Group HasPausedTask ID JobVersion NodeID";
    assert_eq!(keys(alloc), words(fields));
    assert_eq!(keys(&alloc["DeploymentStatus"]), words("Canary Healthy"));
    assert_eq!(
        (&alloc["ClientStatus"], &alloc["Group"]),
        (&json!("running"), &json!("g"))
    );
    let rollout = &web["LatestDeployment"];
    let fields = "AllAutoPromote ID IsActive JobVersion RequiresPromotion Status StatusDescription";
    assert_eq!(keys(rollout), words(fields));
    assert_eq!(
        (&rollout["JobVersion"], &rollout["RequiresPromotion"]),
        (&json!(0), &json!(false))
    );

    let calc = &post(&rig, &json!({ "Jobs": [{ "ID": "calc" }] })).await[0];
    assert_eq!(
        (&calc["Status"], &calc["LatestDeployment"]),
        (&json!("dead"), &Value::Null)
    );
    let param = &post(&rig, &json!({ "Jobs": [{ "ID": "param" }] })).await[0];
    assert_eq!(
        (&param["Allocs"], &param["ChildStatuses"]),
        (&Value::Null, &json!(["dead"]))
    );
}

#[tokio::test]
async fn canaries_that_wait_for_a_promotion_show() {
    let rig = Rig::start().await;
    for memory in [16, 17] {
        let mut web = job("web", "service", None);
        web["TaskGroups"][0]["Tasks"][0]["Resources"]["MemoryMB"] = json!(memory);
        web["Update"] =
            json!({ "MaxParallel": 1, "Canary": 1, "MinHealthyTime": 0, "ProgressDeadline": 0 });
        register(&rig, web).await;
    }
    let web = &get(&rig, &[]).await[0];
    let rollout = &web["LatestDeployment"];
    assert_eq!(
        (
            &rollout["RequiresPromotion"],
            &rollout["IsActive"],
            &rollout["AllAutoPromote"]
        ),
        (&json!(true), &json!(true), &json!(false)),
        "{rollout}"
    );
    let canaries = web["Allocs"].as_array().unwrap().iter();
    let canaries = canaries.filter(|alloc| alloc["DeploymentStatus"]["Canary"] == true);
    assert_eq!(canaries.count(), 1);
}

#[tokio::test]
async fn overviews_begin_with_what_changed_last_and_are_filtered() {
    let rig = with_jobs().await;
    let all = get(&rig, &[]).await;
    let indexes = all
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["ModifyIndex"].as_u64().unwrap());
    assert!(indexes.is_sorted_by(|a, b| a >= b));
    let newest_first = ids(&all);
    assert_eq!(
        newest_first.iter().copied().collect::<BTreeSet<_>>(),
        words("calc param web")
    );
    let mut oldest_first = newest_first.clone();
    oldest_first.reverse();
    assert_eq!(ids(&get(&rig, &[("reverse", "true")]).await), oldest_first);
    let with_children = get(&rig, &[("include_children", "true")]).await;
    assert_eq!(with_children.as_array().unwrap().len(), 4);
    assert_eq!(ids(&get(&rig, &[("prefix", "w")]).await), ["web"]);
    assert_eq!(
        ids(&get(&rig, &[("filter", "Type == service")]).await),
        ["web"]
    );
    assert_eq!(get(&rig, &[("namespace", "other")]).await, json!([]));

    let mut paged = Vec::new();
    let mut next = Some(String::new());
    while let Some(token) = next {
        let query = [("per_page", "1"), ("next_token", token.as_str())];
        let page = rig.client.read::<Value>(PATH, &query).await.unwrap();
        paged.extend(ids(&page.value).into_iter().map(str::to_owned));
        next = page.next_token;
    }
    assert_eq!(paged, newest_first);
}

#[tokio::test]
async fn named_jobs_are_shown_with_their_children() {
    let rig = with_jobs().await;
    let both =
        json!([{ "ID": "param" }, { "ID": "web", "Namespace": "default" }, { "ID": "nobody" }]);
    let named = post(&rig, &json!({ "Jobs": both })).await;
    assert_eq!(
        ids(&named).into_iter().collect::<BTreeSet<_>>(),
        words("param web")
    );
    let named = post(
        &rig,
        &json!({ "Jobs": [{ "ID": "param" }], "IncludeChildren": true }),
    )
    .await;
    assert_eq!(named.as_array().unwrap().len(), 2);
    let child = ids(&named).into_iter().find(|id| *id != "param").unwrap();
    let alone = post(&rig, &json!({ "Jobs": [{ "ID": child }] })).await;
    assert_eq!(
        (ids(&alone), &alone[0]["ParentID"]),
        (vec![child], &json!("param"))
    );
    let elsewhere = json!({ "Jobs": [{ "ID": "web", "Namespace": "other" }] });
    assert_eq!(post(&rig, &elsewhere).await, json!([]));
    let all = post(&rig, &json!({ "Jobs": null })).await;
    assert_eq!(all.as_array().unwrap().len(), 3);
    let (status, _) = failure(&rig, Method::POST, PATH, r#"{"Jobs": "web"}"#).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn overview_waits_for_a_newer_state() {
    let rig = with_jobs().await;
    let index = rig.client.read::<Value>(PATH, &[]).await.unwrap().index;
    let newest = index.to_string();
    let (client, query) = (
        rig.client.clone(),
        [("index", newest.as_str()), ("wait", "1m")],
    );
    let waiting = client.read::<Value>(PATH, &query);
    let (seen, _) = tokio::join!(waiting, register(&rig, job("later", "batch", Some(0))));
    assert!(seen.unwrap().index > index);
}
