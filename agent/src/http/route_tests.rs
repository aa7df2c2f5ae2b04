//! Routes that are not there, switches, and what a submission says beside its job.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use hyper::Method;
use serde_json::{Value, json};

use super::dto::{JobStub, Registered};
use super::tests::{allocs, failure, register};
use crate::testing::{Rig, job};

const NONE: &str = "00000000-0000-0000-0000-000000000000";

#[tokio::test]
async fn nomad_only_route_answers_501_with_name() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    for (method, path, name) in [
        (
            Method::PUT,
            format!("/v1/client/allocation/{NONE}/pause"),
            "pausing tasks",
        ),
        (Method::GET, "/ui/jobs".to_owned(), "a web interface"),
        (
            Method::GET,
            "/v1/agent/monitor/export?on_disk=true".to_owned(),
            "logs of the past",
        ),
        // `nomad node pool apply` and `delete`.
        (
            Method::PUT,
            "/v1/node/pools".to_owned(),
            "node pools besides default, all",
        ),
        (
            Method::DELETE,
            "/v1/node/pool/gpus".to_owned(),
            "node pools besides default, all",
        ),
    ] {
        let (status, message) = failure(&rig, method, &path, "{}").await;
        assert_eq!(status, 501, "{path}: {message}");
        assert!(message.contains(name), "{path}: {message}");
    }
    let (status, message) = failure(&rig, Method::PUT, "/v1/job/web/deployments/x", "{}").await;
    assert_eq!((status, message.as_str()), (400, "Job must be specified"));
}

#[tokio::test]
async fn websocket_route_without_upgrade_is_refused_in_words() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let words = (500, "websocket connection not found in context".to_owned());
    for path in [
        format!("/v1/client/allocation/{id}/exec?task=t&command=[]"),
        format!("/v1/client/allocation/{id}/port-forward?port=http"),
        format!("/v1/client/fs/put/{id}?path=alloc/x"),
        "/v1/job/web/action?action=x".to_owned(),
    ] {
        assert_eq!(failure(&rig, Method::GET, &path, "").await, words, "{path}");
    }
    let bad = format!("/v1/client/allocation/{id}/exec?tty=maybe");
    assert_eq!(failure(&rig, Method::GET, &bad, "").await.0, 400);
}

#[tokio::test]
async fn actions_of_a_job_are_listed() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Tasks"][0]["Actions"] =
        json!([{"Name": "greet", "Command": "/bin/echo", "Args": ["hi"]}]);
    register(&rig, web).await;
    let listed: Value = rig.client.get("/v1/job/web/actions", &[]).await.unwrap();
    let task = &listed[0]["TaskName"];
    assert!(task.is_string(), "{listed}");
    let expected = json!([{"Name": "greet", "Command": "/bin/echo", "Args": ["hi"],
        "TaskName": task, "TaskGroupName": listed[0]["TaskGroupName"]}]);
    assert_eq!(listed, expected);
    assert_eq!(
        failure(&rig, Method::GET, "/v1/job/nope/actions", "")
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn unknown_route_answers_404_with_message() {
    let rig = Rig::start().await;
    let long = format!("/v1/nothing/{}", "x".repeat(8_000));
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v1/node",
        "/v1/jobs/",
        "//v1/jobs",
        &long,
    ] {
        let (status, message) = failure(&rig, Method::GET, path, "").await;
        assert_eq!(status, 404, "{path}");
        assert!(message.starts_with("there is no route \"/"), "{message}");
        assert!(message.len() < 200, "{message}");
    }
    let action = format!("/v1/client/allocation/{NONE}/dance");
    let none = (404, "resource not found".to_owned());
    assert_eq!(failure(&rig, Method::GET, &action, "").await, none);
    assert_eq!(failure(&rig, Method::PUT, &action, "").await, none);
}

