//! Programs of plugins, in a directory of their own.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// Some of the examples of another package. What runs of them ends with them.
pub(crate) struct Plugins {
    pub(crate) dir: PathBuf,
    names: Vec<String>,
}

impl Plugins {
    /// A new directory with these examples (name, example); none, and a line that says so, if they were not built.
    pub(crate) fn of(dir: &Path, programs: &[(&str, &str)]) -> Option<Plugins> {
        let built = std::env::current_exe().unwrap();
        let built = built.parent().unwrap().parent().unwrap().join("examples");
        fs::create_dir(dir).unwrap();
        for (name, example) in programs {
            let program = built.join(example);
            if !program.exists() {
                eprintln!("skipped: {} is not built", program.display());
                return None;
            }
            fs::copy(program, dir.join(name)).unwrap();
        }
        let names = programs.iter().map(|(name, _)| (*name).to_owned());
        Some(Plugins {
            dir: dir.to_owned(),
            names: names.collect(),
        })
    }

    /// Processes of the program of this name.
    pub(crate) fn processes(&self, name: &str) -> Vec<Pid> {
        let program = self.dir.join(name);
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let runs = |entry: &fs::DirEntry| {
            fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == program)
        };
        let pid = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
        processes.filter(runs).filter_map(pid).collect()
    }

    pub(crate) fn kill(&self, name: &str) {
        let processes = self.processes(name);
        assert!(!processes.is_empty(), "{name} does not run");
        for pid in processes {
            kill_process(pid, Signal::KILL).unwrap();
        }
    }
}

impl Drop for Plugins {
    fn drop(&mut self) {
        for pid in self.names.iter().flat_map(|name| self.processes(name)) {
            // It may have ended by itself.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
