//! What rules of the packet filter are made of: expressions, as the kernel numbers them. They work on registers,
//! which hold what was found so far.

use drover_core::model::network::{Ipv4, Subnet};

use super::filter::{IP, MAP};
use super::netlink::Attrs;

/// The first register, and parts of it: of 16 and of 4 bytes.
pub(super) const R1: u32 = 1;
pub(super) const PART_1: u32 = 9;
pub(super) const PART_2: u32 = 10;

pub(super) const IN: u32 = 6;
pub(super) const OUT: u32 = 7;
pub(super) const L4_PROTOCOL: u32 = 16;
const NETWORK: u32 = 1;
pub(super) const TRANSPORT: u32 = 2;
pub(super) const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
pub(super) const DROP: u32 = 0;
pub(super) const ACCEPT: u32 = 1;

pub(super) fn list(elements: &[Attrs]) -> Attrs {
    let mut all = Attrs::new();
    for element in elements {
        all = all.nest(1, element);
    }
    all
}

pub(super) fn expression(name: &str, data: &Attrs) -> Attrs {
    Attrs::new().text(1, name).nest(2, data)
}

pub(super) fn meta(register: u32, key: u32) -> Attrs {
    expression("meta", &Attrs::new().be32(2, key).be32(1, register))
}

pub(super) fn payload(register: u32, base: u32, offset: u32, length: u32) -> Attrs {
    let data = Attrs::new()
        .be32(1, register)
        .be32(2, base)
        .be32(3, offset)
        .be32(4, length);
    expression("payload", &data)
}

/// Bytes of the packet's own header.
pub(super) fn header_bytes(register: u32, offset: u32, length: u32) -> Attrs {
    payload(register, NETWORK, offset, length)
}

pub(super) fn compare(how: u32, value: &[u8]) -> Attrs {
    let data = Attrs::new()
        .be32(1, R1)
        .be32(2, how)
        .nest(3, &Attrs::new().bytes(1, value));
    expression("cmp", &data)
}

fn mask(value: [u8; 4]) -> Attrs {
    let data = Attrs::new()
        .be32(1, R1)
        .be32(2, R1)
        .be32(3, 4)
        .nest(4, &Attrs::new().bytes(1, &value))
        .nest(5, &Attrs::new().bytes(1, &[0; 4]));
    expression("bitwise", &data)
}

/// The packet came, or goes, through an interface or another one.
pub(super) fn interface(side: u32, name: &str, same: bool) -> Vec<Attrs> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(16, 0);
    let how = if same { EQUAL } else { UNEQUAL };
    vec![meta(R1, side), compare(how, &bytes)]
}

/// The address at this offset is one of a subnet, or none.
pub(super) fn within(subnet: Subnet, offset: u32, inside: bool) -> Vec<Attrs> {
    let bits = u32::MAX
        .checked_shl(u32::from(32 - subnet.prefix()))
        .unwrap_or(0);
    let how = if inside { EQUAL } else { UNEQUAL };
    vec![
        header_bytes(R1, offset, 4),
        mask(bits.to_be_bytes()),
        compare(how, &subnet.first().0.to_be_bytes()),
    ]
}

/// The address at this offset is one of the loopback's.
pub(super) fn loopback(offset: u32) -> Vec<Attrs> {
    vec![header_bytes(R1, offset, 1), compare(EQUAL, &[127])]
}

/// The packet is for this address.
pub(super) fn is_for(address: Ipv4) -> Vec<Attrs> {
    const DESTINATION: u32 = 16;
    vec![
        header_bytes(R1, DESTINATION, 4),
        compare(EQUAL, &address.0.to_be_bytes()),
    ]
}

/// The packet is for this port.
pub(super) fn is_for_port(protocol: u8, port: u16) -> Vec<Attrs> {
    const DESTINATION: u32 = 2;
    vec![
        meta(R1, L4_PROTOCOL),
        compare(EQUAL, &[protocol]),
        payload(R1, TRANSPORT, DESTINATION, 2),
        compare(EQUAL, &port.to_be_bytes()),
    ]
}

/// The packet is for an address of the host.
pub(super) fn is_local() -> Vec<Attrs> {
    const ADDRESS_TYPE: u32 = 3;
    const DESTINATION: u32 = 2;
    const LOCAL: u32 = 2;
    let data = Attrs::new()
        .be32(1, R1)
        .be32(2, ADDRESS_TYPE)
        .be32(3, DESTINATION);
    vec![
        expression("fib", &data),
        compare(EQUAL, &LOCAL.to_ne_bytes()),
    ]
}

/// No address, where one is looked up.
pub(super) fn nothing() -> Attrs {
    let data = Attrs::new()
        .be32(1, R1)
        .nest(2, &Attrs::new().bytes(1, &[0; 4]));
    expression("immediate", &data)
}

/// The connection was sent behind the bridge by the map, or not.
pub(super) fn forwarded(is: bool) -> Vec<Attrs> {
    const STATUS: u32 = 2;
    const BY_MAP: u32 = 0x20;
    let how = if is { UNEQUAL } else { EQUAL };
    connection(STATUS, BY_MAP, how)
}

/// The connection is new.
pub(super) fn is_new() -> Vec<Attrs> {
    const STATE: u32 = 0;
    const NEW: u32 = 8;
    connection(STATE, NEW, UNEQUAL)
}

/// Of what is known of the connection, one bit.
fn connection(key: u32, bit: u32, how: u32) -> Vec<Attrs> {
    vec![
        expression("ct", &Attrs::new().be32(2, key).be32(1, R1)),
        mask(bit.to_ne_bytes()),
        compare(how, &[0; 4]),
    ]
}

pub(super) fn lookup() -> Attrs {
    let data = Attrs::new().text(1, MAP).be32(2, R1).be32(3, R1).be32(4, 1);
    expression("lookup", &data)
}

pub(super) fn dnat() -> Attrs {
    const TO: u32 = 1;
    let data = Attrs::new()
        .be32(1, TO)
        .be32(2, IP.into())
        .be32(3, R1)
        .be32(5, PART_1);
    expression("nat", &data)
}

pub(super) fn masquerade() -> Attrs {
    expression("masq", &Attrs::new())
}

/// Counts what comes so far.
pub(super) fn counter() -> Attrs {
    expression("counter", &Attrs::new())
}

pub(super) fn verdict(code: u32) -> Attrs {
    let code = Attrs::new().be32(1, code);
    let data = Attrs::new()
        .be32(1, 0)
        .nest(2, &Attrs::new().nest(2, &code));
    expression("immediate", &data)
}
