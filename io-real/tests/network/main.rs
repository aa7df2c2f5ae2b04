//! Messages between nodes and to others, over a simulated network that delays, parts and loses
//! hosts: the code that asks, fetches and takes in is the agent's own.
//!
//! A scenario puts a node that gives a disk away on a host, has trouble come at stated moments, and
//! asks from another host. One seed gives one run.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod cluster;
mod giver;
mod hosts;
mod posts;
mod rogue;
mod rogues;
mod taker;

use std::time::Duration;

use drover_core::model::remote::Remote;
use giver::{Giver, content, now};
use hosts::{Moment, Network, Trouble};
use rogue::{Rogue, Step};
use taker::{Answered, Taker};

/// The longest that one question may take, in seconds: the agent's own bounds for connecting and
/// for two parts of an answer.
const LONGEST_QUESTION: u64 = 10 + 70 + 70;

fn network(seed: u64, giver: Giver) -> Network {
    Network::new(seed).host("giver", move || giver.clone().serve())
}

/// Asks from the beginning until the other allocation is over.
fn answers(seed: u64, ends_at: u64, trouble: &[Moment]) -> Vec<Answered<Remote>> {
    network(seed, Giver::ends_at(ends_at)).run(trouble, || async {
        Taker::new().ask_until_it_ended().await
    })
}

/// No answer says that it ended before it did, and the last one says so.
fn assert_ended_after(second: u64, answers: &[Answered<Remote>]) {
    let ended = answers
        .iter()
        .position(|(_, reported)| *reported == Ok(Remote::Ended));
    assert_eq!(ended, Some(answers.len() - 1), "{answers:#?}");
    assert!(answers.last().unwrap().0 >= second, "{answers:#?}");
}

/// No pause between two answers is longer than a question and what follows a failure.
fn assert_never_stuck(answers: &[Answered<Remote>]) {
    let times = std::iter::once(0).chain(answers.iter().map(|(at, _)| *at));
    let times: Vec<u64> = times.collect();
    let longest = times.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(longest <= Some(LONGEST_QUESTION + 30), "{answers:#?}");
}

#[test]
fn remote_alloc_end_is_reported_soon() {
    let answers = answers(1, 140, &[]);
    assert_ended_after(140, &answers);
    assert!(
        answers.iter().all(|(_, reported)| reported.is_ok()),
        "{answers:#?}"
    );
    // A question is kept until there is news: no more of them than periods of 50 s, and the first.
    assert!(answers.len() <= 5, "{answers:#?}");
    assert!(answers.last().unwrap().0 <= 142, "{answers:#?}");
}

/// What is made of an answer to the question about an allocation.
fn asked_of(body: &str) -> Remote {
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
    let giver = Rogue::new(&[Step::Send(answer.into_bytes())]);
    let network = Network::new(12).host("giver", move || giver.clone().serve());
    let answer = network.run(&[], || async { Taker::new().ask(0).await });
    answer.unwrap()
}

#[test]
fn failed_alloc_runs_until_its_last_task_is_dead() {
    let answer = |other: &str| {
        format!(
            r#"{{"ClientStatus":"failed","TaskStates":{{"db":{{"State":"dead"}},"web":{{"State":"{other}"}}}}}}"#
        )
    };
    assert_eq!(asked_of(&answer("running")), Remote::Runs { index: 0 });
    assert_eq!(asked_of(&answer("dead")), Remote::Ended);
}

#[test]
fn partition_during_query_is_survived() {
    let trouble = [
        Moment::at_second(5, Trouble::Part("client", "giver")),
        Moment::at_second(300, Trouble::Heal("client", "giver")),
    ];
    let answers = answers(2, 20, &trouble);
    assert_ended_after(300, &answers);
    assert_never_stuck(&answers);
    assert!(
        answers.iter().any(|(_, reported)| reported.is_err()),
        "{answers:#?}"
    );
}

