//! Messages that were cut, changed or made up: reading ends, without a panic, within bounds, and the
//! scanner and the decoder never differ.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;

use drover_rpc::msgpack::{MAX_DEPTH, Malformed, Scanner, Value, decode, encode, end_of};
use drover_rpc::types::query::{Allocations, NodeClientAllocs};
use drover_rpc::types::registration::{NodeRegister, NodeUpdateReply};
use drover_rpc::types::stream::{AllocationsExec, ExecInput, StreamOut};

/// Numbers by a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn recordings() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut objects = Vec::new();
    for entry in fs::read_dir(folder).expect("recordings") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "msgpack")
        {
            let bytes = fs::read(path).expect("a recording");
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (object, more) = rest.split_at(end_of(rest).expect("whole objects"));
                objects.push(object.to_vec());
                rest = more;
            }
        }
    }
    objects.sort();
    objects
}

/// What it says must hold of any bytes: nothing panics, and who finds an end decodes up to it.
fn read_all(bytes: &[u8]) {
    let end = end_of(bytes);
    let value = end.as_ref().ok().map(|end| &bytes[..*end]);
    let whole = value.unwrap_or(bytes);
    let any = decode::<Value>(whole);
    if any.is_ok() {
        assert_eq!(
            end,
            Ok(whole.len()),
            "decoded, but not scanned: {bytes:02x?}"
        );
    }
    drop(decode::<Allocations>(whole));
    drop(decode::<NodeClientAllocs>(whole));
    drop(decode::<NodeUpdateReply>(whole));
    drop(decode::<NodeRegister>(whole));
    drop(decode::<AllocationsExec>(whole));
    drop(decode::<ExecInput>(whole));
    drop(decode::<StreamOut>(whole));
}

#[test]
fn end_of_fragmented_message_is_found() {
    let mut dice = Dice(1);
    for object in recordings() {
        let mut stream = object.clone();
        stream.extend_from_slice(b"\x93and more");
        let mut scanner = Scanner::new(1 << 20);
        let mut arrived = 0;
        let end = loop {
            match scanner.scan(&stream[..arrived]).expect("it is well-formed") {
                Some(end) => break end,
                None => assert!(arrived < object.len(), "the end was missed"),
            }
            arrived += 1 + dice.below(stream.len() - arrived).min(64);
        };
        assert_eq!(end, object.len());
    }
}

