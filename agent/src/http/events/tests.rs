use bytes::Bytes;
use drover_core::ids::JobKey;
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::buffer::Next;
use super::changes::Change;
use super::render::Step;
use super::*;
use crate::http::access::Principal;
use crate::http::tests::{failure, register};
use crate::testing::{Rig, job};

/// The next lines of a stream that are not only signs of life.
async fn lines(body: &mut Incoming, text: &mut String, wanted: usize) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    while found.len() < wanted {
        while let Some((line, rest)) = text.split_once('\n') {
            let line: Value = serde_json::from_str(line).unwrap();
            *text = rest.to_owned();
            if line != json!({}) {
                found.push(line);
            }
        }
        if found.len() < wanted {
            let frame = body.frame().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    }
    found
}

async fn open(rig: &Rig, query: &[(&str, &str)]) -> Incoming {
    let target = rig.client.target("/v1/event/stream", query).unwrap();
    let answer = rig.client.exchange(Method::GET, target, Bytes::new());
    let answer = answer.await.unwrap();
    assert_eq!(answer.status().as_u16(), 200);
    answer.into_body()
}

#[tokio::test]
async fn submitted_and_stopped_job_is_published_on_its_topics() {
    let rig = Rig::start().await;
    let query = [("topic", "Job:web"), ("topic", "Allocation")];
    let (mut body, mut text) = (open(&rig, &query).await, String::new());
    register(&rig, job("other", "service", None)).await;
    register(&rig, job("web", "service", None)).await;
    let mut events: Vec<Value> = Vec::new();
    while !events
        .iter()
        .any(|event| event["Payload"]["Job"]["ID"] == "web")
    {
        for line in lines(&mut body, &mut text, 1).await {
            for event in line["Events"].as_array().unwrap() {
                assert_eq!(event["Index"], line["Index"]);
                events.push(event.clone());
            }
        }
    }
    for event in &events {
        let topic = event["Topic"].as_str().unwrap();
        assert!(["Job", "Allocation"].contains(&topic), "{topic}");
        assert!(event["Payload"][topic]["ID"].is_string(), "{event}");
        assert_eq!(event["Namespace"], "default");
        if topic == "Job" {
            assert_eq!(event["Key"], "web");
        }
    }
    let of_web = |event: &&Value| event["Topic"] == "Job";
    let registered = events.iter().find(of_web).unwrap();
    assert_eq!(registered["Type"], "JobRegistered");
    // Who comes later is told what happened before.
    let later = [("topic", "Evaluation:web"), ("namespace", "*")];
    let (mut body, mut text) = (open(&rig, &later).await, String::new());
    let line = lines(&mut body, &mut text, 1).await.remove(0);
    let event = &line["Events"][0];
    assert_eq!(
        (&event["Topic"], &event["Type"]),
        (&json!("Evaluation"), &json!("EvaluationUpdated"))
    );
    assert_eq!(event["FilterKeys"][0], "web");
    assert_eq!(event["Payload"]["Evaluation"]["JobID"], "web");
}

#[tokio::test]
async fn bad_topic_or_index_of_a_stream_is_refused() {
    let rig = Rig::start().await;
    let bad = failure(&rig, Method::GET, "/v1/event/stream?topic=a:b:c", "").await;
    let words = "Invalid topic query: error parsing topics: Invalid key value pair for topic, \
                 topic: a:b:c";
    assert_eq!(bad, (400, words.to_owned()));
    let bad = failure(&rig, Method::GET, "/v1/event/stream?index=x", "").await;
    assert_eq!(bad.0, 400, "{}", bad.1);
}

#[tokio::test]
async fn node_registration_and_changes_are_published() {
    let rig = Rig::start().await;
    let query = [("topic", "Node")];
    let (mut body, mut text) = (open(&rig, &query).await, String::new());
    let mut kinds: Vec<String> = Vec::new();
    let target = rig.client.target("/v1/nodes", &[]).unwrap();
    let nodes = rig.client.exchange(Method::GET, target, Bytes::new()).await;
    let nodes = crate::cli::client::whole(nodes.unwrap()).await.unwrap();
    let nodes: Value = serde_json::from_slice(&nodes).unwrap();
    let id = nodes[0]["ID"].as_str().unwrap().to_owned();
    let set = async |part: &str, body: Value| {
        let path = format!("/v1/node/{id}/{part}");
        let (status, text) = failure(&rig, Method::PUT, &path, &body.to_string()).await;
        assert_eq!(status, 200, "{text}");
    };
    set("eligibility", json!({ "Eligibility": "ineligible" })).await;
    set("eligibility", json!({ "Eligibility": "eligible" })).await;
    set("drain", json!({ "DrainSpec": { "Deadline": 0 } })).await;
    let (status, _) = failure(
        &rig,
        Method::POST,
        "/v1/client/metadata",
        r#"{"Meta":{"rack":"r7"}}"#,
    )
    .await;
    assert_eq!(status, 200);
    let mut rack = Value::Null;
    while rack.is_null() {
        for line in lines(&mut body, &mut text, 1).await {
            for event in line["Events"].as_array().unwrap() {
                assert_eq!(
                    (&event["Topic"], &event["Key"]),
                    (&json!("Node"), &json!(id))
                );
                assert_eq!(
                    (&event["Namespace"], &event["FilterKeys"]),
                    (&json!(""), &Value::Null)
                );
                let node = &event["Payload"]["Node"];
                rack = node["Meta"]["rack"].clone();
                let eligibility = node["SchedulingEligibility"].as_str().unwrap();
                kinds.push(format!("{} {eligibility}", event["Type"].as_str().unwrap()));
            }
        }
    }
    assert!(kinds[0].starts_with("NodeRegistration"), "{kinds:?}");
    kinds.retain(|kind| !kind.starts_with("NodeStreamEvent"));
    let received = kinds
        .iter()
        .skip_while(|kind| kind.starts_with("NodeRegistration"));
    let received: Vec<&str> = received.map(String::as_str).take(3).collect();
    let expected = [
        "NodeEligibility ineligible",
        "NodeEligibility eligible",
        "NodeDrain ineligible",
    ];
    assert_eq!(received, expected, "{kinds:?}");
    assert_eq!(rack, "r7");
}

