//! `node …`.

use clap::{Args, Subcommand};

use super::{Page, Shape};

/// Commands of nodes.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Show nodes, or one of them
    Status(NodeStatusArgs),
    /// Empty a node, or do so no more
    Drain(NodeDrainArgs),
    /// Say whether a node takes new allocations
    Eligibility(NodeEligibilityArgs),
    /// Look at the operator's keys of a node, and change them
    #[command(subcommand)]
    Meta(NodeMetaCommand),
    /// Show which servers the agent has
    Config(NodeConfigArgs),
    /// Look at pools of nodes
    #[command(subcommand)]
    Pool(NodePoolCommand),
}

/// `node status`.
#[derive(Clone, Debug, Args)]
pub struct NodeStatusArgs {
    /// The node's id or the beginning of it
    pub node: Option<String>,
    /// The node of the agent that is asked
    #[arg(long = "self")]
    pub this: bool,
    /// Show what the machine and its allocations use
    #[arg(long)]
    pub stats: bool,
    /// Of a list, show how many allocations run on each node
    #[arg(long)]
    pub allocs: bool,
    /// Of a list, show the operating systems
    #[arg(long)]
    pub os: bool,
    /// Of a list, show whole ids alone
    #[arg(long, conflicts_with_all = ["verbose", "json", "template"])]
    pub quiet: bool,
    /// Of one node, show less
    #[arg(long)]
    pub short: bool,
    /// Which part of a list is shown.
    #[command(flatten)]
    pub page: Page,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
}

/// `node meta …`.
#[derive(Debug, Subcommand)]
pub enum NodeMetaCommand {
    /// Give keys other values, until the next change
    Apply(NodeMetaApplyArgs),
    /// Show all keys
    Read(NodeMetaReadArgs),
}

/// `node meta apply`.
#[derive(Clone, Debug, Args)]
pub struct NodeMetaApplyArgs {
    /// Keys with their values
    #[arg(value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
    /// Keys that the node shall not have, with commas between
    #[arg(long, value_name = "KEYS")]
    pub unset: Vec<String>,
    /// The node's id or the beginning of it [default: the node of the agent that is asked]
    #[arg(long, value_name = "NODE")]
    pub node_id: Option<String>,
}

/// `node meta read`.
#[derive(Clone, Debug, Args)]
pub struct NodeMetaReadArgs {
    /// The node's id or the beginning of it [default: the node of the agent that is asked]
    #[arg(long, value_name = "NODE")]
    pub node_id: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `node config`.
#[derive(Clone, Debug, Args)]
pub struct NodeConfigArgs {
    /// Show the servers
    #[arg(long, conflicts_with = "update_servers")]
    pub servers: bool,
    /// Give the agent other servers; it is its own, and takes no other
    #[arg(long, value_name = "ADDRESS", num_args = 1..)]
    pub update_servers: Vec<String>,
}

/// `node pool …`.
#[derive(Debug, Subcommand)]
pub enum NodePoolCommand {
    /// Show all pools
    List(NodePoolListArgs),
    /// Show a pool
    Info(NodePoolArgs),
    /// Show the nodes of a pool
    Nodes(NodePoolPartArgs),
    /// Show the jobs of a pool
    Jobs(NodePoolPartArgs),
}

/// `node pool list`.
#[derive(Clone, Debug, Args)]
pub struct NodePoolListArgs {
    /// Which part of the list is shown.
    #[command(flatten)]
    pub page: Page,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
}

/// `node pool nodes|jobs`.
#[derive(Clone, Debug, Args)]
pub struct NodePoolPartArgs {
    /// The pool's name
    pub pool: String,
    /// Which part of the list is shown.
    #[command(flatten)]
    pub page: Page,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `node pool info`.
#[derive(Clone, Debug, Args)]
pub struct NodePoolArgs {
    /// The pool's name
    pub pool: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// Which node.
#[derive(Clone, Debug, Args)]
pub struct OfNode {
    /// The node's id or the beginning of it
    pub node: Option<String>,
    /// The node of the agent that is asked
    #[arg(long = "self", conflicts_with = "node")]
    pub this: bool,
}

/// `node eligibility`.
#[derive(Clone, Debug, Args)]
pub struct NodeEligibilityArgs {
    /// Which node
    #[command(flatten)]
    pub of: OfNode,
    /// It takes new allocations
    #[arg(long, conflicts_with = "disable", required_unless_present = "disable")]
    pub enable: bool,
    /// It takes no new allocations; what runs goes on
    #[arg(long)]
    pub disable: bool,
}

/// `node drain`.
#[derive(Clone, Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each switch of Nomad's"
)]
pub struct NodeDrainArgs {
    /// Which node
    #[command(flatten)]
    pub of: OfNode,
    /// Stop what runs on the node in turns, and take nothing new
    #[arg(long, conflicts_with = "disable")]
    pub enable: bool,
    /// Drain the node no more
    #[arg(long)]
    pub disable: bool,
    /// When what is left is stopped [default: 1h]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["force", "no_deadline", "disable"])]
    pub deadline: Option<String>,
    /// Stop everything at once
    #[arg(long, conflicts_with_all = ["no_deadline", "disable"])]
    pub force: bool,
    /// Let batch jobs take as long as they want
    #[arg(long, conflicts_with = "disable")]
    pub no_deadline: bool,
    /// Let system jobs go on
    #[arg(long, conflicts_with = "disable")]
    pub ignore_system: bool,
    /// With -disable: take nothing new nevertheless
    #[arg(long, requires = "disable")]
    pub keep_ineligible: bool,
    /// A note of why
    #[arg(short = 'm', value_name = "TEXT")]
    pub message: Option<String>,
    /// A note of something else
    #[arg(long, value_name = "KEY=VALUE")]
    pub meta: Vec<String>,
    /// Follow the drain that is under way, and change nothing
    #[arg(long, conflicts_with_all = ["enable", "disable", "detach"])]
    pub monitor: bool,
    /// Do not wait until the node is empty
    #[arg(long)]
    pub detach: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
