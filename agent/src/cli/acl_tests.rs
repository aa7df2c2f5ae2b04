//! Commands of access control, and tokens of all others, against a scripted agent: what it is asked, and
//! what people read.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};

use super::args::{Cli, Command, Connection};
use super::client::Client;
use super::context::Context;
use super::screen::Screen;
use super::{dashes, dispatch};
use crate::testing::{BEGAN, Captured};

const ACCESSOR: &str = "4b1f4f1e-7a3c-4a53-9c55-0d6a3f1f5d11";
const SECRET: &str = "9e1c2b5a-1111-4222-8333-a2b3c4d5e6f7";

/// What was asked: method, path and query, the token, and the body.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    line: String,
    token: Option<String>,
    body: Value,
}

/// An agent that gives one answer, and remembers what it was asked.
struct Scripted {
    client: Client,
    asked: Arc<Mutex<Vec<Asked>>>,
    dir: TempDir,
}

/// What a command exits with, and what it says and complains of.
type Ended = (u8, String, String);

fn answering(status: u16, answer: &Value, asked: &Arc<Mutex<Vec<Asked>>>) -> Router {
    let (answer, asked) = (answer.to_string(), asked.clone());
    let handler = move |request: Request| async move {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1 << 20).await.unwrap();
        let token = head.headers.get("x-nomad-token");
        asked.lock().unwrap().push(Asked {
            line: format!("{} {}", head.method, head.uri),
            token: token.map(|token| token.to_str().unwrap().to_owned()),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        });
        (StatusCode::from_u16(status).unwrap(), answer).into_response() as Response
    };
    Router::new().fallback(handler)
}

