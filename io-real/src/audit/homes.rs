//! Which agent made a thing, as far as it can be proved.
//!
//! An agent is identified by its data directory. One that is there and has a state may have an agent again
//! at any time. One that is not there any more has none, unless an agent lives on whose directory
//! was removed under it: each holds the file `lock` in it open.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use drover_core::host::Home;

use super::shims::Processes;
use crate::data_dir::{Mark, namespace};
use crate::store;

/// More open files than this are not looked at, and then nothing is called gone.
const MOST: usize = 1 << 20;

/// What the kernel puts behind the path of a file that was removed.
pub(super) const DELETED: &str = " (deleted)";

/// The agents of this host.
pub(super) struct Homes<'a> {
    own: &'a Mark,
    processes: &'a Processes,
    /// The data directories that agents hold now; none if not every process can be looked at.
    held: OnceCell<Option<BTreeSet<PathBuf>>>,
}

impl Homes<'_> {
    pub(super) fn new<'a>(own: &'a Mark, processes: &'a Processes) -> Homes<'a> {
        Homes {
            own,
            processes,
            held: OnceCell::new(),
        }
    }

    /// The agent that wrote this mark.
    pub(super) fn of_mark(&self, mark: &str) -> Home {
        match Mark::parse(mark) {
            Some(mark) if mark.dir == self.own.dir => Home::Ours,
            Some(mark) => self.at(&mark.path, &mark.namespace),
            None => Home::Unknown,
        }
    }

    /// The agent whose data directory is, or was, at this path as this mount namespace sees it.
    pub(super) fn at(&self, data: &Path, seen_in: &str) -> Home {
        let path = data.display().to_string();
        match fs::metadata(data) {
            _ if seen_in != self.own.namespace => Home::Unknown,
            Ok(meta) if (meta.dev(), meta.ino()) == self.own.dir => Home::Ours,
            // Also where the state is lost: its tasks are still somebody's.
            Ok(_)
                if ["state", store::FILE]
                    .iter()
                    .any(|it| data.join(it).exists()) =>
            {
                Home::Other(path)
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => Home::Unknown,
            Ok(_) | Err(_) => match self.held.get_or_init(|| self.find_held()) {
                None => Home::Unknown,
                Some(held) if held.contains(data) => Home::Other(path),
                Some(_) => Home::Gone(path),
            },
        }
    }

    fn find_held(&self) -> Option<BTreeSet<PathBuf>> {
        let mut held = BTreeSet::new();
        let mut seen = 0;
        for pid in self.processes.pids() {
            let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                // Another user's: it may be an agent.
                files => files.ok()?,
            };
            for file in files.map_while(Result::ok) {
                seen += 1;
                let Ok(link) = fs::read_link(file.path()) else {
                    continue;
                };
                held.extend(directory_of(&link));
            }
            if seen > MOST {
                return None;
            }
        }
        Some(held)
    }
}

/// The data directory whose `lock` this is.
fn directory_of(link: &Path) -> Option<PathBuf> {
    let text = link.to_str()?;
    let path = Path::new(text.strip_suffix(DELETED).unwrap_or(text));
    (path.file_name()? == "lock").then(|| path.parent().map(Path::to_owned))?
}

/// The mount namespace of a process; none that could be another's if it does not tell.
pub(super) fn namespace_of(pid: i32) -> String {
    namespace(&pid.to_string()).unwrap_or_default()
}
