//! Addresses that documents give a meaning.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use drover_io_real::fingerprint::Subnet;

/// The documents that are known, by number.
pub(super) const DOCUMENTS: [&str; 5] = ["1918", "3927", "4193", "6598", "6890"];

/// A range of version 4.
const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Subnet {
    Subnet {
        ip: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        prefix,
    }
}

/// A range of version 6, by its first three groups and its last one.
const fn v6(a: u16, b: u16, c: u16, last: u16, prefix: u8) -> Subnet {
    Subnet {
        ip: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last)),
        prefix,
    }
}

/// Of IPv4 within IPv6.
const MAPPED: Subnet = Subnet {
    ip: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0)),
    prefix: 96,
};

const PRIVATE: [Subnet; 3] = [
    v4(10, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
];
const LINK_LOCAL: [Subnet; 1] = [v4(169, 254, 0, 0, 16)];
const UNIQUE_LOCAL: [Subnet; 1] = [v6(0xfc00, 0, 0, 0, 7)];
const SHARED: [Subnet; 1] = [v4(100, 64, 0, 0, 10)];

/// What nobody forwards, by the registries of special addresses.
const NOT_FORWARDED: [Subnet; 14] = [
    v4(0, 0, 0, 0, 8),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(240, 0, 0, 0, 4),
    v6(0, 0, 0, 1, 128),
    v6(0, 0, 0, 0, 128),
    MAPPED,
    v6(0x2001, 0x0db8, 0, 0, 32),
    v6(0x2001, 0x0010, 0, 0, 28),
    v6(0xfe80, 0, 0, 0, 10),
];

/// The others of the registries: for some purpose, and forwarded.
const FORWARDED: [Subnet; 11] = [
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(172, 16, 0, 0, 12),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v6(0x0064, 0xff9b, 0, 0, 96),
    v6(0x0100, 0, 0, 0, 64),
    v6(0x2001, 0, 0, 0, 23),
    v6(0x2002, 0, 0, 0, 16),
    v6(0xfc00, 0, 0, 0, 7),
];

fn is_in(ranges: &[Subnet], ip: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(ip))
}

/// Whether packets for an address leave its link.
pub(super) fn is_forwardable(ip: IpAddr) -> bool {
    !is_in(&NOT_FORWARDED, ip)
}

/// Whether an address has a special purpose: private networks, above all.
pub(super) fn is_special(ip: IpAddr) -> bool {
    is_in(&NOT_FORWARDED, ip) || is_in(&FORWARDED, ip)
}

/// Whether a document is about an address; none if it is not known.
pub(super) fn is_of(document: &str, ip: IpAddr) -> Option<bool> {
    match document {
        "1918" => Some(is_in(&PRIVATE, ip)),
        "3927" => Some(is_in(&LINK_LOCAL, ip)),
        "4193" => Some(is_in(&UNIQUE_LOCAL, ip)),
        "6598" => Some(is_in(&SHARED, ip)),
        "6890" => Some(is_special(ip)),
        _ => None,
    }
}
