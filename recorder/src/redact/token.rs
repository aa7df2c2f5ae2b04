//! What stands for a secret: a keyed hash of it, the same wherever it stands in a recording. There
//! is a new key for each start of the agent. Without the key, which is never written, a guess cannot
//! be checked.

use core::fmt;

use drover_core::interpolate::{Piece, pieces};
use drover_core::text::parse_duration;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// How tokens begin.
const MARK: &str = "redacted:";

/// No longer text is shown for being a number or a duration.
const SHORT: usize = 12;

/// The key of one life's tokens.
#[derive(Clone, Copy)]
pub struct TokenKey([u8; 16]);

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey")
    }
}

impl TokenKey {
    /// A key of these random bits.
    pub fn new(random: u128) -> TokenKey {
        TokenKey(random.to_le_bytes())
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
        // Keys of any length are fine.
        let hash = Hmac::<Sha256>::new_from_slice(&self.0).map(|mut mac| {
            mac.update(bytes);
            mac.finalize().into_bytes()
        });
        let first = hash.iter().flatten().take(8);
        let digits: String = first.map(|byte| format!("{byte:02x}")).collect();
        format!("{MARK}{digits}")
    }
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
    fn values_used_by_core_are_kept() {
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