/// What somebody wants who may hear everything.
fn all_topics() -> Topics {
    let mut params = Params::default();
    params.principal = Principal::unlimited();
    Topics::of(&params).unwrap()
}

fn step(index: u64) -> Step {
    let key = JobKey {
        namespace: "default".into(),
        id: format!("job-{index}").as_str().into(),
    };
    Step::new(index, vec![Change::JobGone(key)])
}

#[test]
fn slow_reader_is_cut_with_the_index_to_go_on_from() {
    let events = Events::default();
    events.add(step(1));
    let mut slow = events.read(0);
    for index in 2..=500 {
        events.add(step(index));
    }
    assert!(matches!(slow.next(), Next::Lost { from: 401 }));
    let mut again = events.read(401);
    assert!(matches!(again.next(), Next::Step(step) if step.index() == 401));
    let mut between = events.read(450);
    assert!(matches!(between.next(), Next::Step(step) if step.index() == 450));
    let mut latest = events.read(10_000);
    assert!(matches!(latest.next(), Next::Later));
}

/// The bound of changes is one of those that are kept, not of all that ever were.
#[test]
fn last_hundred_steps_are_kept_after_ten_thousand_changes() {
    let events = Events::default();
    for index in 1..=10_200 {
        events.add(step(index));
    }
    let mut oldest = events.read(0);
    assert!(matches!(oldest.next(), Next::Step(step) if step.index() == 10_101));
    for index in 10_201..=10_250 {
        events.add(step(index));
    }
    let mut again = events.read(10_160);
    assert!(matches!(again.next(), Next::Step(step) if step.index() == 10_160));
}

#[tokio::test(start_paused = true)]
async fn idle_stream_sends_heartbeats_and_lost_reader_gets_an_error() {
    let events = Events::default();
    let topics = all_topics();
    let (text, reader) = next_lines(events.read(0), &topics).await.unwrap();
    assert_eq!(&*text, ALIVE);
    for index in 1..=200 {
        events.add(step(index));
    }
    let (text, reader) = next_lines(reader.unwrap(), &topics).await.unwrap();
    assert!(reader.is_none());
    let text = std::str::from_utf8(&text).unwrap();
    assert!(text.contains("subscribe again with index=101"), "{text}");
}

/// Proxies cut a connection over which nothing comes, whatever others are sent.
#[tokio::test(start_paused = true)]
async fn reader_of_a_rare_topic_gets_heartbeats_between_events_of_others() {
    let events = Events::default();
    let mut params = Params::parse(vec![("topic".to_owned(), "Job:rare".to_owned())]).unwrap();
    params.principal = Principal::unlimited();
    let topics = Topics::of(&params).unwrap();
    let of_others = async {
        for index in 1..=30 {
            events.add(step(index));
            tokio::time::sleep(HEARTBEAT / 3).await;
        }
    };
    tokio::select! {
        lines = next_lines(events.read(0), &topics) => assert_eq!(&*lines.unwrap().0, ALIVE),
        () = of_others => panic!("ten heartbeats are late"),
    }
}

#[tokio::test]
async fn lines_that_are_there_come_in_one_piece() {
    let events = Events::default();
    let topics = all_topics();
    for index in 1..=3 {
        events.add(step(index));
    }
    let (text, reader) = next_lines(events.read(2), &topics).await.unwrap();
    assert!(reader.is_some());
    let text = std::str::from_utf8(&text).unwrap();
    let indexes: Vec<&str> = text.lines().map(|line| &line[..10]).collect();
    assert_eq!(indexes, ["{\"Index\":2", "{\"Index\":3"]);
}

#[test]
fn ten_thousand_idle_readers_keep_nothing_alive() {
    let events = Events::default();
    let readers: Vec<_> = (0..10_000).map(|_| events.read(0)).collect();
    for index in 1..=1_000 {
        events.add(step(index));
    }
    assert!(std::mem::size_of_val(&readers[0]) <= 64);
    let mut reader = events.read(0);
    let Next::Step(first) = reader.next() else {
        panic!("nothing is kept");
    };
    assert_eq!(first.index(), 901);
    // Nobody asked for JSON, so there is none.
    assert_eq!(first.bytes(), 0);
}
