//! Messages of DNS: whatever a task sends to the resolver at the bridge's address, and whatever other servers answer.

use std::net::Ipv4Addr;

use drover_core::agent::names::Record;
use drover_io_real::network::resolver::message::{Code, Over, Query};

/// A question that comes in, and the same bytes as what another server answers to one.
///
/// # Panics
/// Something does not hold.
pub fn dns_message(bytes: &[u8]) {
    let Some(query) = Query::read(bytes) else {
        return;
    };
    assert!(!query.is_answered_by(bytes, 7), "a question is no answer");
    assert!(query.labels().len() < 128, "{query:?}");
    let asked = query.to_pass_on(7);
    let Some(given) = Query::read(&asked) else {
        panic!("what is asked of others is a question: {query:?}");
    };
    assert_eq!(given.labels(), query.labels());
    let records: Vec<Record> = (0..200)
        .map(|number| Record::Ipv4(Ipv4Addr::new(10, 0, 0, number)))
        .collect();
    for over in [Over::Udp, Over::Tcp] {
        let max_length = query.max_length(over);
        for (code, records) in [
            (Code::Answered, &records[..]),
            (Code::Answered, &[]),
            (Code::NoName, &[]),
            (Code::Failed, &[]),
        ] {
            let answer = query.answer(code, records, max_length);
            assert!(answer.len() <= max_length, "{query:?}");
            assert_eq!(Query::read(&answer), None, "an answer is no question");
            let theirs = given.answer(code, records, max_length);
            assert!(query.is_answered_by(&theirs, 7), "{query:?}");
            assert!(!query.is_answered_by(&theirs, 8), "{query:?}");
            assert!(
                query.passed_on(theirs, max_length).len() <= max_length,
                "{query:?}"
            );
        }
        // Others send what they like.
        assert!(query.passed_on(bytes.to_vec(), max_length).len() <= max_length);
    }
}
