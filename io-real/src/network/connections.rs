//! How many connections one allocation may have the kernel remember: the table of connections is the host's, and when
//! it is full nobody gets in or out.
//!
//! What an allocation begins counts, by its address, until the kernel forgets it. The number is in the name of the
//! chain, so that a chain with another one is not taken for this.

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::expression::{
    DROP, IN, R1, counter, expression, header_bytes, interface, is_new, verdict,
};
use super::netlink::Attrs;

/// The set of those who have connections.
pub(super) const SET: &str = "connections";

/// How many connections the kernel remembers at most.
const TABLE: &str = "/proc/sys/net/netfilter/nf_conntrack_max";

/// One allocation has a part of so many of the table, where nothing else is said.
const PART: u32 = 4;

/// How large the table is where the kernel does not say.
const USUAL_TABLE: u32 = 262_144;

/// How large the table was when it was asked for first. It stays so for this process: with another number the rules
/// that are there would seem to be somebody else's.
static SIZE: OnceLock<u32> = OnceLock::new();

/// The most addresses that are counted.
const ADDRESSES: u32 = 65_536;

/// Whether this kernel cannot count them.
static CANNOT: AtomicBool = AtomicBool::new(false);

/// The limit of each allocation: what is configured, where 0 is none, or a part of the kernel's table. The kernel has
/// none before the first rule asks for connections: until then nothing is limited, see [`learn`].
pub(super) fn limit(configured: Option<u32>) -> Option<u32> {
    if CANNOT.load(Ordering::Relaxed) {
        return None;
    }
    let part = || size().map(|size| (size / PART).max(1));
    configured.or_else(part).filter(|most| *most > 0)
}

fn size() -> Option<u32> {
    if SIZE.get().is_none()
        && let Some(read_size) = read_size()
    {
        let _ = SIZE.set(read_size);
    }
    SIZE.get().copied()
}

fn read_size() -> Option<u32> {
    let read_size = fs::read_to_string(TABLE).ok()?;
    read_size.trim().parse().ok()
}

/// Rules are there, and with them the table. Whether its size was not known before.
pub(super) fn learn() -> bool {
    let is_new = SIZE.get().is_none();
    SIZE.get_or_init(|| read_size().unwrap_or(USUAL_TABLE));
    is_new
}

/// Whether the kernel says so to rules of which it does not know some.
pub(super) fn may_be_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP))
}

/// The kernel knows no such rule, as it said: from now on there is no limit.
pub(super) fn are_unknown(error: &io::Error) {
    if !CANNOT.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            %error,
            "the kernel cannot count connections (nft_connlimit): one allocation can fill its table for all of them"
        );
    }
}

/// The chain with this limit.
pub(super) fn chain(most: u32) -> String {
    format!("{SET}_{most}")
}

/// The set, described so that the program `nft` can show it.
pub(super) fn set(table: Attrs) -> Attrs {
    const GROWS: u32 = 0x20;
    const ADDRESS: u32 = 7;
    table
        .text(2, SET)
        .be32(3, GROWS)
        .be32(4, ADDRESS)
        .be32(5, 4)
        .nest(9, &Attrs::new().be32(1, ADDRESSES))
        .be32(10, 2)
}

/// Who comes from behind the bridge with one more than that does not get further.
pub(super) fn rule(bridge: &str, most: u32) -> Vec<Attrs> {
    const SOURCE: u32 = 12;
    const MORE: u32 = 1;
    let count = Attrs::new().be32(1, most).be32(2, MORE);
    let known = Attrs::new()
        .text(1, SET)
        .be32(2, 2)
        .be32(3, 0)
        .be32(4, R1)
        .nest(7, &expression("connlimit", &count));
    let last = vec![
        header_bytes(R1, SOURCE, 4),
        expression("dynset", &known),
        counter(),
        verdict(DROP),
    ];
    [interface(IN, bridge, true), is_new(), last].concat()
}
