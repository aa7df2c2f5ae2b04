//! Arguments of the commands of jobs.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use drover_core::text::parse_duration;

use super::{Secret, Shape, VariableArgs};

/// `job run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The job file; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is read.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// Return when the job is submitted
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
    /// Show the job as JSON instead of submitting it
    #[arg(long)]
    pub output: bool,
    /// The file is JSON of the API
    #[arg(long)]
    pub json: bool,
    /// Submit only if the job's modify index is still this one; 0 for a new job
    #[arg(long, value_name = "INDEX")]
    pub check_index: Option<u64>,
    /// Keep the number of copies that run now
    #[arg(long)]
    pub preserve_counts: bool,
    /// Keep the resources that tasks have now
    #[arg(long)]
    pub preserve_resources: bool,
    /// Accepted for Nomad's scripts; there are no policies to override
    #[arg(long, hide = true)]
    pub policy_override: bool,
}

/// `job import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// A compose file (.yml, .yaml), a unit (.service) or a quadlet (.container); with a .timer beside the latter two
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    pub files: Vec<PathBuf>,
    /// Write the job file here instead of to the standard output; replaces no file
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `job plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// The job file; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is read.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// Whether to show what differs from the job that is there
    #[arg(long, value_name = "BOOL", default_value = "true", action = clap::ArgAction::Set,
          num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub diff: bool,
    /// The file is JSON of the API
    #[arg(long)]
    pub json: bool,
    /// Show the answer as JSON
    #[arg(
        long = "json-output",
        alias = "output-json",
        conflicts_with = "template"
    )]
    pub json_output: bool,
    /// Show what this template of Go's makes of the answer, whose fields are those of `-json-output`
    #[arg(short = 't', value_name = "TEMPLATE", allow_hyphen_values = true)]
    pub template: Option<String>,
    /// Keep the number of copies that run now
    #[arg(long)]
    pub preserve_counts: bool,
    /// Accepted for Nomad's scripts; there are no policies to override
    #[arg(long, hide = true)]
    pub policy_override: bool,
    /// Show also what is inside of parts that are new or gone
    #[arg(long)]
    pub verbose: bool,
}

/// `job validate`.
#[derive(Clone, Debug, Args)]
pub struct ValidateArgs {
    /// The job file; `-` for the standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// How the file is read.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// The file is JSON of the API
    #[arg(long)]
    pub json: bool,
}

/// `job status`.
#[derive(Clone, Debug, Args)]
pub struct JobStatusArgs {
    /// The job's id or the beginning of it
    pub job: Option<String>,
    /// Show also allocations of an earlier job of this id
    #[arg(long)]
    pub all_allocs: bool,
    /// Show the job's evaluations
    #[arg(long)]
    pub evals: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show less
    #[arg(long)]
    pub short: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
}

/// `job inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Which version of it; the latest unless given
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u64>,
    /// Show the job file that the version was made from
    #[arg(long, conflicts_with_all = ["json", "template"])]
    pub hcl: bool,
    /// With -hcl: show also the variables that it was given
    #[arg(long, requires = "hcl")]
    pub with_vars: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `job stop`.
