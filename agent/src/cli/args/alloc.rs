//! Arguments of the commands of allocations.

use clap::Args;

use super::Shape;

/// `alloc status`.
#[derive(Clone, Debug, Args)]
pub struct AllocStatusArgs {
    /// The allocation's id or the beginning of it
    pub alloc: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show less
    #[arg(long)]
    pub short: bool,
    /// Show what its tasks use
    #[arg(long)]
    pub stats: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
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
    /// With -job: only allocations of this group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
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
    /// Do not wait for the shutdown delays of the group and its tasks
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `alloc checks`.
#[derive(Clone, Debug, Args)]
pub struct AllocChecksArgs {
    /// The allocation's id or the beginning of it
    pub alloc: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
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

/// `alloc exec`.
#[derive(Clone, Debug, Args)]
pub struct ExecArgs {
    /// The allocation's id or the beginning of it; with `-job`, a job's
    pub id: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<String>,
    /// The task; may be left out where there is only one
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// The id is a job's; one of its allocations that runs is chosen
    #[arg(long)]
    pub job: bool,
    /// With -job: only allocations of this group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
    /// Pass standard input on; `-i=false` does not
    #[arg(short = 'i', num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub input: Option<bool>,
    /// Give the program a terminal; unless told otherwise it gets one where this is one
    #[arg(short = 't', num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub tty: Option<bool>,
    /// What ends the session when it is typed before `.` at the beginning of a line; `none` for nothing
    #[arg(short = 'e', value_name = "CHARACTER", default_value = "~")]
    pub escape: String,
}

/// `alloc fs`.
#[derive(Clone, Debug, Args)]
pub struct FsArgs {
    /// The allocation's id or the beginning of it; with `-job`, a job's
    pub id: String,
    /// The file or directory, from the allocation's directory on
    pub path: Option<String>,
    /// The id is a job's; one of its allocations that runs is chosen
    #[arg(long)]
    pub job: bool,
    /// With -job: only allocations of this group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
    /// Show what it is, and not what is in it
    #[arg(long)]
    pub stat: bool,
    /// Show sizes in bytes
    #[arg(short = 'H')]
    pub machine: bool,
    /// Go on with what is added to the file
    #[arg(short = 'f')]
    pub follow: bool,
    /// Show the end only
    #[arg(long)]
    pub tail: bool,
    /// How many lines the end has, about
    #[arg(short = 'n', value_name = "LINES")]
    pub lines: Option<u64>,
    /// How many bytes the end has
    #[arg(short = 'c', value_name = "BYTES")]
    pub bytes: Option<u64>,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `alloc port-forward`.
#[derive(Clone, Debug, Args)]
pub struct PortForwardArgs {
    /// The allocation's id or the beginning of it; with `-job`, a job's
    pub id: String,
    /// Each port, as `[LOCAL:]PORT`: the label or number of a port of the allocation
    #[arg(required = true, value_name = "PORT")]
    pub ports: Vec<String>,
    /// The address to listen at here
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind: String,
    /// The id is a job's; one of its allocations that runs is chosen
    #[arg(long)]
    pub job: bool,
    /// With -job: only allocations of this group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
}

/// `alloc cp`.
#[derive(Clone, Debug, Args)]
pub struct CpArgs {
    /// What is copied: a file or directory here, or one in an allocation as `ALLOC:PATH`
    pub from: String,
    /// Where it goes, in the same way
    pub to: String,
    /// The id is a job's; one of its allocations that runs is chosen
    #[arg(long)]
    pub job: bool,
    /// With -job: only allocations of this group
    #[arg(long, value_name = "GROUP", requires = "job")]
    pub group: Option<String>,
}
