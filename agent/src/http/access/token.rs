//! The secret of a token: how it is sent, and what is kept of it.

use axum::http::{HeaderMap, header};
use drover_core::model::acl::SecretDigest;

use crate::http::acl::digest;

/// A longer secret is none of ours.
const MAX_SECRET: usize = 256;

/// What a request says to be.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Secret {
    /// Nothing.
    None,
    /// The holder of a token.
    Token(Given),
    /// Something that no token can be.
    Invalid,
}

/// The secret of a token, as somebody gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// What is kept of it.
    pub(super) digest: SecretDigest,
    /// What servers are shown.
    pub(super) text: drover_core::model::secret::Secret,
}

impl Secret {
    /// Of a text as clients send it.
    pub(super) fn of(text: &str) -> Secret {
        match text.trim() {
            "" => Secret::None,
            secret if secret.len() > MAX_SECRET => Secret::Invalid,
            secret => Secret::Token(Given {
                digest: digest(secret),
                text: secret.into(),
            }),
        }
    }
}

/// The secret in the headers of a request: `X-Nomad-Token` goes before `Authorization: Bearer`.
pub(super) fn of_headers(headers: &HeaderMap) -> Secret {
    let nomad = headers.get("x-nomad-token").map(|value| value.to_str());
    match nomad {
        Some(Ok(text)) if !text.trim().is_empty() => return Secret::of(text),
        Some(Err(_)) => return Secret::Invalid,
        Some(Ok(_)) | None => {}
    }
    let bearer = headers.get(header::AUTHORIZATION);
    let Some(bearer) = bearer.and_then(|value| value.to_str().ok()) else {
        return Secret::None;
    };
    match bearer.trim().split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => Secret::of(secret),
        Some(_) | None => Secret::None,
    }
}

/// The token of another node, which is for the disk of an allocation.
pub(in crate::http) fn of_node(headers: &HeaderMap) -> &str {
    let token = headers.get("x-nomad-token");
    token.and_then(|token| token.to_str().ok()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(headers: &[(&'static str, &str)]) -> Secret {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        of_headers(&map)
    }

    #[test]
    fn token_is_taken_from_either_header() {
        let of = |text: &str| {
            Secret::Token(Given {
                digest: digest(text),
                text: text.into(),
            })
        };
        assert!(secret(&[]) == Secret::None);
        assert!(secret(&[("x-nomad-token", " a ")]) == of("a"));
        assert!(secret(&[("authorization", "bearer a")]) == of("a"));
        assert!(secret(&[("authorization", "Bearer  a ")]) == of("a"));
        assert!(secret(&[("authorization", "Basic a")]) == Secret::None);
        let both = [("x-nomad-token", "a"), ("authorization", "Bearer b")];
        assert!(secret(&both) == of("a"));
        let empty = [("x-nomad-token", ""), ("authorization", "Bearer b")];
        assert!(secret(&empty) == of("b"));
        assert!(secret(&[("x-nomad-token", &"a".repeat(300))]) == Secret::Invalid);
    }
}
