//! Arguments of `operator`.

use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand};

use super::{RootCommand, Shape};

/// Commands for operators.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Ask the agent's API anything
    Api(ApiArgs),
    /// Show the agent's metrics
    Metrics(MetricsArgs),
    /// How jobs are taken in and placed
    #[command(subcommand)]
    Scheduler(SchedulerCommand),
    /// Capture what the agent knows and does, as an archive for whoever helps
    Debug(DebugArgs),
    /// Save the agent's state as one file, and restore it
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// The keys with which variables are encrypted
    #[command(subcommand)]
    Root(RootCommand),
}

/// `operator metrics`.
#[derive(Clone, Debug, Args)]
pub struct MetricsArgs {
    /// `prometheus` for Prometheus' text
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "template"])]
    pub format: Option<String>,
    /// Accepted for Nomad's scripts; JSON is always easy to read
    #[arg(long, hide = true)]
    pub pretty: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `operator api`.
#[derive(Clone, Debug, Args)]
pub struct ApiArgs {
    /// The path and query, such as `/v1/jobs?prefix=web`
    pub path: String,
    /// The method; GET unless a body is given
    #[arg(short = 'X', value_name = "METHOD")]
    pub method: Option<String>,
    /// The body; `-` for the standard input
    #[arg(short = 'd', value_name = "BODY")]
    pub body: Option<String>,
    /// A header of the request; may be given more than once
    #[arg(short = 'H', value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// Only those of a list for which this expression holds
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// Show the command of curl(1) that does the same, and ask nothing
    #[arg(long)]
    pub dryrun: bool,
    /// Show also the request and the head of the answer, on the standard error output
    #[arg(long)]
    pub verbose: bool,
}

/// How jobs are taken in and placed.
#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    /// Show the settings
    GetConfig(SchedulerGetArgs),
    /// Change settings; those that are not given stay as they are
    SetConfig(SchedulerSetArgs),
}

/// `operator scheduler get-config`.
#[derive(Clone, Debug, Args)]
pub struct SchedulerGetArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `operator scheduler set-config`.
#[derive(Clone, Debug, Args)]
pub struct SchedulerSetArgs {
    /// Change them only if their index is this one; the one that they have when the command begins
    /// unless given
    #[arg(long, value_name = "INDEX")]
    pub check_index: Option<u64>,
    /// `binpack` or `spread`, which are the same on one node
    #[arg(long, value_name = "NAME")]
    pub scheduler_algorithm: Option<String>,
    /// Whether `memory_max` bounds the memory of tasks that start from now on
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub memory_oversubscription: Option<bool>,
    /// Whether no job is registered, changed, scaled or dispatched
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub reject_job_registration: Option<bool>,
    /// Not supported here
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, hide = true)]
    pub pause_eval_broker: Option<bool>,
    /// Not supported here
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub node_limit_for_feasibility_checks: Option<i64>,
    /// Whether system jobs may preempt jobs of lower priority
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub preempt_system_scheduler: Option<bool>,
    /// Whether services may
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub preempt_service_scheduler: Option<bool>,
    /// Whether batch jobs may
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub preempt_batch_scheduler: Option<bool>,
    /// Whether jobs of type sysbatch may
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub preempt_sysbatch_scheduler: Option<bool>,
}

/// The state as one file.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// Save the state of the agent
    Save(SnapshotSaveArgs),
    /// Put a saved state in the place of the agent's, from its next start on
    Restore(SnapshotRestoreArgs),
    /// Show what is in a file, and whether it is whole
    Inspect(SnapshotInspectArgs),
    /// Show what the records of a file say, for who has the root key
    State(SnapshotStateArgs),
}

/// `operator snapshot save`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotSaveArgs {
    /// The new file
    pub file: PathBuf,
    /// Accepted for Nomad's scripts: there is one server, which is never behind
    #[arg(long, hide = true)]
    pub stale: bool,
}

/// `operator snapshot restore`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotRestoreArgs {
    /// The file
    pub file: PathBuf,
    /// Also where there is a state already, which is kept beside the new one
    #[arg(long)]
    pub force: bool,
    /// The data directory of an agent that does not run
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// `operator snapshot inspect`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotInspectArgs {
    /// The file
    pub file: PathBuf,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `operator snapshot state`.
#[derive(Clone, Debug, Args)]
pub struct SnapshotStateArgs {
    /// The file
    pub file: PathBuf,
    /// The file with the root key with which the snapshot was made
    #[arg(long, value_name = "FILE")]
    pub root_key_file: Option<PathBuf>,
    /// The data directory in which the root key is, unless it is elsewhere
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Show what this template of Go's makes of the records
    #[arg(short = 't', value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub template: Option<String>,
}

/// `operator debug`.
#[derive(Clone, Debug, Args)]
pub struct DebugArgs {
    /// For how long
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub duration: String,
    /// How often the agent is asked meanwhile
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub interval: String,
    /// Lines of the agent's log of this level and above
    #[arg(long, value_name = "LEVEL", default_value = "debug")]
    pub log_level: String,
    /// Where a directory is made, instead of an archive in the current one
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
