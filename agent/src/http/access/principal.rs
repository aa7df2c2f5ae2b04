//! Whose a request is, and what they may do.

use std::sync::Arc;

use axum::http::HeaderMap;
use drover_core::model::secret::Secret;
use drover_core::store::acl::AclTokenRecord;

use super::token::{self, Given};
use crate::acl::{Capability, Rights};
use crate::http::errors::ApiError;

/// Whose a request is. The default is somebody who may do nothing.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    rights: Arc<Rights>,
    origin: Origin,
}

/// Where rights come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// From nothing that could end: there is no access control, or it is the agent's own user.
    Unlimited,
    /// From what the core knows.
    Known(Arc<Grant>),
}

/// What rights were made of. They are the same for as long as this is.
#[derive(Debug)]
pub(super) struct Grant {
    /// Whoever is anonymous has none.
    pub(super) token: Option<(Given, Arc<AclTokenRecord>)>,
    /// Its policies.
    pub(super) policies: Vec<Version>,
    /// Whether servers said it.
    pub(super) of_servers: bool,
}

/// A policy as it was at some time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    /// Its name.
    pub(super) name: Arc<str>,
    /// The index at which it was last changed; 0 for one that is ready from the start.
    pub(super) index: u64,
    /// Its text: a cluster that is made anew counts from the beginning.
    pub(super) rules: Arc<str>,
}

impl Grant {
    /// Whether it gives the same rights as another one.
    pub(super) fn is_same(&self, other: &Grant) -> bool {
        let of = |grant: &Grant| {
            let token = grant.token.as_ref();
            token.map(|(given, record)| (given.digest, record.modify_index))
        };
        of(self) == of(other) && self.policies == other.policies
    }
}

impl Default for Principal {
    fn default() -> Principal {
        let nobody = Grant {
            token: None,
            policies: Vec::new(),
            of_servers: false,
        };
        Principal::new(Arc::new(Rights::none()), nobody)
    }
}

impl Principal {
    pub(super) fn new(rights: Arc<Rights>, grant: Grant) -> Principal {
        Principal {
            rights,
            origin: Origin::Known(Arc::new(grant)),
        }
    }

    /// Who may do everything.
    pub(crate) fn unlimited() -> Principal {
        Principal {
            rights: Arc::new(Rights::all()),
            origin: Origin::Unlimited,
        }
    }

    /// Whether they need no token.
    pub(crate) fn is_unlimited(&self) -> bool {
        matches!(self.origin, Origin::Unlimited)
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// What they may do.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The token, unless there is none.
    pub(crate) fn token(&self) -> Option<&Arc<AclTokenRecord>> {
        match &self.origin {
            Origin::Unlimited => None,
            Origin::Known(grant) => grant.token.as_ref().map(|(_, record)| record),
        }
    }

    /// The names of their policies; none where they may see all policies.
    pub(crate) fn policies(&self) -> Option<Vec<String>> {
        match &self.origin {
            Origin::Unlimited => None,
            Origin::Known(_) if self.rights.is_management() => None,
            Origin::Known(grant) => {
                let names = grant.policies.iter().map(|one| one.name.to_string());
                Some(names.collect())
            }
        }
    }

    /// Whether they may do one of these in a namespace; for `*`, in any.
    pub(crate) fn may_one_of(&self, namespace: &str, capabilities: &[Capability]) -> bool {
        let may = |capability: &Capability| match namespace {
            "*" => self.rights.may_in_any(*capability),
            namespace => self.rights.may(namespace, *capability),
        };
        capabilities.iter().any(may)
    }

    /// Refuses whoever may not do that in a namespace.
    ///
    /// # Errors
    /// They may not.
    pub(crate) fn require(&self, namespace: &str, capability: Capability) -> Result<(), ApiError> {
        require(self.rights.may(namespace, capability))
    }
}

/// What servers are shown with a question of this principal that is passed on to them: a token of the cluster, or what
/// somebody has with them where nobody needs one here. What is good on this node alone, nobody else is shown.
pub(in crate::http) fn token_for_servers(principal: &Principal, headers: &HeaderMap) -> Secret {
    match (principal.origin(), token::of_headers(headers)) {
        (Origin::Unlimited, token::Secret::Token(given)) => given.text,
        (Origin::Known(grant), _) if grant.of_servers => {
            let given = grant.token.as_ref().map(|(given, _)| given.text.clone());
            given.unwrap_or_default()
        }
        (Origin::Unlimited | Origin::Known(_), _) => Secret::default(),
    }
}

/// Refuses what is not allowed.
///
/// # Errors
/// It is not allowed.
pub(in crate::http) fn require(allowed: bool) -> Result<(), ApiError> {
    match allowed {
        true => Ok(()),
        false => Err(ApiError::denied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::acl::digest;

    /// Who showed the token `theirs`, of which somebody knew whose it is.
    fn with_token(of_servers: bool) -> Principal {
        let given = Given {
            digest: digest("theirs"),
            text: "theirs".into(),
        };
        let grant = Grant {
            token: Some((given, Arc::default())),
            policies: Vec::new(),
            of_servers,
        };
        Principal::new(Arc::new(Rights::all()), grant)
    }

    #[test]
    fn servers_are_shown_what_is_good_with_them() {
        let mut headers = HeaderMap::new();
        headers.insert("x-nomad-token", "theirs".parse().unwrap());
        for (principal, shown) in [
            (Principal::unlimited(), "theirs"),
            (with_token(true), "theirs"),
            (with_token(false), ""),
            (Principal::default(), ""),
        ] {
            let token = token_for_servers(&principal, &headers);
            assert_eq!(token.expose(), shown, "{principal:?}");
        }
        let without = token_for_servers(&Principal::unlimited(), &HeaderMap::new());
        assert_eq!(without.expose(), "");
    }
}
