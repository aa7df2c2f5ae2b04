//! What the tests of the wire share. Each uses a part of it.

#![allow(dead_code, clippy::expect_used, clippy::unwrap_used)]

pub(crate) mod frames;
pub(crate) mod handler;
pub(crate) mod network;
pub(crate) mod peer;
pub(crate) mod server;
pub(crate) mod session;

use std::fs;
use std::path::Path;

/// A recording, by its name.
pub(crate) fn recording(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rpc/tests/recorded")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The objects in bytes, one behind the other.
pub(crate) fn objects(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = bytes;
    let mut objects = Vec::new();
    while !rest.is_empty() {
        let end = drover_rpc::msgpack::end_of(rest).expect("whole objects");
        objects.push(rest[..end].to_vec());
        rest = &rest[end..];
    }
    objects
}

/// Numbers by a seed (SplitMix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another one.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}