#[derive(Clone, Debug, Args)]
pub struct StopArgs {
    /// The jobs' ids or their beginnings
    #[arg(required = true)]
    pub jobs: Vec<String>,
    /// Return when the stop is asked for
    #[arg(long)]
    pub detach: bool,
    /// Forget the job as well
    #[arg(long)]
    pub purge: bool,
    /// Do not wait for the shutdown delays of its groups and tasks
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Accepted for Nomad's scripts; there is one region
    #[arg(long, hide = true)]
    pub global: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job dispatch`.
#[derive(Clone, Debug, Args)]
pub struct DispatchArgs {
    /// The parameterized job's id or the beginning of it
    pub job: String,
    /// The payload: a file of at most 16 KiB, or `-` for the standard input
    #[arg(value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// Meta of the job that is made; may be given more than once
    #[arg(long, value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Stands in the id of the job that is made
    #[arg(long, value_name = "TEXT")]
    pub id_prefix_template: Option<String>,
    /// A second dispatch with the same token makes no second job
    #[arg(long, value_name = "TOKEN")]
    pub idempotency_token: Option<String>,
    /// The priority of the job that is made
    #[arg(long, value_name = "NUMBER")]
    pub priority: Option<i64>,
    /// Wait until the job that is made is over
    #[arg(long, conflicts_with = "detach")]
    pub wait: bool,
    /// Return when the job is made
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job periodic force`.
#[derive(Clone, Debug, Args)]
pub struct PeriodicForceArgs {
    /// The periodic job's id or the beginning of it
    pub job: String,
    /// Return when the job is made
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job move`.
#[derive(Clone, Debug, Args)]
pub struct MoveArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// The other node's agent: `http://HOST:PORT` or `https://HOST:PORT`
    #[arg(long, value_name = "ADDRESS")]
    pub to: String,
    /// The token to show to the other node [env: DROVER_TO_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    pub to_token: Option<Secret>,
    /// Where the other node finds this one, if not at the address that is used here
    #[arg(long, value_name = "ADDRESS")]
    pub from_address: Option<String>,
    /// Return when the other node has the job
    #[arg(long)]
    pub detach: bool,
    /// Move the job back if it fails on the other node
    #[arg(long, conflicts_with = "detach")]
    pub rollback: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job restart`.
#[derive(Clone, Debug, Args)]
pub struct JobRestartArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Only these tasks
    #[arg(long, value_name = "TASK", conflicts_with_all = ["all_tasks", "reschedule"])]
    pub task: Vec<String>,
    /// Only these groups
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Also tasks that ended
    #[arg(long)]
    pub all_tasks: bool,
    /// How many allocations at once: a number, or a share of all such as 25%
    #[arg(long, value_name = "NUMBER|SHARE", default_value = "1")]
    pub batch_size: String,
    /// How long to wait between batches: a duration, or `ask` for being asked
    #[arg(long, value_name = "DURATION|ask", default_value = "0s", value_parser = batch_wait)]
    pub batch_wait: BatchWait,
    /// What to do when a batch fails: `ask`, or `fail` for ending; to ask where there is a terminal
    #[arg(long, value_name = "WHAT")]
    pub on_error: Option<OnError>,
    /// Stop the allocations, so that they are replaced, instead of restarting their tasks
    #[arg(long)]
    pub reschedule: bool,
    /// With -reschedule: do not wait for shutdown delays, which a restart never does
    #[arg(long)]
    pub no_shutdown_delay: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// What comes between two batches of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchWait {
    /// Somebody is asked.
    Ask,
    /// A pause.
    For(Duration),
}

/// What is done when a batch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum OnError {
    /// Somebody is asked.
    Ask,
    /// Nothing more is restarted.
    Fail,
}

fn batch_wait(text: &str) -> Result<BatchWait, String> {
    if text == "ask" {
        return Ok(BatchWait::Ask);
    }
    let span = parse_duration(text).map_err(|_| "expected a duration, such as 10s, or ask")?;
    let nanos = u64::try_from(span.0).map_err(|_| "no pause is negative")?;
    Ok(BatchWait::For(Duration::from_nanos(nanos)))
}

/// `action`.
#[derive(Clone, Debug, Args)]
pub struct ActionArgs {
    /// The name of the action
    pub name: String,
    /// The job that has it
    #[arg(long, value_name = "JOB")]
    pub job: String,
    /// The group; any unless given
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,
    /// The task; may be left out where only one has the action
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// The allocation; the newest that runs unless given
    #[arg(long = "alloc", alias = "allocation", value_name = "ALLOC")]
    pub allocation: Option<String>,
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

/// `job logs`.
#[derive(Clone, Debug, Args)]
pub struct JobLogsArgs {
    /// The job's id or the beginning of it
    pub id: String,
    /// Go on, also with copies that come
    #[arg(short = 'f')]
    pub follow: bool,
    /// Only what is written from now on
    #[arg(long)]
    pub now: bool,
    /// Only this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Only what tasks write to their standard output
    #[arg(long)]
    pub stdout: bool,
    /// Only what tasks write to their standard error output
    #[arg(long)]
    pub stderr: bool,
}

/// `job history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Show what each version changed
    #[arg(short = 'p')]
    pub diffs: bool,
    /// Show also what is inside of parts that are new or gone; with `-p`
    #[arg(long)]
    pub full: bool,
    /// Only this version
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u64>,
    /// Compare each version with this one
    #[arg(long, value_name = "NUMBER", conflicts_with = "diff_tag")]
    pub diff_version: Option<u64>,
    /// Compare each version with the one of this tag
    #[arg(long, value_name = "TAG")]
    pub diff_tag: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `job revert`.
#[derive(Clone, Debug, Args)]
pub struct RevertArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// The number of the version that comes back, or its tag
    pub version: String,
    /// Return when the version is submitted
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job tag`.
#[derive(Clone, Debug, Subcommand)]
pub enum TagCommand {
    /// Give a version a name; it is not dropped then
    Apply(TagApplyArgs),
    /// Take the name of a version away
    Unset(TagUnsetArgs),
}

/// `job tag apply`.
#[derive(Clone, Debug, Args)]
pub struct TagApplyArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// The name
    #[arg(long, value_name = "TAG")]
    pub name: String,
    /// Which version; the latest unless given
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u64>,
    /// What there is to say about it
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub description: String,
}

/// `job tag unset`.
#[derive(Clone, Debug, Args)]
pub struct TagUnsetArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// The name
    #[arg(long, value_name = "TAG")]
    pub name: String,
}

/// `job eval`.
#[derive(Clone, Debug, Args)]
pub struct JobEvalArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Replace allocations that failed now, whatever the policies of their groups say
    #[arg(long)]
    pub force_reschedule: bool,
    /// Do not follow what becomes of it
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job start`.
#[derive(Clone, Debug, Args)]
pub struct OfJobArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Do not follow what becomes of it
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job allocs` and `job deployments`.
#[derive(Clone, Debug, Args)]
pub struct ListOfJobArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Also those of an earlier job of this id
    #[arg(long)]
    pub all: bool,
    /// Only the latest one, with its groups
    #[arg(long)]
    pub latest: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
