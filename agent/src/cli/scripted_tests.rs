//! Commands against an agent whose answers are written here: those that a real one seldom gives.

use std::io;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::routing::{delete, get, put};
use axum::{Json, Router};
use futures::{StreamExt, stream};
use serde_json::json;
use tokio::net::TcpListener;

use super::args::Connection;
use super::client::Client;
use super::context::Context;
use super::screen::Screen;
use super::tests::run_with;
use crate::testing::{BEGAN, Captured};

const ALLOC: &str = "9e3f1c02-0000-4000-8000-000000000001";
const NEXT: &str = "9e3f1c02-0000-4000-8000-000000000002";
const EVAL: &str = "e1b40c02-0000-4000-8000-000000000003";

/// What a command exits with, says, and complains of, where the agent answers so.
async fn run(answers: Router, args: &[&str]) -> (u8, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let connection = Connection {
        address: Some(format!("http://{}", listener.local_addr().unwrap())),
        ..Connection::default()
    };
    let serving = tokio::spawn(async move { axum::serve(listener, answers).await });
    let (out, err) = (Captured::default(), Captured::default());
    let cx = Context {
        client: Client::new(&connection, |_| None).unwrap(),
        screen: Screen::plain(Box::new(out.clone()), Box::new(err.clone())),
        clock: || BEGAN,
    };
    let ended = run_with((cx, out, err), args).await;
    serving.abort();
    ended
}

/// A file that comes in two pieces; or its first one, behind which the connection breaks.
async fn file(is_whole: bool) -> Body {
    let rest = async move {
        // Until here everything is sent.
        tokio::task::yield_now().await;
        match is_whole {
            true => Ok(Bytes::from("two\n")),
            false => Err(io::Error::other("the disk is gone")),
        }
    };
    let first = stream::iter([Ok(Bytes::from("one\n"))]);
    Body::from_stream(first.chain(stream::once(rest)))
}

#[tokio::test]
async fn download_that_breaks_leaves_the_file_that_was_there() {
    for (is_whole, code, text) in [(true, 0, "one\ntwo\n"), (false, 1, "before\n")] {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("data");
        std::fs::write(&to, "before\n").unwrap();
        let info = json!({ "Name": "data", "IsDir": false, "FileMode": "-rw-r--r--" });
        let answers = Router::new()
            .route("/v1/allocations", get(Json(json!([{ "ID": ALLOC }]))))
            .route("/v1/client/fs/stat/{id}", get(Json(info)))
            .route("/v1/client/fs/cat/{id}", get(move || file(is_whole)));
        let from = format!("{ALLOC}:alloc/data");
        let args = ["alloc", "cp", &from, to.to_str().unwrap()];
        let (ended, _, err) = run(answers, &args).await;
        assert_eq!(ended, code, "{err}");
        assert_eq!(err.starts_with("alloc/data: "), !is_whole, "{err}");
        assert_eq!(std::fs::read_to_string(&to).unwrap(), text);
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 1, "nothing is left beside it");
    }
}

#[tokio::test]
async fn volume_is_deleted_only_where_its_prefix_is_unique() {
    let ids = [
        "3a000000-0000-4000-8000-000000000000",
        "3b000000-0000-4000-8000-000000000000",
    ];
    let ambiguous = "Prefix \"3\" matched multiple volumes; \"drover volume status\" lists them\n";
    let none = "No volume(s) with prefix or ID \"4\" found\n";
    for (prefix, expected, complaint) in [
        ("3", None, ambiguous),
        ("4", None, none),
        ("3b", Some(ids[1]), ""),
    ] {
        let deleted = Arc::new(Mutex::new(Vec::new()));
        let noted = deleted.clone();
        let note = move |Path(id): Path<String>| async move {
            noted.lock().unwrap().push(id);
            Json(json!({}))
        };
        let all = json!([{ "ID": ids[0], "Name": "a" }, { "ID": ids[1], "Name": "b" }]);
        let answers = Router::new()
            .route("/v1/volumes", get(Json(all)))
            .route("/v1/volume/host/{id}", delete(note));
        let (code, _, err) = run(answers, &["volume", "delete", prefix]).await;
        assert_eq!(err, complaint, "{prefix}");
        assert_eq!(code, u8::from(expected.is_none()), "{prefix}");
        let deleted = deleted.lock().unwrap();
        assert_eq!(*deleted, Vec::from_iter(expected), "{prefix}");
    }
}

#[tokio::test]
async fn dispatch_that_waits_ends_by_what_was_not_replaced() {
    for (first, last, code, words) in [
        ("failed", "complete", 0, "\"sum/dispatch-1\" is complete"),
        ("lost", "complete", 0, "\"sum/dispatch-1\" is complete"),
        ("failed", "failed", 1, "allocations of it failed: 1"),
        ("complete", "lost", 1, "allocations of it failed: 1"),
    ] {
        let job = json!([{ "ID": "sum", "Namespace": "default" }]);
        let made = json!({ "DispatchedJobID": "sum/dispatch-1", "EvalID": EVAL });
        let eval = json!({ "ID": EVAL, "JobID": "sum/dispatch-1", "Status": "complete" });
        let allocs = json!([
            { "ID": ALLOC, "ClientStatus": first, "NextAllocation": NEXT },
            { "ID": NEXT, "ClientStatus": last, "NextAllocation": "" },
        ]);
        let answers = Router::new()
            .route("/v1/jobs", get(Json(job)))
            .route("/v1/job/sum/dispatch", put(Json(made)))
            .route("/v1/evaluation/{id}", get(Json(eval)))
            .route("/v1/evaluation/{id}/allocations", get(Json(json!([]))))
            .route("/v1/job/{id}", get(Json(json!({ "Status": "dead" }))))
            .route("/v1/job/{id}/allocations", get(Json(allocs)));
        let (ended, out, err) = run(answers, &["job", "dispatch", "-wait", "sum"]).await;
        assert_eq!((ended, err.as_str()), (code, ""), "{first}, {last}: {out}");
        assert!(out.trim_end().ends_with(words), "{first}, {last}: {out}");
    }
}
