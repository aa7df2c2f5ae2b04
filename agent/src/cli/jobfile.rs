//! Reading a job file that the command line names.

use std::io::Read;
use std::path::Path;

use drover_core::model::job::Job;

use super::args::VariableArgs;
use super::failure::Failure;
use super::screen::Screen;
use crate::admission::{self, FileOptions, Refused};

/// Job files that are larger are refused: an agent would refuse them, too.
const MAX_FILE: u64 = 10 * 1024 * 1024;

/// A job that was read from a file.
pub struct Loaded {
    /// The job as it was written.
    pub job: Job,
    read: Option<admission::Read>,
}

impl Loaded {
    /// What is wrong with the job by the rules that hold everywhere, with the places in the file;
    /// none if nothing is.
    pub fn mistakes(&self) -> Option<Refused> {
        let admitted = match self.read.clone() {
            Some(read) => read.admit(),
            None => admission::admit(self.job.clone()),
        };
        admitted.err()
    }
}

/// Reads a job file; what is likely a mistake in it is told.
///
/// # Errors
/// It cannot be read or makes no sense; every mistake is told.
pub fn read(
    screen: &mut Screen,
    file: &Path,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<Loaded, Failure> {
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
    let refused = |refused: Refused| {
        Failure::said(format!(
            "Error getting job struct: {}",
            refused.0.join("\n")
        ))
    };
    if api_json {
        let job = admission::read_api_json(text.as_bytes()).map_err(refused)?;
        return Ok(Loaded { job, read: None });
    }
    let read = admission::read_file(&text, &name, &options(variables, file)?).map_err(refused)?;
    for warning in &read.warnings {
        screen.complain(&format!("Warning: {warning}"));
    }
    Ok(Loaded {
        job: read.job.clone(),
        read: Some(read),
    })
}

fn options(variables: &VariableArgs, file: &Path) -> Result<FileOptions, Failure> {
    let mut options = FileOptions {
        lenient: !variables.strict,
        files: Some(file.parent().map(Path::to_path_buf).unwrap_or_default()),
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
