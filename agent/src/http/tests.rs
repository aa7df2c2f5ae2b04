//! The API against a real core.

use bytes::Bytes;
use drover_core::agent::requests::PutVariable;
use drover_core::model::variable::{Items, VariableKey};
use hyper::Method;
use serde_json::{Value, json};

use super::access::Principal;
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, AllocStub, EvaluationDto, JobStub, Registered, Stopped, Validated};
use super::params::Params;
use crate::cli::client::whole;
use crate::testing::{Rig, job};

pub(super) async fn register(rig: &Rig, job: Value) -> Registered {
    let body = json!({ "Job": job });
    rig.client
        .change(Method::PUT, "/v1/jobs", &[], Some(&body))
        .await
        .unwrap()
}

pub(super) async fn allocs(rig: &Rig, id: &str) -> Vec<AllocStub> {
    rig.client
        .get(&format!("/v1/job/{id}/allocations"), &[])
        .await
        .unwrap()
}

/// The status and body of a request that fails.
pub(super) async fn failure(rig: &Rig, method: Method, path: &str, body: &str) -> (u16, String) {
    let target = rig.client.target(path, &[]).unwrap();
    let body = Bytes::from(body.to_owned());
    let response = rig.client.exchange(method, target, body).await.unwrap();
    let status = response.status().as_u16();
    let text = whole(response).await.unwrap();
    (status, String::from_utf8(text.to_vec()).unwrap())
}

#[tokio::test]
async fn running_job_is_shown_by_all_routes() {
    let rig = Rig::start().await;
    let registered = register(&rig, job("web", "service", None)).await;
    let eval: EvaluationDto = rig
        .client
        .get(&format!("/v1/evaluation/{}", registered.eval_id), &[])
        .await
        .unwrap();
    assert_eq!(
        (eval.status.as_str(), eval.triggered_by.as_str()),
        ("complete", "job-register")
    );
    let jobs = rig
        .client
        .read::<Vec<JobStub>>("/v1/jobs", &[("prefix", "w")])
        .await
        .unwrap();
    assert!(jobs.index > 0);
    assert_eq!(jobs.value[0].status, "running");
    assert_eq!(jobs.value[0].job_summary.summary["g"].running, 1);
    let allocs = allocs(&rig, "web").await;
    assert_eq!(allocs[0].client_status, "running");
    let path = format!("/v1/allocation/{}", allocs[0].id);
    let alloc: Alloc = rig.client.get(&path, &[]).await.unwrap();
    assert_eq!(
        alloc.stub.task_states["t"].events[0].fields().kind,
        "Received"
    );
    assert_eq!(alloc.allocated_resources.tasks["t"].memory.memory_mb, 16);
    let prefix = [("prefix", &allocs[0].id[..8])];
    let found: Vec<AllocStub> = rig.client.get("/v1/allocations", &prefix).await.unwrap();
    assert_eq!(found.len(), 1);
    for path in [
        "/v1/job/web",
        "/v1/job/web/summary",
        "/v1/job/web/versions",
        "/v1/nodes",
        "/v1/agent/self",
        "/v1/agent/health",
        "/v1/agent/members",
        "/v1/status/leader",
        "/v1/regions",
        "/v1/deployments",
        "/v1/job/web/deployment",
        "/v1/evaluations",
    ] {
        rig.client
            .get::<Value>(path, &[])
            .await
            .unwrap_or_else(|e| panic!("{path}: {e}"));
    }
}

#[tokio::test]
async fn purged_job_is_removed() {
    let rig = Rig::start().await;
    register(&rig, job("a/b", "service", None)).await;
    let purge = [("purge", "true")];
    let stopped: Stopped = rig
        .client
        .change(Method::DELETE, "/v1/job/a%2Fb", &purge, None)
        .await
        .unwrap();
    assert!(!stopped.eval_id.is_empty());
    let jobs: Vec<JobStub> = rig.client.get("/v1/jobs", &[]).await.unwrap();
    assert_eq!(jobs, []);
    let again: Stopped = rig
        .client
        .change(Method::DELETE, "/v1/job/a%2Fb", &purge, None)
        .await
        .unwrap();
    assert_eq!(again.eval_id, "", "an unknown job is stopped already");
}