#[tokio::test]
async fn purge_in_go_spelling_removes_job() {
    let rig = Rig::start().await;
    for purge in ["True", "t", "1"] {
        register(&rig, job("web", "service", None)).await;
        let path = format!("/v1/job/web?purge={purge}");
        assert_eq!(failure(&rig, Method::DELETE, &path, "").await.0, 200);
        let jobs: Vec<JobStub> = rig.client.get("/v1/jobs", &[]).await.unwrap();
        assert_eq!(jobs, [], "{purge}");
    }
    register(&rig, job("web", "service", None)).await;
    let (status, message) = failure(&rig, Method::DELETE, "/v1/job/web?purge=yes", "").await;
    assert_eq!(status, 400, "{message}");
    assert_eq!(allocs(&rig, "web").await[0].client_status, "running");
}

async fn submit(rig: &Rig, body: &Value) -> Registered {
    let answer = rig
        .client
        .change(Method::PUT, "/v1/jobs", &[], Some(body))
        .await;
    answer.unwrap()
}

#[tokio::test]
async fn preserve_counts_keeps_running_counts() {
    let rig = Rig::start().await;
    let with = |count: u64, memory: u64| {
        let mut job = job("web", "service", None);
        job["TaskGroups"][0]["Count"] = json!(count);
        job["TaskGroups"][0]["Tasks"][0]["Resources"] = json!({ "CPU": 100, "MemoryMB": memory });
        job
    };
    register(&rig, with(3, 20)).await;
    let response_cache = json!({ "Job": with(1, 30), "PreserveCounts": true });
    submit(&rig, &response_cache).await;
    let group = |job: &Value| job["TaskGroups"][0].clone();
    let now = group(&rig.client.get::<Value>("/v1/job/web", &[]).await.unwrap());
    assert_eq!(
        (&now["Count"], &now["Tasks"][0]["Resources"]["MemoryMB"]),
        (&json!(3), &json!(30))
    );
    let response_cache = json!({ "Job": with(2, 40), "PreserveResources": true });
    submit(&rig, &response_cache).await;
    let now = group(&rig.client.get::<Value>("/v1/job/web", &[]).await.unwrap());
    assert_eq!(
        (&now["Count"], &now["Tasks"][0]["Resources"]["MemoryMB"]),
        (&json!(2), &json!(30))
    );
}

#[tokio::test]
async fn preserved_groups_keep_what_they_have_behind_a_new_group() {
    let rig = Rig::start().await;
    let with = |groups: &[(&str, u64, u64)]| {
        let mut web = job("web", "service", None);
        let group = web["TaskGroups"][0].clone();
        let groups = groups.iter().map(|(name, count, memory)| {
            let mut group = group.clone();
            group["Name"] = json!(name);
            group["Count"] = json!(count);
            group["Tasks"][0]["Resources"]["MemoryMB"] = json!(memory);
            group
        });
        web["TaskGroups"] = groups.collect();
        web
    };
    register(&rig, with(&[("old", 3, 20)])).await;
    let wanted = with(&[("new", 2, 40), ("old", 1, 30)]);
    let body = json!({ "Job": wanted, "PreserveCounts": true, "PreserveResources": true });
    submit(&rig, &body).await;
    let now: Value = rig.client.get("/v1/job/web", &[]).await.unwrap();
    for (at, name, count, memory) in [(0, "new", 2, 40), (1, "old", 3, 20)] {
        let group = &now["TaskGroups"][at];
        assert_eq!(group["Name"], name);
        assert_eq!(group["Count"], count, "{name}");
        assert_eq!(group["Tasks"][0]["Resources"]["MemoryMB"], memory, "{name}");
    }
}

