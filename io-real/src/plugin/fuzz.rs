//! Random bytes for tests: seeded, so that what was found is found again.

/// A small generator of random numbers (xorshift).
pub(crate) struct Random(u64);

impl Random {
    /// The seed is not 0.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    /// The same bytes with up to three mistakes in them.
    pub(crate) fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            let byte = u8::try_from(self.next() & 0xff).unwrap();
            match self.below(4) {
                0 if !bytes.is_empty() => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => bytes.truncate(at),
                _ => bytes.extend_from_within(..at),
            }
        }
        bytes
    }
}