#[test]
fn query_is_retried_after_host_death() {
    let trouble = [
        Moment::at_second(5, Trouble::Crash("giver")),
        Moment::at_second(90, Trouble::Bounce("giver")),
    ];
    let answers = answers(3, 20, &trouble);
    assert_ended_after(90, &answers);
    assert_never_stuck(&answers);
}

#[test]
fn half_open_connection_times_out() {
    // Nothing is refused and nothing arrives, in one direction only.
    let trouble = [
        Moment::at_second(5, Trouble::PartOneWay("giver", "client")),
        Moment::at_second(200, Trouble::HealOneWay("giver", "client")),
    ];
    let answers = answers(4, 20, &trouble);
    assert_ended_after(200, &answers);
    assert_never_stuck(&answers);
    assert!(
        answers.iter().any(|(_, reported)| reported.is_err()),
        "{answers:#?}"
    );
}

#[test]
fn same_seed_gives_same_answers() {
    let trouble = [
        Moment::at_second(30, Trouble::Part("client", "giver")),
        Moment::at_second(110, Trouble::Heal("client", "giver")),
    ];
    assert_eq!(answers(5, 100, &trouble), answers(5, 100, &trouble));
}

/// Fetches until the disk is here, under trouble; whole, nothing beside it. Returns how many tries failed.
fn failed_transfers(seed: u64, trouble: &[Moment]) -> usize {
    network(seed, Giver::ends_at(0)).run(trouble, || async {
        let mut taker = Taker::new();
        let failures = taker.fetch_until_it_is_here().await;
        assert_eq!(taker.taken().map(|bytes| bytes == content()), Some(true));
        assert_eq!(taker.leftovers(), Vec::<String>::new());
        failures.len()
    })
}

#[test]
fn disk_arrives_whole_over_slow_network() {
    assert_eq!(failed_transfers(6, &[]), 0);
}

#[test]
fn partition_during_transfer_leaves_nothing_and_retry_succeeds() {
    let trouble = [
        Moment::at_second(3, Trouble::Part("client", "giver")),
        Moment::at_second(70, Trouble::Heal("client", "giver")),
    ];
    assert!(failed_transfers(7, &trouble) > 0);
}

#[test]
fn disk_transfer_stalled_under_a_minute_succeeds() {
    let trouble = [
        Moment::at_second(3, Trouble::Hold("client", "giver")),
        Moment::at_second(50, Trouble::Release("client", "giver")),
    ];
    assert_eq!(failed_transfers(10, &trouble), 0);
}

#[test]
fn held_link_fails_transfer_after_a_minute() {
    let trouble = [
        Moment::at_second(3, Trouble::Hold("client", "giver")),
        Moment::at_second(70, Trouble::Part("client", "giver")),
        Moment::at_second(71, Trouble::Heal("client", "giver")),
    ];
    assert_eq!(failed_transfers(11, &trouble), 1);
}

#[test]
fn host_death_during_transfer_leaves_nothing_and_retry_succeeds() {
    let trouble = [
        Moment::at_second(3, Trouble::Crash("giver")),
        Moment::at_second(20, Trouble::Bounce("giver")),
    ];
    assert!(failed_transfers(8, &trouble) > 0);
}

#[test]
fn cancelled_transfer_during_partition_ends_at_once() {
    let trouble = [Moment::at_second(2, Trouble::Part("client", "giver"))];
    network(9, Giver::ends_at(0)).run(&trouble, || async {
        let mut taker = Taker::new();
        let fetched = taker.fetch_for(Duration::from_secs(5)).await;
        assert!(fetched.is_err_and(|failure| failure.recoverable));
        assert!(
            now() < Duration::from_secs(60),
            "it waited for the network: {:?}",
            now()
        );
        assert_eq!(taker.taken(), None);
        assert_eq!(taker.leftovers(), Vec::<String>::new());
    });
}
