//! `drover fmt`: gives job files and other files in HCL the canonical layout.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::FmtArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{files, jobfile};
use crate::jobspec::format::format;

/// The names of files in a directory that are formatted end so.
const ENDINGS: [&str; 2] = ["hcl", "nomad"];

/// Runs the command. A file with mistakes stays as it is, and keeps no other from being formatted.
///
/// # Errors
/// Nobody reads any more.
pub(super) fn run(cx: &mut Context, args: &FmtArgs) -> Outcome {
    let here = [PathBuf::from(".")];
    let given: &[PathBuf] = match args.paths.as_slice() {
        [] => &here,
        paths => paths,
    };
    let mut seen = Seen::default();
    for path in given {
        let done = match path.as_path() {
            path if path == Path::new("-") => standard_input(cx, args, &mut seen),
            path if path.is_dir() => directory(cx, args, path, &mut seen),
            path => one(cx, args, path, &mut seen),
        };
        seen.go_on_after(cx, done)?;
    }
    Ok(u8::from(seen.failed || (args.check && seen.untidy)))
}

/// What was found.
#[derive(Default)]
struct Seen {
    untidy: bool,
    failed: bool,
}

impl Seen {
    /// Complains of a mistake, which keeps no other file from being formatted.
    ///
    /// # Errors
    /// Nobody reads any more.
    fn go_on_after(&mut self, cx: &mut Context, done: Result<(), Failure>) -> Result<(), Failure> {
        let Err(failure) = done else {
            return Ok(());
        };
        if failure.message.is_empty() {
            return Err(failure);
        }
        cx.screen.complain(&failure.message);
        self.failed = true;
        Ok(())
    }
}

fn standard_input(cx: &mut Context, args: &FmtArgs, seen: &mut Seen) -> Result<(), Failure> {
    let text = jobfile::text_of(std::io::stdin(), "stdin")?;
    let formatted = format(&text, "stdin").map_err(|errors| Failure::new(errors.to_string()))?;
    seen.untidy |= formatted != text;
    match args.check {
        true => Ok(()),
        false => cx.screen.bytes(formatted.as_bytes()),
    }
}

/// All files of a directory, by their names; with those of directories in it if that is asked for.
/// What begins with a dot is left alone, and links to directories are not followed.
fn directory(cx: &mut Context, args: &FmtArgs, dir: &Path, seen: &mut Seen) -> Result<(), Failure> {
    let failed = |error| Failure::new(format!("cannot read {}: {error}", dir.display()));
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        names.push((entry.file_name(), kind.is_dir()));
    }
    names.sort();
    for (name, is_dir) in names {
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        // Shown as one would write it: without a dot for the current directory.
        let path = match dir == Path::new(".") {
            true => PathBuf::from(&name),
            false => dir.join(&name),
        };
        let ending = path.extension().and_then(|ending| ending.to_str());
        let done = match is_dir {
            true if args.recursive => directory(cx, args, &path, seen),
            false if ending.is_some_and(|it| ENDINGS.contains(&it)) && path.is_file() => {
                one(cx, args, &path, seen)
            }
            true | false => Ok(()),
        };
        seen.go_on_after(cx, done)?;
    }
    Ok(())
}

fn one(cx: &mut Context, args: &FmtArgs, path: &Path, seen: &mut Seen) -> Result<(), Failure> {
    let name = path.display().to_string();
    let file = fs::File::open(path)
        .map_err(|error| Failure::new(format!("cannot open {name}: {error}")))?;
    let text = jobfile::text_of(file, &name)?;
    let formatted = format(&text, &name).map_err(|errors| Failure::new(errors.to_string()))?;
    let writes = args.write && !args.check;
    if formatted != text {
        seen.untidy = true;
        if writes {
            files::replace(path, &formatted)?;
        }
        if args.list {
            cx.screen.print_line(&name)?;
        }
    }
    // Whoever wants neither names nor files wants to see the text.
    if !args.list && !args.write && !args.check {
        cx.screen.bytes(formatted.as_bytes())?;
    }
    Ok(())
}
