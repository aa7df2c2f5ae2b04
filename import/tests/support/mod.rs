//! Damage to texts, the same each time.

/// What damage likes to be made of.
const PIECES: [&str; 26] = [
    "$",
    "${",
    "}",
    "${X:-",
    "$$",
    "%",
    "%{",
    "\"",
    "'",
    "\\",
    ":",
    "::",
    "-",
    "/",
    "[",
    "{",
    "&a ",
    "*a",
    "<<: ",
    "\n",
    "\t",
    "\0",
    "é",
    "99999999999999999999",
    "!reset ",
    "EOT\n",
];

/// Numbers that look random, and are the same each time.
pub(crate) struct Numbers(pub u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }
}

/// The text with some places damaged.
pub(crate) fn damaged(text: &str, numbers: &mut Numbers) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(chars.len());
        match numbers.below(5) {
            0 => chars.truncate(at),
            1 => {
                let end = (at + numbers.below(30)).min(chars.len());
                chars.drain(at..end);
            }
            2 => {
                let piece = PIECES[numbers.below(PIECES.len())];
                chars.splice(at..at, piece.chars());
            }
            3 => {
                // A line somewhere else.
                let end = (at + numbers.below(40)).min(chars.len());
                let part: Vec<char> = chars[at..end].to_vec();
                let to = numbers.below(chars.len());
                chars.splice(to..to, part);
            }
            _ => {
                if let Some(c) = chars.get_mut(at) {
                    *c = char::from(u8::try_from(numbers.below(128)).unwrap());
                }
            }
        }
    }
    chars.into_iter().collect()
}
