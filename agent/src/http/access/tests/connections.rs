//! What lasts long, and what comes over the unix socket.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use http_body_util::BodyExt;
use hyper::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::super::{Principal, bounded};
use super::{alloc_of, ask, bootstrapped, get, is_denied, run, token, with_team};
use crate::http::{Limits, Listeners, LocalSocket};
use crate::testing::Rig;

/// The longest that anything in these tests may take.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn topics_of_events_need_what_their_objects_need() {
    let (rig, _, team) = with_team().await;
    for (query, denied) in [
        ("", true),
        ("topic=Job", true),
        ("topic=Node&namespace=team", true),
        ("topic=Job&topic=Operator&namespace=team", true),
    ] {
        let answer = get(&rig, &team, &format!("/v1/event/stream?{query}")).await;
        assert_eq!(is_denied(answer), denied, "{query}");
    }
}

#[tokio::test]
async fn stream_breaks_off_when_its_token_is_deleted() {
    let (rig, management) = bootstrapped().await;
    let rules = "namespace \"*\" {\n policy = \"read\"\n}";
    let (reader, accessor) = token(&rig, &management, "reader", rules).await;
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    let head = format!(
        "GET /v1/event/stream?topic=Job&namespace=* HTTP/1.1\r\nHost: {}\r\nX-Nomad-Token: {reader}\r\n\r\n",
        rig.addr
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 512];
    let count = stream.read(&mut first).await.unwrap();
    assert!(first[..count].starts_with(b"HTTP/1.1 200"));
    let path = format!("/v1/acl/token/{accessor}");
    let deleted = ask(&rig, &management, "DELETE", &path, &json!({})).await;
    assert_eq!(deleted.0, 200, "{}", deleted.1);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    // A whole body would end with an empty chunk.
    assert!(!rest.ends_with(b"0\r\n\r\n"));
    assert_eq!(
        get(&rig, &reader, "/v1/jobs").await,
        (403, "ACL token not found".to_owned())
    );
}

/// Pages cannot set headers of a websocket: only its first message shows whose it is.
#[tokio::test]
async fn exec_session_ends_when_the_token_of_its_greeting_is_deleted() {
    let (rig, management) = bootstrapped().await;
    let made = run(&rig, &management, "web", "default").await;
    assert_eq!(made.0, 200, "{}", made.1);
    let alloc = alloc_of(&rig, &management, "web", "default").await;
    let rules = "namespace \"default\" {\n capabilities = [\"alloc-exec\", \"alloc-node-exec\"]\n}";
    let (secret, accessor) = token(&rig, &management, "both", rules).await;
    let path = format!("/v1/client/allocation/{alloc}/exec");
    let query = [
        ("task", "t"),
        ("command", "[\"sh\"]"),
        ("ws_handshake", "true"),
    ];
    let mut socket = rig.client.websocket(&path, &query, 1 << 20).await.unwrap();
    let greeting = json!({ "version": 1, "auth_token": secret }).to_string();
    socket.send(Message::text(greeting)).await.unwrap();
    let first = socket.next().await.unwrap().unwrap();
    assert!(first.is_ping(), "a session begins with one: {first:?}");
    let path = format!("/v1/acl/token/{accessor}");
    let deleted = ask(&rig, &management, "DELETE", &path, &json!({})).await;
    assert_eq!(deleted.0, 200, "{}", deleted.1);
    let until_closed = async {
        loop {
            match socket.next().await {
                Some(Ok(Message::Ping(_))) => {}
                Some(Ok(Message::Close(Some(frame)))) => return frame,
                other => panic!("{other:?}"),
            }
        }
    };
    let closed = timeout(TIMEOUT, until_closed).await.unwrap();
    let closed = (u16::from(closed.code), closed.reason.as_str());
    assert_eq!(closed, (1008, "Permission denied"));
}

#[tokio::test]
async fn exec_beside_a_task_of_the_host_needs_a_capability_more() {
    use crate::http::exec::may_enter;
    let (rig, management, team) = with_team().await;
    let own = alloc_of(&rig, &team, "own", "team").await.parse().ok();
    let principal = async |token: &str| {
        let known = Principal::default();
        rig.api.sender_of(&known, token).await.unwrap()
    };
    let enters = async |token: &str| {
        let principal = principal(token).await;
        let entered = may_enter(&rig.api.agent_handle, &principal, own, None);
        entered.await.is_ok()
    };
    // The tasks of this rig are of a driver that isolates nothing.
    assert!(!enters(&team).await && enters(&management).await);
    let rules = "namespace \"team\" {\n capabilities = [\"alloc-exec\", \"alloc-node-exec\"]\n}";
    let (both, _) = token(&rig, &management, "both", rules).await;
    assert!(enters(&both).await);
    let none = token(&rig, &management, "none", "node {\n policy = \"write\"\n}").await;
    assert!(!enters(&none.0).await);
}

#[tokio::test]
async fn own_user_needs_no_token_on_the_unix_socket() {
    use std::os::unix::fs::PermissionsExt;
    let rig = Rig::start_with_acl().await;
    let dir = tempfile::tempdir().unwrap();
    let local = LocalSocket::listen(dir.path()).unwrap();
    let path = local.path().to_owned();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let listeners = Listeners {
        network: tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap(),
        tls: None,
        local: Some(local),
    };
    let router = crate::http::router_of(rig.api.clone());
    let serving = tokio::spawn(crate::http::serve(listeners, router, Limits::default()));
    for (method, what, words) in [
        ("GET", "/v1/jobs", "200 OK"),
        ("GET", "/v1/acl/token/self", "unix socket"),
        ("PUT", "/v1/acl/bootstrap", "SecretID"),
    ] {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let head = format!(
            "{method} {what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(words), "{what}: {answer}");
    }
    serving.abort();
    assert!(serving.await.is_err() && !path.exists());
}

#[tokio::test]
async fn agent_without_access_control_asks_nobody() {
    let rig = Rig::start().await;
    for token in ["", "anything"] {
        assert_eq!(get(&rig, token, "/v1/jobs").await.0, 200);
        let self_ = get(&rig, token, "/v1/acl/token/self").await.1;
        assert!(self_.contains("acls-disabled"), "{self_}");
        let off = get(&rig, token, "/v1/acl/policies").await;
        assert_eq!(off, (400, "ACL support disabled".to_owned()));
    }
    let response = rig.client.exchange(
        Method::GET,
        rig.client.target("/v1/agent/self", &[]).unwrap(),
        bytes::Bytes::new(),
    );
    let body = response.await.unwrap().into_body().collect().await.unwrap();
    assert!(String::from_utf8_lossy(&body.to_bytes()).contains("\"ACL\":{\"Enabled\":false}"));
}

/// An answer that comes in pieces ends as it ends for whoever needs no token.
#[tokio::test]
async fn answer_in_pieces_ends_well() {
    let (rig, _) = bootstrapped().await;
    let pieces = ["one ", "two"].map(Ok::<_, std::io::Error>);
    let body = axum::body::Body::from_stream(futures::stream::iter(pieces));
    let response = axum::response::Response::new(body);
    let bounded = bounded(&rig.api, &Principal::default(), response);
    let body = axum::body::to_bytes(bounded.into_body(), 100).await;
    assert_eq!(body.unwrap(), "one two");
}
