//! The process that fetches one artifact: the same program as the agent, started again without
//! rights. It reads what is asked from its standard input, says how it goes on its standard output,
//! and leaves what it fetched in the directory it was started in.

mod checksum;
mod file;
mod git;
pub(crate) mod http;
mod s3;
mod sandbox;
mod unpack;

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpgrp, kill_process_group};

use super::source::Source;
use super::wire::{DOWNLOAD, HelperAnswer, MAX_LINE, Request};
use crate::unpack::Trouble;

/// How often it is said how much is here.
const EVERY: Duration = Duration::from_millis(500);

/// The whole life of the process.
pub fn main() -> ExitCode {
    let answer = match work() {
        Ok((bytes, tree)) => HelperAnswer::Done { bytes, tree },
        Err(trouble) => HelperAnswer::Failed {
            why: trouble.why,
            again: trouble.again,
        },
    };
    match write_answer(&answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn work() -> Result<(u64, bool), Trouble> {
    let request = asked().map_err(|error| Trouble::lasting(format!("invalid request: {error}")))?;
    sandbox::enter(&request)?;
    // Nobody reads the answer when the agent is gone; what was started here must not outlive it.
    let watch = thread::Builder::new().spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = kill_process_group(getpgrp(), Signal::KILL);
    });
    watch.map_err(|error| Trouble::passing(format!("a thread cannot be started: {error}")))?;
    fetch(&request)
}

fn asked() -> io::Result<Request> {
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
    io::stdin()
        .lock()
        .take(limit)
        .read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

fn write_answer(what: &HelperAnswer) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Fetches, looks at the sum, unpacks. Returns how many bytes came, and whether a tree is left.
fn fetch(request: &Request) -> Result<(u64, bool), Trouble> {
    let wanted = &request.wanted;
    let mut progress = Progress::new();
    if !request.there {
        let whole = match &wanted.source {
            Source::Http(url) => http::download(url, request, &mut progress)?,
            Source::S3 {
                url,
                region,
                credentials,
            } => s3::download(url, region, credentials.as_ref(), request, &mut progress)?,
            Source::File(path) => file::copy(path, request, &mut progress)?,
            Source::Git {
                url,
                reference,
                depth,
            } => git::clone(url, reference.as_deref(), *depth, request, &mut progress)?,
        };
        if whole == Got::Tree {
            return Ok((progress.bytes, true));
        }
    }
    if let Some(sum) = &wanted.checksum {
        checksum::verify(sum)?;
    }
    let tree = match wanted.archive {
        None => false,
        Some(archive) => unpack::unpack(archive, &request.limits)?,
    };
    Ok((progress.bytes, tree))
}

/// What a source left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Got {
    /// One file.
    File,
    /// A tree.
    Tree,
}

/// How much is here, said now and then.
struct Progress {
    bytes: u64,
    /// How much it will be, if that is known.
    total: Option<u64>,
    reported: Instant,
}

impl Progress {
    fn new() -> Progress {
        Progress {
            bytes: 0,
            total: None,
            reported: Instant::now(),
        }
    }

    fn add(&mut self, bytes: u64) {
        self.is(self.bytes.saturating_add(bytes));
    }

    fn is(&mut self, bytes: u64) {
        self.bytes = bytes;
        if self.reported.elapsed() >= EVERY {
            self.reported = Instant::now();
            // Whether anybody listens is found out at the end.
            let total = self.total;
            let _ = write_answer(&HelperAnswer::Fetched { bytes, total });
        }
    }
}

/// Copies what comes into the file of downloads; no more than `limit` bytes, unless that is zero.
fn receive(from: &mut dyn Read, limit: u64, progress: &mut Progress) -> Result<(), Trouble> {
    let mut file = File::create(DOWNLOAD).map_err(Trouble::disk)?;
    let mut buffer = vec![0; 128 << 10];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Trouble::passing(format!("it broke off: {error}"))),
        };
        progress.add(u64::try_from(read).unwrap_or(u64::MAX));
        if limit > 0 && progress.bytes > limit {
            return Err(too_large(limit));
        }
        file.write_all(buffer.get(..read).unwrap_or_default())
            .map_err(Trouble::disk)?;
    }
    Ok(())
}

fn too_large(limit: u64) -> Trouble {
    Trouble::lasting(format!(
        "it has more than {limit} bytes, which is http_max_size"
    ))
}

/// How many bytes lie below a directory. Follows no links.
fn weight(dir: &std::path::Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let weights = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => weight(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |meta| meta.len()),
        Err(_) => 0,
    });
    weights.fold(0, u64::saturating_add)
}
