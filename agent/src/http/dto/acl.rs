//! Policies and tokens of the API.

use std::collections::BTreeSet;
use std::sync::Arc;

use drover_core::model::acl::{AclPolicy, AclToken, TokenType};
use drover_core::store::acl::{AclPolicyRecord, AclTokenRecord};
use drover_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::hash;
use crate::acl::ready::Ready;
use crate::times;

/// A policy, as it is listed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AclPolicyStub {
    pub name: String,
    pub description: String,
    /// Of everything that can be said of it, in base64.
    pub hash: Option<String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// A policy, as it is shown and as it is handed in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AclPolicyDto {
    #[serde(flatten)]
    pub stub: AclPolicyStub,
    pub rules: String,
    /// What policies of tasks are; there are none here.
    #[serde(rename = "JobACL")]
    pub job_acl: Option<Value>,
}

/// A token, as it is listed: without its secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct AclTokenStub {
    #[serde(rename = "AccessorID")]
    pub accessor_id: String,
    pub name: String,
    #[serde(rename = "Type")]
    pub token_type: String,
    pub policies: Option<Vec<String>>,
    pub roles: Option<Vec<Value>>,
    pub global: bool,
    /// Of everything that can be said of it, in base64.
    pub hash: Option<String>,
    pub create_time: String,
    pub expiration_time: Option<String>,
    pub create_index: u64,
    pub modify_index: u64,
}

/// A token, as it is shown and as it is handed in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AclTokenDto {
    /// All but its secret.
    #[serde(flatten)]
    pub stub: AclTokenStub,
    /// Its secret, where it is known: in the answer that it was made by.
    #[serde(rename = "SecretID")]
    pub secret_id: String,
    /// For how long it is to last, as it is handed in: a text such as `1h`, or nanoseconds.
    #[serde(rename = "ExpirationTTL")]
    pub expiration_ttl: Value,
}

impl AclPolicyStub {
    fn of(policy: &AclPolicy, create_index: u64, modify_index: u64) -> AclPolicyStub {
        AclPolicyStub {
            name: policy.name.to_string(),
            description: policy.description.clone(),
            hash: Some(hash(policy)),
            create_index,
            modify_index,
        }
    }
}

impl AclPolicyDto {
    /// What is remembered of it.
    pub fn of(record: &AclPolicyRecord) -> AclPolicyDto {
        let policy = &record.policy;
        AclPolicyDto {
            stub: AclPolicyStub::of(policy, record.create_index, record.modify_index),
            rules: policy.rules.to_string(),
            job_acl: None,
        }
    }

    /// One that is there from the start.
    pub fn ready(ready: &Ready) -> AclPolicyDto {
        let policy = AclPolicy {
            name: ready.name.into(),
            description: ready.description.to_owned(),
            rules: ready.rules.into(),
        };
        AclPolicyDto {
            stub: AclPolicyStub::of(&policy, 1, 1),
            rules: ready.rules.to_owned(),
            job_acl: None,
        }
    }

    /// What somebody asks for.
    ///
    /// # Errors
    /// It has what there is not here, or is too large.
    pub fn asked(self) -> Result<AclPolicy, String> {
        if self.job_acl.is_some_and(|value| !value.is_null()) {
            return Err("JobACL: policies of tasks are not supported by this version".to_owned());
        }
        let policy = AclPolicy {
            name: self.stub.name.into(),
            description: self.stub.description,
            rules: self.rules.into(),
        };
        policy.check_sizes()?;
        Ok(policy)
    }
}

impl AclTokenStub {
    /// What is remembered of it.
    pub fn of(record: &AclTokenRecord) -> AclTokenStub {
        let token = &record.token;
        let policies = token.policies.iter().map(|name| name.to_string());
        AclTokenStub {
            accessor_id: token.accessor.to_string(),
            name: token.name.clone(),
            token_type: token.token_type.as_str().to_owned(),
            policies: (!token.policies.is_empty()).then(|| policies.collect()),
            roles: None,
            global: false,
            hash: Some(hash(token)),
            create_time: times::to_nanos(token.create_time),
            expiration_time: token.expires.map(times::to_nanos),
            create_index: record.create_index,
            modify_index: record.modify_index,
        }
    }
}

impl AclTokenDto {
    /// What is remembered of it.
    pub fn of(record: &AclTokenRecord, secret: String) -> AclTokenDto {
        AclTokenDto {
            stub: AclTokenStub::of(record),
            secret_id: secret,
            expiration_ttl: Value::from(""),
        }
    }

    /// What those have who need no token, or have none.
    pub fn without_secret(
        accessor: &str,
        name: &str,
        token_type: &str,
        policies: &[&str],
    ) -> AclTokenDto {
        let names = policies.iter().map(|name| (*name).to_owned());
        AclTokenDto {
            stub: AclTokenStub {
                accessor_id: accessor.to_owned(),
                name: name.to_owned(),
                token_type: token_type.to_owned(),
                policies: (!policies.is_empty()).then(|| names.collect()),
                create_time: "0001-01-01T00:00:00Z".to_owned(),
                ..AclTokenStub::default()
            },
            secret_id: String::new(),
            expiration_ttl: Value::from(""),
        }
    }

    /// What somebody asks for, less its names and its time.
    ///
    /// # Errors
    /// It has what there is not here, or is too large.
    pub fn asked(&self) -> Result<AclToken, String> {
        if self
            .stub
            .roles
            .as_ref()
            .is_some_and(|roles| !roles.is_empty())
        {
            return Err(NO_ROLES.to_owned());
        }
        let policies = self.stub.policies.iter().flatten();
        let policies: BTreeSet<Arc<str>> = policies.map(|name| name.as_str().into()).collect();
        let token = AclToken {
            name: self.stub.name.clone(),
            token_type: match self.stub.token_type.as_str() {
                "client" => TokenType::Client,
                "management" => TokenType::Management,
                _ => return Err("token type must be client or management".to_owned()),
            },
            policies,
            ..AclToken::default()
        };
        token.check_sizes()?;
        Ok(token)
    }

    /// When it is to expire, if it made now and is to; after how many nanoseconds.
    ///
    /// # Errors
    /// The time makes no sense.
    pub fn expires(&self, now: Timestamp) -> Result<Option<Timestamp>, String> {
        if let Some(text) = self.stub.expiration_time.as_deref() {
            let at =
                times::parse(text).ok_or("ExpirationTime is no time, such as 2026-11-21T04:43:14Z");
            return at.map(Some).map_err(str::to_owned);
        }
        let span = match &self.expiration_ttl {
            Value::Null => 0,
            Value::String(text) if text.is_empty() => 0,
            Value::String(text) => {
                drover_core::text::parse_duration(text)
                    .map_err(|why| format!("ExpirationTTL: {why}"))?
                    .0
            }
            Value::Number(number) => number
                .as_i64()
                .ok_or("ExpirationTTL is too large: it is in nanoseconds")?,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Err("ExpirationTTL is a duration, such as \"1h\"".to_owned());
            }
        };
        match span {
            0 => Ok(None),
            span if span < 0 => Err("ExpirationTTL is below 0".to_owned()),
            span => Ok(Some(Timestamp(now.0.saturating_add(span)))),
        }
    }
}

/// Why a token has no roles.
pub const NO_ROLES: &str =
    "roles are not supported by this version: give the token the policies themselves";
