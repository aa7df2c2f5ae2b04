//! Web pages that a user of this machine looks at, and what they make its browser ask for.

use std::collections::BTreeSet;

use drover_core::cx::Counters;
use hyper::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{METHODS, NONE, alloc_of, get, paths_of, run};
use crate::http::routes;
use crate::testing::{Rig, job};

/// The end of the head of an answer.
const END: &[u8] = b"\r\n\r\n";

/// The status of an answer to a request with more headers, and as much of the answer as comes with its head.
async fn browse(rig: &Rig, method: &Method, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    let addr = rig.addr;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(END.len()).any(|part| part == END) {
        // A stream goes on after its head for as long as somebody listens.
        let more = stream.read_buf(&mut answer).await.unwrap();
        assert!(more > 0, "{method} {path}");
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// What a batch job that ended left, and where that is shown.
async fn with_ended() -> (Rig, String) {
    let rig = Rig::start().await;
    let done = json!({ "Job": job("done", "batch", Some(0)) });
    let made = super::ask(&rig, "", "PUT", "/v1/jobs", &done).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let alloc = alloc_of(&rig, "", "done", "default").await;
    (rig, format!("/v1/allocation/{alloc}"))
}

async fn is_collected(rig: &Rig, path: &str) -> bool {
    let (status, body) = get(rig, "", path).await;
    assert_eq!(status, 200, "{body}");
    let alloc: Value = serde_json::from_str(&body).unwrap();
    alloc["DirectoryCollected"] == true
}

#[tokio::test]
async fn page_of_another_site_collects_nothing() {
    let (rig, alloc) = with_ended().await;
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n";
    for headers in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        // An image of a page, where the browser tells nothing of that.
        browser,
        // A link in a mail, by way of another site.
        "Sec-Fetch-Site: none\r\n",
    ] {
        let (status, answer) = browse(&rig, &Method::GET, "/v1/client/gc", headers).await;
        assert_eq!(status, 403, "{answer}");
        assert!(!is_collected(&rig, &alloc).await, "{headers}");
    }
    // What only reads is shown to such a browser.
    assert_eq!(browse(&rig, &Method::GET, "/v1/jobs", browser).await.0, 200);
    let own = format!("{browser}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(
        browse(&rig, &Method::GET, "/v1/client/gc", &own).await.0,
        200
    );
    assert!(is_collected(&rig, &alloc).await);
}

/// What collects one allocation guards itself as what collects all of them does.
#[tokio::test]
async fn page_of_another_site_collects_no_alloc() {
    let (rig, alloc) = with_ended().await;
    let gc = alloc.replace("/v1/", "/v1/client/") + "/gc";
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n";
    for headers in ["Origin: http://evil.example\r\n", browser] {
        let (status, answer) = browse(&rig, &Method::GET, &gc, headers).await;
        assert_eq!(status, 403, "{answer}");
        assert!(!is_collected(&rig, &alloc).await, "{headers}");
    }
    let own = format!("{browser}Sec-Fetch-Site: same-origin\r\n");
    assert_eq!(browse(&rig, &Method::GET, &gc, &own).await.0, 200);
    assert!(is_collected(&rig, &alloc).await);
}

#[tokio::test]
async fn client_gc_removes_what_lies_here_and_forgets_no_job() {
    for method in ["GET", "PUT"] {
        let (rig, alloc) = with_ended().await;
        let live = run(&rig, "", "live", "default").await;
        assert_eq!(live.0, 200, "{}", live.1);
        let live = alloc_of(&rig, "", "live", "default").await;
        let collected = super::ask(&rig, "", method, "/v1/client/gc", &Value::Null).await;
        assert_eq!(collected, (200, String::new()));
        assert!(is_collected(&rig, &alloc).await);
        assert!(!is_collected(&rig, &format!("/v1/allocation/{live}")).await);
        assert_eq!(get(&rig, "", "/v1/job/done").await.0, 200);
        let evals = get(&rig, "", "/v1/job/done/evaluations").await.1;
        assert_ne!(evals, "[]");
        let collected = super::ask(&rig, "", "PUT", "/v1/system/gc", &Value::Null).await;
        assert_eq!(collected.0, 200, "{}", collected.1);
        assert_eq!(get(&rig, "", "/v1/job/done").await.0, 404);
    }
}

#[tokio::test]
async fn page_of_another_site_is_refused_by_every_route() {
    let rig = Rig::start().await;
    for (pattern, _) in routes::all(&rig.api).paths() {
        for (path, method) in
            (paths_of(pattern).iter()).flat_map(|path| METHODS.map(|method| (path, method)))
        {
            for headers in [
                "Sec-Fetch-Site: cross-site\r\n",
                "Origin: http://evil.example\r\n",
            ] {
                let (status, answer) = browse(&rig, &method, path, headers).await;
                assert_eq!(status, 403, "{method} {path}: {answer}");
            }
        }
    }
}

/// Browsers do not always tell of the page behind a GET, so that one which acts has to be known.
#[tokio::test]
async fn get_asks_the_core_for_nothing_unless_its_route_says_that_it_acts() {
    let (rig, alloc) = with_ended().await;
    let first = async |path: &str| {
        let list: Value = serde_json::from_str(&get(&rig, "", path).await.1).unwrap();
        list[0]["ID"].as_str().unwrap().to_owned()
    };
    let alloc = alloc.trim_start_matches("/v1/allocation/").to_owned();
    // Another one is left when that is collected.
    let more = json!({ "Job": job("more", "batch", Some(0)) });
    let made = super::ask(&rig, "", "PUT", "/v1/jobs", &more).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let eval = first("/v1/job/done/evaluations").await;
    let ids = [alloc, eval, first("/v1/nodes").await];
    let steps = async || {
        let counters: Counters = rig
            .api
            .agent_handle
            .ask(|view| view.counters())
            .await
            .unwrap();
        counters.steps
    };
    let mut acting = BTreeSet::new();
    for (pattern, needs) in routes::all(&rig.api).paths() {
        // What is there is asked about: of nothing nobody asks the core.
        let paths = paths_of(pattern).into_iter().flat_map(|path| {
            let path = path.replace("/job/web", "/job/done");
            ids.each_ref().map(|id| path.replace(NONE, id))
        });
        for path in paths.collect::<BTreeSet<_>>() {
            let before = steps().await;
            browse(&rig, &Method::GET, &path, "").await;
            if steps().await > before {
                assert!(
                    needs.acts_by_get(),
                    "GET {path} acts: make its route by `acting`"
                );
                acting.insert(*pattern);
            }
        }
    }
    let known = ["/v1/client/allocation/{id}/gc", "/v1/client/gc"];
    assert_eq!(acting, BTreeSet::from(known));
}
