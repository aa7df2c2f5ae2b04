//! What may be written on the command line.

mod acl;
mod agent;
mod alloc;
mod deployment;
mod eval;
mod files;
mod job;
mod keyring;
mod namespace;
mod node;
mod operator;
mod rehearse;
mod replay;
mod scaling;
mod service;
mod var;
mod volume;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::screen::Colour;
use super::token::Secret;

pub use acl::{
    AclBootstrapArgs, AclCommand, AclPolicyApplyArgs, AclPolicyArgs, AclPolicyCommand,
    AclPolicyListArgs, AclTokenArgs, AclTokenCommand, AclTokenCreateArgs, AclTokenListArgs,
    AclTokenUpdateArgs, TokenKind,
};
pub use agent::{AgentArgs, UpArgs, VariableArgs};
pub use alloc::{
    AllocChecksArgs, AllocGcArgs, AllocRestartArgs, AllocSignalArgs, AllocStatusArgs,
    AllocStopArgs, CpArgs, ExecArgs, FsArgs, LogsArgs, PortForwardArgs,
};
pub use deployment::{
    ChangeDeploymentArgs, DeploymentCommand, DeploymentListArgs, DeploymentStatusArgs, PromoteArgs,
};
pub use eval::{EvalCommand, EvalListArgs, EvalStatusArgs};
pub use files::{ConfigCommand, ConfigValidateArgs, FmtArgs, JobInitArgs};
pub use job::{
    ActionArgs, BatchWait, DispatchArgs, HistoryArgs, ImportArgs, InspectArgs, JobEvalArgs,
    JobLogsArgs, JobRestartArgs, JobStatusArgs, ListOfJobArgs, MoveArgs, OfJobArgs, OnError,
    PeriodicForceArgs, PlanArgs, RevertArgs, RunArgs, StopArgs, TagApplyArgs, TagCommand,
    TagUnsetArgs, ValidateArgs,
};
pub use keyring::{
    KeyringCommand, KeyringListArgs, KeyringRemoveArgs, KeyringRotateArgs, RootCommand,
};
pub use namespace::{
    NamespaceApplyArgs, NamespaceCommand, NamespaceDeleteArgs, NamespaceInspectArgs,
    NamespaceListArgs, NamespaceStatusArgs,
};
pub use node::{
    NodeCommand, NodeConfigArgs, NodeDrainArgs, NodeEligibilityArgs, NodeMetaApplyArgs,
    NodeMetaCommand, NodeMetaReadArgs, NodePoolArgs, NodePoolCommand, NodePoolListArgs,
    NodePoolPartArgs, NodeStatusArgs, OfNode,
};
pub use operator::{
    ApiArgs, DebugArgs, MetricsArgs, OperatorCommand, SchedulerCommand, SchedulerGetArgs,
    SchedulerSetArgs, SnapshotCommand, SnapshotInspectArgs, SnapshotRestoreArgs, SnapshotSaveArgs,
    SnapshotStateArgs,
};
pub use rehearse::RehearseArgs;
pub use replay::ReplayArgs;
pub use scaling::{
    PolicyInfoArgs, PolicyListArgs, ScaleArgs, ScalingCommand, ScalingEventsArgs,
    ScalingPolicyCommand,
};
pub use service::{ServiceCommand, ServiceInfoArgs, ServiceListArgs};
pub use var::{VarCommand, VarGetArgs, VarInitArgs, VarListArgs, VarPurgeArgs, VarPutArgs};
pub use volume::{
    VolumeCommand, VolumeDeleteArgs, VolumeFileArgs, VolumeInitArgs, VolumeStatusArgs,
};

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
    /// The agent's address: http://HOST:PORT, https://HOST:PORT or unix:///SOCKET [env: DROVER_ADDR, NOMAD_ADDR]
    /// [default: http://127.0.0.1:4646]
    #[arg(long, global = true, value_name = "URL")]
    pub address: Option<String>,
    /// The namespace [env: DROVER_NAMESPACE, NOMAD_NAMESPACE]
    #[arg(long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The region [env: DROVER_REGION, NOMAD_REGION]
    #[arg(long, global = true, value_name = "NAME")]
    pub region: Option<String>,
    /// The token to show, which a variable keeps from those who list processes [env: DROVER_TOKEN, NOMAD_TOKEN]
    #[arg(long, global = true, value_name = "TOKEN")]
    pub token: Option<Secret>,
    /// A file of authorities that may have signed the agent's certificate [env: DROVER_CACERT, NOMAD_CACERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
    /// A directory of such files [env: DROVER_CAPATH, NOMAD_CAPATH]
    #[arg(long, global = true, value_name = "DIR")]
    pub ca_path: Option<PathBuf>,
    /// The certificate to show [env: DROVER_CLIENT_CERT, NOMAD_CLIENT_CERT]
    #[arg(long, global = true, value_name = "FILE")]
    pub client_cert: Option<PathBuf>,
    /// Its key [env: DROVER_CLIENT_KEY, NOMAD_CLIENT_KEY]
    #[arg(long, global = true, value_name = "FILE")]
    pub client_key: Option<PathBuf>,
    /// The name that the agent's certificate is to have [env: DROVER_TLS_SERVER_NAME, NOMAD_TLS_SERVER_NAME]
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,
    /// Take any certificate: whoever answers may be somebody else [env: DROVER_SKIP_VERIFY, NOMAD_SKIP_VERIFY]
    #[arg(long, global = true)]
    pub tls_skip_verify: bool,
    /// Use no colours [env: NO_COLOR, NOMAD_CLI_NO_COLOR]
    #[arg(long, global = true)]
    pub no_color: bool,
    /// Use colours also where the output is no terminal [env: NOMAD_CLI_FORCE_COLOR]
    #[arg(long, global = true, conflicts_with = "no_color")]
    pub force_color: bool,
}

