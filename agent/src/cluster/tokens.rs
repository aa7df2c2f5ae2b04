//! Tokens of the cluster: whose they are, and what they may do, as the servers say.

use std::collections::BTreeSet;
use std::time::Duration;

use drover_core::model::acl::TokenType;
use drover_core::model::secret::Secret;
use drover_core::time::Timestamp;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::types::identity::{
    AclGetPolicies, AclGetRolesById, AclResolveToken, AclToken, AclWhoAmI,
};
use futures::future::BoxFuture;

use super::Cluster;
use crate::http::{ServersPolicy, ServersToken, TokenServers, Unresolved};

/// How long each answer may take: somebody waits.
const WITHIN: Duration = Duration::from_secs(5);

/// What else servers say of what is no token, or no longer.
const REFUSALS: [&str; 3] = [
    "ACL token expired",
    "ACL token is invalid",
    // Older servers that have no access control: they have no tokens either.
    "ACL support disabled",
];

impl TokenServers for Cluster {
    fn token<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<ServersToken, Unresolved>> {
        Box::pin(async move {
            self.resolve(secret)
                .await
                .map_err(|error| unresolved(&error))?
        })
    }
}

impl Cluster {
    async fn resolve(&self, secret: &Secret) -> Result<Result<ServersToken, Unresolved>, Error> {
        // The token of a task, or of a node, is none of somebody's.
        let Some(token) = self.acl_token(secret).await? else {
            return Ok(Err(Unresolved::Unknown));
        };
        let token_type = match token.r#type.as_str() {
            "management" => TokenType::Management,
            _ => TokenType::Client,
        };
        let policies = match token_type {
            TokenType::Management => Vec::new(),
            TokenType::Client => self.policies(secret, &token).await?,
        };
        // Servers without access control answer with a token that has no id.
        let Ok(accessor) = token.accessor_id.parse() else {
            return Ok(Err(Unresolved::Unknown));
        };
        let created = token.create_time.unix_nanos().unwrap_or_default();
        let expires = token.expiration_time.and_then(|time| time.unix_nanos());
        Ok(Ok(ServersToken {
            accessor,
            name: token.name,
            token_type,
            // A time before 1970 is none.
            expires: expires.filter(|at| *at > 0).map(Timestamp),
            policies,
            create_time: Timestamp(created),
            indexes: (token.create_index, token.modify_index),
        }))
    }

    /// The token with this secret; none if there is none.
    async fn acl_token(&self, secret: &Secret) -> Result<Option<AclToken>, Error> {
        let request = AclWhoAmI {
            allow_stale: true,
            auth_token: secret.expose().into(),
            region: self.region(),
            ..AclWhoAmI::default()
        };
        match self.0.client.call(&request, WITHIN).await {
            Ok(found) => Ok(found.identity.and_then(|identity| identity.acl_token)),
            // Older servers are asked for the token itself.
            Err(error) if error.server_error_kind() == Some(ServerErrorKind::UnknownMethod) => {
                let request = AclResolveToken {
                    allow_stale: true,
                    region: self.region(),
                    secret_id: secret.expose().into(),
                    ..AclResolveToken::default()
                };
                Ok(self.0.client.call(&request, WITHIN).await?.token)
            }
            Err(error) => Err(error),
        }
    }

    /// The policies of a token, and of its roles.
    async fn policies(
        &self,
        secret: &Secret,
        token: &AclToken,
    ) -> Result<Vec<ServersPolicy>, Error> {
        let mut names: BTreeSet<String> = token.policies.iter().cloned().collect();
        if !token.roles.is_empty() {
            let request = AclGetRolesById {
                acl_role_ids: token.roles.iter().map(|role| role.id.clone()).collect(),
                allow_stale: true,
                auth_token: secret.expose().into(),
                region: self.region(),
                ..AclGetRolesById::default()
            };
            let roles = self.0.client.call(&request, WITHIN).await?.acl_roles;
            let links = roles.into_values().flat_map(|role| role.policies);
            names.extend(links.map(|link| link.name));
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let request = AclGetPolicies {
            allow_stale: true,
            auth_token: secret.expose().into(),
            names: names.into_iter().collect(),
            region: self.region(),
            ..AclGetPolicies::default()
        };
        let policies = self.0.client.call(&request, WITHIN).await?.policies;
        let policies = policies.into_iter().map(|(name, policy)| ServersPolicy {
            name: name.into(),
            index: policy.modify_index,
            rules: policy.rules.into(),
        });
        Ok(policies.collect())
    }
}

fn unresolved(error: &Error) -> Unresolved {
    let text = error.to_string();
    match error.server_error_kind() {
        Some(ServerErrorKind::PermissionDenied | ServerErrorKind::TokenNotFound) => {
            Unresolved::Unknown
        }
        Some(_) if REFUSALS.iter().any(|words| text.contains(words)) => Unresolved::Unknown,
        Some(_) | None => Unresolved::Unreachable(text),
    }
}
