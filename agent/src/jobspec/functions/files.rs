//! Functions that look at the file system, and those of paths. They are refused unless the caller
//! allows them: a server must not read its own files for whoever sends it a job.

use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::super::bounds::{MAX_FILE, MAX_FILES};
use super::super::eval::value::Val;
use super::args::text;
use super::{Context, Function, Outcome, Refused};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abspath", (1, 1), |context, args| {
        let path = resolve(context, &text(args, 0)?)?;
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        shown(&cleaned(&path))
    }),
    Function::new("basename", (1, 1), |context, args| {
        base(context)?;
        let path = text(args, 0)?;
        let name = Path::new(&path).file_name().and_then(|name| name.to_str());
        Ok(Val::text(name.unwrap_or(&path)))
    }),
    Function::new("dirname", (1, 1), |context, args| {
        base(context)?;
        let path = text(args, 0)?;
        let parent = Path::new(&path).parent().and_then(Path::to_str);
        Ok(Val::text(
            parent.filter(|parent| !parent.is_empty()).unwrap_or("."),
        ))
    }),
    Function::new("pathexpand", (1, 1), |context, args| {
        base(context)?;
        Ok(Val::text(expand(&text(args, 0)?)?))
    }),
    Function::new("file", (1, 1), |context, args| {
        let path = text(args, 0)?;
        let bytes = read(context, &path)?;
        let content = String::from_utf8(bytes)
            .map_err(|_| format!("\"{path}\" is no UTF-8 text; use filebase64"))?;
        Ok(Val::text(content))
    }),
    Function::new("filebase64", (1, 1), |context, args| {
        Ok(Val::text(STANDARD.encode(read(context, &text(args, 0)?)?)))
    }),
    Function::new("fileexists", (1, 1), |context, args| {
        Ok(Val::Bool(resolve(context, &text(args, 0)?)?.is_file()))
    }),
    Function::new("fileset", (2, 2), fileset),
];

fn base<'a>(context: &Context<'a>) -> Result<&'a Path, Refused> {
    context.files.ok_or_else(|| {
        Refused::from(
            "functions of the file system may not be used here; read the file where \
                       the job is submitted, or pass it as a variable",
        )
    })
}

/// The home directory in place of a `~`.
fn expand(path: &str) -> Result<String, Refused> {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = std::env::var("HOME").map_err(|_| "HOME is not set")?;
            Ok(home + rest)
        }
        _ => Ok(path.to_owned()),
    }
}

fn resolve(context: &Context<'_>, path: &str) -> Result<PathBuf, Refused> {
    Ok(base(context)?.join(expand(path)?))
}

fn read(context: &Context<'_>, path: &str) -> Result<Vec<u8>, Refused> {
    let full = resolve(context, path)?;
    let failed = |error: std::io::Error| Refused::from(format!("\"{path}\": {error}"));
    // A pipe or a device could be read for ever.
    if !fs::metadata(&full).map_err(failed)?.is_file() {
        return Err(format!("\"{path}\" is no regular file").into());
    }
    let file = fs::File::open(&full).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("\"{path}\" is larger than {} MiB", MAX_FILE >> 20).into());
    }
    Ok(bytes)
}

fn fileset(context: &Context<'_>, args: &[Val]) -> Outcome {
    let root = resolve(context, &text(args, 0)?)?;
    let pattern = text(args, 1)?;
    let bad = |error: glob::PatternError| Refused::from(format!("\"{pattern}\": {error}"));
    let matcher = glob::Pattern::new(&pattern).map_err(bad)?;
    let options = glob::MatchOptions {
        require_literal_separator: true,
        ..glob::MatchOptions::default()
    };
    let mut found = Vec::new();
    let mut seen = 0;
    let mut waiting = vec![root.clone()];
    while let Some(directory) = waiting.pop() {
        let failed = |error: std::io::Error| format!("\"{}\": {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            seen += 1;
            if seen > MAX_FILES {
                return Err(format!("there are more than {MAX_FILES} files").into());
            }
            let path = entry.path();
            // Links to directories are not followed; they may form a circle.
            if entry.file_type().map_err(failed)?.is_dir() {
                waiting.push(path);
                continue;
            }
            let relative = path.strip_prefix(&root).unwrap_or(&path);
            if matcher.matches_path_with(relative, options) && path.is_file() {
                found.push(relative.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    Ok(Val::list(found.into_iter().map(Val::text).collect())?)
}

/// The path without `.` and `..`.
fn cleaned(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

fn shown(path: &Path) -> Outcome {
    Ok(Val::text(path.to_string_lossy().into_owned()))
}
