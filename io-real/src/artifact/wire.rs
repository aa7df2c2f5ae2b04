//! What the agent and the process that fetches say to each other: one line of JSON from the agent,
//! then lines back, the last of which says how it ended.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::settings::Limits;
use super::source::Wanted;

/// The longest line in either direction, in bytes.
pub(super) const MAX_LINE: usize = 4 << 20;

/// Where in its directory the process that fetches leaves one file.
pub(super) const DOWNLOAD: &str = "download";
/// Where in its directory it leaves a tree.
pub(super) const TREE: &str = "tree";
/// Where in its directory a tool has its home.
pub(super) const HOME: &str = "home";

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    /// What to fetch.
    pub(super) wanted: Wanted,
    /// Headers for its server.
    pub(super) headers: BTreeMap<String, String>,
    /// Whether the server may be anybody.
    pub(super) insecure: bool,
    /// Whether it lies there already, and needs only to be looked at and unpacked.
    pub(super) there: bool,
    /// Bounds.
    pub(super) limits: Limits,
    /// As whom to work, if that is to change.
    pub(super) user: Option<(u32, u32)>,
    /// What of this machine may be read beside what any program needs.
    pub(super) readable: Vec<String>,
    /// Whether everything of this machine may be read.
    pub(super) whole_filesystem: bool,
}

/// What is said back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HelperAnswer {
    /// So many bytes are here.
    Fetched {
        /// Bytes.
        bytes: u64,
        /// Bytes in all, if that is known.
        total: Option<u64>,
    },
    /// It is done.
    Done {
        /// Bytes that were fetched.
        bytes: u64,
        /// Whether a tree was left, or one file.
        tree: bool,
    },
    /// It cannot be done.
    Failed {
        /// Why.
        why: String,
        /// Whether another try may help.
        again: bool,
    },
}
