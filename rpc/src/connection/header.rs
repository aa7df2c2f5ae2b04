//! The headers of calls and replies.

use serde::{Deserialize, Serialize};

/// Precedes the body of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct CallHeader {
    pub(super) seq: u64,
    pub(super) service_method: String,
}

/// Precedes the body of a reply. With an error, the body is an empty map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct ReplyHeader {
    pub(super) error: String,
    pub(super) seq: u64,
    pub(super) service_method: String,
}
