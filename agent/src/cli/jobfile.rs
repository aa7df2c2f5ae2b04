//! Reading a job file that the command line names.

use std::io::Read;
use std::path::Path;

use drover_core::model::job::Job;

use super::args::VariableArgs;
use super::failure::Failure;
use super::screen::Screen;
use crate::admission::{self, FileOptions};

/// Job files that are larger are refused: an agent would refuse them, too.
const MAX_FILE: u64 = 10 * 1024 * 1024;

/// Reads a job file; what is likely a mistake in it is told.
///
/// # Errors
/// It cannot be read or makes no sense; every mistake is told.
pub fn read(
    screen: &mut Screen,
    file: &Path,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<Job, Failure> {
    let (name, text) = if file == Path::new("-") {
        ("stdin".to_owned(), text_of(std::io::stdin(), "stdin")?)
    } else {
        let name = file.display().to_string();
        let opened = std::fs::File::open(file);
        let opened =
            opened.map_err(|error| Failure::said(format!("cannot open {name}: {error}")))?;
        let text = text_of(opened, &name)?;
        (name, text)
    };
    let refused = |refused: admission::Refused| {
        Failure::said(format!(
            "Error getting job struct: {}",
            refused.0.join("\n")
        ))
    };
    if api_json {
        return admission::read_api_json(text.as_bytes()).map_err(refused);
    }
    let read = admission::read_file(&text, &name, &options(variables, file)?).map_err(refused)?;
    for warning in &read.warnings {
        screen.complain(&format!("Warning: {warning}"));
    }
    Ok(read.job)
}

fn options(variables: &VariableArgs, file: &Path) -> Result<FileOptions, Failure> {
    let mut options = FileOptions {
        lenient: !variables.strict,
        dir: file.parent().map(Path::to_path_buf),
        env: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect(),
        ..FileOptions::default()
    };
    for given in &variables.vars {
        let Some((name, value)) = given.split_once('=') else {
            return Err(Failure::said(format!(
                "-var {given}: a variable is NAME=VALUE"
            )));
        };
        options.vars.push((name.to_owned(), value.to_owned()));
    }
    for path in &variables.var_files {
        let name = path.display().to_string();
        let opened = std::fs::File::open(path);
        let opened =
            opened.map_err(|error| Failure::said(format!("cannot open {name}: {error}")))?;
        options
            .var_files
            .push((name.clone(), text_of(opened, &name)?));
    }
    Ok(options)
}

fn text_of(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = from.take(MAX_FILE + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::said(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::said(format!(
            "{name} is larger than 10 MiB; no job file is"
        )));
    }
    Ok(text)
}