#[tokio::test]
async fn priority_of_an_evaluation_is_refused_by_name() {
    let rig = Rig::start().await;
    let with = |priority: i64| {
        let job = job("web", "service", None);
        json!({ "Job": job, "EvalPriority": priority })
    };
    submit(&rig, &with(0)).await;
    for priority in [-1, 70, 101] {
        let body = with(priority).to_string();
        let (status, message) = failure(&rig, Method::PUT, "/v1/jobs", &body).await;
        assert_eq!(status, 400, "{message}");
        let words = format!("EvalPriority {priority} is not supported");
        assert!(message.contains(&words), "{message}");
        let path = format!("/v1/job/web?eval_priority={priority}");
        let (status, message) = failure(&rig, Method::DELETE, &path, "").await;
        assert_eq!(status, 400, "{message}");
        assert!(message.contains(&words), "{message}");
    }
}

#[tokio::test]
async fn job_in_unknown_namespace_or_pool_is_refused() {
    let rig = Rig::start().await;
    let long = "n".repeat(100);
    for (field, name, words) in [
        (
            "Namespace",
            "ops",
            "job \"web\" is in nonexistent namespace \"ops\"",
        ),
        (
            "NodePool",
            "gpus",
            "job \"web\" is in nonexistent node pool \"gpus\"",
        ),
        ("Namespace", long.as_str(), "nonexistent namespace"),
    ] {
        let mut job = job("web", "service", None);
        job[field] = json!(name);
        let body = json!({ "Job": job }).to_string();
        let (status, message) = failure(&rig, Method::PUT, "/v1/jobs", &body).await;
        assert_eq!(status, 500, "{message}");
        assert!(message.contains(words) && message.len() < 500, "{message}");
    }
    let mut job = job("web", "service", None);
    job["NodePool"] = json!("all");
    register(&rig, job).await;
}

#[tokio::test]
async fn cluster_of_one_answers_as_nomad_does() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let text = async |path: &str| failure(&rig, Method::GET, path, "").await;
    let read = async |path: &str| {
        let (status, body) = text(path).await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let spaces = read("/v1/namespaces").await;
    assert_eq!(spaces[0]["Name"], "default");
    assert_eq!(spaces[0]["Description"], "Default shared namespace");
    let pools = read("/v1/node/pools").await;
    assert_eq!(
        (&pools[0]["Name"], &pools[1]["Name"]),
        (&json!("all"), &json!("default"))
    );
    assert_eq!(read("/v1/node/pool/all/nodes").await[0]["Name"], "box");
    assert_eq!(
        read("/v1/agent/servers").await,
        json!([rig.addr.to_string()])
    );
    assert_eq!(
        read("/v1/agent/schedulers/config").await["num_schedulers"],
        1
    );
    assert_eq!(
        read("/v1/operator/raft/configuration").await["Servers"][0]["Leader"],
        true
    );
    assert_eq!(read("/v1/operator/autopilot/health").await["Healthy"], true);
    assert_eq!(read("/v1/volumes?type=csi").await, json!([]));
    assert_eq!(
        read("/v1/acl/token/self").await["AccessorID"],
        "acls-disabled"
    );
    assert!(
        read("/v1/evaluations/count").await["Count"]
            .as_u64()
            .unwrap()
            > 0
    );
    for (path, status, words) in [
        ("/v1/namespace/zz", 404, "Namespace not found"),
        ("/v1/node/pool/zz", 404, "node pool not found"),
        ("/v1/acl/policies", 400, "ACL support disabled"),
        ("/v1/quotas", 501, "Nomad Enterprise only endpoint"),
        (
            "/v1/sentinel/policies",
            501,
            "Nomad Enterprise only endpoint",
        ),
        (
            "/.well-known/openid-configuration",
            404,
            "OIDC Discovery endpoint disabled",
        ),
    ] {
        assert_eq!(text(path).await, (status, words.to_owned()), "{path}");
    }
    let refused = failure(&rig, Method::DELETE, "/v1/namespace/default", "").await;
    assert_eq!(
        refused,
        (500, "can not delete default namespace".to_owned())
    );
    let put = async |path: &str| failure(&rig, Method::PUT, path, "{}").await;
    assert_eq!(
        put("/v1/agent/servers").await,
        (400, "missing server address".to_owned())
    );
    assert_eq!(
        put("/v1/system/reconcile/summaries").await,
        (200, String::new())
    );
    assert_eq!(put("/v1/client/gc").await, (200, String::new()));
}

