//! The command over a simulated network: two nodes with the agent's own API and core, and each request of
//! it lost, or its answer, on links that break just then.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use turmoil::Builder;
use turmoil::net::TcpListener;

use super::super::args::{Connection as Options, MoveArgs};
use super::super::client::Client;
use super::super::context::{Context, Outcome};
use super::super::screen::Screen;
use super::{ANSWER, run};
use crate::testing::{BEGAN, Captured, Simulated, agent, job};

const PORT: u16 = 4646;
/// From where the command asks.
const COMMAND: &str = "command";

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The link is cut, and it does not arrive.
    Lost,
    /// The link is cut when it has arrived, so that its answer does not.
    Unanswered,
    /// The connection ends, and nobody reads it.
    Refused,
    /// The connection ends when it was carried out.
    BrokenOff,
}

const FATES: [Fate; 4] = [Fate::Lost, Fate::Unanswered, Fate::Refused, Fate::BrokenOff];

/// The first request of this kind to this node has this fate.
#[derive(Clone, Debug)]
struct Trouble {
    node: &'static str,
    request: &'static str,
    fate: Fate,
}

type Troubles = Arc<Mutex<Option<Trouble>>>;

/// A node with an agent.
async fn node(name: &'static str, troubles: Troubles) -> turmoil::Result {
    let dir = tempfile::tempdir()?;
    let (router, agent) = agent(dir.path(), format!("{name}:{PORT}"));
    tokio::spawn(agent);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let (router, troubles) = (router.clone(), troubles.clone());
        let service =
            service_fn(move |request| answer(name, router.clone(), troubles.clone(), request));
        tokio::spawn(async move {
            // Whoever asks may go away.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    name: &'static str,
    router: Router,
    troubles: Troubles,
    request: Request<Incoming>,
) -> Result<axum::response::Response, &'static str> {
    let line = format!("{} {}", request.method(), request.uri().path());
    let meant = |trouble: &mut Trouble| trouble.node == name && trouble.request == line;
    let fate = troubles.lock().expect("nobody panicked").take_if(meant);
    let fate = fate.map(|trouble| trouble.fate);
    match fate {
        Some(Fate::Lost) => {
            turmoil::partition(name, COMMAND);
            std::future::pending().await
        }
        Some(Fate::Refused) => return Err("refused"),
        Some(Fate::Unanswered | Fate::BrokenOff) | None => {}
    }
    let Ok(answered) = TowerToHyperService::new(router).call(request).await;
    match fate {
        Some(Fate::Unanswered) => turmoil::partition(name, COMMAND),
        Some(Fate::BrokenOff) => return Err("broken off"),
        Some(Fate::Lost | Fate::Refused) | None => {}
    }
    Ok(answered.into_response())
}

fn client(node: &str) -> Client {
    let options = Options {
        address: Some(format!("http://{node}:{PORT}")),
        ..Options::default()
    };
    let client = Client::new(&options, |_| None).expect("an address");
    client.over(Arc::new(Simulated)).within(ANSWER)
}

/// Moves the job from `one` to `two`; what people read, how it ended, and how long that took.
async fn moved() -> (String, Outcome, Duration) {
    let out = Captured::default();
    let mut cx = Context {
        client: client("one"),
        screen: Screen::plain(Box::new(out.clone()), Box::new(out.clone())),
        clock: || BEGAN,
    };
    let args = MoveArgs {
        job: "web".to_owned(),
        to: format!("http://two:{PORT}"),
        to_token: None,
        from_address: None,
        detach: false,
        rollback: false,
        verbose: false,
    };
    let began = turmoil::elapsed();
    let outcome = run(&mut cx, args).await;
    (out.text(), outcome, turmoil::elapsed() - began)
}

/// How many allocations of the job run on a node.
async fn runs(node: &str) -> usize {
    let path = "/v1/job/web/allocations";
    let allocs: Value = client(node).get(path, &[]).await.expect("an answer");
    let allocs = allocs.as_array().into_iter().flatten();
    allocs
        .filter(|alloc| alloc["ClientStatus"] == "running")
        .count()
}

/// What a first try under trouble says, and on which nodes the job runs after it. A second try without
/// trouble moves the job in any case.
fn first_try(trouble: Trouble) -> (String, [usize; 2]) {
    let name = format!("{trouble:?}");
    let troubles: Troubles = Arc::new(Mutex::new(None));
    let mut sim = Builder::new()
        .simulation_duration(Duration::from_secs(600))
        .tick_duration(Duration::from_millis(5))
        .rng_seed(1)
        .build();
    for node_name in ["one", "two"] {
        let troubles = troubles.clone();
        sim.host(node_name, move || node(node_name, troubles.clone()));
    }
    let seen = Arc::new(Mutex::new(None));
    let sees = seen.clone();
    sim.client(COMMAND, async move {
        let body = json!({ "Job": job("web", "service", None) });
        let one = client("one");
        one.change::<Value>(Method::PUT, "/v1/jobs", &[], Some(&body))
            .await?;
        assert_eq!([runs("one").await, runs("two").await], [1, 0]);
        *troubles.lock().expect("nobody panicked") = Some(trouble.clone());
        let (message, outcome, took) = moved().await;
        let failure = outcome.expect_err("the first try fails");
        assert!(
            troubles.lock().expect("nobody panicked").is_none(),
            "{message}"
        );
        assert!(took < ANSWER + Duration::from_secs(15), "it took {took:?}");
        turmoil::repair(trouble.node, COMMAND);
        let where_it_runs = [runs("one").await, runs("two").await];
        let (message, outcome, _) = moved().await;
        assert_eq!(outcome, Ok(0), "the second try: {message}");
        assert_eq!([runs("one").await, runs("two").await], [0, 1], "{message}");
        *sees.lock().expect("nobody panicked") = Some((failure.message, where_it_runs));
        Ok(())
    });
    if let Err(error) = sim.run() {
        panic!("{name}: {error}");
    }
    let seen = seen.lock().expect("nobody panicked").take();
    seen.expect("the command ended")
}

#[test]
fn job_move_failing_before_takeover_changes_nothing() {
    for (node, request) in [
        ("one", "GET /v1/jobs"),
        ("one", "GET /v1/job/web"),
        ("one", "PUT /v1/job/web/handover"),
        ("two", "PUT /v1/validate/job"),
    ] {
        for fate in FATES {
            let (why, runs) = first_try(Trouble {
                node,
                request,
                fate,
            });
            assert_eq!(runs, [1, 0], "{request} {fate:?}: {why}");
            assert!(
                why.contains(&format!("http://{node}:{PORT}")),
                "{request} {fate:?}: {why}"
            );
        }
    }
}

#[test]
fn job_move_with_unanswered_takeover_can_be_repeated() {
    for fate in FATES {
        let (node, request) = ("two", "PUT /v1/jobs");
        let (why, [here, _]) = first_try(Trouble {
            node,
            request,
            fate,
        });
        assert_eq!(here, 1, "{fate:?}: {why}");
        assert!(why.contains("it is not known whether"), "{fate:?}: {why}");
        assert!(why.contains("run the command again"), "{fate:?}: {why}");
    }
}

#[test]
fn job_move_with_unanswered_stop_can_be_repeated() {
    for fate in FATES {
        let (node, request) = ("one", "DELETE /v1/job/web");
        let (why, [_, there]) = first_try(Trouble {
            node,
            request,
            fate,
        });
        assert_eq!(there, 1, "{fate:?}: {why}");
        assert!(
            why.contains("waits for the end of the job"),
            "{fate:?}: {why}"
        );
        assert!(why.contains("run the command again"), "{fate:?}: {why}");
    }
}

#[test]
fn unmonitored_job_move_stays_moved() {
    for fate in FATES {
        let (node, request) = ("two", "GET /v1/job/web/allocations");
        let (why, runs) = first_try(Trouble {
            node,
            request,
            fate,
        });
        assert_eq!(runs, [0, 1], "{fate:?}: {why}");
        assert!(
            why.contains("has the job, but its status cannot be queried"),
            "{fate:?}: {why}"
        );
    }
}