#[tokio::test]
async fn errors_have_nomad_messages() {
    let rig = Rig::start().await;
    let none = "00000000-0000-0000-0000-000000000000";
    let cases = [
        (
            Method::GET,
            "/v1/job/nope".to_owned(),
            "",
            404,
            "job not found",
        ),
        (
            Method::GET,
            format!("/v1/allocation/{none}"),
            "",
            404,
            "alloc not found",
        ),
        (
            Method::GET,
            format!("/v1/evaluation/{none}"),
            "",
            404,
            "eval not found",
        ),
        (
            Method::PUT,
            format!("/v1/allocation/{none}/stop"),
            "",
            404,
            "allocation not found",
        ),
        (
            Method::PUT,
            "/v1/jobs".to_owned(),
            "",
            400,
            "Request body is empty",
        ),
        (
            Method::PUT,
            "/v1/jobs".to_owned(),
            "{}",
            400,
            "Job must be specified",
        ),
        (
            Method::PUT,
            "/v1/jobs".to_owned(),
            r#"{"Job":{}}"#,
            400,
            "Job ID hasn't been provided",
        ),
        (
            Method::DELETE,
            "/v1/jobs".to_owned(),
            "",
            405,
            "Invalid method",
        ),
        (Method::HEAD, "/v1/jobs".to_owned(), "", 405, ""),
        (
            Method::GET,
            "/v1/nothing".to_owned(),
            "",
            404,
            "there is no route \"/v1/nothing\"",
        ),
        (
            Method::GET,
            "/v1/jobs?index=-1".to_owned(),
            "",
            400,
            "Invalid index",
        ),
        (
            Method::GET,
            "/v1/jobs?region=mars".to_owned(),
            "",
            500,
            "No path to region",
        ),
        (
            Method::POST,
            "/v1/system/gc".to_owned(),
            "",
            405,
            "Invalid method",
        ),
    ];
    for (method, path, body, status, message) in cases {
        let got = failure(&rig, method.clone(), &path, body).await;
        assert_eq!(got, (status, message.to_owned()), "{method} {path}");
    }
    let (status, _) = failure(&rig, Method::GET, "/v1/allocation/nope", "").await;
    assert_eq!(status, 500);
    let deep = format!("{{\"Job\":{}", "[".repeat(100_000));
    assert_eq!(failure(&rig, Method::PUT, "/v1/jobs", &deep).await.0, 400);
}

#[tokio::test]
async fn oversized_job_is_refused_with_message() {
    let rig = Rig::start().await;
    let large = " ".repeat(super::body::MAX_BODY + 1);
    let (status, message) = failure(&rig, Method::PUT, "/v1/jobs", &large).await;
    assert_eq!(
        (status, message.as_str()),
        (413, "the request's body is larger than 10 MiB")
    );
}

#[tokio::test]
async fn invalid_job_is_refused_with_reason() {
    let rig = Rig::start().await;
    let body = json!({ "Job": { "ID": "empty" } });
    let validated: Validated = rig
        .client
        .change(Method::PUT, "/v1/validate/job", &[], Some(&body))
        .await
        .unwrap();
    assert!(
        validated
            .validation_errors
            .is_some_and(|errors| !errors.is_empty())
    );
    let (status, message) = failure(&rig, Method::PUT, "/v1/jobs", &body.to_string()).await;
    assert_eq!(status, 500);
    assert!(message.starts_with("1 error occurred:\n\t* "), "{message}");
}

#[tokio::test]
async fn enforced_index_is_checked() {
    let rig = Rig::start().await;
    let registered = register(&rig, job("web", "service", None)).await;
    let body = |index: u64| json!({ "Job": job("web", "service", None), "EnforceIndex": true, "JobModifyIndex": index });
    let (status, message) = failure(&rig, Method::PUT, "/v1/jobs", &body(0).to_string()).await;
    let words = "Enforcing job modify index 0: job already exists";
    assert_eq!((status, message.as_str()), (500, words));
    let right = body(registered.job_modify_index);
    rig.client
        .change::<Registered>(Method::PUT, "/v1/jobs", &[], Some(&right))
        .await
        .unwrap();
}

#[tokio::test]
async fn blocking_query_wakes_when_something_changes() {
    let rig = Rig::start().await;
    let before = rig
        .client
        .read::<Vec<JobStub>>("/v1/jobs", &[])
        .await
        .unwrap();
    let index = before.index.to_string();
    let query = [("index", index.as_str()), ("wait", "300s")];
    let waiting = rig.client.read::<Vec<JobStub>>("/v1/jobs", &query);
    let (after, _) = tokio::join!(waiting, register(&rig, job("web", "batch", Some(0))));
    let after = after.unwrap();
    assert!(after.index > before.index);
    assert_eq!(after.value.len(), 1);
    // With nothing new, the same comes back when patience ends.
    let index = u64::MAX.to_string();
    let query = [("index", index.as_str()), ("wait", "1ms")];
    let same = rig
        .client
        .read::<Vec<JobStub>>("/v1/jobs", &query)
        .await
        .unwrap();
    assert_eq!(same.value, after.value);
}

#[tokio::test(start_paused = true)]
async fn blocking_query_ends_after_its_wait_while_other_things_change() {
    let rig = Rig::start().await;
    let given = [("index", "7"), ("wait", "10s")];
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut params = Params::parse(given.to_vec()).unwrap();
    params.principal = Principal::unlimited();
    let unchanged = blocking_query(&rig.api, &params, |_| Indexed {
        index: 7,
        value: (),
    });
    let of_others = async {
        for nth in 0..100 {
            let key = VariableKey {
                namespace: "default".into(),
                path: "app/db".into(),
            };
            let items = [("nth".to_owned(), nth.to_string())].into();
            let change = PutVariable {
                key,
                items: Items::new(items).unwrap(),
                expect: None,
            };
            rig.api.agent_handle.request(change).await.unwrap();
            tokio::time::sleep(params.wait / 4).await;
        }
    };
    tokio::select! {
        seen = unchanged => assert_eq!(seen.unwrap().index, 7),
        () = of_others => panic!("it waits for 25 times as long"),
    }
}

