//! Tokens of the cluster whose node this is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drover_core::model::acl::TokenType;
use drover_core::model::secret::Secret;
use drover_core::time::Timestamp;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{ask, get, is_denied, secret};
use crate::http::access::Principal;
use crate::http::params::Params;
use crate::http::{Members, Settings, StatusError, StatusQuestion, StatusServers, status_servers};
use crate::http::{ServersPolicy, ServersToken, TokenServers, Unresolved};
use crate::testing::Rig;
use crate::times;

const ANN: &str = "00000000-0000-4000-8000-00000000000a";
const BOB: &str = "00000000-0000-4000-8000-00000000000b";
const EVE: &str = "00000000-0000-4000-8000-00000000000e";
const ROOT: &str = "00000000-0000-4000-8000-00000000000f";

const LONG: Duration = Duration::from_secs(3600);

/// Servers that say what they are told to.
#[derive(Debug, Default)]
struct Script {
    tokens: Mutex<BTreeMap<String, ServersToken>>,
    asked: Mutex<usize>,
    silent: Mutex<bool>,
}

impl TokenServers for Script {
    fn token<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<ServersToken, Unresolved>> {
        *self.asked.lock().unwrap() += 1;
        let known = self.tokens.lock().unwrap().get(secret.expose()).cloned();
        let silent = *self.silent.lock().unwrap();
        Box::pin(async move {
            match silent {
                true => Err(Unresolved::Unreachable("no servers".to_owned())),
                false => known.ok_or(Unresolved::Unknown),
            }
        })
    }
}

/// What is asked of them is looked at before they are.
impl StatusServers for Script {
    fn leader(&self, _: StatusQuestion) -> BoxFuture<'_, Result<String, StatusError>> {
        Box::pin(async { Err(StatusError::Failed("no servers".to_owned())) })
    }

    fn peers(&self, _: StatusQuestion) -> BoxFuture<'_, Result<Vec<String>, StatusError>> {
        Box::pin(async { Err(StatusError::Failed("no servers".to_owned())) })
    }

    fn members(&self, _: StatusQuestion) -> BoxFuture<'_, Result<Members, StatusError>> {
        Box::pin(async { Err(StatusError::Failed("no servers".to_owned())) })
    }
}

impl Script {
    fn new() -> Arc<Script> {
        let script = Script::default();
        script.put(ANN, reader(1));
        script.put(
            ROOT,
            ServersToken {
                token_type: TokenType::Management,
                ..ServersToken::default()
            },
        );
        Arc::new(script)
    }

    fn put(&self, secret: &str, token: ServersToken) {
        self.tokens.lock().unwrap().insert(secret.to_owned(), token);
    }

    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    fn fall_silent(&self) {
        *self.silent.lock().unwrap() = true;
    }
}

/// A token that may read the node.
fn reader(index: u64) -> ServersToken {
    ServersToken {
        policies: vec![ServersPolicy {
            name: "reader".into(),
            index,
            rules: "node {\n policy = \"read\"\n}".into(),
        }],
        indexes: (index, index),
        ..ServersToken::default()
    }
}

#[tokio::test]
async fn token_of_the_cluster_may_what_its_policies_say() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    assert!(is_denied(get(&rig, ANN, "/v1/jobs").await));
    assert_eq!(get(&rig, ROOT, "/v1/jobs").await.0, 200);
    let unknown = (403, "ACL token not found".to_owned());
    assert_eq!(get(&rig, EVE, "/v1/nodes").await, unknown);
    assert!(is_denied(get(&rig, "", "/v1/nodes").await));
    let (_, own) = get(&rig, ANN, "/v1/acl/token/self").await;
    let own: Value = serde_json::from_str(&own).unwrap();
    assert_eq!(own["Policies"], json!(["reader"]));
}

/// Nothing but a UUID is a token: servers are not even asked.
#[tokio::test]
async fn text_that_is_no_token_is_not_shown_to_servers() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    assert_eq!(get(&rig, "nonsense", "/v1/nodes").await.0, 403);
    assert_eq!(get(&rig, EVE, "/v1/agent/health").await.0, 200);
    assert_eq!(servers.asked(), 0);
}

/// What this node gave is over without servers, too.
#[tokio::test]
async fn token_of_the_node_that_is_deleted_is_revoked_while_no_server_answers() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    let asked = json!({ "Name": "own", "Type": "management" });
    let (_, made) = ask(&rig, ROOT, "PUT", "/v1/acl/token", &asked).await;
    let made: Value = serde_json::from_str(&made).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let mut headers = axum::http::HeaderMap::new();
    headers.insert("x-nomad-token", text("SecretID").parse().unwrap());
    let own = rig.api.sender(&headers).await.unwrap();
    assert!(own.is_current(&rig.api).await.unwrap());
    servers.fall_silent();
    let path = format!("/v1/acl/token/{}", text("AccessorID"));
    assert_eq!(ask(&rig, ROOT, "DELETE", &path, &json!({})).await.0, 200);
    own.revoked(&rig.api).await;
}

