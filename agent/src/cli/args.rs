//! What may be written on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs jobs on this machine, and asks the agent that does.
#[derive(Debug, Parser)]
#[command(name = "drover", disable_version_flag = true, max_term_width = 100)]
pub struct Cli {
    /// Where the agent is and what it is asked for.
    #[command(flatten)]
    pub connection: Connection,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command that talks to an agent.
#[derive(Clone, Debug, Default, Args)]
pub struct Connection {
    /// The agent's address [env: DROVER_ADDR, NOMAD_ADDR] [default: http://127.0.0.1:4646]
    #[arg(long, global = true, value_name = "URL")]
    pub address: Option<String>,
    /// The namespace [env: DROVER_NAMESPACE, NOMAD_NAMESPACE]
    #[arg(long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The region [env: DROVER_REGION, NOMAD_REGION]
    #[arg(long, global = true, value_name = "NAME")]
    pub region: Option<String>,
    /// The token to show [env: DROVER_TOKEN, NOMAD_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Use no colours [env: NO_COLOR, NOMAD_CLI_NO_COLOR]
    #[arg(long, global = true)]
    pub no_color: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent with one job in the foreground, until the job ends or Ctrl-C
    Up(UpArgs),
    /// Run an agent
    Agent(AgentArgs),
    /// Submit, look at and stop jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Look at allocations and act on them
    #[command(subcommand)]
    Alloc(AllocCommand),
    /// Look at this node
    #[command(subcommand)]
    Node(NodeCommand),
    /// Look at evaluations
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Look at roll-outs
    #[command(subcommand)]
    Deployment(DeploymentCommand),
    /// Act on the whole of what the agent keeps
    #[command(subcommand)]
    System(SystemCommand),
    /// For operators
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Show the version
    Version,
    /// Short for `job run`
    Run(RunArgs),
    /// Short for `job validate`
    Validate(ValidateArgs),
    /// Short for `job stop`
    Stop(StopArgs),
    /// Short for `job inspect`
    Inspect(InspectArgs),
    /// Show jobs, or the job or allocation with this id
    Status(JobStatusArgs),
    /// Short for `alloc logs`
    Logs(LogsArgs),
}

/// Commands of jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Submit a job and follow what becomes of it
    Run(RunArgs),
    /// Check a job file
    Validate(ValidateArgs),
    /// Show jobs, or one of them
    Status(JobStatusArgs),
    /// Show a job as the agent keeps it
    Inspect(InspectArgs),
    /// Stop a job
    Stop(StopArgs),
    /// Restart a job's tasks
    Restart(JobRestartArgs),
}

/// Commands of allocations.
#[derive(Debug, Subcommand)]
pub enum AllocCommand {
    /// Show an allocation
    Status(AllocStatusArgs),
    /// Show what a task writes
    Logs(LogsArgs),
    /// Stop an allocation; its job replaces it
    Stop(AllocStopArgs),
    /// Restart tasks
    Restart(AllocRestartArgs),
    /// Send a signal to tasks
    Signal(AllocSignalArgs),
}

/// Commands of nodes.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Show nodes, or one of them
    Status(NodeStatusArgs),
}

/// Commands of evaluations.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Show an evaluation
    Status(EvalStatusArgs),
}

/// Commands of roll-outs.
#[derive(Debug, Subcommand)]
pub enum DeploymentCommand {
    /// Show roll-outs, or one of them
    Status(DeploymentStatusArgs),
}

/// Commands of the whole.
#[derive(Debug, Subcommand)]
pub enum SystemCommand {
    /// Clean away what ended
    Gc,
}

/// Commands for operators.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    /// Ask the agent's API anything
    Api(ApiArgs),
}

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
    /// Where the HTTP API listens
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4646")]
    pub http: String,
    /// The node's name; the machine's unless given
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// The data centre
    #[arg(long, value_name = "NAME", default_value = "dc1")]
    pub dc: String,
    /// How much the agent tells: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
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
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show less
    #[arg(long)]
    pub short: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Not supported
    #[arg(short = 't', hide = true, value_name = "TEMPLATE")]
    pub template: Option<String>,
}

/// `job inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Which version of it; the latest unless given
    #[arg(long, value_name = "NUMBER")]
    pub version: Option<u64>,
    /// As JSON, which is always so
    #[arg(long, hide = true)]
    pub json: bool,
    /// Not supported
    #[arg(short = 't', hide = true, value_name = "TEMPLATE")]
    pub template: Option<String>,
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
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job restart`.
#[derive(Clone, Debug, Args)]
pub struct JobRestartArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// Only this task
    #[arg(long, value_name = "TASK")]
    pub task: Option<String>,
    /// Only these groups
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Also tasks that ended
    #[arg(long)]
    pub all_tasks: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

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

/// `node status`.
#[derive(Clone, Debug, Args)]
pub struct NodeStatusArgs {
    /// The node's id or the beginning of it
    pub node: Option<String>,
    /// The node of the agent that is asked
    #[arg(long = "self")]
    pub this: bool,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Not supported
    #[arg(short = 't', hide = true, value_name = "TEMPLATE")]
    pub template: Option<String>,
}

/// `eval status`.
#[derive(Clone, Debug, Args)]
pub struct EvalStatusArgs {
    /// The evaluation's id or the beginning of it
    pub eval: String,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
    /// Not supported
    #[arg(short = 't', hide = true, value_name = "TEMPLATE")]
    pub template: Option<String>,
}

/// `deployment status`.
#[derive(Clone, Debug, Args)]
pub struct DeploymentStatusArgs {
    /// The roll-out's id or the beginning of it
    pub deployment: Option<String>,
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
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
}
