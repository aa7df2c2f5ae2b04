//! What a token says, and its form: a JSON Web Token, signed.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use drover_core::ids::{NodeId, TaskKey};
use drover_core::time::Timestamp;
use drover_core::work::{IdentityWork, Issuing};
use serde::Serialize;
use serde_json::json;

use super::Key;
use crate::facts;

/// For whom tokens are that are for nobody in particular.
const AUDIENCE: &str = "nomadproject.io";

/// The claims of a token; their names are Nomad's. Times are seconds.
#[derive(Debug, Serialize)]
pub(super) struct Claims<'a> {
    aud: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exp: Option<i64>,
    iat: i64,
    jti: String,
    nbf: i64,
    nomad_allocation_id: String,
    nomad_job_id: &'a str,
    nomad_namespace: &'a str,
    nomad_task: &'a str,
    sub: String,
}

impl<'a> Claims<'a> {
    /// What a token for an identity of this task says.
    pub(super) fn new(
        key: &'a TaskKey,
        asked: &'a Issuing,
        of: &'a IdentityWork,
        now: Timestamp,
    ) -> Claims<'a> {
        let iat = now.0.div_euclid(SECOND);
        let task = key.task.as_str();
        let sub = [
            &asked.region,
            &asked.namespace,
            &asked.job,
            &asked.group,
            task,
            &of.name,
        ];
        let aud: Vec<&str> = of.audience.iter().map(String::as_str).collect();
        Claims {
            aud: if aud.is_empty() { vec![AUDIENCE] } else { aud },
            exp: (of.ttl.0 > 0).then(|| iat.saturating_add(of.ttl.0 / SECOND)),
            iat,
            jti: NodeId(facts::random()).to_string(),
            nbf: iat,
            nomad_allocation_id: key.alloc.to_string(),
            nomad_job_id: &asked.job,
            nomad_namespace: &asked.namespace,
            nomad_task: task,
            sub: sub.join(":"),
        }
    }
}

const SECOND: i64 = 1_000_000_000;

/// The token.
pub(super) fn signed(key: &Key, claims: &Claims<'_>) -> String {
    let header = json!({ "alg": "EdDSA", "kid": key.name(), "typ": "JWT" });
    let part = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
    // Texts and numbers alone can always be written.
    let claims = serde_json::to_string(claims).unwrap_or_default();
    let reported = format!("{}.{}", part(header.to_string()), part(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(key.sign(reported.as_bytes()));
    format!("{reported}.{signature}")
}
