//! `drover config validate`: checks configuration files of an agent, without one.

use std::fs;
use std::path::{Path, PathBuf};

use drover_io_real::keyring::root::RootKey;

use super::args::ConfigValidateArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use crate::config;

/// Runs the command: says of each file what is wrong, or what has no effect.
///
/// # Errors
/// A file cannot be found, or nobody reads any more.
pub(super) fn run(cx: &mut Context, args: &ConfigValidateArgs) -> Outcome {
    let mut files = Vec::new();
    for path in &args.paths {
        match path.is_dir() {
            true => files.extend(files_of(path)?),
            false => files.push(path.clone()),
        }
    }
    if files.is_empty() {
        return Err(Failure::new(
            "there is no file whose name ends with .hcl in the directory",
        ));
    }
    let mut invalid = false;
    for file in &files {
        let shown = file.display();
        match config::read(file) {
            Ok(read) => {
                for setting in &read.ignored {
                    let words = format!("Warning: {shown}: {setting} has no effect here");
                    cx.screen.complain(&words);
                }
                if let Err(why) = RootKey::find(read.agent.root_key_file.as_deref(), None) {
                    invalid = true;
                    let words = format!("Error: {shown}: root_key_file: {why}");
                    cx.screen.complain(&words);
                }
            }
            Err(why) => {
                invalid = true;
                cx.screen.complain(&format!("Error: {why}"));
            }
        }
    }
    if files.len() > 1 {
        let words = "Warning: an agent reads one file; each of these was checked by itself";
        cx.screen.complain(words);
    }
    if invalid {
        return Ok(1);
    }
    cx.screen.print_line("Configuration is valid!")?;
    Ok(0)
}

/// The configuration files of a directory, by their names.
fn files_of(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::new(format!("cannot read {}: {error}", dir.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|it| it == "hcl") && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
