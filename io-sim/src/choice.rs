//! Keyed choices: what chance decides is a hash of the seed and of what is being decided, not the
//! next number of one stream. Taking one task out of a scenario leaves the rest as it was.

use std::collections::BTreeMap;
use std::hash::Hasher;

/// FNV-1a, the same on every machine and in every run.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Decides by seed, point, entity and how often that was decided before.
#[derive(Clone, Debug)]
pub struct Choices {
    seed: u64,
    benign: bool,
    seen: BTreeMap<(&'static str, String), u64>,
}

impl Choices {
    /// The choices of a seed. Seed 0 is the benign world: every choice is 0.
    pub fn new(seed: u64) -> Choices {
        Choices {
            seed,
            benign: seed == 0,
            seen: BTreeMap::new(),
        }
    }

    /// A number for `entity` at `point`; the next time it is another one.
    pub fn pick(&mut self, point: &'static str, entity: &str) -> u64 {
        if self.benign {
            return 0;
        }
        let occurrence = self.seen.entry((point, entity.to_owned())).or_default();
        *occurrence += 1;
        let mut hash = Fnv::default();
        hash.write_u64(self.seed);
        hash.write(point.as_bytes());
        hash.write_u8(0);
        hash.write(entity.as_bytes());
        hash.write_u8(0);
        hash.write_u64(*occurrence);
        scramble(hash.finish())
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize, point: &'static str, entity: &str) -> usize {
        let n = u64::try_from(n).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.pick(point, entity) % n).unwrap_or(0)
    }

    /// Whether something happens that happens in `permille` of the cases.
    pub fn chance(&mut self, permille: u16, point: &'static str, entity: &str) -> bool {
        // Zero is the benign value, so the upper end is the one where things happen.
        permille > 0 && self.pick(point, entity) % 1000 >= 1000 - u64::from(permille.min(1000))
    }
}

/// The finaliser of SplitMix64: close inputs give far outputs.
fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
