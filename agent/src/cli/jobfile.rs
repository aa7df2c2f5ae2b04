//! Reading a job file that the command line names.

use std::fs::File;
use std::path::Path;

use super::args::VariableArgs;
use super::exit_code::Failure;
use super::screen::Screen;
use crate::admission::{self, Admitted, FileOptions, Read, Refused};
use crate::http::dto::SubmissionDto;

/// Job files that are larger are refused: an agent would refuse them, too.
const MAX_FILE: u64 = 10 * 1024 * 1024;

/// Reads a job file; `-` is the standard input.
///
/// # Errors
/// It cannot be read or makes no sense; every mistake is told.
pub fn read(file: &Path, variables: &VariableArgs, api_json: bool) -> Result<Read, Failure> {
    let (name, text) = text_of_file(file)?;
    read_text(file, &name, &text, variables, api_json)
}

/// The name and the text of a job file.
fn text_of_file(file: &Path) -> Result<(String, String), Failure> {
    Ok(if file == Path::new("-") {
        ("stdin".to_owned(), text_of(std::io::stdin(), "stdin")?)
    } else {
        let name = file.display().to_string();
        let text = text_of(open(file, &name)?, &name)?;
        (name, text)
    })
}

fn read_text(
    file: &Path,
    name: &str,
    text: &str,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<Read, Failure> {
    let refused = |Refused(mistakes)| Failure::new(mistakes.join("\n\n"));
    if api_json {
        return Read::of_api_json(text.as_bytes(), name).map_err(refused);
    }
    admission::read_file(text, name, &options(variables, file)?).map_err(refused)
}

/// Reads a job file and checks it, as far as that takes no agent. Mistakes have their places in
/// the file.
///
/// # Errors
/// As [`read`], or the job cannot be run; every reason is told.
pub fn admit(
    screen: &mut Screen,
    file: &Path,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<Admitted, Failure> {
    let (admitted, _) = admit_with_text(screen, file, variables, api_json)?;
    Ok(admitted)
}

/// The same, and what the job is made from.
///
/// # Errors
/// As [`read`], or the job cannot be run; every reason is told.
pub fn admit_with_text(
    screen: &mut Screen,
    file: &Path,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<(Admitted, SubmissionDto), Failure> {
    let (name, text) = text_of_file(file)?;
    let admitted = read_text(file, &name, &text, variables, api_json)?.admit();
    let admitted = admitted.map_err(|Refused(mistakes)| Failure::new(mistakes.join("\n\n")))?;
    for warning in &admitted.warnings {
        screen.complain(&format!("Warning: {warning}"));
    }
    let submission = submission(text, variables, api_json)?;
    Ok((admitted, submission))
}

/// What a job is made from, as the agent keeps it for people.
fn submission(
    source: String,
    variables: &VariableArgs,
    api_json: bool,
) -> Result<SubmissionDto, Failure> {
    let flags = variables.vars.iter();
    let flags = flags.filter_map(|given| given.split_once('='));
    let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut texts = Vec::new();
    for path in &variables.var_files {
        let name = path.display().to_string();
        texts.push(text_of(open(path, &name)?, &name)?);
    }
    let is_json = api_json || source.trim_start().starts_with('{');
    Ok(SubmissionDto {
        format: if is_json { "json" } else { "hcl2" }.to_owned(),
        variable_flags: Some(flags.collect()),
        variables: texts.join("\n"),
        source,
    })
}

fn open(file: &Path, name: &str) -> Result<File, Failure> {
    File::open(file).map_err(|error| Failure::new(format!("cannot open {name}: {error}")))
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
            return Err(Failure::new(format!("-var {given}: expected NAME=VALUE")));
        };
        options.vars.push((name.to_owned(), value.to_owned()));
    }
    for path in &variables.var_files {
        let name = path.display().to_string();
        let text = text_of(open(path, &name)?, &name)?;
        options.var_files.push((name, text));
    }
    Ok(options)
}

pub(super) fn text_of(from: impl std::io::Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::Read::read_to_string(&mut from.take(MAX_FILE + 1), &mut text);
    read.map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::new(format!(
            "{name} is larger than 10 MiB; no job file is"
        )));
    }
    Ok(text)
}
