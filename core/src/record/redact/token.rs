//! What stands for a secret: a keyed hash of it, the same wherever it stands in a recording. There
//! is a new key for each start of the agent.
//!
//! The hash is SipHash-2-4 (Aumasson and Bernstein, 2012): without the key, which is never written,
//! a guess cannot be checked.

use core::fmt;

use crate::interpolate::{Piece, pieces};
use crate::text::parse_duration;

/// How tokens begin.
const MARK: &str = "redacted:";

/// No longer text is shown for being a number or a duration.
const SHORT: usize = 12;

/// The key of one life's tokens.
#[derive(Clone, Copy)]
pub struct TokenKey(u64, u64);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// A key of these random bits.
    pub fn new(random: u128) -> TokenKey {
        let [low, high] = [random, random >> 64].map(|half| half & u128::from(u64::MAX));
        let half = |bits: u128| u64::try_from(bits).unwrap_or(0);
        TokenKey(half(low), half(high))
    }

    /// What stands for `text`. References and a leading `/` stay, because the core decides by
    /// them; so do the empty text, `true`, `false`, durations and numbers of up to three digits,
    /// which are settings and no secrets.
    pub fn hide(self, text: &str) -> String {
        if is_setting(text) {
            return text.to_owned();
        }
        let mut out = String::new();
        for piece in pieces(text) {
            match piece {
                Piece::Text(plain) => {
                    if out.is_empty() && plain.starts_with('/') {
                        out.push('/');
                    }
                    out.push_str(&self.token(plain.as_bytes()));
                }
                Piece::Escape => out.push_str("$${"),
                Piece::Reference { whole, .. } => out.push_str(whole),
            }
        }
        out
    }

    /// The token of these bytes.
    pub fn token(self, bytes: &[u8]) -> String {
        format!("{MARK}{:016x}", self.sip(bytes))
    }

    fn sip(self, bytes: &[u8]) -> u64 {
        let mut state = [
            self.0 ^ 0x736f_6d65_7073_6575,
            self.1 ^ 0x646f_7261_6e64_6f6d,
            self.0 ^ 0x6c79_6765_6e65_7261,
            self.1 ^ 0x7465_6462_7974_6573,
        ];
        let mut word = |word: u64, rounds: usize| {
            state[3] ^= word;
            for _ in 0..rounds {
                round(&mut state);
            }
            state[0] ^= word;
        };
        let chunks = bytes.chunks_exact(8);
        let tail = chunks.remainder();
        for chunk in chunks {
            word(little(chunk), 2);
        }
        let length = u64::try_from(bytes.len() & 0xff).unwrap_or(0) << 56;
        word(little(tail) | length, 2);
        state[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut state);
        }
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

fn little(bytes: &[u8]) -> u64 {
    let bits = |(at, byte): (usize, &u8)| u64::from(*byte) << (8 * at);
    bytes.iter().enumerate().map(bits).sum()
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

/// Whether a text is no secret but a setting, by which the core may decide.
fn is_setting(text: &str) -> bool {
    let duration = || text.len() <= SHORT && parse_duration(text).is_ok();
    let number = || text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.is_empty() || matches!(text, "true" | "false") || number() || duration()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // The test vectors of the paper's authors: key 00..0f, messages of rising length.
        let key = TokenKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(key.sip(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.sip(&message), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn what_the_core_decides_by_stays() {
        let key = TokenKey::new(7);
        for plain in [
            "",
            "true",
            "false",
            "30s",
            "1m30s",
            "143",
            "${NOMAD_ALLOC_ID}",
        ] {
            assert_eq!(key.hide(plain), plain);
        }
        let hidden = key.hide("/srv/${NOMAD_TASK_NAME}/hunter2");
        assert!(hidden.starts_with("/redacted:"), "{hidden}");
        assert!(hidden.contains("${NOMAD_TASK_NAME}redacted:"), "{hidden}");
        assert!(!hidden.contains("hunter2") && !hidden.contains("srv"));
    }

    #[test]
    fn equal_secrets_have_equal_tokens_under_one_key_only() {
        let (one, other) = (TokenKey::new(1), TokenKey::new(2));
        assert_eq!(one.hide("hunter2"), one.hide("hunter2"));
        assert_ne!(one.hide("hunter2"), one.hide("hunter3"));
        assert_ne!(one.hide("hunter2"), other.hide("hunter2"));
    }
}
