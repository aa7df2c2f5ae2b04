//! Arguments of the commands of allocations.

use clap::Args;

/// `alloc status`.
#[derive(Clone, Debug, Args)]
pub struct AllocStatusArgs {
    /// The allocation's id or the beginning of it
    pub alloc: Option<String>,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show less
    #[arg(long)]
    pub short: bool,
    /// Show what its tasks use
    #[arg(long)]
    pub stats: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Not supported
    #[arg(short = 't', hide = true, value_name = "TEMPLATE")]
    pub template: Option<String>,
}

/// `alloc logs`.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// The allocation's id or the beginning of it; with `-job`, a job's
    pub id: String,
    /// The task; may be left out where there is only one
    pub task: Option<String>,
    /// Only what the task writes to its standard output
    #[arg(long)]
    pub stdout: bool,
    /// Only what the task writes to its standard error output
    #[arg(long)]
    pub stderr: bool,
    /// Go on until the task ends
    #[arg(short = 'f')]
    pub follow: bool,
    /// Show the end only
    #[arg(long)]
    pub tail: bool,
    /// How many lines the end has
    #[arg(short = 'n', value_name = "LINES")]
    pub lines: Option<u64>,
    /// How many bytes the end has
    #[arg(short = 'c', value_name = "BYTES")]
    pub bytes: Option<u64>,
    /// The id is a job's
    #[arg(long)]
    pub job: bool,
    /// The task
    #[arg(long = "task", value_name = "TASK")]
    pub task_name: Option<String>,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `alloc stop`.
#[derive(Clone, Debug, Args)]
pub struct AllocStopArgs {
    /// The allocation's id or the beginning of it
    pub alloc: String,
    /// Return when the stop is asked for
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `alloc gc`.
#[derive(Clone, Debug, Args)]
pub struct AllocGcArgs {
    /// The allocation's id or the beginning of it
    pub alloc: String,
}

/// `alloc restart`.
#[derive(Clone, Debug, Args)]
pub struct AllocRestartArgs {
    /// The allocation's id or the beginning of it
    pub alloc: String,
    /// The task; those that run unless given
    pub task: Option<String>,
    /// The task; those that run unless given
    #[arg(long = "task", value_name = "TASK")]
    pub task_name: Option<String>,
    /// Also tasks that ended
    #[arg(long)]
    pub all_tasks: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `alloc signal`.
#[derive(Clone, Debug, Args)]
pub struct AllocSignalArgs {
    /// The allocation's id or the beginning of it
    pub alloc: String,
    /// The task; those that run unless given
    pub task: Option<String>,
    /// The task; those that run unless given
    #[arg(long = "task", value_name = "TASK")]
    pub task_name: Option<String>,
    /// The signal
    #[arg(short = 's', value_name = "SIGNAL", default_value = "SIGKILL")]
    pub signal: String,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
