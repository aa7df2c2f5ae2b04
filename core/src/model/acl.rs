//! Access control of the API: policies that say what may be done, and tokens that have them.
//!
//! What a policy's text means is for the API to know. Here it is remembered, and of secrets only what they are
//! recognized by: whoever reads the state cannot use a token of it.

use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ids::AccessorId;
use crate::text::quote;
use crate::time::Timestamp;

/// The longest name of a policy, in bytes, as in Nomad.
const MAX_POLICY_NAME: usize = 128;
/// The longest name of a token, and the longest description of a policy, in bytes, as in Nomad.
const MAX_WORDS: usize = 256;
/// The longest text of a policy, in bytes.
const MAX_RULES: usize = 64 * 1024;
/// The most policies that a token has.
const MAX_POLICIES_OF_TOKEN: usize = 64;

/// What those may do who have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AclPolicy {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for.
    pub description: String,
    /// Its text in Nomad's policy language.
    pub rules: Arc<str>,
}

/// What a token is good for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum TokenType {
    /// What its policies say.
    #[default]
    Client,
    /// Everything.
    Management,
}

/// What a secret is recognized by: its SHA-256.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretDigest(pub [u8; 32]);

/// Somebody's access to the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AclToken {
    /// Its public name.
    pub accessor: AccessorId,
    /// Its secret's.
    pub digest: SecretDigest,
    /// What people call it.
    pub name: String,
    /// What it is good for.
    pub token_type: TokenType,
    /// Its policies. Of one that is not there it has nothing.
    pub policies: BTreeSet<Arc<str>>,
    /// When it was made.
    pub create_time: Timestamp,
    /// From when it is good for nothing.
    pub expires: Option<Timestamp>,
}

impl AclPolicy {
    /// Whether it is not too large. That is for the API to ask: recordings hide texts, and are to play the same.
    ///
    /// # Errors
    /// What is too large.
    pub fn check_sizes(&self) -> Result<(), String> {
        within(
            "the description of a policy",
            self.description.len(),
            MAX_WORDS,
        )?;
        within("the text of a policy", self.rules.len(), MAX_RULES)
    }
}

impl AclToken {
    /// Whether it can be made.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        match (self.token_type, self.policies.len()) {
            (TokenType::Client, 0) => Err("a client token needs at least one policy".to_owned()),
            (TokenType::Client, count) => within(
                "the list of a token's policies",
                count,
                MAX_POLICIES_OF_TOKEN,
            ),
            (TokenType::Management, 0) => Ok(()),
            (TokenType::Management, _) => {
                Err("a management token has no policies: it may do everything".to_owned())
            }
        }
    }

    /// Whether its name is not too long. That is for the API to ask.
    ///
    /// # Errors
    /// It is.
    pub fn check_sizes(&self) -> Result<(), String> {
        within("the name of a token", self.name.len(), MAX_WORDS)
    }

    /// Whether it is good for nothing any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

impl TokenType {
    /// As Nomad calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenType::Client => "client",
            TokenType::Management => "management",
        }
    }
}

/// Whether a policy that is made may have this name, by Nomad's rule.
///
/// # Errors
/// Why not.
pub fn check_policy_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if name.is_empty() || name.len() > MAX_POLICY_NAME || !name.bytes().all(plain) {
        return Err(format!(
            "invalid name {}: a policy's name has 1 to {MAX_POLICY_NAME} letters, digits and -",
            quote(name)
        ));
    }
    Ok(())
}

fn within(what: &str, has: usize, most: usize) -> Result<(), String> {
    match has > most {
        true => Err(format!("{what} is too long: {has}, at most {most}")),
        false => Ok(()),
    }
}

impl fmt::Display for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not 64 hexadecimal digits stood where a digest was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADigest;

impl fmt::Display for NotADigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest has 64 hexadecimal digits")
    }
}

impl core::error::Error for NotADigest {}

impl FromStr for SecretDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<SecretDigest, NotADigest> {
        let mut digits = text.bytes().map(|byte| char::from(byte).to_digit(16));
        let mut digest = [0_u8; 32];
        for byte in &mut digest {
            let (high, low) = (digits.next().flatten(), digits.next().flatten());
            let value = high.ok_or(NotADigest)? * 16 + low.ok_or(NotADigest)?;
            *byte = u8::try_from(value).map_err(|_| NotADigest)?;
        }
        match digits.next() {
            None => Ok(SecretDigest(digest)),
            Some(_) => Err(NotADigest),
        }
    }
}

impl Serialize for SecretDigest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretDigest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SecretDigest, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(token_type: TokenType, policies: &[&str]) -> AclToken {
        AclToken {
            token_type,
            policies: policies.iter().map(|name| Arc::from(*name)).collect(),
            ..AclToken::default()
        }
    }

    #[test]
    fn client_token_has_policies_and_management_token_has_none() {
        assert_eq!(token(TokenType::Client, &["read"]).check(), Ok(()));
        assert!(token(TokenType::Client, &[]).check().is_err());
        assert_eq!(token(TokenType::Management, &[]).check(), Ok(()));
        assert!(token(TokenType::Management, &["read"]).check().is_err());
    }

    #[test]
    fn policy_names_are_letters_digits_and_dashes() {
        for good in ["a", "team-a", &"x".repeat(128)] {
            assert_eq!(check_policy_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "a/b", "a_b", "é", &"x".repeat(129)] {
            assert!(check_policy_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn digest_is_read_as_it_is_written() {
        let digest = SecretDigest(core::array::from_fn(|at| u8::try_from(at * 8).unwrap_or(0)));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64)] {
            assert_eq!(bad.parse::<SecretDigest>(), Err(NotADigest), "{bad}");
        }
    }

    #[test]
    fn token_expires_at_its_time() {
        let token = AclToken {
            expires: Some(Timestamp(10)),
            ..AclToken::default()
        };
        assert!(!token.is_expired(Timestamp(9)));
        assert!(token.is_expired(Timestamp(10)));
        assert!(!AclToken::default().is_expired(Timestamp(i64::MAX)));
    }
}
