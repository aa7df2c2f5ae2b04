//! Arguments of `drover replay`.

use std::path::PathBuf;

use clap::Args;

/// `replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// A recording, or a directory of them such as `recording` in an agent's data directory
    #[arg(value_name = "FILE|DIR")]
    pub path: PathBuf,
    /// Show the state after this step
    #[arg(long, value_name = "STEP", group = "what")]
    pub at: Option<usize>,
    /// Show the story: one line an event, a column for each who acts
    #[arg(long, group = "what")]
    pub timeline: bool,
    /// Show which inputs touched a job, an allocation or a task, and what followed
    #[arg(long, value_name = "ENTITY", group = "what")]
    pub why: Option<String>,
    /// Go through it step by step, by commands from the standard input
    #[arg(long, group = "what")]
    pub debug: bool,
    /// Show the answer as JSON
    #[arg(long, conflicts_with = "debug")]
    pub json: bool,
}