impl Connection {
    /// When colours are used.
    pub fn colour(&self) -> Colour {
        match (self.no_color, self.force_color) {
            (true, _) => Colour::Never,
            (false, true) => Colour::Always,
            (false, false) => Colour::Auto,
        }
    }
}

/// How an answer is shown, if not as text for people.
#[derive(Clone, Debug, Default, Args)]
pub struct Shape {
    /// Show the answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Show what this template of Go's makes of the answer, whose fields are those of `-json`
    #[arg(
        short = 't',
        value_name = "TEMPLATE",
        conflicts_with = "json",
        allow_hyphen_values = true
    )]
    pub template: Option<String>,
}

impl Shape {
    /// Whether a shape is asked for that is not for people.
    pub fn is_asked(&self) -> bool {
        self.json || self.template.is_some()
    }
}

/// Which part of a list is asked for.
#[derive(Clone, Debug, Default, Args)]
pub struct Page {
    /// Only those for which this expression holds
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// How many are shown at most; all unless given
    #[arg(long, value_name = "NUMBER")]
    pub per_page: Option<u32>,
    /// Where to begin: what the page before names
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
}

impl Page {
    /// What the agent is asked for it.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("filter", self.filter.clone()),
            ("per_page", self.per_page.map(|most| most.to_string())),
            ("next_token", self.page_token.clone()),
        ];
        let given = given.into_iter();
        given.filter_map(|(name, it)| Some((name, it?))).collect()
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent with one job in the foreground, until the job ends or Ctrl-C
    Up(UpArgs),
    /// Run an agent
    Agent(AgentArgs),
    /// Try a job under named troubles in a simulated world
    Rehearse(RehearseArgs),
    /// Play a recording of an agent again
    Replay(ReplayArgs),
    /// What needs more than its arguments: where an agent is, and how to talk to it.
    #[command(flatten)]
    Client(ClientCommand),
}

