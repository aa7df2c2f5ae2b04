//! Arguments of `drover rehearse`.

use std::path::PathBuf;

use clap::Args;

use super::VariableArgs;

/// `drover rehearse`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The job's tasks are not started: in their places, pretended tasks run in a simulated world, start at
once, and end at once when they are asked to. Services run until then, main tasks of batch jobs
succeed after ten minutes, tasks that prepare or clean up after five seconds. A copy is up while all
its main tasks run. Conditions on the node count as fulfilled. No agent is needed or asked.

Exit codes: 0 nothing bad was found, 1 something bad was found, 2 the job could not be rehearsed.")]
pub struct RehearseArgs {
    /// The job file; `-` for the standard input
    #[arg(value_name = "FILE", required_unless_present = "list")]
    pub file: Option<PathBuf>,
    /// How the file is read.
    #[command(flatten)]
    pub variables: VariableArgs,
    /// How often each trouble is tried [default: 200, less for jobs of many tasks]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: Option<u32>,
    /// The first run's seed; the next run has the next one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=u64::MAX / 2))]
    pub seed: u64,
    /// Only this trouble
    #[arg(long, value_name = "NAME")]
    pub trouble: Option<String>,
    /// Show the troubles, with a sentence each
    #[arg(long)]
    pub list: bool,
    /// Tell the whole story of one run, that of -seed under -trouble
    #[arg(long, requires = "trouble", conflicts_with_all = ["runs", "json"])]
    pub timeline: bool,
    /// Show the report as JSON; lengths of time are in nanoseconds
    #[arg(long)]
    pub json: bool,
}
