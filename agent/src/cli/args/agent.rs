//! Arguments of the commands that are an agent.

use std::path::PathBuf;

use clap::Args;
use drover_rpc::msgpack::Secret;

/// How job files are read.
#[derive(Clone, Debug, Default, Args)]
pub struct VariableArgs {
    /// A value of a variable
    #[arg(long = "var", value_name = "NAME=VALUE")]
    pub vars: Vec<String>,
    /// A file of values of variables
    #[arg(long = "var-file", value_name = "FILE")]
    pub var_files: Vec<PathBuf>,
    /// Whether values of undeclared variables are errors; `false` makes them warnings
    #[arg(long = "hcl2-strict", value_name = "BOOL", default_value = "true", action = clap::ArgAction::Set)]
    pub strict: bool,
}

/// How an agent runs.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// Where the agent keeps its data
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// For trying things out: keep the data in a new directory, and stop all tasks and remove it at the end
    #[arg(long, conflicts_with_all = ["data_dir", "servers", "accept_state_loss"])]
    pub dev: bool,
    /// Where the HTTP API listens; 127.0.0.1:4646 unless given here or in the configuration
    #[arg(long, value_name = "ADDR:PORT")]
    pub http: Option<String>,
    /// The node's name; the machine's unless given
    #[arg(long, alias = "node", value_name = "NAME")]
    pub node_name: Option<String>,
    /// The data centre; dc1 unless given here or in the configuration
    #[arg(long, value_name = "NAME")]
    pub dc: Option<String>,
    /// Servers of a Nomad cluster whose client node the agent is, as HOST:PORT; on its own if none
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',')]
    pub servers: Vec<String>,
    /// What introduces the node to servers that do not know it. Whoever lists processes sees it: a variable or the
    /// file intro_token.jwt in the data directory keeps it from them [env: NOMAD_CLIENT_INTRO_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub client_intro_token: Option<Secret>,
    /// What the flight recorder may take of the disk, such as 512K or 1G; 0 records nothing
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = bytes)]
    pub recording_size: u64,
    /// Where the flight recorder writes; in the data directory unless given
    #[arg(long, value_name = "DIR")]
    pub recording_dir: Option<PathBuf>,
    /// Go on though the state is damaged or older than the data directory; tasks that it does not
    /// know are left running
    #[arg(long)]
    pub accept_state_loss: bool,
    /// The agent's configuration file: its node, plugins and devices
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where plugins are; in the data directory unless given
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Option<PathBuf>,
    /// How much the agent logs: error, warn, info, debug or trace; info unless given
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// Whether it logs in JSON
    #[arg(long)]
    pub log_json: bool,
}

/// `drover up`.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// The job file; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is read.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// How the agent runs.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// A number of bytes: `4096`, `512K`, `16M`, `1G`.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let unit = match text.strip_prefix(digits) {
        Some("") => 1,
        Some("K") => 1 << 10,
        Some("M") => 1 << 20,
        Some("G") => 1 << 30,
        _ => 0,
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|_| unit > 0)
        .ok_or_else(|| "expected a number followed by K, M or G, such as 16M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn size_with_unit_is_parsed() {
        let sizes = ["0", "4096", "512K", "16M", "2G"].map(bytes);
        let expected = [0, 4096, 512 << 10, 16 << 20, 2 << 30].map(Ok);
        assert_eq!(sizes, expected);
        for bad in ["", "K", "-1", "1MM", "1T", "99999999999G", "1 M"] {
            assert!(bytes(bad).is_err(), "{bad:?}");
        }
    }
}