/// The commands that ask an agent, or could.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// Submit, look at and stop jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Give job files the canonical layout
    Fmt(FmtArgs),
    /// Check the agent's configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look at allocations and act on them
    #[command(subcommand)]
    Alloc(AllocCommand),
    /// Look at this node, drain it, say what it takes
    #[command(subcommand)]
    Node(NodeCommand),
    /// Look at drivers and plugins of devices
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Look at evaluations
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Look at roll-outs
    #[command(subcommand)]
    Deployment(DeploymentCommand),
    /// Look at the bounds of groups
    #[command(subcommand)]
    Scaling(ScalingCommand),
    /// Look at services
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Put, get, list and delete variables, which templates read
    #[command(subcommand)]
    Var(VarCommand),
    /// Make, describe, look at and delete namespaces
    #[command(subcommand)]
    Namespace(NamespaceCommand),
    /// Say who may do what
    #[command(subcommand)]
    Acl(AclCommand),
    /// Make, register, look at and delete host volumes
    #[command(subcommand)]
    Volume(VolumeCommand),
    /// Show what a job or an allocation is doing, what it waits for, and what happens then
    Explain(ExplainArgs),
    /// Watch what runs and what it uses
    Top(TopArgs),
    /// Act on the whole of what the agent keeps
    #[command(subcommand)]
    System(SystemCommand),
    /// Follow the agent's log
    Monitor(MonitorArgs),
    /// Show the agent as a server
    #[command(subcommand)]
    Server(ServerCommand),
    /// Show what the agent knows of itself
    AgentInfo(AgentInfoArgs),
    /// For operators
    #[command(subcommand)]
    Operator(OperatorCommand),
    /// Show what a shell reads to complete command lines
    Completion(CompletionArgs),
    /// What the last word may become
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
    /// Write the manual pages of all commands
    Man(ManArgs),
    /// Show the version
    Version,
    /// Short for `job run`
    Run(RunArgs),
    /// Short for `job validate`
    Validate(ValidateArgs),
    /// Short for `job stop`
    Stop(StopArgs),
    /// Short for `job start`
    Start(OfJobArgs),
    /// Short for `job inspect`
    Inspect(InspectArgs),
    /// Show jobs, or the job or allocation with this id
    Status(JobStatusArgs),
    /// Short for `alloc logs`
    Logs(LogsArgs),
    /// Short for `job action`
    Action(ActionArgs),
    /// Short for `alloc exec`
    Exec(ExecArgs),
    /// Short for `job plan`
    Plan(PlanArgs),
    /// Short for `job init`
    Init(JobInitArgs),
    /// Short for `alloc fs`
    Fs(FsArgs),
    /// An older name of `alloc status`
    #[command(hide = true)]
    AllocStatus(AllocStatusArgs),
    /// An older name of `node status`
    #[command(hide = true)]
    NodeStatus(NodeStatusArgs),
    /// An older name of `node drain`
    #[command(hide = true)]
    NodeDrain(NodeDrainArgs),
    /// An older name of `eval status`
    #[command(hide = true)]
    EvalStatus(EvalStatusArgs),
    /// An older name of `node config`
    #[command(hide = true)]
    ClientConfig(NodeConfigArgs),
    /// An older name of `server members`
    #[command(hide = true)]
    ServerMembers(ServerMembersArgs),
    /// An older name of `operator debug`
    #[command(hide = true)]
    Debug(DebugArgs),
}

/// `explain`.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// A job's id, or an allocation's, or the beginning of one
    #[arg(value_name = "JOB|ALLOC")]
    pub id: String,
    /// Only this task
    pub task: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
}

/// Commands of jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Write a job file to begin with
    Init(JobInitArgs),
    /// Make a job file of a compose file, a unit of systemd or a quadlet
    Import(ImportArgs),
    /// Submit a job and follow what becomes of it
    Run(RunArgs),
    /// Check a job file
    Validate(ValidateArgs),
    /// Show what submitting a job would do
    Plan(PlanArgs),
    /// Show jobs, or one of them
    Status(JobStatusArgs),
    /// Show a job as the agent keeps it
    Inspect(InspectArgs),
    /// Stop a job
    Stop(StopArgs),
    /// Make a job of a parameterized one
    Dispatch(DispatchArgs),
    /// Launch a periodic job by hand
    #[command(subcommand)]
    Periodic(PeriodicCommand),
    /// Let another node take over a job, with what is on its disks
    Move(MoveArgs),
    /// Give a group another count
    Scale(ScaleArgs),
    /// Show what was asked of the counts of a job's groups
    ScalingEvents(ScalingEventsArgs),
    /// Promote the canaries of a job
    Promote(PromoteArgs),
    /// Show the versions of a job
    History(HistoryArgs),
    /// Go back to an earlier version of a job
    Revert(RevertArgs),
    /// Name versions of a job
    #[command(subcommand)]
    Tag(TagCommand),
    /// Start a stopped job again
    Start(OfJobArgs),
    /// Compare once more what a job wants with what runs
    Eval(JobEvalArgs),
    /// Show the allocations of a job
    Allocs(ListOfJobArgs),
    /// Show the roll-outs of a job
    Deployments(ListOfJobArgs),
    /// Restart a job's tasks
    Restart(JobRestartArgs),
    /// Run an action of a job's task, connected to this terminal
    Action(ActionArgs),
    /// Show what all copies of a job write
    Logs(JobLogsArgs),
}