#[tokio::test]
async fn namespace_is_made_described_and_deleted() {
    let rig = Rig::start().await;
    let ask = async |method: Method, path: &str, body: &Value| {
        failure(&rig, method, path, &body.to_string()).await
    };
    let read = async |path: &str| {
        let (status, body) = failure(&rig, Method::GET, path, "").await;
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let team = json!({ "Name": "team-a", "Description": "x", "Meta": { "owner": "anna" }, "Capabilities": null });
    let nothing = (200, String::new());
    assert_eq!(ask(Method::PUT, "/v1/namespace", &team).await, nothing);
    let made = read("/v1/namespace/team-a").await;
    assert_eq!(
        (&made["Description"], &made["Meta"]["owner"]),
        (&json!("x"), &json!("anna"))
    );
    // The same once more changes nothing, and another description does.
    assert_eq!(
        ask(Method::POST, "/v1/namespace/team-a", &team).await,
        nothing
    );
    assert_eq!(read("/v1/namespace/team-a").await, made);
    let strict = json!({ "Capabilities": { "DisabledTaskDrivers": ["mock_driver"] } });
    assert_eq!(
        ask(Method::PUT, "/v1/namespace/team-a", &strict).await,
        nothing
    );
    let filtered = read("/v1/namespaces?filter=Name+==+%22team-a%22").await;
    assert_eq!(filtered.as_array().unwrap().len(), 1);
    let all = read("/v1/namespaces?prefix=team").await;
    assert_eq!(
        all[0]["Capabilities"]["DisabledTaskDrivers"],
        json!(["mock_driver"])
    );
    assert_eq!(
        (&all[0]["Meta"], &all[0]["CreateIndex"]),
        (&Value::Null, &made["CreateIndex"])
    );

    let mut web = job("web", "service", None);
    web["Namespace"] = json!("team-a");
    let body = json!({ "Job": web });
    for (path, status) in [("/v1/jobs", 500), ("/v1/job/web/plan", 500)] {
        let (got, why) = ask(Method::PUT, path, &body).await;
        assert_eq!(got, status, "{path}: {why}");
        assert!(why.contains("uses driver \"mock_driver\""), "{path}: {why}");
    }
    assert_eq!(
        ask(Method::PUT, "/v1/namespace/team-a", &team).await,
        nothing
    );
    register(&rig, web).await;
    let (status, why) = ask(Method::DELETE, "/v1/namespace/team-a", &json!({})).await;
    assert_eq!(status, 500, "{why}");
    assert!(
        why.contains("it has job \"web\", which is not dead"),
        "{why}"
    );
    let (status, _) = ask(Method::DELETE, "/v1/namespace/nobody", &json!({})).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn invalid_namespace_is_refused() {
    let rig = Rig::start().await;
    for (path, body, words) in [
        ("/v1/namespace", json!({}), "invalid name"),
        ("/v1/namespace/a", json!({ "Name": "b" }), "of another name"),
        ("/v1/namespace/a%2Fb", json!({}), "invalid name"),
        ("/v1/namespace", json!({ "Name": "a b" }), "invalid name"),
        (
            "/v1/namespace/a",
            json!({ "Quota": "small" }),
            "Quota of namespace \"a\"",
        ),
        (
            "/v1/namespace/a",
            json!({ "Description": "x".repeat(257) }),
            "description longer",
        ),
        ("/v1/namespace/a", json!({ "Meta": 7 }), "expected a map"),
    ] {
        let (status, why) = failure(&rig, Method::PUT, path, &body.to_string()).await;
        assert_eq!(status, 400, "{path} {body}: {why}");
        assert!(why.contains(words), "{path}: {why}");
    }
}