/// Nor by the agent's own user, who needs no token and may show one.
#[tokio::test]
async fn token_of_the_node_is_not_shown_to_servers() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    let asked = json!({ "Name": "own", "Type": "management" });
    let (own, _) = secret(ask(&rig, ROOT, "PUT", "/v1/acl/token", &asked).await).await;
    let api = rig.api.with_settings(Settings {
        status_servers: Some(servers.clone()),
        ..Settings::clone(&rig.api.settings)
    });
    let shown = async |given: &str, principal: Principal| {
        let mut headers = axum::http::HeaderMap::new();
        headers.insert("x-nomad-token", given.parse().unwrap());
        let mut params = Params::parse(Vec::new()).unwrap();
        params.principal = principal;
        let (_, question) = (status_servers::ask(&api, &params, &headers, &[]).await).unwrap();
        question.token.expose().to_owned()
    };
    for (given, expected) in [
        (ANN, ANN),
        (&own, ""),
        (EVE, ""),
        ("nonsense", ""),
        ("", ""),
    ] {
        assert_eq!(shown(given, Principal::unlimited()).await, expected);
    }
    let mut headers = axum::http::HeaderMap::new();
    headers.insert("x-nomad-token", own.parse().unwrap());
    let sender = api.sender(&headers).await.unwrap();
    assert_eq!(shown(&own, sender).await, "");
    servers.fall_silent();
    assert_eq!(shown(BOB, Principal::unlimited()).await, "", "nobody says");
}

#[tokio::test]
async fn answers_of_servers_are_cached_for_a_while() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    for _ in 0..3 {
        assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    }
    assert_eq!(servers.asked(), 1);
    // Whoever is unknown is asked for each time: the token may have been made just now.
    for _ in 0..2 {
        assert_eq!(get(&rig, EVE, "/v1/nodes").await.0, 403);
    }
    assert_eq!(servers.asked(), 3);
}

#[tokio::test]
async fn policy_that_changes_at_the_servers_changes_what_may_be_done() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), Duration::ZERO).await;
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    let mut changed = reader(2);
    changed.policies[0].rules = "agent {\n policy = \"read\"\n}".into();
    servers.put(ANN, changed);
    assert!(is_denied(get(&rig, ANN, "/v1/nodes").await));
    assert_eq!(get(&rig, ANN, "/v1/agent/self").await.0, 200);
    servers.tokens.lock().unwrap().clear();
    assert_eq!(get(&rig, ANN, "/v1/agent/self").await.0, 403);
}

/// Whoever was known is, until the token expires; whoever was not has to wait.
#[tokio::test]
async fn last_answer_of_servers_counts_while_none_answers() {
    let servers = Script::new();
    let expired = ServersToken {
        expires: Some(Timestamp(times::now().0 + 200_000_000)),
        ..reader(1)
    };
    servers.put(BOB, expired);
    let rig = Rig::start_in_cluster(servers.clone(), Duration::ZERO).await;
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    get(&rig, BOB, "/v1/nodes").await;
    servers.fall_silent();
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    let (status, words) = get(&rig, ROOT, "/v1/nodes").await;
    assert_eq!(status, 503);
    assert!(words.contains("do not say whose this token is"), "{words}");
    while get(&rig, BOB, "/v1/nodes").await.0 == 200 {
        tokio::task::yield_now().await;
    }
}

/// What counts then is the last answer, also if that is no.
#[tokio::test]
async fn token_that_servers_forgot_stays_refused_while_none_answers() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), Duration::ZERO).await;
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    servers.tokens.lock().unwrap().remove(ANN);
    let unknown = (403, "ACL token not found".to_owned());
    assert_eq!(get(&rig, ANN, "/v1/nodes").await, unknown);
    servers.fall_silent();
    let (status, words) = get(&rig, ANN, "/v1/nodes").await;
    assert_eq!(status, 503, "{words}");
}

/// Two policies of one name, of which each is for the tokens of its side.
#[tokio::test]
async fn policy_of_the_cluster_is_not_one_of_the_node() {
    let servers = Script::new();
    let rig = Rig::start_in_cluster(servers.clone(), LONG).await;
    let policy = json!({ "Name": "reader", "Rules": "agent {\n policy = \"read\"\n}" });
    let made = ask(&rig, ROOT, "PUT", "/v1/acl/policy/reader", &policy).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let asked = json!({ "Name": "own", "Type": "client", "Policies": ["reader"] });
    let (_, made) = ask(&rig, ROOT, "PUT", "/v1/acl/token", &asked).await;
    let made: Value = serde_json::from_str(&made).unwrap();
    let own = made["SecretID"].as_str().unwrap();
    assert_eq!(get(&rig, own, "/v1/agent/self").await.0, 200);
    assert!(is_denied(get(&rig, own, "/v1/nodes").await));
    assert_eq!(get(&rig, ANN, "/v1/nodes").await.0, 200);
    assert!(is_denied(get(&rig, ANN, "/v1/agent/self").await));
}
