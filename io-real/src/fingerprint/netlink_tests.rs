#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER + body.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend([0; 10]);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn new_address(family: u8, prefix: u8, flags: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![family, prefix, flags, 0];
    body.extend(7_u32.to_ne_bytes());
    body.extend(attributes.concat());
    message(NEW_ADDRESS, &body)
}

/// A dump of three addresses: a plain one, one end of a line, and one that changes each day.
fn dump() -> Vec<u8> {
    let v6 = "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets();
    let mut bytes = new_address(2, 24, 1, &[attribute(1, &[192, 0, 2, 7])]);
    let ends = [attribute(1, &[192, 0, 2, 9]), attribute(2, &[192, 0, 2, 8])];
    bytes.extend(new_address(2, 32, 0, &ends));
    let passing = [attribute(8, &1_u32.to_ne_bytes()), attribute(1, &v6)];
    bytes.extend(new_address(10, 64, 0, &passing));
    bytes.extend(message(DONE, &[0; 4]));
    bytes
}

#[test]
fn netlink_addresses_are_parsed() {
    let reported = parse(&dump());
    let raw = |ip: &str, prefix, lasts| Raw {
        index: 7,
        ip: ip.parse().unwrap(),
        prefix,
        lasts,
    };
    let expected = [
        raw("192.0.2.7", 24, true),
        raw("192.0.2.8", 32, true),
        raw("2001:db8::7", 64, false),
    ];
    assert_eq!(reported.addresses, expected);
    assert_eq!(reported.end, Some(0));
}

#[test]
fn netlink_error_is_reported() {
    let refused = message(ERROR, &(-1_i32).to_ne_bytes());
    assert_eq!(parse(&refused).end, Some(1));
}

#[test]
fn damaged_netlink_packets_are_safe() {
    let whole = dump();
    for at in 0..whole.len() {
        assert!(parse(&whole[..at]).addresses.len() <= 3);
        for byte in [0, 1, 3, 4, 17, 0x7f, 0x80, 0xff] {
            let mut spoiled = whole.clone();
            spoiled[at] = byte;
            // The shortest message is a header, so that reading always goes on.
            assert!(parse(&spoiled).addresses.len() <= whole.len() / HEADER);
        }
    }
}