/// `drover job periodic …`.
#[derive(Debug, Subcommand)]
pub enum PeriodicCommand {
    /// Launch it now, whatever its times are
    Force(PeriodicForceArgs),
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
    /// Show what the checks of an allocation's services found
    Checks(AllocChecksArgs),
    /// Clean away an allocation that ended, with its directory
    Gc(AllocGcArgs),
    /// Show the files of an allocation
    Fs(FsArgs),
    /// Copy files from an allocation, or to one
    Cp(CpArgs),
    /// Make ports of an allocation ports of this machine
    PortForward(PortForwardArgs),
    /// Run a program beside a task, connected to this terminal
    Exec(ExecArgs),
}

/// Commands of plugins.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// Show drivers and plugins of devices, or one of them
    Status(PluginStatusArgs),
}

/// Commands of the whole.
#[derive(Debug, Subcommand)]
pub enum SystemCommand {
    /// Clean away what ended
    Gc,
    /// List what bears our mark on the agent's host, with its owner or `leaked`
    Audit(AuditArgs),
    /// Remove an agent's data directory, with its mounts and control groups; no agent may run there
    Destroy(DestroyArgs),
}

/// `plugin status`.
#[derive(Clone, Debug, Args)]
pub struct PluginStatusArgs {
    /// The name of the plugin or of its program
    pub plugin: Option<String>,
    /// Only those of this kind: `driver` or `device`
    #[arg(long = "type", value_name = "KIND")]
    pub kind: Option<String>,
    /// Accepted for Nomad's scripts, which show less of storage plugins with it
    #[arg(long, hide = true)]
    pub short: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show programs, whole times and reasons
    #[arg(long)]
    pub verbose: bool,
}

/// `system audit`.
#[derive(Clone, Debug, Args)]
pub struct AuditArgs {
    /// Remove what is leaked
    #[arg(long)]
    pub fix: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `system destroy`.
#[derive(Clone, Debug, Args)]
pub struct DestroyArgs {
    /// The data directory that is removed
    #[arg(long, value_name = "DIR")]
    pub data_dir: PathBuf,
    /// End the tasks that still run: SIGTERM, and SIGKILL after 10 seconds
    #[arg(long)]
    pub stop_tasks: bool,
    /// Remove host volumes that lie in it too, with what jobs keep there
    #[arg(long)]
    pub volumes: bool,
    /// The Docker engine of agents that did not note it with their containers: `unix:///PATH`
    #[arg(long, value_name = "ENDPOINT")]
    pub docker_endpoint: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `top`.
#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// What tasks are sorted by
    #[arg(long)]
    pub sort: Option<super::top::Order>,
    /// Show it once and end, also on a terminal
    #[arg(long)]
    pub once: bool,
}

/// `completion`.
#[derive(Clone, Debug, Args)]
pub struct CompletionArgs {
    /// The shell
    pub shell: Shell,
}

/// Shells whose command lines are completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// `source <(drover completion bash)`
    Bash,
    /// `source <(drover completion zsh)`
    Zsh,
    /// `drover completion fish | source`
    Fish,
}

/// `__complete`.
#[derive(Clone, Debug, Args)]
pub struct CompleteArgs {
    /// The words up to the one that is completed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Where they go
    pub dir: PathBuf,
}

/// `monitor`.
#[derive(Clone, Debug, Args)]
pub struct MonitorArgs {
    /// Lines of this level and above: trace, debug, info, warn or error
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    /// Show lines as JSON
    #[arg(long)]
    pub json: bool,
}

/// Commands of servers.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// Show the servers of the cluster and who leads, or the agent as a server alone
    Members(ServerMembersArgs),
}

/// `server members`.
#[derive(Clone, Debug, Args)]
pub struct ServerMembersArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Accepted for Nomad's scripts; all is shown
    #[arg(long, hide = true)]
    pub verbose: bool,
}

/// `agent-info`.
#[derive(Clone, Debug, Args)]
pub struct AgentInfoArgs {
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}