#[test]
fn mutated_message_is_read_or_refused() {
    let recordings = recordings();
    let mut dice = Dice(2);
    for round in 0..20_000 {
        let mut bytes = recordings[dice.below(recordings.len())].clone();
        for _ in 0..=dice.below(4) {
            let at = dice.below(bytes.len());
            match dice.below(5) {
                0 => bytes[at] = dice.next() as u8,
                1 => bytes.truncate(at),
                2 => bytes.insert(at, [0x81, 0x91, 0xc0, 0xdf, 0xdd, 0xdb][dice.below(6)]),
                3 => bytes[at] = bytes[at].wrapping_add(1),
                _ => {
                    let other = &recordings[dice.below(recordings.len())];
                    let from = dice.below(other.len());
                    bytes.splice(at.., other[from..].iter().copied());
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        if round % 4 == 0 {
            for byte in &mut bytes {
                *byte = dice.next() as u8;
            }
        }
        read_all(&bytes);
    }
}

#[test]
fn list_nested_too_deep_is_refused_before_it_ends() {
    let deep = vec![0x91; 100_000];
    assert_eq!(Scanner::new(1 << 20).scan(&deep), Err(Malformed::TooDeep));
    assert_eq!(decode::<Value>(&deep), Err(Malformed::TooDeep));
    let mut just = vec![0x91; MAX_DEPTH];
    just.push(0xc0);
    assert_eq!(end_of(&just), Ok(just.len()));
    decode::<Value>(&just).expect("as deep as is allowed");
}

#[test]
fn impossible_length_is_refused_at_its_head() {
    // Texts, lists and maps of 4 GiB; a text that is a byte too long; lists in lists.
    for head in [
        &b"\xdb\xff\xff\xff\xff"[..],
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
    ] {
        assert_eq!(Scanner::new(64 << 20).scan(head), Err(Malformed::TooLong));
    }
    assert_eq!(
        Scanner::new(10).scan(b"\xda\x00\x08"),
        Err(Malformed::TooLong)
    );
    assert_eq!(Scanner::new(11).scan(b"\xda\x00\x08"), Ok(None));
    assert_eq!(
        Scanner::new(9).scan(b"\x92\xa4text\x94"),
        Err(Malformed::TooLong)
    );
}

/// A byte can stand for a struct of a kilobyte.
#[test]
fn message_that_decodes_far_larger_is_refused() {
    let mut allocations = b"\x81\xa6Allocs\xdd\x00\x10\x00\x00".to_vec();
    allocations.extend(vec![0xc0; 1 << 20]);
    assert_eq!(
        decode::<Allocations>(&allocations).map(|_| ()),
        Err(Malformed::OverBudget)
    );
    let mut nils = b"\xdd\x00\x10\x00\x00".to_vec();
    nils.extend(vec![0xc0; 1 << 20]);
    assert_eq!(decode::<Value>(&nils), Err(Malformed::OverBudget));
    let mut maps = b"\xdd\x00\x10\x00\x00".to_vec();
    maps.extend(b"\x81\xa0\xc0".repeat(1 << 20));
    assert_eq!(decode::<Value>(&maps), Err(Malformed::OverBudget));
}

/// A map of one entry has a node with capacity for eleven.
#[test]
fn maps_in_maps_are_charged_for_their_nodes() {
    let mut nested = b"\xdd\x00\x00\x10\x00".to_vec();
    for _ in 0..4096 {
        nested.extend(b"\x81\xa0".repeat(MAX_DEPTH - 1));
        nested.push(0xc0);
    }
    end_of(&nested).expect("as deep as is allowed");
    assert_eq!(decode::<Value>(&nested), Err(Malformed::OverBudget));
}

#[test]
fn nil_is_read_for_anything() {
    let reply: NodeUpdateReply = decode(b"\xc0").expect("nil");
    assert_eq!(reply, NodeUpdateReply::default());
    let nils = b"\x86\xa7Servers\xc0\xa7EvalIDs\xc0\xaeSignedIdentity\xc0\xacHeartbeatTTL\xc0\
        \xabKnownLeader\xc0\xadLeaderRPCAddr\xc0";
    assert_eq!(
        decode::<NodeUpdateReply>(nils).expect("nils"),
        NodeUpdateReply::default()
    );
}

#[test]
fn unknown_field_is_skipped_and_wrong_type_is_refused() {
    // A key that is unknown, one that is a number, and one that is a list.
    let odd = b"\x84\xa3New\x91\x01\x00\x05\x91\x01\x02\xa8NumNodes\x07";
    assert_eq!(
        decode::<NodeUpdateReply>(odd).expect("odd keys").num_nodes,
        7
    );
    for wrong in [
        &b"\x81\xa8NumNodes\xa1x"[..],
        b"\x81\xa8NumNodes\xcb\x40\x00\x00\x00\x00\x00\x00\x00",
        b"\x81\xa8NumNodes\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x81\xa7EvalIDs\x81\xa1a\xa1b",
        b"\x91\x01",
    ] {
        let read = decode::<NodeUpdateReply>(wrong);
        assert!(
            matches!(read, Err(Malformed::InvalidType(_))),
            "{read:?} of {wrong:02x?}"
        );
    }
}

/// Text that is not UTF-8 costs no more than itself.
#[test]
fn text_that_is_no_utf_8_is_mended() {
    let reply: NodeUpdateReply = decode(b"\x81\xadLeaderRPCAddr\xa3a\xffb").expect("it is read");
    assert_eq!(reply.leader_rpc_addr, "a\u{fffd}b");
}

/// A library that knows all of msgpack writes other forms of the same.
#[test]
fn other_forms_of_the_same_are_read_as_the_same() {
    for object in recordings() {
        let value: Value = decode(&object).expect("a value");
        let modern = rmp_serde::to_vec_named(&value).expect("it can be written");
        let again: Value = decode(&modern).expect("modern forms");
        assert_eq!(encode(&unsigned(again)), encode(&unsigned(value)));
    }
}

/// Without the difference between integers that were written with a sign and without.
fn unsigned(value: Value) -> Value {
    match value {
        Value::Int(number) if number >= 0 => Value::Uint(number as u64),
        Value::List(list) => Value::List(list.into_iter().map(unsigned).collect()),
        Value::Map(map) => Value::Map(
            map.into_iter()
                .map(|(key, value)| (key, unsigned(value)))
                .collect(),
        ),
        other => other,
    }
}