impl Scripted {
    /// Answers all requests so, at an address of the network.
    async fn start(status: u16, answer: Value) -> Scripted {
        let asked = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = answering(status, &answer, &asked);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Scripted {
            client: client(&address, None),
            asked,
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// The same behind a socket.
    async fn behind_socket(answer: Value) -> Scripted {
        let asked = Arc::default();
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("api.sock")).unwrap();
        // Its path is longer than that of a socket may be.
        let deep = dir.path().join("d".repeat(200));
        std::fs::create_dir(&deep).unwrap();
        let path = deep.join("api.sock");
        std::fs::rename(dir.path().join("api.sock"), &path).unwrap();
        let router = answering(200, &answer, &asked);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Scripted {
            client: client(&format!("unix://{}", path.display()), None),
            asked,
            dir,
        }
    }

    fn with_token(mut self, variable: &'static str, token: &'static str) -> Scripted {
        self.client = client(&self.client.url(), Some((variable, token)));
        self
    }

    async fn run(&self, args: &[&str]) -> Ended {
        let (out, err) = (Captured::default(), Captured::default());
        let mut cx = Context {
            client: self.client.clone(),
            screen: Screen::plain(Box::new(out.clone()), Box::new(err.clone())),
            clock: || BEGAN,
        };
        let args = ["drover"].iter().chain(args).map(|arg| (*arg).into());
        let args = dashes::rewrite(&Cli::command(), args);
        let Command::Client(command) = Cli::try_parse_from(args).unwrap().command else {
            panic!("that asks no agent");
        };
        let code = dispatch(&mut cx, command).await.unwrap_or_else(|failure| {
            cx.screen.complain(&failure.message);
            cx.screen.complain(&failure.hint.unwrap_or_default());
            failure.code
        });
        drop(cx);
        (code, out.text(), err.text())
    }

    /// A file beside the agent.
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn client(address: &str, token: Option<(&'static str, &'static str)>) -> Client {
    let options = Connection {
        address: Some(address.to_owned()),
        ..Connection::default()
    };
    let env = |name: &str| {
        Some(
            token
                .filter(|(variable, _)| *variable == name)?
                .1
                .to_owned(),
        )
    };
    Client::new(&options, env).unwrap()
}

/// A token as the agent shows it.
fn token(kind: &str, policies: &Value, secret: &str) -> Value {
    json!({
        "AccessorID": ACCESSOR, "SecretID": secret, "Name": "ci", "Type": kind, "Policies": policies, "Roles": [],
        "Global": false, "Hash": "aa==", "CreateTime": "2026-11-21T04:43:14.5Z",
        "ExpirationTime": "2026-11-21T05:43:14.5Z", "CreateIndex": 7, "ModifyIndex": 7,
    })
}

fn asked(line: &str, body: Value) -> Asked {
    Asked {
        line: line.to_owned(),
        token: None,
        body,
    }
}

#[tokio::test]
async fn created_token_is_shown_with_its_secret_once() {
    let agent = Scripted::start(200, token("client", &json!(["deploy", "read"]), SECRET)).await;
    let args = [
        "acl",
        "token",
        "create",
        "-name=ci",
        "-policy=deploy",
        "-policy",
        "read",
        "-ttl=1h",
        "-global",
    ];
    let (code, out, err) = agent.run(&args).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let shown = format!(
        "Accessor ID  = {ACCESSOR}\nSecret ID    = {SECRET}\nName         = ci\nType         = client\n\
         Global       = false\nCreate Time  = 2026-11-21T04:43:14Z\nExpiry Time  = 2026-11-21T05:43:14Z\n\
         Create Index = 7\nModify Index = 7\nPolicies     = [deploy read]\n\nThe Secret ID is the token: put it into \
         NOMAD_TOKEN. Keep it: it is not shown again.\n"
    );
    assert_eq!(out, shown);
    let body = json!({
        "Name": "ci", "Type": "client", "Policies": ["deploy", "read"], "ExpirationTTL": 3_600_000_000_000_i64,
    });
    assert_eq!(agent.asked(), [asked("PUT /v1/acl/token", body)]);
    let (_, out, _) = agent
        .run(&[&args[..], &["-t={{ .SecretID }}"]].concat())
        .await;
    assert_eq!(out, format!("{SECRET}\n"));
}

#[tokio::test]
async fn token_is_listed_and_shown_without_a_secret() {
    let agent = Scripted::start(200, token("management", &Value::Null, "")).await;
    let (code, out, _) = agent.run(&["acl", "token", "info", ACCESSOR]).await;
    assert!(code == 0 && !out.contains("Secret"), "{out}");
    assert!(out.contains("Policies     = n/a\n"), "{out}");
    agent.run(&["acl", "token", "self"]).await;
    agent.run(&["acl", "token", "delete", ACCESSOR]).await;
    let lines: Vec<String> = agent.asked().into_iter().map(|it| it.line).collect();
    let one = format!("/v1/acl/token/{ACCESSOR}");
    let own = "GET /v1/acl/token/self".to_owned();
    assert_eq!(lines, [format!("GET {one}"), own, format!("DELETE {one}")]);

    let mut forever = token("client", &json!([]), "");
    forever["ExpirationTime"] = Value::Null;
    let mut over = token("client", &json!([]), "");
    over["ExpirationTime"] = "2026-11-21T04:43:14Z".into();
    let agent = Scripted::start(200, json!([forever, over])).await;
    let (_, out, _) = agent.run(&["acl", "token", "list"]).await;
    let shown = format!(
        "Name  Type    Global  Accessor ID                           Expired\n\
         ci    client  false   {ACCESSOR}  false\nci    client  false   {ACCESSOR}  true\n"
    );
    assert_eq!(out, shown);
}

#[tokio::test]
async fn update_changes_what_is_named() {
    let agent = Scripted::start(200, token("client", &json!(["read"]), "")).await;
    let args = ["acl", "token", "update", "-policy=deploy", ACCESSOR];
    assert_eq!(agent.run(&args).await.0, 0);
    let args = ["acl", "token", "update", "-type=management", ACCESSOR];
    assert_eq!(agent.run(&args).await.0, 0);
    let asked = agent.asked();
    let sent = |nth: usize| &asked[nth].body;
    assert_eq!(
        (&sent(1)["Policies"], &sent(1)["Name"], &sent(1)["Type"]),
        (&json!(["deploy"]), &json!("ci"), &json!("client"))
    );
    let policies = sent(3).get("Policies");
    assert_eq!((policies, &sent(3)["Type"]), (None, &json!("management")));
}

#[tokio::test]
async fn senseless_token_is_refused_before_the_agent_is_asked() {
    let agent = Scripted::start(200, Value::Null).await;
    for (options, words) in [
        (&[][..], "name a policy"),
        (&["-type=management", "-policy=read"], "leave out -policy"),
    ] {
        let args = [&["acl", "token", "create"], options].concat();
        let (code, _, err) = agent.run(&args).await;
        assert!(code == 1 && err.contains(words), "{err}");
    }
    assert_eq!(agent.asked(), []);
    for bad in ["-ttl=0s", "-ttl=soon", "-type=root"] {
        let args = ["drover", "acl", "token", "create", bad].map(Into::into);
        let args = dashes::rewrite(&Cli::command(), args);
        assert!(Cli::try_parse_from(args).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn first_token_is_made_with_a_secret_of_ones_own() {
    let agent = Scripted::start(200, token("management", &Value::Null, SECRET)).await;
    let file = agent.file("secret", &format!(" {SECRET}\n"));
    let (code, out, _) = agent.run(&["acl", "bootstrap", &file]).await;
    assert!(code == 0 && out.contains("not shown again"), "{out}");
    let (_, out, err) = agent.run(&["acl", "bootstrap", "-json"]).await;
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&json["SecretID"], err.as_str()), (&json!(SECRET), ""));
    let line = "PUT /v1/acl/bootstrap";
    let given = asked(line, json!({ "BootstrapSecret": SECRET }));
    assert_eq!(agent.asked(), [given, asked(line, json!({}))]);
    let empty = agent.file("empty", "\n");
    let (code, _, err) = agent.run(&["acl", "bootstrap", &empty]).await;
    assert!(code == 1 && err.contains("expected a UUID"), "{err}");
}

#[tokio::test]
async fn second_first_token_is_answered_with_the_way_back() {
    let words = json!("ACL bootstrap already done (reset index: 9)");
    let agent = Scripted::start(400, words).await;
    let (code, _, err) = agent.run(&["acl", "bootstrap"]).await;
    assert!(code == 1 && err.contains("reset index: 9"), "{err}");
    assert!(
        err.contains("-type management") && err.contains("unix://"),
        "{err}"
    );
}

#[tokio::test]
async fn policy_is_written_and_shown() {
    let rules = "namespace \"team\" {\n  policy = \"write\"\n}\n";
    let policy = json!({
        "Name": "team", "Description": "", "Rules": rules, "Hash": "aa==", "CreateIndex": 3, "ModifyIndex": 4,
    });
    let agent = Scripted::start(200, policy).await;
    let file = agent.file("team.hcl", rules);
    let (code, out, _) = agent
        .run(&[
            "acl",
            "policy",
            "apply",
            "-description",
            "ours",
            "team",
            &file,
        ])
        .await;
    assert_eq!(
        (code, out.as_str()),
        (0, "Successfully wrote \"team\" ACL policy!\n")
    );
    let body = json!({ "Name": "team", "Description": "ours", "Rules": rules });
    assert_eq!(agent.asked(), [asked("PUT /v1/acl/policy/team", body)]);
    let (_, out, _) = agent.run(&["acl", "policy", "info", "team"]).await;
    let shown = format!(
        "Name        = team\nDescription = <none>\nCreateIndex = 3\nModifyIndex = 4\n\nRules\n{rules}"
    );
    assert_eq!(out, shown);
    let (_, out, _) = agent.run(&["acl", "policy", "delete", "team"]).await;
    assert_eq!(out, "Successfully deleted \"team\" ACL policy!\n");

    let list = json!([{ "Name": "deploy", "Description": "run jobs" }]);
    let agent = Scripted::start(200, list).await;
    let (_, out, _) = agent.run(&["acl", "policy", "list"]).await;
    assert_eq!(out, "Name    Description\ndeploy  run jobs\n");
}

#[tokio::test]
async fn mistake_in_policy_is_reported_with_the_file() {
    let agent = Scripted::start(400, json!("line 2: unknown capability \"red-job\"")).await;
    let file = agent.file("bad.hcl", "x");
    let (code, _, err) = agent.run(&["acl", "policy", "apply", "a", &file]).await;
    assert!(
        code == 1 && err.contains("bad.hcl: ") && err.contains("line 2"),
        "{err}"
    );
    let missing = agent
        .run(&["acl", "policy", "apply", "a", "/nowhere/x"])
        .await;
    assert!(
        missing.2.contains("cannot read /nowhere/x"),
        "{}",
        missing.2
    );
}

#[tokio::test]
async fn token_of_a_variable_is_sent_and_not_shown() {
    let agent = Scripted::start(403, json!("Permission denied")).await;
    let (code, _, err) = agent.run(&["job", "status"]).await;
    assert!(code == 1 && err.contains("set NOMAD_TOKEN to one"), "{err}");
    let agent = agent.with_token("DROVER_TOKEN", SECRET);
    for args in [
        &["job", "status"][..],
        &["alloc", "exec", ACCESSOR, "/bin/true"],
        &["operator", "api", "-verbose", "/v1/jobs"],
    ] {
        let (code, out, err) = agent.run(args).await;
        assert!(
            code == 1 && !format!("{out}{err}").contains(SECRET),
            "{err}"
        );
    }
    let (_, _, err) = agent.run(&["job", "status"]).await;
    assert!(err.contains("The token of DROVER_TOKEN"), "{err}");
    let mut asked = agent.asked().into_iter();
    assert_eq!(asked.next().and_then(|it| it.token), None);
    assert!(asked.all(|it| it.token.as_deref() == Some(SECRET)));
}

#[tokio::test]
async fn other_agent_is_not_shown_the_token() {
    let one = Scripted::start(200, json!([])).await;
    let one = one.with_token("NOMAD_TOKEN", SECRET);
    let two = Scripted::start(200, json!([])).await;
    let elsewhere = format!("{}/v1/jobs", two.client.url());
    let (code, _, err) = one.run(&["operator", "api", &elsewhere]).await;
    assert!(
        code == 0 && err.contains("The token of NOMAD_TOKEN is for"),
        "{err}"
    );
    assert!(!err.contains(SECRET));
    assert_eq!(two.asked(), [asked("GET /v1/jobs", Value::Null)]);
    assert_eq!(one.asked(), []);
}

#[tokio::test]
async fn agent_is_asked_through_its_socket() {
    let agent = Scripted::behind_socket(json!([])).await;
    let (code, out, err) = agent.run(&["job", "status"]).await;
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "No running jobs\n", "")
    );
    let args = ["job", "move", "-to=unix:///run/x.sock", "web"];
    let (code, _, err) = agent.run(&args).await;
    assert!(code == 1 && err.contains("over the network"), "{err}");
    let nobody = client("unix:///nowhere/api.sock", None);
    let failed = nobody.get::<Value>("/v1/jobs", &[]).await.unwrap_err();
    assert!(
        failed.message.contains("at unix:///nowhere/api.sock"),
        "{failed}"
    );
}
