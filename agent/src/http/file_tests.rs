//! Logs and files through the API.

use http_body_util::BodyExt;
use hyper::Method;

use super::tests::{allocs, failure, register};
use crate::testing::{Rig, append, job};

#[tokio::test]
async fn logs_are_sent_plain_and_framed() {
    let rig = Rig::start().await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let id = allocs(&rig, "calc").await[0].id.clone();
    let path = format!("/v1/client/fs/logs/{id}");
    let get = async |query: &str| failure(&rig, Method::GET, &format!("{path}?{query}"), "").await;
    let ok = |text: &str| (200, text.to_owned());
    assert_eq!(
        get("task=t&type=stdout&plain=true").await,
        ok("one\ntwo\nthree\n")
    );
    assert_eq!(
        get("task=t&type=stdout&plain=true&origin=end&offset=6").await,
        ok("three\n")
    );
    let frame = r#"{"Data":"dHJvdWJsZQo=","File":"alloc/logs/t.stderr.0","Offset":8}"#;
    assert_eq!(get("task=t&type=stderr").await, ok(frame));
    let until = "task=t&type=stdout&plain=true&follow=true&until_end=true";
    assert_eq!(
        get(until).await,
        ok("one\ntwo\nthree\n"),
        "it ends with the task"
    );
    assert_eq!(
        get("task=x&type=stdout").await,
        (400, "unknown task name \"x\"".to_owned())
    );
    assert_eq!(
        get("type=stdout").await,
        (400, "must provide task name".to_owned())
    );
    let kind = "must provide log type (stdout/stderr)";
    assert_eq!(get("task=t").await, (400, kind.to_owned()));
}

#[tokio::test]
async fn followed_logs_are_streamed() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let path = format!("/v1/client/fs/logs/{id}");
    let query = [
        ("task", "t"),
        ("type", "stdout"),
        ("plain", "true"),
        ("follow", "true"),
    ];
    let mut body = rig
        .client
        .send(Method::GET, &path, &query, None)
        .await
        .unwrap()
        .into_body();
    let mut text = String::new();
    let mut next = async |wanted: &str| {
        while !text.ends_with(wanted) {
            let frame = body.frame().await.unwrap().unwrap();
            text.push_str(core::str::from_utf8(&frame.into_data().unwrap()).unwrap());
        }
    };
    next("three\n").await;
    append(&rig.logs(&id).join("t.stdout.0"), "four\n");
    next("four\n").await;
    append(&rig.logs(&id).join("t.stdout.1"), "five\n");
    next("five\n").await;
}

#[tokio::test]
async fn file_api_hides_secrets() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let get = async |what: &str, path: &str| {
        failure(
            &rig,
            Method::GET,
            &format!("/v1/client/fs/{what}/{id}?path={path}"),
            "",
        )
        .await
    };
    let (status, list) = get("ls", "/").await;
    assert!(
        status == 200 && list.contains("\"Name\":\"alloc\""),
        "{list}"
    );
    let logs = "alloc/logs/t.stdout.0";
    assert_eq!(
        get("cat", logs).await,
        (200, "one\ntwo\nthree\n".to_owned())
    );
    let (_, stat) = get("stat", logs).await;
    assert!(stat.contains("\"Size\":14"), "{stat}");
    let path = format!("/v1/client/fs/readat/{id}?path={logs}&offset=4&limit=3");
    let part = failure(&rig, Method::GET, &path, "").await;
    assert_eq!(part, (200, "two".to_owned()));
    assert_eq!(get("cat", "t/secrets/token").await.0, 500);
    assert_eq!(get("cat", "../../etc/passwd").await.0, 500);
    assert_eq!(get("cat", "nope").await.0, 404);
}

#[tokio::test]
async fn file_is_streamed_from_either_end_and_followed() {
    let rig = Rig::start().await;
    register(&rig, job("calc", "batch", Some(0))).await;
    let id = allocs(&rig, "calc").await[0].id.clone();
    let path = format!("/v1/client/fs/stream/{id}");
    let get = async |query: &str| failure(&rig, Method::GET, &format!("{path}?{query}"), "").await;
    let file = "path=/alloc/logs/t.stderr.0";
    let whole = r#"{"Data":"dHJvdWJsZQo=","File":"alloc/logs/t.stderr.0","Offset":8}"#;
    assert_eq!(
        get(&format!("{file}&follow=false")).await,
        (200, whole.to_owned())
    );
    let end = r#"{"Data":"bGUK","File":"alloc/logs/t.stderr.0","Offset":8}"#;
    assert_eq!(
        get(&format!("{file}&follow=false&origin=end&offset=3")).await,
        (200, end.to_owned())
    );
    let origin = "origin must be start or end".to_owned();
    assert_eq!(get(&format!("{file}&origin=mid")).await, (400, origin));
    assert_eq!(get("path=/no/such").await.0, 404);
    let query = [("path", "alloc/logs/t.stderr.0")];
    let sent = rig.client.send(Method::GET, &path, &query, None).await;
    let mut body = sent.unwrap().into_body();
    let mut next = async || {
        let frame = body.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    };
    assert_eq!(next().await, whole);
    append(&rig.logs(&id).join("t.stderr.0"), "more\n");
    let mut more = next().await;
    while more == "{}" {
        more = next().await;
    }
    let expected = r#"{"Data":"bW9yZQo=","File":"alloc/logs/t.stderr.0","Offset":13}"#;
    assert_eq!(more, expected);
}

/// What is written to a file after it was emptied is no continuation of what was read before.
#[tokio::test]
async fn emptied_file_that_is_followed_is_reported_as_truncated() {
    let rig = Rig::start().await;
    register(&rig, job("web", "service", None)).await;
    let id = allocs(&rig, "web").await[0].id.clone();
    let path = format!("/v1/client/fs/stream/{id}");
    let query = [("path", "alloc/logs/t.stderr.0")];
    let sent = rig.client.send(Method::GET, &path, &query, None).await;
    let mut body = sent.unwrap().into_body();
    let mut next = async || {
        let frame = body.frame().await.unwrap().unwrap();
        String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap()
    };
    let whole = r#"{"Data":"dHJvdWJsZQo=","File":"alloc/logs/t.stderr.0","Offset":8}"#;
    assert_eq!(next().await, whole);
    let file = rig.logs(&id).join("t.stderr.0");
    std::fs::write(&file, "").unwrap();
    let (mut frame, mut heartbeats) = (next().await, 0);
    while frame == "{}" {
        heartbeats += 1;
        if heartbeats == 2 {
            append(&file, "x\n");
        }
        frame = next().await;
    }
    assert!(frame.contains(r#""FileEvent":"file truncated""#), "{frame}");
}
