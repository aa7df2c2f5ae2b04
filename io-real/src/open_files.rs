//! The limit of open files: as high as it may be for the agent, as it was for its tasks.

use std::sync::OnceLock;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit before it was first raised.
static BEFORE: OnceLock<Option<u64>> = OnceLock::new();

/// Raises this process's soft limit of open files to its hard limit, and returns what it was: what
/// tasks are given, since programs that use `select` break above 1024.
///
/// `None`: there was no limit. Called again, it returns the same.
///
/// # Errors
/// The kernel refuses, which it has no reason to.
pub fn raise() -> Result<Option<u64>, Errno> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let before = *BEFORE.get_or_init(|| current);
    if current != maximum {
        let current = maximum;
        setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
    }
    Ok(before)
}
