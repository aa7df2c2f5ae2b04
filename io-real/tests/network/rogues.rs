//! Hosts that do not keep to what was agreed. Whatever they do, a try ends within its time, says what
//! happened, leaves nothing here and no connection there.

use std::io::Write;
use std::time::Duration;

use drover_core::op::Failure;
use drover_io_real::migrate::receive::Limits;
use tar::{EntryType, Header};
use tokio::time::sleep;

use super::LONGEST_QUESTION;
use super::giver::{archive, content, now};
use super::hosts::Network;
use super::rogue::{Rogue, Step};
use super::taker::Taker;

/// The longest that a stream may take that sends next to nothing, in seconds.
const LONGEST_TRICKLE: u64 = 11 * 60;

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// What a host sends, what is said of it, and whether another try is made.
struct Case {
    name: &'static str,
    steps: Vec<Step>,
    expected: &'static str,
    again: bool,
}

fn case(name: &'static str, expected: &'static str, steps: &[Step]) -> Case {
    let (steps, again) = (steps.to_vec(), true);
    Case {
        name,
        steps,
        expected,
        again,
    }
}

fn text(text: impl AsRef<[u8]>) -> Step {
    Step::Send(text.as_ref().to_vec())
}

/// Everything that a host can do wrong before it sends what is in an answer.
fn before_the_body() -> Vec<Case> {
    let second = Duration::from_secs(1);
    let line = format!("X: {}\r\n", "a".repeat(4000)).into_bytes();
    vec![
        case("silence", "does not answer in time", &[Step::Silence]),
        case("end", "connection closed", &[]),
        case(
            "no HTTP",
            "invalid HTTP",
            &[text("220 mail\r\n"), Step::Silence],
        ),
        case(
            "half a head",
            "does not answer in time",
            &[text("HTTP/1.1 200 OK\r\nX: "), Step::Silence],
        ),
        case(
            "a head letter by letter",
            "does not answer in time",
            &[text(OK), Step::Repeat(b"a", second)],
        ),
        case(
            "a head without an end",
            "too large",
            &[
                text(OK),
                Step::Repeat(line.leak(), Duration::from_millis(10)),
            ],
        ),
        case(
            "an error",
            "it answered 500",
            &[text("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")],
        ),
        case(
            "a redirection",
            "it answered 307",
            &[text(
                "HTTP/1.1 307 There\r\nlocation: http://other/\r\ncontent-length: 0\r\n\r\n",
            )],
        ),
        case(
            "two lengths",
            "invalid content-length",
            &[text(format!(
                "{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab"
            ))],
        ),
    ]
}

/// Runs one try against such a host. How it failed, and after how many seconds.
fn tried(
    case: &Case,
    asks: impl AsyncFnOnce(&mut Taker) -> Result<(), Failure> + 'static,
    taker: impl FnOnce() -> Taker + 'static,
) -> (Failure, u64) {
    let rogue = Rogue::new(&case.steps);
    let (host, name) = (rogue.clone(), case.name);
    let network = Network::new(20).host("giver", move || host.clone().serve());
    network.run(&[], move || async move {
        let mut taker = taker();
        let began = now();
        let result = asks(&mut taker).await;
        let took = (now() - began).as_secs();
        taker.assert_untouched();
        // What is on the way arrives, and hosts hear of what was closed.
        sleep(Duration::from_secs(10)).await;
        assert_eq!(rogue.connections(), (0, 1), "{name}");
        match result {
            Ok(()) => panic!("{name}: it worked"),
            Err(failure) => (failure, took),
        }
    })
}

fn assert_fails(case: &Case, (failure, took): (Failure, u64), longest: u64) {
    let name = case.name;
    assert!(
        failure.message.contains(case.expected),
        "{name}: {failure:?}"
    );
    assert!(failure.message.len() < 500, "{name}: {failure:?}");
    assert_eq!(failure.recoverable, case.again, "{name}: {failure:?}");
    assert!(took <= longest, "{name}: it took {took} s");
}

