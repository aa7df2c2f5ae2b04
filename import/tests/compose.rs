//! Who waits for whom, and what becomes of groups and names.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use drover_import::{Source, import};
use hcl_edit::structure::{Block, Body};

fn job(text: &str) -> (String, Body) {
    let source = Source {
        name: "compose.yml",
        directory: "/srv/shop",
        text,
    };
    let found = import(&[source]).unwrap();
    let body = found.parse::<Body>().unwrap();
    (found, body)
}

fn labels<'a>(body: &'a Body, kind: &'a str) -> Vec<(&'a str, &'a Block)> {
    let blocks = body.get_blocks(kind);
    blocks
        .map(|block| (block.labels[0].as_str(), block))
        .collect()
}

/// The groups of the job and their tasks.
fn groups(body: &Body) -> Vec<(&str, Vec<&str>)> {
    let (_, job) = labels(body, "job")[0];
    labels(&job.body, "group")
        .into_iter()
        .map(|(name, group)| (name, labels_of(group)))
        .collect()
}

fn labels_of(group: &Block) -> Vec<&str> {
    labels(&group.body, "task")
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn dependency_that_must_complete_becomes_a_task_of_each_waiting_group() {
    let (text, body) = job(
        "services:\n  a: { image: x, depends_on: { once: { condition: service_completed_successfully } } }\n  \
         b: { image: x, depends_on: { once: { condition: service_completed_successfully } } }\n  once: { image: x }\n",
    );
    assert_eq!(
        groups(&body),
        [("a", vec!["once", "a"]), ("b", vec!["once", "b"])]
    );
    assert!(
        text.contains("It runs once in each of the groups that wait for its end: a, b."),
        "{text}"
    );
}

/// Prestart tasks of one group run at the same time, and somebody who runs cannot be a task of others.
#[test]
fn dependency_that_cannot_be_awaited_is_reported() {
    let (text, body) = job(
        "services:\n  a: { image: x, depends_on: { second: { condition: service_completed_successfully } } }\n  \
         second: { image: x, depends_on: { first: { condition: service_completed_successfully } } }\n  \
         first: { image: x }\n",
    );
    assert_eq!(groups(&body), [("a", vec!["second", "first", "a"])]);
    assert!(text.contains("waiting for the end of first"), "{text}");
    let (text, body) = job(
        "services:\n  a: { image: x, depends_on: { both: { condition: service_completed_successfully } } }\n  \
         b: { image: x, depends_on: [both] }\n  both: { image: x }\n",
    );
    assert_eq!(
        groups(&body),
        [("a", vec!["a"]), ("b", vec!["b"]), ("both", vec!["both"])]
    );
    assert!(text.contains("waiting for the end of both"), "{text}");
}

#[test]
fn service_without_healthcheck_is_waited_for_until_it_runs() {
    let (text, _) = job(
        "services:\n  a: { image: x, depends_on: { db: { condition: service_healthy } } }\n  db: { image: x }\n",
    );
    assert!(
        text.contains("it has no healthcheck in this file"),
        "{text}"
    );
    assert!(text.contains("service = \"shop-db\""), "{text}");
}

/// Who is alone needs no network, and a network of somebody else's keeps its name.
#[test]
fn services_share_one_network_of_the_engine() {
    let (text, _) = job("services:\n  a: { image: x }\n");
    assert!(
        !text.contains("network_mode") && !text.contains("network create"),
        "{text}"
    );
    let (text, _) = job("services:\n  a: { image: x }\n  b: { image: x }\n");
    assert!(
        text.contains("docker network create shop_default"),
        "{text}"
    );
    let (text, _) = job(
        "services:\n  a: { image: x, networks: [n] }\nnetworks: { n: { external: true, name: of.others } }\n",
    );
    assert!(text.contains("network_mode    = \"of.others\""), "{text}");
}

/// Names that differ in signs that no group or service has stay apart.
#[test]
fn names_stay_apart() {
    let (text, body) = job(
        "services:\n  a.b: { image: x, ports: [80] }\n  a-b: { image: x, ports: [80] }\n  a_b: { image: x, ports: [80] }\n",
    );
    assert_eq!(
        groups(&body),
        [
            ("a.b", vec!["a.b"]),
            ("a-b", vec!["a-b"]),
            ("a_b", vec!["a_b"])
        ]
    );
    for name in ["\"shop-a-b\"", "\"shop-a-b-2\"", "\"shop-a-b-3\""] {
        assert_eq!(text.matches(name).count(), 1, "{name}\n{text}");
    }
}

/// Without a time for the start nobody is restarted by a check.
#[test]
fn checks_restart_only_where_the_start_has_a_time() {
    let check = |more: &str| {
        let text = format!("services:\n  a: {{ image: x, healthcheck: {{ test: y{more} }} }}\n");
        job(&text).0
    };
    assert!(!check("").contains("\n          check_restart {"));
    assert!(check(", start_period: 1m").contains("\n          check_restart {"));
}
