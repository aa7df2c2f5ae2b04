//! `drover job import`: a job file of a compose file, a unit of systemd or a quadlet.

use std::fs;
use std::path::{Path, PathBuf};

use drover_import::{Source, import};

use super::args::ImportArgs;
use super::context::{Context, Outcome};
use super::exit_code::Failure;
use super::{files, jobfile};

/// Runs the command.
///
/// # Errors
/// A file cannot be read, or is none that can be imported; or the job file cannot be written.
pub(super) fn run(cx: &mut Context, args: &ImportArgs) -> Outcome {
    let read: Vec<Given> = args
        .files
        .iter()
        .map(|path| Given::read(path))
        .collect::<Result<_, _>>()?;
    let sources: Vec<Source<'_>> = read.iter().map(Given::source).collect();
    let text = import(&sources).map_err(|error| Failure::new(error.to_string()))?;
    match &args.out {
        None => cx.screen.bytes(text.as_bytes())?,
        Some(out) => {
            files::create(out, &text)?;
            let words = format!("Job file written to {}", out.display());
            cx.screen.print_line(&words)?;
        }
    }
    Ok(0)
}

/// A file that was named.
struct Given {
    name: String,
    directory: String,
    text: String,
}

impl Given {
    fn read(path: &Path) -> Result<Given, Failure> {
        let name = path.display().to_string();
        let file = fs::File::open(path);
        let file = file.map_err(|error| Failure::new(format!("cannot open {name}: {error}")))?;
        let text = jobfile::text_of(file, &name)?;
        let above = path.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
        let directory = fs::canonicalize(&above);
        let directory = directory
            .map_err(|error| Failure::new(format!("cannot find {}: {error}", above.display())))?;
        Ok(Given {
            name,
            directory: directory.display().to_string(),
            text,
        })
    }

    fn source(&self) -> Source<'_> {
        Source {
            name: &self.name,
            directory: &self.directory,
            text: &self.text,
        }
    }
}
