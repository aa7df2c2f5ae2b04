//! Tokens: who may have the disk of an allocation. As in Nomad, a token is made of the node's
//! own secret and the allocation's id, so that nothing has to be remembered: base64 (for addresses)
//! of BLAKE2b-512 of the id, with the secret as the key.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE;
use blake2::Blake2bMac512;
use blake2::digest::{KeyInit, Mac};
use drover_core::ids::AllocId;

/// What only this node knows.
#[derive(Clone, Default)]
pub struct NodeSecret(String);

impl fmt::Debug for NodeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeSecret")
    }
}

impl NodeSecret {
    /// This is it.
    pub fn new(secret: String) -> NodeSecret {
        NodeSecret(secret)
    }

    /// The secret, for servers, who know the node by it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The token for an allocation's disk.
    pub fn token(&self, alloc: AllocId) -> String {
        self.mac(alloc).map_or_else(String::new, |mac| {
            BASE64_URL_SAFE.encode(mac.finalize().into_bytes())
        })
    }

    /// Whether this is the token for it. How long that takes says nothing of the right one.
    pub fn allows(&self, alloc: AllocId, token: &str) -> bool {
        let Ok(token) = BASE64_URL_SAFE.decode(token) else {
            return false;
        };
        self.mac(alloc)
            .is_some_and(|mac| mac.verify_slice(&token).is_ok())
    }

    fn mac(&self, alloc: AllocId) -> Option<Blake2bMac512> {
        let key = self.0.as_bytes();
        if key.is_empty() {
            return None;
        }
        // A key has at most 64 bytes.
        let key = key.get(..64).unwrap_or(key);
        let mut mac = Blake2bMac512::new_from_slice(key).ok()?;
        mac.update(alloc.to_string().as_bytes());
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrate_token_is_bound_to_alloc_and_node() {
        let secret = NodeSecret::new("a-secret".to_owned());
        let (one, other) = (AllocId(1), AllocId(2));
        let token = secret.token(one);
        assert!(secret.allows(one, &token));
        assert!(!secret.allows(other, &token));
        assert!(!NodeSecret::new("another".to_owned()).allows(one, &token));
        for bad in ["", "AA==", "!", &token[..token.len() - 4]] {
            assert!(!secret.allows(one, bad), "{bad:?}");
        }
        let nobody = NodeSecret::new(String::new());
        assert!(!nobody.allows(one, &nobody.token(one)));
    }

    /// BLAKE2b as published (RFC 7693), keyed: what an implementation in another language gives.
    #[test]
    fn migrate_token_matches_nomad() {
        let secret = NodeSecret::new("6f4b1a4e-0f0e-4c55-9ad4-0d4f4d9d1c11".to_owned());
        let id = AllocId(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
        assert_eq!(secret.token(id), EXPECTED);
    }

    const EXPECTED: &str = "6AlXVBOaoxj0M-xvEJy-BI78EuDFyn5xaQgxlTeT9QFc\
        bYVkyr9GNvpFUVNmaBICeaN9t5I0BkA_1gqR8t9-QA==";
}
