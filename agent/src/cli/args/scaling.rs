//! Arguments of the commands of scaling.

use clap::{Args, Subcommand};

use super::Shape;

/// `job scale`.
#[derive(Clone, Debug, Args)]
pub struct ScaleArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// The group, which may be left out where there is only one, and how many copies it shall have
    #[arg(value_name = "[GROUP] COUNT", required = true, num_args = 1..=2)]
    pub what: Vec<String>,
    /// Scale only if the job's modify index is still this one; 0 for whatever it is
    #[arg(long, value_name = "INDEX")]
    pub check_index: Option<u64>,
    /// Return when the count is submitted
    #[arg(long)]
    pub detach: bool,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `job scaling-events`.
#[derive(Clone, Debug, Args)]
pub struct ScalingEventsArgs {
    /// The job's id or the beginning of it
    pub job: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show also messages and evaluations
    #[arg(long)]
    pub verbose: bool,
}

/// Commands of scaling.
#[derive(Clone, Debug, Subcommand)]
pub enum ScalingCommand {
    /// Look at the bounds within which groups are scaled
    #[command(subcommand)]
    Policy(ScalingPolicyCommand),
}

/// Commands of scaling policies.
#[derive(Clone, Debug, Subcommand)]
pub enum ScalingPolicyCommand {
    /// Show the policies of all groups
    List(PolicyListArgs),
    /// Show one of them
    Info(PolicyInfoArgs),
}

/// `scaling policy list`.
#[derive(Clone, Debug, Args)]
pub struct PolicyListArgs {
    /// Only those of this job
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}

/// `scaling policy info`.
#[derive(Clone, Debug, Args)]
pub struct PolicyInfoArgs {
    /// The policy's id or the beginning of it
    pub policy: String,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids
    #[arg(long)]
    pub verbose: bool,
}
