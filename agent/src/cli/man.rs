//! `drover man DIR`: a manual page for each command, for packages.

use clap::CommandFactory;

use super::args::{Cli, ManArgs};
use super::context::{Context, Outcome};
use super::exit_code::Failure;

/// Runs the command.
///
/// # Errors
/// The directory cannot be made, or a page cannot be written.
pub(super) fn run(cx: &mut Context, args: &ManArgs) -> Outcome {
    let failed = |error| Failure::new(format!("cannot write to {}: {error}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let commands = Cli::command().disable_help_subcommand(true);
    clap_mangen::generate_to(commands, &args.dir).map_err(failed)?;
    let written = format!("The manual pages are in {}", args.dir.display());
    cx.screen.print_line(&written)?;
    Ok(0)
}
