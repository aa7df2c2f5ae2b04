//! A hash that is the same on every machine and in every run, and cheap.

use std::hash::Hasher;

use drover_recorder::hash::mix;

/// Hashes whatever is fed to it into one number, eight bytes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateHasher(u64);

impl Default for StateHasher {
    fn default() -> Self {
        StateHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for StateHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut eight = [0; 8];
            eight.copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(eight));
        }
        for byte in chunks.remainder() {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = mix(self.0, value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        scramble(self.0)
    }
}

/// The finaliser of SplitMix64: close inputs give far outputs.
pub(crate) fn scramble(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
