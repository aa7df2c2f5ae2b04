//! Users with tokens and without, against a real core.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod connections;
mod pages;
mod servers;
mod ways_around;

use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::need::Need;
use crate::http::routes;
use crate::testing::{Rig, job};

const NONE: &str = "00000000-0000-0000-0000-000000000000";

/// Asks with a token; none if it is empty. The status and the body.
async fn ask(rig: &Rig, token: &str, method: &str, path: &str, body: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    let (body, addr) = (body.to_string(), rig.addr);
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\nX-Nomad-Token: {token}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

async fn get(rig: &Rig, token: &str, path: &str) -> (u16, String) {
    ask(rig, token, "GET", path, &json!({})).await
}

fn is_denied(answer: (u16, String)) -> bool {
    answer == (403, "Permission denied".to_owned())
}

async fn secret(answer: (u16, String)) -> (String, String) {
    assert_eq!(answer.0, 200, "{}", answer.1);
    let token: Value = serde_json::from_str(&answer.1).unwrap();
    let text = |key: &str| token[key].as_str().unwrap().to_owned();
    (text("SecretID"), text("AccessorID"))
}

/// A rig with its management token.
async fn bootstrapped() -> (Rig, String) {
    let rig = Rig::start_with_acl().await;
    let first = ask(&rig, "", "PUT", "/v1/acl/bootstrap", &json!({})).await;
    let (management, _) = secret(first).await;
    (rig, management)
}

/// A token with these rules.
async fn token(rig: &Rig, management: &str, name: &str, rules: &str) -> (String, String) {
    let policy = json!({ "Name": name, "Rules": rules });
    let path = format!("/v1/acl/policy/{name}");
    let made = ask(rig, management, "PUT", &path, &policy).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let asked = json!({ "Name": name, "Type": "client", "Policies": [name] });
    secret(ask(rig, management, "PUT", "/v1/acl/token", &asked).await).await
}

async fn run(rig: &Rig, token: &str, id: &str, namespace: &str) -> (u16, String) {
    let mut wanted = job(id, "service", None);
    wanted["Namespace"] = json!(namespace);
    ask(rig, token, "PUT", "/v1/jobs", &json!({ "Job": wanted })).await
}

const TEAM: &str = "namespace \"team\" {\n policy = \"write\"\n variables {\n path \"app/*\" {\n \
                    capabilities = [\"write\", \"destroy\"]\n }\n }\n}";

/// A job in `default`, one in `team`, and a token for `team`.
async fn with_team() -> (Rig, String, String) {
    let (rig, management) = bootstrapped().await;
    let space = json!({ "Name": "team" });
    let made = ask(&rig, &management, "PUT", "/v1/namespace", &space).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let (team, _) = token(&rig, &management, "team", TEAM).await;
    let others = run(&rig, &management, "other", "default").await;
    assert_eq!(others.0, 200, "{}", others.1);
    let own = run(&rig, &team, "own", "team").await;
    assert_eq!(own.0, 200, "{}", own.1);
    (rig, management, team)
}

async fn alloc_of(rig: &Rig, token: &str, job: &str, namespace: &str) -> String {
    let path = format!("/v1/job/{job}/allocations?namespace={namespace}");
    let (_, body) = get(rig, token, &path).await;
    let allocs: Value = serde_json::from_str(&body).unwrap();
    allocs[0]["ID"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn protected_route_without_token_is_denied() {
    let rig = Rig::start_with_acl().await;
    let routes = routes::all(&rig.api);
    let mut denied = 0;
    for (pattern, needs) in routes.paths() {
        for (path, method) in paths_of(pattern)
            .iter()
            .flat_map(|path| METHODS.map(|method| (path, method)))
        {
            if matches!(needs.of(&method), Need::Nothing) || path == "/v1/acl/token/self" {
                continue;
            }
            let (status, body) = ask(&rig, "", method.as_str(), path, &json!({})).await;
            let is_denied = status == 403 && body == "Permission denied";
            assert!(
                is_denied || status == 405,
                "{method} {path}: {status} {body}"
            );
            denied += u32::from(is_denied);
        }
    }
    assert!(denied > 150, "{denied}");
}

const METHODS: [Method; 4] = [Method::GET, Method::PUT, Method::POST, Method::DELETE];

/// Paths that a route is for.
fn paths_of(pattern: &str) -> Vec<String> {
    let parts = [
        ("{id}", NONE),
        ("{accessor}", NONE),
        ("{name}", "default"),
        ("{action}", "promote"),
        ("{*path}", "app/db"),
    ];
    let below_job = [
        "web",
        "web/allocations",
        "web/evaluations",
        "web/summary",
        "web/services",
        "web/versions",
        "web/submission",
        "web/revert",
        "web/scale",
        "web/stable",
        "web/versions/v1/tag",
        "web/deployments",
        "web/deployment",
        "web/evaluate",
        "web/dispatch",
        "web/handover",
        "web/plan",
        "web/explain",
        "web/periodic",
        "web/periodic/force",
        "web/actions",
        "web/action",
        "%zz",
    ];
    let mut path = pattern.to_owned();
    for (part, text) in parts {
        path = path.replace(part, text);
    }
    match path.strip_suffix("{*rest}") {
        Some(start) => below_job
            .iter()
            .map(|rest| format!("{start}{rest}"))
            .collect(),
        None => vec![path],
    }
}

#[tokio::test]
async fn public_route_without_token_answers() {
    let rig = Rig::start_with_acl().await;
    for path in [
        "/v1/status/leader",
        "/v1/status/peers",
        "/v1/regions",
        "/v1/agent/health",
        "/v1/metrics",
        "/.well-known/jwks.json",
    ] {
        // Also to those whose token is none.
        for token in ["", "nobody"] {
            assert_eq!(get(&rig, token, path).await.0, 200, "{path}");
        }
    }
    let own = get(&rig, "", "/v1/acl/token/self").await;
    assert!(own.1.contains("Anonymous Token"), "{}", own.1);
    let stranger = get(&rig, "nobody", "/v1/jobs").await;
    assert_eq!(stranger, (403, "ACL token not found".to_owned()));
    let snapshot = format!("/v1/client/allocation/{NONE}/snapshot");
    assert_eq!(get(&rig, "nobody", &snapshot).await.0, 403);
}

#[tokio::test]
async fn management_token_may_do_everything() {
    let (rig, management) = bootstrapped().await;
    assert_eq!(run(&rig, &management, "web", "default").await.0, 200);
    for path in [
        "/v1/jobs",
        "/v1/agent/self",
        "/v1/acl/tokens",
        "/v1/vars",
        "/v1/nodes",
    ] {
        assert_eq!(get(&rig, &management, path).await.0, 200, "{path}");
    }
    let own = get(&rig, &management, "/v1/agent/self").await;
    assert!(own.1.contains("\"ACL\":{\"Enabled\":true}"), "{}", own.1);
    let again = ask(&rig, "", "PUT", "/v1/acl/bootstrap", &json!({})).await;
    assert_eq!(again.0, 400, "{}", again.1);
}

#[tokio::test]
async fn lists_show_what_may_be_seen() {
    let (rig, management, team) = with_team().await;
    for path in ["/v1/jobs", "/v1/allocations", "/v1/evaluations"] {
        let whole = get(&rig, &management, &format!("{path}?namespace=*"))
            .await
            .1;
        assert!(
            whole.contains("\"other\"") && whole.contains("\"own\""),
            "{path}: {whole}"
        );
        let seen = get(&rig, &team, &format!("{path}?namespace=*")).await.1;
        assert!(
            !seen.contains("\"other\"") && seen.contains("\"own\""),
            "{path}: {seen}"
        );
        let own = get(&rig, &team, &format!("{path}?namespace=team")).await.1;
        assert!(own.contains("\"own\""), "{path}: {own}");
        assert!(is_denied(get(&rig, &team, path).await), "{path}");
    }
    let spaces = get(&rig, &team, "/v1/namespaces").await.1;
    assert!(
        spaces.contains("\"team\"") && !spaces.contains("\"default\""),
        "{spaces}"
    );
    assert!(is_denied(get(&rig, &team, "/v1/namespace/default").await));
    let search = json!({ "Prefix": "o", "Context": "all" });
    let found = ask(&rig, &team, "PUT", "/v1/search?namespace=*", &search)
        .await
        .1;
    assert!(
        found.contains("\"own\"") && !found.contains("\"other\""),
        "{found}"
    );
    assert!(!found.contains("\"nodes\""), "{found}");
    for path in [
        "/v1/nodes",
        "/v1/agent/self",
        "/v1/acl/tokens",
        "/v1/operator/keyring/keys",
    ] {
        assert!(is_denied(get(&rig, &team, path).await), "{path}");
    }
}

#[tokio::test]
async fn objects_belong_to_their_namespace() {
    let (rig, management, team) = with_team().await;
    let other = alloc_of(&rig, &management, "other", "default").await;
    let own = alloc_of(&rig, &team, "own", "team").await;
    for path in [
        "/v1/allocation/ID",
        "/v1/allocation/ID/services",
        "/v1/client/fs/ls/ID",
    ] {
        assert!(
            is_denied(get(&rig, &team, &path.replace("ID", &other)).await),
            "{path}"
        );
        assert_eq!(
            get(&rig, &team, &path.replace("ID", &own)).await.0,
            200,
            "{path}"
        );
    }
    // Whoever could see one is told that there is none.
    assert_eq!(
        get(&rig, &team, &format!("/v1/allocation/{NONE}")).await.0,
        404
    );
    assert!(is_denied(run(&rig, &team, "third", "default").await));
    let stop = format!("/v1/allocation/{other}/stop");
    assert!(is_denied(ask(&rig, &team, "PUT", &stop, &json!({})).await));
    assert!(is_denied(
        ask(&rig, &team, "DELETE", "/v1/job/other", &json!({})).await
    ));
    let plan = json!({ "Job": job("other", "service", None) });
    assert!(is_denied(
        ask(&rig, &team, "PUT", "/v1/job/other/plan", &plan).await
    ));
    let planned = "/v1/job/other/plan?namespace=team";
    let (status, planned) = ask(&rig, &team, "PUT", planned, &plan).await;
    assert_eq!(status, 200, "{planned}");
    // It would be a new job of the team, which says nothing of the one in the other namespace.
    let planned: Value = serde_json::from_str(&planned).unwrap();
    assert_eq!(planned["JobModifyIndex"], 0, "{planned}");
    let asked = get(&rig, &team, "/v1/job/other?namespace=team").await;
    assert_eq!(asked.0, 404, "{}", asked.1);
    let ended = ask(
        &rig,
        &team,
        "DELETE",
        "/v1/job/own?namespace=team",
        &json!({}),
    )
    .await;
    assert_eq!(ended.0, 200, "{}", ended.1);
}

#[tokio::test]
async fn variable_access_follows_its_path() {
    let (rig, management, team) = with_team().await;
    let variable = json!({ "Items": { "password": "s3cret" } });
    let own = "/v1/var/app/db?namespace=team";
    let put = ask(&rig, &team, "PUT", own, &variable).await;
    assert_eq!(put.0, 200, "{}", put.1);
    assert!(is_denied(
        ask(
            &rig,
            &team,
            "PUT",
            "/v1/var/sys/db?namespace=team",
            &variable
        )
        .await
    ));
    assert!(is_denied(
        ask(&rig, &team, "PUT", "/v1/var/app/db", &variable).await
    ));
    // In the body stands another namespace than may be written.
    let elsewhere = json!({ "Namespace": "default", "Items": {} });
    assert!(is_denied(
        ask(&rig, &team, "PUT", "/v1/var/app/db", &elsewhere).await
    ));
    assert!(
        is_denied(get(&rig, &team, own).await),
        "it may be written alone"
    );
    let conflict = ask(&rig, &team, "PUT", &format!("{own}&cas=1"), &variable).await;
    assert_eq!(conflict.0, 409, "{}", conflict.1);
    assert!(!conflict.1.contains("s3cret"), "{}", conflict.1);
    let put = ask(
        &rig,
        &management,
        "PUT",
        "/v1/var/sys/db?namespace=team",
        &variable,
    )
    .await;
    assert_eq!(put.0, 200, "{}", put.1);
    let listed = get(&rig, &team, "/v1/vars?namespace=*").await.1;
    assert!(
        listed.contains("app/db") && !listed.contains("sys/db"),
        "{listed}"
    );
    let gone = ask(&rig, &team, "DELETE", own, &json!({})).await;
    assert_eq!(gone.0, 204, "{}", gone.1);
}

#[tokio::test]
async fn job_mounts_the_host_volumes_that_its_token_may() {
    let (rig, management) = bootstrapped().await;
    let rules = "namespace \"default\" {\n policy = \"write\"\n}\nhost_volume \"data\" {\n policy = \"read\"\n}";
    let (reader, _) = token(&rig, &management, "reader", rules).await;
    let with = |source: &str, read_only: bool| {
        let mut wanted = job("web", "service", None);
        wanted["TaskGroups"][0]["Volumes"] = json!({ "v": { "Name": "v", "Type": "host", "Source": source, "ReadOnly": read_only } });
        json!({ "Job": wanted })
    };
    for (body, denied) in [
        (with("data", true), false),
        (with("data", false), true),
        (with("other", true), true),
    ] {
        let planned = ask(&rig, &reader, "PUT", "/v1/job/web/plan", &body).await;
        assert_eq!(is_denied(planned.clone()), denied, "{body}: {planned:?}");
    }
}

#[tokio::test]
async fn token_sees_its_own_policies_and_no_others() {
    let (rig, management, team) = with_team().await;
    let own = get(&rig, &team, "/v1/acl/policies").await.1;
    assert!(
        own.contains("\"team\"") && !own.contains("\"deploy\""),
        "{own}"
    );
    assert_eq!(get(&rig, &team, "/v1/acl/policy/team").await.0, 200);
    assert!(is_denied(get(&rig, &team, "/v1/acl/policy/deploy").await));
    let all = get(&rig, &management, "/v1/acl/policies").await.1;
    assert!(
        all.contains("\"deploy\"") && all.contains("\"read\""),
        "{all}"
    );
    let own = get(&rig, &team, "/v1/acl/token/self").await.1;
    assert!(
        own.contains("\"Name\":\"team\"") && own.contains("\"SecretID\":\"\""),
        "{own}"
    );
}

#[tokio::test]
async fn policy_that_changes_changes_what_may_be_done() {
    let (rig, management, team) = with_team().await;
    let none = json!({ "Name": "team", "Rules": "node { policy = \"read\" }" });
    let changed = ask(&rig, &management, "PUT", "/v1/acl/policy/team", &none).await;
    assert_eq!(changed.0, 200, "{}", changed.1);
    assert!(is_denied(get(&rig, &team, "/v1/jobs?namespace=team").await));
    assert_eq!(get(&rig, &team, "/v1/nodes").await.0, 200);
    let open = json!({ "Name": "anonymous", "Rules": "namespace \"*\" { policy = \"read\" }" });
    let opened = ask(&rig, &management, "PUT", "/v1/acl/policy/anonymous", &open).await;
    assert_eq!(opened.0, 200, "{}", opened.1);
    assert_eq!(get(&rig, "", "/v1/jobs").await.0, 200);
    assert!(is_denied(
        ask(&rig, "", "DELETE", "/v1/job/other", &json!({})).await
    ));
}

#[tokio::test]
async fn ready_policy_works_at_once() {
    let (rig, management) = bootstrapped().await;
    let asked = json!({ "Type": "client", "Policies": ["deploy"] });
    let made = ask(&rig, &management, "PUT", "/v1/acl/token", &asked).await;
    let (deploy, _) = secret(made).await;
    assert_eq!(run(&rig, &deploy, "web", "default").await.0, 200);
    assert!(is_denied(get(&rig, &deploy, "/v1/vars").await));
}
