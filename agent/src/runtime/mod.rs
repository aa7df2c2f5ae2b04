//! What owns the core: an agent is put together here, and ends here.

mod cluster;
mod commands;
mod core_config;
mod isolation;
mod log;
mod output;
mod scratch;
mod setup;
mod terminal;
mod up;

use std::path::PathBuf;

use drover_rpc::msgpack::Secret;

use crate::config::FileConfig;
use crate::tls::Tls;

pub use commands::{agent, up};
pub use setup::{Running, SetupError, start};

/// What the operator says of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The agent's own directory.
    pub data_dir: PathBuf,
    /// The node's name; the host's if none.
    pub node_name: Option<String>,
    /// The node's data centre.
    pub datacenter: String,
    /// Where the HTTP API listens, as others reach it.
    pub http_addr: String,
    /// What the flight recorder may take.
    pub recording: Recording,
    /// Whether to go on with a state that is older than its data directory.
    pub accept_state_loss: bool,
    /// Where the service manager put credentials, if it did.
    pub credentials: Option<PathBuf>,
    /// What introduces the node to servers; empty for none, or what is elsewhere.
    pub introduction: Secret,
    /// What is encrypted, with what.
    pub tls: Tls,
    /// What the configuration file says.
    pub file: FileConfig,
}

/// What the flight recorder may take of the disk, and where.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Bytes; 0 for no recording.
    pub size: u64,
    /// Where; in the agent's own directory if none.
    pub dir: Option<PathBuf>,
}

/// Prepares what the agent writes about itself, at this level (`info` and so on), in JSON or for
/// people.
pub fn init_log(level: &str, json: bool) {
    log::init(level, json);
}

/// Waits a moment until what was logged is written.
fn flush_log() {
    log::flush();
}
