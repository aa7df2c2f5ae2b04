//! A directory for one test, and the end of whatever the test leaves running below it.

use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use drover_io_real::cgroup::Cgroups;
use drover_io_real::data_dir::Mark;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// A directory of one test. When it is dropped, also by a test that fails, the tasks of agents
/// that have their data in it are killed, and their control groups removed.
pub struct World(TempDir);

impl World {
    pub fn new() -> World {
        World(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The agent's directory, for all tests that need only one.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes a file, such as a job, and gives back its path.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// The arguments of `drover up` for a job in this world.
    pub fn up(&self, job: &Path) -> Vec<String> {
        let words = ["up", "-http", "127.0.0.1:0", "-data-dir"];
        let mut args: Vec<String> = words.map(str::to_owned).to_vec();
        args.push(self.data().to_string_lossy().into_owned());
        args.push(job.to_string_lossy().into_owned());
        args
    }

    /// The arguments of `drover agent` for a node of this server, whose API is at this address.
    pub fn node_of(&self, server: &str, http: &str) -> Vec<String> {
        let data = self.data().to_string_lossy().into_owned();
        let words = ["agent", "-http", http, "-servers", server, "-data-dir"];
        let words = words.map(str::to_owned).into_iter();
        words.chain([data]).collect()
    }

    /// The launches of tasks that run now, by the names of their control groups.
    pub fn launches(&self) -> Vec<String> {
        let pids = shims(self.0.path());
        let mut found: Vec<String> = pids.iter().flat_map(|pid| launches_of(pid)).collect();
        // The set of processors that all tasks without cores of their own have in common.
        found.retain(|name| name != "shared");
        found.sort();
        found.dedup();
        found
    }

    /// The same, of so many tasks. Fails if they have no control groups: those of root have.
    #[track_caller]
    pub fn launches_of_tasks(&self, tasks: usize) -> Vec<String> {
        let launches = self.launches();
        if geteuid().is_root() {
            assert_eq!(launches.len(), tasks, "{launches:?}");
        }
        launches
    }

    /// Fails if a process of a task, or a control group of one of these launches, is left.
    #[track_caller]
    pub fn is_left_clean(&self, launches: &[String]) {
        assert_eq!(shims(self.0.path()), Vec::<String>::new(), "shims are left");
        for launch in launches {
            for dir in group_dirs(launch) {
                assert!(!dir.exists(), "{} is left", dir.display());
            }
        }
    }
}

impl World {
    /// Ends all tasks with their shims, as the end of the machine would, and removes their control
    /// groups, also those whose tasks are gone already.
    pub fn end_tasks(&self) {
        for pid in shims(self.0.path()) {
            let children = children(&pid);
            kill_9(&pid);
            children.iter().for_each(|child| kill_9(child));
        }
        let Ok(Some(groups)) = Cgroups::detect("drover") else {
            return;
        };
        let is_ours = |name: &String| {
            let mark = groups.mark_of(name).as_deref().and_then(Mark::parse);
            mark.is_some_and(|mark| mark.path.starts_with(self.0.path()))
        };
        let names = groups.list().unwrap_or_default();
        for name in names.iter().filter(|name| is_ours(name)) {
            // What the kernel does not bury is no failure.
            let _ = groups.kill(name, super::TIMEOUT);
            let _ = groups.remove(name);
        }
    }

    /// Removes a directory of this world, whatever is mounted in it.
    pub fn wipe(&self, dir: &Path) {
        unmount_below(dir);
        fs::remove_dir_all(dir).unwrap();
    }
}

/// Takes away what is mounted below a directory: secrets of tasks that nobody garbage-collected.
fn unmount_below(dir: &Path) {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    for point in points.filter(|point| Path::new(point).starts_with(dir)) {
        // Gone already, if it was mounted in another one.
        let _ = unmount(point, UnmountFlags::DETACH);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end_tasks();
        unmount_below(self.0.path());
    }
}

/// Processes that run a shim of an agent whose data is below this directory.
pub fn shims(below: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let is_shim = |entry: &fs::DirEntry| {
        let exe = fs::read_link(entry.path().join("exe"));
        exe.is_ok_and(|exe| {
            let name = exe.file_name().unwrap_or_default().to_string_lossy();
            // Shims run from memory that bears the name of the program's file.
            let path = exe.to_str().map(|path| path.trim_start_matches("/memfd:"));
            path.is_some_and(|path| Path::new(path).starts_with(below)) && name.starts_with("shim-")
        })
    };
    let pid = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    processes.filter(is_shim).map(pid).collect()
}

/// The processes that a process started, by whichever of its threads.
pub fn children(pid: &str) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let children = |thread: DirEntry| fs::read_to_string(thread.path().join("children")).ok();
    let children: String = threads.filter_map(children).collect();
    children.split_whitespace().map(str::to_owned).collect()
}

fn launches_of(shim: &str) -> Vec<String> {
    let groups =
        |pid: String| fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let all: String = children(shim).into_iter().map(groups).collect();
    let names = all.lines().filter_map(|line| line.split("/drover/").nth(1));
    names.map(str::to_owned).collect()
}

/// All directories of a launch's control group, there or not.
fn group_dirs(launch: &str) -> Vec<PathBuf> {
    let trees = fs::read_dir("/sys/fs/cgroup");
    let mut dirs: Vec<PathBuf> = trees
        .map(|trees| {
            trees
                .filter_map(Result::ok)
                .map(|tree| tree.path())
                .collect()
        })
        .unwrap_or_default();
    dirs.push(PathBuf::from("/sys/fs/cgroup"));
    let group = |tree: PathBuf| tree.join("drover").join(launch);
    dirs.into_iter()
        .map(group)
        .filter(|dir| dir.is_dir())
        .collect()
}

fn kill_9(pid: &str) {
    let pid = pid.parse().ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // Dead already, most likely.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The files below `dir` that have this text, or these bytes, in them.
pub fn files_with(dir: &Path, text: impl AsRef<[u8]>) -> Vec<PathBuf> {
    let text = text.as_ref();
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text) {
                found.push(path);
            }
        }
    }
    found
}
