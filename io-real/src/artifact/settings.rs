//! What the operator says of artifacts: bounds, and what may be read of this machine.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The block `artifact` of the agent's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bounds of one artifact.
    pub limits: Limits,
    /// Whether every file of this machine may be an artifact, if the user nobody may read it.
    pub whole_filesystem: bool,
    /// Files and directories of this machine that may be artifacts.
    pub extra_paths: Vec<PathBuf>,
    /// Variables of the agent's environment that whoever fetches has too, such as proxies.
    pub variables: Vec<String>,
    /// How many are fetched at a time on this node.
    pub parallel: usize,
    /// How many bytes are kept of what was fetched, for whoever wants the same; 0 for none.
    pub cache: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            limits: Limits::default(),
            whole_filesystem: false,
            extra_paths: Vec::new(),
            variables: Vec::new(),
            parallel: 32,
            cache: 1_000_000_000,
        }
    }
}

/// Bounds of one artifact. Zero is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long a download may take.
    pub http_time: Duration,
    /// How many bytes it may have.
    pub http_bytes: u64,
    /// How long git may take.
    pub git_time: Duration,
    /// How long an object of S3 may take.
    pub s3_time: Duration,
    /// How many bytes an archive may become.
    pub unpacked_bytes: u64,
    /// How many entries an archive may have.
    pub unpacked_files: u64,
    /// How many times larger than itself an archive may become. Up to 64 MiB nobody asks.
    pub unpacked_ratio: u64,
}

impl Default for Limits {
    /// As in Nomad, but for the ratio, which Nomad does not look at.
    fn default() -> Limits {
        let half_an_hour = Duration::from_secs(30 * 60);
        Limits {
            http_time: half_an_hour,
            http_bytes: 100_000_000_000,
            git_time: half_an_hour,
            s3_time: half_an_hour,
            unpacked_bytes: 100_000_000_000,
            unpacked_files: 4_096,
            unpacked_ratio: 250,
        }
    }
}
