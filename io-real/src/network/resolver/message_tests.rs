#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use super::*;

/// A question with this number, as a client sends it.
fn question(name: &str, kind: u16, extension: Option<u16>) -> Vec<u8> {
    let mut message = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend(written(name).unwrap());
    message.extend([kind, INTERNET].map(u16::to_be_bytes).as_flattened());
    if let Some(max_length) = extension {
        message[11] = 1;
        message.push(0);
        message.extend(
            [OPT, max_length, 0, 0, 0]
                .map(u16::to_be_bytes)
                .as_flattened(),
        );
    }
    message
}

fn read(name: &str, kind: u16, extension: Option<u16>) -> Query {
    Query::read(&question(name, kind, extension)).unwrap()
}

/// The code, whether it is cut off, and the counts of a message.
fn summary(message: &[u8]) -> (u8, bool, [u16; 4]) {
    let counts = Reader(&message[4..]).counts().unwrap();
    (message[3] & CODE, message[2] & TRUNCATED != 0, counts)
}

#[test]
fn question_is_read_as_it_is_asked() {
    let query = read("V1.web.service.drover", SRV, Some(4096));
    assert_eq!(query.labels(), ["V1", "web", "service", "drover"]);
    assert_eq!((query.wanted(), query.is_usual()), (Wanted::Service, true));
    assert_eq!(
        (query.max_length(Over::Udp), query.max_length(Over::Tcp)),
        (1232, 65_535)
    );
    assert_eq!(read("a", A, Some(100)).max_length(Over::Udp), 512);
    assert_eq!(read("a", AAAA, None).max_length(Over::Udp), 512);
    assert!(!read("a", AXFR, None).is_usual());
}

#[test]
fn answer_has_address_under_name_of_question() {
    let query = read("web.service.drover", A, None);
    let records = [Record::Ipv4(Ipv4Addr::new(10, 0, 0, 1))];
    let answer = query.answer(Code::Answered, &records, query.max_length(Over::Udp));
    let asked = question("web.service.drover", A, None);
    assert_eq!(answer[..2], asked[..2]);
    assert_eq!(answer[2], RESPONSE | AUTHORITATIVE | RECURSION_DESIRED);
    assert_eq!(summary(&answer), (0, false, [1, 1, 0, 0]));
    assert_eq!(answer[12..asked.len()], asked[12..]);
    let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 10, 0, 0, 1];
    assert_eq!(answer[asked.len()..], record);
}

#[test]
fn port_record_has_the_full_host_name() {
    let query = read("web.service.drover", SRV, None);
    let target = "0a000001.addr.drover".to_owned();
    let records = [Record::Service { port: 8080, target }];
    let answer = query.answer(Code::Answered, &records, 512);
    let end = b"\x00\x01\x00\x01\x1f\x90\x080a000001\x04addr\x06drover\x00";
    assert!(answer.ends_with(end), "{answer:?}");
}

#[test]
fn empty_answer_has_its_time_to_live() {
    let query = read("web.service.drover", AAAA, Some(1232));
    let nothing = query.answer(Code::Answered, &[], 512);
    assert_eq!(summary(&nothing), (0, false, [1, 0, 1, 1]));
    let no_name = query.answer(Code::NoName, &[], 512);
    assert_eq!(summary(&no_name), (3, false, [1, 0, 1, 1]));
    let refused = query.answer(Code::Refused, &[], 512);
    assert_eq!(summary(&refused), (5, false, [1, 0, 0, 1]));
    assert_eq!(refused[2] & AUTHORITATIVE, 0);
}

#[test]
fn answer_is_truncated_at_the_size_limit() {
    let records: Vec<Record> = (0..100)
        .map(|number| Record::Ipv4(Ipv4Addr::new(10, 0, 0, number)))
        .collect();
    for (extension, over) in [
        (None, Over::Udp),
        (Some(1232), Over::Udp),
        (Some(1232), Over::Tcp),
    ] {
        let query = read("web.service.drover", A, extension);
        let max_length = query.max_length(over);
        let answer = query.answer(Code::Answered, &records, max_length);
        let (_, cut, [_, answers, ..]) = summary(&answer);
        assert!(answer.len() <= max_length && answer.len() + 16 > max_length.min(1632));
        assert_eq!(cut, answers < 100, "{over:?}");
    }
}

#[test]
fn question_is_passed_on_under_another_number_and_only_its_answer_comes_back() {
    let query = read("example.org", A, Some(4096));
    let asked = query.to_pass_on(7);
    assert_eq!(
        Query::read(&asked).map(|it| (it.id, it.labels())),
        Some((7, query.labels()))
    );
    let records = [Record::Ipv4(Ipv4Addr::new(192, 0, 2, 1))];
    let given = Query::read(&asked).unwrap();
    let answer = given.answer(Code::Answered, &records, 512);
    assert!(query.is_answered_by(&answer, 7));
    assert!(!query.is_answered_by(&answer, 8), "another number");
    assert!(!query.is_answered_by(&asked, 7), "a question");
    for other in [
        read("example.com", A, None),
        read("example.org", AAAA, None),
    ] {
        assert!(!other.is_answered_by(&answer, 7), "another question");
    }
    for length in 0..asked.len() - 11 {
        assert!(!query.is_answered_by(&answer[..length], 7), "{length}");
    }
    let passed = query.passed_on(answer.clone(), 512);
    assert_eq!(passed[..2], [0x12, 0x34]);
    assert_eq!(passed[2..], answer[2..]);
    let cut = query.passed_on(answer, 40);
    assert_eq!(summary(&cut), (0, true, [1, 0, 0, 1]));
    assert!(is_failure(&query.answer(Code::Refused, &[], 512)));
    assert!(!is_failure(&cut) && !is_failure(&[]));
}

#[test]
fn hostile_messages_are_no_questions() {
    let good = question("web.service.drover", A, Some(1232));
    for length in 0..good.len() {
        assert_eq!(Query::read(&good[..length]), None, "{length}");
    }
    let with = |at: usize, byte: u8| {
        let mut message = good.clone();
        message[at] = byte;
        message
    };
    let mut long = vec![0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for _ in 0..5 {
        long.push(63);
        long.extend([b'a'; 63]);
    }
    long.extend([0, 0, 1, 0, 1]);
    let mut twice = good.clone();
    twice[11] = 2;
    twice.extend_from_slice(&good[good.len() - 11..]);
    for (why, message) in [
        ("an answer", with(2, 0x81)),
        ("an update", with(2, 0x28)),
        ("two questions", with(5, 2)),
        ("an answer beside it", with(7, 1)),
        ("too much beside it", with(11, 200)),
        ("a name that refers to itself", with(12, 0xc0)),
        ("a label of an unknown kind", with(12, 0x40)),
        ("a label that is too long", with(12, 63)),
        ("a name that is too long", long),
        ("something after it", [good.clone(), vec![0]].concat()),
        ("two extensions", twice),
    ] {
        assert_eq!(Query::read(&message), None, "{why}");
    }
    let mut odd = good;
    odd[13..16].copy_from_slice(&[0xff, b'.', 0]);
    assert_eq!(Query::read(&odd).unwrap().labels()[0], "\u{fffd}.\0");
}
