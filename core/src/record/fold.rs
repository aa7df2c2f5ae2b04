//! A fast hash of words: for what is done on the core's own thread after each step. It is the same
//! on every machine, and keeps no secret.

/// An odd number without a pattern: the golden ratio's fraction.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A prime for each place in a row. They fit into an instruction, so no register holds them.
const PLACES: [u64; 4] = [0x7a5c_debb, 0x6b2f_4e57, 0x5d97_a1fd, 0x4c1b_3d41];

/// The hash so far. Each word of a row is multiplied and turned for itself, so that none waits for
/// another, and then they are added up: a word that is always 0 costs nothing. Two rows of which only
/// one word differs never have the same hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold(u64);

impl Fold {
    /// Begins with what kind of thing is hashed.
    pub(super) fn new(kind: u64) -> Fold {
        Fold(kind)
    }

    /// Takes in four words.
    #[inline(always)]
    pub(super) fn row(&mut self, [a, b, c, d]: [u64; 4]) {
        let [one, two, three, four] = PLACES;
        let (a, b) = (a.wrapping_mul(one), b.wrapping_mul(two).rotate_left(16));
        let (c, d) = (c.wrapping_mul(three), d.wrapping_mul(four));
        let row =
            (a.wrapping_add(b)).wrapping_add(c.rotate_left(32).wrapping_add(d.rotate_left(48)));
        self.0 = self
            .0
            .wrapping_mul(SPREAD)
            .rotate_left(29)
            .wrapping_add(row);
    }

    /// Takes in two words and a name, which has few letters as a rule.
    #[inline]
    pub(super) fn name(&mut self, [a, b]: [u64; 2], name: &str) {
        let (eights, rest) = name.as_bytes().as_chunks::<8>();
        for eight in eights {
            self.row([u64::from_le_bytes(*eight), 0, 0, 0]);
        }
        self.row([a, b, few(rest), count(name.len())]);
    }

    /// Takes in a text.
    pub(super) fn text(&mut self, text: &str) {
        self.name([0, 0], text);
    }

    /// The hash of all that was taken in.
    #[inline]
    pub(super) fn finish(self) -> u64 {
        (self.0 ^ self.0 >> 32).wrapping_mul(SPREAD)
    }
}

/// Less than eight bytes as a number.
#[inline]
fn few(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        _ => bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    }
}

/// The lower half.
#[inline]
pub(super) fn low(both: u128) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = both.to_le_bytes();
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The upper half.
#[inline]
pub(super) fn high(both: u128) -> u64 {
    low(both >> 64)
}

/// How many, the same on machines of any word size.
#[inline]
pub(super) fn count(of: usize) -> u64 {
    u64::try_from(of).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hash_of(text: &str) -> u64 {
        let mut fold = Fold::new(0);
        fold.text(text);
        fold.finish()
    }

    #[test]
    fn texts_that_differ_in_one_place_have_other_hashes() {
        let whole = "0123456789abcdefghijklmnopqrstuvwxyz";
        let mut seen = BTreeSet::new();
        let mut texts = 0;
        for end in 0..=whole.len() {
            seen.insert(hash_of(&whole[..end]));
            texts += 1;
            for at in 0..end {
                let mut other = whole[..end].to_owned();
                other.replace_range(at..=at, "-");
                seen.insert(hash_of(&other));
                texts += 1;
            }
        }
        assert_eq!(seen.len(), texts);
    }

    #[test]
    fn each_word_counts_and_so_does_its_place() {
        let rows: [[u64; 4]; 9] = [
            [0, 0, 0, 0],
            [1, 0, 0, 0],
            [0, 1, 0, 0],
            [0, 0, 1, 0],
            [0, 0, 0, 1],
            [1 << 63, 0, 0, 0],
            [0, 1 << 63, 0, 0],
            [0, 0, 1 << 63, 0],
            [0, 0, 0, 1 << 63],
        ];
        let mut seen = BTreeSet::new();
        for one in rows {
            for other in rows {
                let mut fold = Fold::new(7);
                fold.row(one);
                fold.row(other);
                seen.insert(fold.finish());
            }
        }
        assert_eq!(seen.len(), rows.len() * rows.len());
    }

    #[test]
    fn halves_are_told_apart() {
        let both = 0x0102_0304_0506_0708_1112_1314_1516_1718_u128;
        assert_eq!(high(both), 0x0102_0304_0506_0708);
        assert_eq!(low(both), 0x1112_1314_1516_1718);
    }
}
