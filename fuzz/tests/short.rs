//! A short run without a fuzzer: what is known, and what is nearly the same.
//!
//! `DROVER_FUZZ=ROUNDS` runs longer, `DROVER_FUZZ_SEED` elsewhere.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use drover_fuzz::{TARGETS, Target};

/// Enough for a few seconds.
const ROUNDS: u64 = 20_000;

#[test]
fn fuzz_corpus_holds_invariants() {
    let rounds = number("DROVER_FUZZ").unwrap_or(ROUNDS);
    let mut random = Random(number("DROVER_FUZZ_SEED").unwrap_or(1));
    for (name, target, takes) in TARGETS {
        let known = corpus(name);
        assert!(!known.is_empty(), "nothing is known for {name}");
        for bytes in &known {
            try_one(name, target, bytes);
        }
        for _ in 0..rounds / takes {
            let one = &known[random.below(known.len())];
            let other = &known[random.below(known.len())];
            try_one(name, target, &random.child(one, other));
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = (fs::read_dir(dir).unwrap())
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn try_one(name: &str, target: Target, bytes: &[u8]) {
    let found = catch_unwind(|| target(bytes)).is_err();
    assert!(
        !found,
        "{name} does not hold for \"{}\"",
        bytes.escape_ascii()
    );
}

/// Splitmix: seeded, so that what was found is found again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// The beginning of one, the end of the other, and up to four mistakes.
    fn child(&mut self, one: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = one.to_vec();
        if self.below(4) == 0 {
            bytes.truncate(self.below(one.len() + 1));
            bytes.extend_from_slice(&other[self.below(other.len() + 1)..]);
        }
        for _ in 0..self.below(5) {
            let at = self.below(bytes.len());
            let byte = self.next().to_le_bytes()[0];
            match self.below(5) {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 if !bytes.is_empty() => bytes[at] ^= 1 << (byte % 8),
                2 if !bytes.is_empty() => drop(bytes.remove(at)),
                3 => bytes.truncate(at),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    }
}