#[tokio::test]
async fn tasks_are_restarted_and_signalled() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let path = format!("/v1/client/allocation/{id}/restart");
    rig.client
        .change::<Value>(Method::PUT, &path, &[], None)
        .await
        .unwrap();
    let after = allocs(&rig, "web").await;
    assert_eq!(after[0].task_states["t"].restarts, 1);
    let signal = format!("/v1/client/allocation/{id}/signal");
    let body = json!({ "Signal": "SIGHUP", "Task": "" });
    rig.client
        .change::<Value>(Method::PUT, &signal, &[], Some(&body))
        .await
        .unwrap();
    let empty = failure(&rig, Method::PUT, &signal, "").await;
    assert_eq!(
        empty,
        (
            400,
            "Failed to decode body: Request body is empty".to_owned()
        )
    );
    let unknown = failure(&rig, Method::PUT, &signal, r#"{"Task":"x","Signal":"HUP"}"#).await;
    assert_eq!(unknown, (500, "Task not found".to_owned()));
    let action = format!("/v1/client/allocation/{id}/dance");
    assert_eq!(failure(&rig, Method::PUT, &action, "").await.0, 404);
}

#[tokio::test]
async fn ended_alloc_is_collected_on_request() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let gc = |id: &str| format!("/v1/client/allocation/{id}/gc");
    let runs = allocs(&rig, "web").await[0].id.clone();
    let (status, why) = failure(&rig, Method::PUT, &gc(&runs), "").await;
    assert_eq!(status, 500);
    assert!(why.contains("not terminal"), "{why}");
    let ended = allocs(&rig, "calc").await[0].id.clone();
    // Nomad's clients ask by GET. Asked again it is collected already.
    for method in [Method::GET, Method::PUT, Method::POST, Method::GET] {
        let answer = failure(&rig, method, &gc(&ended), "").await;
        assert_eq!(answer, (200, String::new()));
        assert_collected(&rig, &ended).await;
    }
}

/// Its directory is gone, and its record is still shown.
async fn assert_collected(rig: &Rig, id: &str) {
    let path = format!("/v1/allocation/{id}");
    let alloc: Value = rig.client.get(&path, &[]).await.unwrap();
    assert_eq!(alloc["DirectoryCollected"], true, "{alloc}");
}

#[tokio::test]
async fn system_gc_collects_dead_job_with_allocs() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let ended = allocs(&rig, "calc").await[0].id.clone();
    let gc = "/v1/system/gc";
    rig.client.send(Method::PUT, gc, &[], None).await.unwrap();
    for path in ["/v1/job/calc", &format!("/v1/allocation/{ended}")] {
        assert_eq!(failure(&rig, Method::GET, path, "").await.0, 404, "{path}");
    }
    assert_eq!(allocs(&rig, "web").await.len(), 1);
}

#[tokio::test]
async fn plain_list_shows_what_pretty_list_does() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let mut fails = job("fails", "batch", Some(3));
    fails["TaskGroups"][0]["Tasks"][0]["Name"] = "a \"quoted\" name".into();
    register(&rig, fails).await;
    register(&rig, job("two", "service", None)).await;
    let stop = "/v1/job/two";
    rig.client
        .send(Method::DELETE, stop, &[], None)
        .await
        .unwrap();
    let list = async |path: &str| -> Value {
        let (status, text) = failure(&rig, Method::GET, path, "").await;
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    };
    let pretty = list("/v1/allocations?pretty").await;
    assert_eq!(pretty.as_array().unwrap().len(), 4, "{pretty}");
    // The first makes it, and the second is shown what is kept.
    for _ in 0..2 {
        assert_eq!(list("/v1/allocations").await, pretty);
    }
    let nothing = list("/v1/allocations?prefix=00000000").await;
    assert_eq!(nothing, json!([]));
}

/// The core hands out records in pieces, and what is wanted stands anywhere in them.
#[tokio::test]
async fn list_of_allocations_is_whole_whatever_others_there_are() {
    const EACH: usize = 300;
    let rig = Rig::start().await;
    let space = json!({ "Name": "team" }).to_string();
    assert_eq!(
        failure(&rig, Method::PUT, "/v1/namespace", &space).await.0,
        200
    );
    let mut lists = Vec::new();
    for namespace in ["default", "team"] {
        let mut many = job("calc", "batch", Some(0));
        many["Namespace"] = json!(namespace);
        many["TaskGroups"][0]["Count"] = json!(EACH);
        let eval = register(&rig, many).await.eval_id;
        lists.push(format!("/v1/allocations?namespace={namespace}"));
        lists.push(format!("/v1/evaluation/{eval}/allocations"));
    }
    for path in lists {
        let (_, text) = failure(&rig, Method::GET, &path, "").await;
        let listed: Vec<AllocStub> = serde_json::from_str(&text).unwrap();
        assert_eq!(listed.len(), EACH, "{path}");
    }
}