#[test]
fn malformed_query_answer_fails_in_time_with_reason() {
    let json = |more: &str| text(format!("{OK}{more}\r\n"));
    let spaces: &[u8] = &[b' '; 64 << 10];
    let at_once = Duration::from_millis(1);
    let mut cases = before_the_body();
    cases.extend([
        case(
            "a body that stops",
            "too long",
            &[json("content-length: 9\r\n"), Step::Silence],
        ),
        case(
            "a body letter by letter",
            "too long",
            &[json(""), Step::Repeat(b" ", Duration::from_secs(1))],
        ),
        case(
            "a body without an end",
            "more than 16777216 bytes",
            &[json(""), Step::Repeat(spaces.to_vec().leak(), at_once)],
        ),
        case(
            "less than its length",
            "end of file",
            &[json("content-length: 9\r\n"), text("{}")],
        ),
        case("no JSON", "cannot be decoded", &[json(""), text("<html>")]),
        case(
            "another shape",
            "cannot be decoded",
            &[json(""), text("[1]")],
        ),
        case(
            "a chunk of no size",
            "missing size",
            &[json("transfer-encoding: chunked\r\n"), text("zz\r\n")],
        ),
    ]);
    for case in &cases {
        let asked = tried(case, async |taker| taker.ask(0).await.map(drop), Taker::new);
        assert_fails(case, asked, LONGEST_QUESTION);
    }
}

#[test]
fn malformed_disk_transfer_is_refused_with_reason() {
    let archive = archive();
    // All of its only file, without the mark of the end.
    let unmarked = &archive[..archive.len() - 1024];
    let half = &archive[..archive.len() / 2];
    let length = |length: usize| text(format!("{OK}content-length: {length}\r\n\r\n"));
    let bare = || text(format!("{OK}\r\n"));
    let mut cases = before_the_body();
    cases.extend([
        case(
            "a body that stops",
            "stands still",
            &[length(archive.len()), text(half), Step::Silence],
        ),
        case(
            "a host that dies in the middle",
            "broke off",
            &[length(archive.len()), text(half)],
        ),
        case(
            "more than its length",
            "before the archive did",
            &[length(half.len()), text(&archive)],
        ),
        case(
            "a host that dies in the middle, without a length",
            "before the archive did",
            &[bare(), text(half)],
        ),
        case(
            "a host that dies between two files",
            "before the archive did",
            &[bare(), text(unmarked)],
        ),
        case("nothing", "before the archive did", &[length(0)]),
        case(
            "a byte now and then",
            "slower than",
            &[
                bare(),
                text(half),
                Step::Repeat(b"\0", Duration::from_secs(20)),
            ],
        ),
        case(
            "a chunk that breaks off",
            "broke off",
            &[
                text(format!("{OK}transfer-encoding: chunked\r\n\r\nffffff\r\n")),
                text(half),
            ],
        ),
    ]);
    for case in &cases {
        let fetched = tried(case, async |taker| taker.fetch().await, Taker::new);
        assert_fails(case, fetched, LONGEST_TRICKLE);
    }
}

/// A file of zeros without an end.
fn endless() -> Vec<Step> {
    let mut header = Header::new_gnu();
    header.set_path("alloc/data/zeros").expect("a name");
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(1 << 40);
    header.set_cksum();
    let mut head = format!("{OK}\r\n").into_bytes();
    head.write_all(header.as_bytes()).expect("memory");
    let zeros = vec![0; 64 << 10].leak();
    vec![
        Step::Send(head),
        Step::Repeat(zeros, Duration::from_millis(1)),
    ]
}

#[test]
fn oversized_disk_transfer_is_aborted_early() {
    let small = Limits {
        bytes: content().len() as u64,
        entries: 10,
    };
    let case = Case {
        name: "endless",
        steps: endless(),
        expected: "more than 800000 bytes",
        again: false,
    };
    let fetched = tried(
        &case,
        async |taker| taker.fetch().await,
        move || Taker::within(small),
    );
    assert_fails(&case, fetched, 60);
}
