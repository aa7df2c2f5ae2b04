//! Arguments of the commands of roll-outs.

use clap::{Args, Subcommand};

use super::Shape;

/// Commands of roll-outs.
#[derive(Debug, Subcommand)]
pub enum DeploymentCommand {
    /// Show roll-outs, or one of them
    Status(DeploymentStatusArgs),
    /// Show all roll-outs
    List(DeploymentListArgs),
    /// Make healthy canaries copies as all others, so that the rest follows
    Promote(PromoteArgs),
    /// Mark a roll-out as failed
    Fail(ChangeDeploymentArgs),
    /// Start nothing more of a roll-out for now
    Pause(ChangeDeploymentArgs),
    /// Let a paused roll-out go on
    Resume(ChangeDeploymentArgs),
    /// Of jobs of several regions, which there are none of here
    Unblock(ChangeDeploymentArgs),
}

/// `deployment status`.
#[derive(Clone, Debug, Args)]
pub struct DeploymentStatusArgs {
    /// The roll-out's id or the beginning of it
    pub deployment: Option<String>,
    /// Follow it to its end
    #[arg(long, requires = "deployment", conflicts_with_all = ["json", "template"])]
    pub monitor: bool,
    /// Accepted for Nomad's scripts: what changes is shown as soon as it does
    #[arg(long, hide = true, value_name = "DURATION")]
    pub wait: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `deployment list`.
#[derive(Clone, Debug, Args)]
pub struct DeploymentListArgs {
    /// Only those for which this expression holds
    #[arg(long, value_name = "EXPRESSION")]
    pub filter: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `deployment promote` and `job promote`.
#[derive(Clone, Debug, Args)]
pub struct PromoteArgs {
    /// The roll-out's or the job's id, or the beginning of it
    pub id: String,
    /// Only this group; may be given more than once
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Return when it is promoted
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `deployment fail`, `pause`, `resume` and `unblock`.
#[derive(Clone, Debug, Args)]
pub struct ChangeDeploymentArgs {
    /// The roll-out's id or the beginning of it
    pub deployment: String,
    /// Return when it is done
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
