//! Jobs that are a parameterized job for others: what a dispatch must and may bring, and a dispatch itself.
//!
//! A parameterized job runs nothing. Each dispatch makes a job of it, its *child*, which bears the
//! payload and the meta of that dispatch and is a job as any other otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The most bytes of a payload, before it is encoded.
pub const MAX_PAYLOAD: usize = 16 * 1024;
/// The most bytes of the meta of one dispatch, keys and values.
pub const MAX_META: usize = 64 * 1024;
/// The longest prefix for the ids of children, in bytes.
pub const MAX_PREFIX: usize = 64;
/// The longest token by which a dispatch is known again, in bytes.
pub const MAX_TOKEN: usize = 256;

/// What the dispatches of a job must and may bring.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ParameterizedJob {
    /// Whether they bring a payload.
    pub payload: PayloadRule,
    /// Keys of meta that each of them brings.
    pub meta_required: Vec<String>,
    /// Keys of meta that they may bring.
    pub meta_optional: Vec<String>,
}

/// Whether a dispatch brings a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadRule {
    /// It may.
    #[default]
    #[serde(alias = "")]
    Optional,
    /// It must.
    Required,
    /// It must not.
    Forbidden,
}

impl PayloadRule {
    /// The name in job files.
    pub fn as_str(self) -> &'static str {
        match self {
            PayloadRule::Optional => "optional",
            PayloadRule::Required => "required",
            PayloadRule::Forbidden => "forbidden",
        }
    }
}

/// Where a task finds the payload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DispatchPayload {
    /// A file below the task's `local`.
    pub file: String,
}

/// One dispatch of a parameterized job. Whoever asks kept the bounds of this module: the core
/// never weighs what is somebody else's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dispatch {
    /// The payload in base64; empty for none.
    pub payload: Arc<str>,
    /// Meta of the child, besides its parent's.
    pub meta: BTreeMap<String, String>,
    /// Stands in the child's id, unless it is empty.
    pub prefix: String,
    /// The child's priority; its parent's if none.
    pub priority: Option<i64>,
    /// A second dispatch with the same one is the first; empty for none.
    pub token: String,
    /// Chance, for the child's id.
    pub tag: u32,
}

/// Why a dispatch does not fit a job: in Nomad's words where it has some.
///
/// # Errors
/// It brings what it must not, or not what it must.
pub fn fits(rules: &ParameterizedJob, asked: &Dispatch) -> Result<(), String> {
    match (rules.payload, asked.payload.is_empty()) {
        (PayloadRule::Required, true) => return Err("the job requires a payload".to_owned()),
        (PayloadRule::Forbidden, false) => {
            return Err("the job does not accept a payload".to_owned());
        }
        (PayloadRule::Optional, _)
        | (PayloadRule::Required, false)
        | (PayloadRule::Forbidden, true) => {}
    }
    let known =
        |key: &&String| rules.meta_required.contains(key) || rules.meta_optional.contains(key);
    let strange: Vec<&str> = (asked.meta.keys())
        .filter(|key| !known(key))
        .map(String::as_str)
        .collect();
    if !strange.is_empty() {
        let strange = strange.join(" ");
        return Err(format!(
            "Dispatch request included unpermitted metadata keys: [{strange}]"
        ));
    }
    let missing: Vec<&str> = (rules.meta_required.iter())
        .filter(|key| !asked.meta.contains_key(*key))
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    Err(format!(
        "Dispatch did not provide required meta keys: [{missing}]"
    ))
}

/// Between the id of a parameterized job and what tells its children apart.
const MARK: &str = "/dispatch-";

/// How the ids of a job's children begin.
pub fn children_of(parent: &str) -> String {
    format!("{parent}{MARK}")
}

/// The id of a child that is made at this second.
pub fn child_id(parent: &str, prefix: &str, unix: i64, tag: u32) -> String {
    let dash = if prefix.is_empty() { "" } else { "-" };
    format!("{parent}{MARK}{prefix}{dash}{unix}-{tag:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(payload: PayloadRule) -> ParameterizedJob {
        ParameterizedJob {
            payload,
            meta_required: vec!["who".to_owned(), "what".to_owned()],
            meta_optional: vec!["why".to_owned()],
        }
    }

    fn asked(payload: &str, keys: &[&str]) -> Dispatch {
        let pair = |key: &&str| ((*key).to_owned(), String::new());
        Dispatch {
            payload: payload.into(),
            meta: keys.iter().map(pair).collect(),
            ..Dispatch::default()
        }
    }

    #[test]
    fn dispatch_requires_exactly_declared_meta() {
        let all = ["who", "what"];
        let free = rules(PayloadRule::Optional);
        assert_eq!(fits(&free, &asked("", &all)), Ok(()));
        assert_eq!(fits(&free, &asked("YQ==", &["who", "what", "why"])), Ok(()));
        let why = fits(&free, &asked("", &["what", "zz", "yy"])).err();
        assert_eq!(
            why.as_deref(),
            Some("Dispatch request included unpermitted metadata keys: [yy zz]")
        );
        let why = fits(&free, &asked("", &["what"])).err();
        assert_eq!(
            why.as_deref(),
            Some("Dispatch did not provide required meta keys: [who]")
        );
        for (rule, payload, fine) in [
            (PayloadRule::Required, "YQ==", true),
            (PayloadRule::Required, "", false),
            (PayloadRule::Forbidden, "", true),
            (PayloadRule::Forbidden, "YQ==", false),
        ] {
            let found = fits(&rules(rule), &asked(payload, &all));
            assert_eq!(found.is_ok(), fine, "{rule:?} {payload:?}");
        }
    }

    #[test]
    fn dispatched_job_id_has_parent_and_time() {
        assert_eq!(child_id("a/b", "", 17, 10), "a/b/dispatch-17-0000000a");
        assert_eq!(child_id("a", "eu", 17, 10), "a/dispatch-eu-17-0000000a");
        assert!(child_id("a", "eu", 17, 10).starts_with(&children_of("a")));
    }
}
