//! Arguments of the commands of evaluations.

use clap::{Args, Subcommand};

use super::{Page, Shape};

/// Commands of evaluations.
#[derive(Debug, Subcommand)]
pub enum EvalCommand {
    /// Show evaluations
    List(EvalListArgs),
    /// Show an evaluation
    Status(EvalStatusArgs),
}

/// `eval list`.
#[derive(Clone, Debug, Args)]
pub struct EvalListArgs {
    /// Only those of this job
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
    /// Only those of this status: pending, complete, blocked or canceled
    #[arg(long)]
    pub status: Option<String>,
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

/// `eval status`.
#[derive(Clone, Debug, Args)]
pub struct EvalStatusArgs {
    /// The evaluation's id or the beginning of it
    pub eval: String,
    /// Follow it and its roll-out to their ends
    #[arg(long, conflicts_with_all = ["json", "template"])]
    pub monitor: bool,
    /// How the answer is shown.
    #[command(flatten)]
    pub shape: Shape,
    /// Show whole ids and times
    #[arg(long)]
    pub verbose: bool,
}
