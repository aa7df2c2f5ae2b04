//! Files and directories of this machine.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::unpack;
use super::{Got, Progress, receive};
use crate::artifact::wire::{Request, TREE};
use crate::unpack::{Attributes, Sink, Trouble};

/// How deep a directory may be.
const MAX_DEPTH: usize = 128;

pub(super) fn copy(
    path: &Path,
    request: &Request,
    progress: &mut Progress,
) -> Result<Got, Trouble> {
    let meta = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if meta.is_file() {
        let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
        receive(&mut file, request.limits.http_bytes, progress)?;
        return Ok(Got::File);
    }
    if !meta.is_dir() {
        let why = "is neither a file nor a directory";
        return Err(Trouble::lasting(format!("{}: {why}", path.display())));
    }
    DirBuilder::new().create(TREE).map_err(Trouble::disk)?;
    let mut sink = unpack::sink(&request.limits, u64::MAX)?;
    tree(path, &mut Vec::new(), 0, &mut sink)?;
    progress.is(sink.bytes());
    Ok(Got::Tree)
}

fn tree(from: &Path, at: &mut Vec<u8>, depth: usize, sink: &mut Sink) -> Result<(), Trouble> {
    if depth > MAX_DEPTH {
        return Err(Trouble::lasting("the directory is too deep"));
    }
    let unread = |error: io::Error| unreadable(from, &error);
    for entry in fs::read_dir(from).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let kind = entry.file_type().map_err(unread)?;
        let length = at.len();
        if !at.is_empty() {
            at.push(b'/');
        }
        at.extend_from_slice(entry.file_name().as_bytes());
        let path = entry.path();
        if kind.is_dir() {
            sink.dir(at, &Attributes::default())?;
            tree(&path, at, depth + 1, sink)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(unread)?;
            sink.link(at, target.as_os_str().as_bytes(), &Attributes::default())?;
        } else if kind.is_file() {
            let mut file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
            let mode = file.metadata().map_or(0, |meta| meta.permissions().mode());
            sink.file(at, &Attributes::mode(mode & 0o777), &mut file)?;
        } else {
            let name = OsStr::from_bytes(at).to_string_lossy();
            return Err(Trouble::lasting(format!("{name}: is no plain file")));
        }
        at.truncate(length);
    }
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> Trouble {
    Trouble::passing(format!("{}: {error}", path.display()))
}
