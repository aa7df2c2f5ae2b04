//! A place to start tasks in, which cleans up however a test ends.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

pub mod disk;
pub mod driver;
pub mod groups;
pub mod isolation;
pub mod spoil;
pub mod store;

use drover_io_real::shim::{
    Cgroup, ExitRecord, LaunchSpec, Live, Logs, Outcome, Recovered, ShimHome, StartError, User,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub const OUT: &str = "task.stdout";
pub const ERR: &str = "task.stderr";

/// How long an event may take that must come: only a hang lasts so long.
const TIMEOUT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

pub struct Rig {
    pub dir: TaskPath,
    pub home: ShimHome,
}

/// A directory that is removed with the rig, or one that belongs to another process's rig.
pub enum TaskPath {
    Own(TempDir),
    Borrowed(PathBuf),
}

impl TaskPath {
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Borrowed(path) => path,
        }
    }
}

/// What to start, owned, with defaults that suit most tests.
pub struct Task {
    pub launch: String,
    pub program: Vec<CString>,
    pub args: Vec<CString>,
    pub env: Vec<CString>,
    pub ids: Option<(u32, u32)>,
    pub groups: Option<Vec<u32>>,
    pub work_dir: Option<CString>,
    pub oom_score_adj: Option<i32>,
    pub umask: Option<u32>,
    pub max_files: u32,
    pub max_file_size: u64,
    pub discarded: bool,
    pub open_files: Option<u64>,
    pub procs: Vec<PathBuf>,
    pub kill: Option<PathBuf>,
    pub oom: Option<PathBuf>,
}

pub fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// A launch id made of one number.
pub fn launch_id(number: u32) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

impl Task {
    /// A shell script.
    pub fn sh(number: u32, script: &str) -> Self {
        Self::program(number, &["/bin/sh"], &["sh", "-c", script])
    }

    pub fn program(number: u32, program: &[&str], args: &[&str]) -> Self {
        Self {
            launch: launch_id(number),
            program: program.iter().map(|path| c(path)).collect(),
            args: args.iter().map(|arg| c(arg)).collect(),
            env: vec![c("PATH=/usr/bin:/bin")],
            ids: None,
            groups: None,
            work_dir: None,
            oom_score_adj: None,
            umask: None,
            max_files: 10,
            max_file_size: 10 << 20,
            discarded: false,
            open_files: None,
            procs: Vec::new(),
            kill: None,
            oom: None,
        }
    }
}

impl Rig {
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for name in ["data", "task", "logs"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let home = ShimHome::open(&dir.path().join("data")).unwrap();
        Self {
            dir: TaskPath::Own(dir),
            home,
        }
    }

    /// A second rig in the directory of another.
    pub fn at(dir: PathBuf) -> Self {
        let home = ShimHome::open(&dir.join("data")).unwrap();
        Self {
            dir: TaskPath::Borrowed(dir),
            home,
        }
    }

    /// Only for the end: ends whatever runs in a data directory.
    pub fn at_data(data: PathBuf) -> Self {
        Self {
            home: ShimHome::open(&data).unwrap(),
            dir: TaskPath::Borrowed(data),
        }
    }

    pub fn task_dir(&self) -> PathBuf {
        self.dir.path().join("task")
    }

    pub fn log_dir(&self) -> PathBuf {
        self.dir.path().join("logs")
    }

    pub fn start(&self, task: &Task) -> Result<Live, StartError> {
        self.start_from(&self.home, task)
    }

    pub fn start_from(&self, home: &ShimHome, task: &Task) -> Result<Live, StartError> {
        let (task_dir, log_dir) = (open(&self.task_dir()), open(&self.log_dir()));
        let (program, args, env) = (refs(&task.program), refs(&task.args), refs(&task.env));
        let procs: Vec<&Path> = task.procs.iter().map(PathBuf::as_path).collect();
        home.start(&LaunchSpec {
            launch: &task.launch,
            program: &program,
            args: &args,
            env: &env,
            user: User {
                ids: task.ids,
                groups: task.groups.as_deref(),
            },
            task_dir: task_dir.as_fd(),
            work_dir: task.work_dir.as_deref(),
            oom_score_adj: task.oom_score_adj,
            umask: task.umask,
            open_files: task.open_files,
            cgroup: Cgroup {
                procs: &procs,
                kill: task.kill.as_deref(),
                oom: task.oom.as_deref(),
            },
            logs: logs(log_dir.as_fd(), task),
            isolation: None,
            entrance: None,
        })
    }

    pub fn takeover(&self, old: &Live, task: &Task) -> Result<Live, StartError> {
        let log_dir = open(&self.log_dir());
        let cgroup = Cgroup {
            procs: &[],
            kill: task.kill.as_deref(),
            oom: task.oom.as_deref(),
        };
        self.home
            .takeover(old, &logs(log_dir.as_fd(), task), &cgroup)
    }

    /// Starts a task and waits for its end.
    pub fn run(&self, task: &Task) -> ExitRecord {
        finish(&self.start(task).unwrap())
    }

    /// All output of a stream, oldest file first, with each file's size checked.
    pub fn output(&self, base: &str, max_file_size: u64) -> String {
        let mut output = String::new();
        for index in self.indices(base) {
            let path = self.log_dir().join(format!("{base}.{index}"));
            let content = fs::read_to_string(&path).unwrap();
            assert!(
                content.len() as u64 <= max_file_size,
                "{} is too large",
                path.display()
            );
            output.push_str(&content);
        }
        output
    }

    /// Numbers of the regular log files of a stream, in order.
    pub fn indices(&self, base: &str) -> Vec<u64> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.log_dir()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let number = name
                .strip_prefix(base)
                .and_then(|rest| rest.strip_prefix('.'));
            if entry.file_type().unwrap().is_file()
                && let Some(index) = number.and_then(|number| number.parse().ok())
            {
                found.push(index);
            }
        }
        found.sort_unstable();
        found
    }

    pub fn stdout(&self) -> String {
        self.output(OUT, u64::MAX)
    }

    pub fn stderr(&self) -> String {
        self.output(ERR, u64::MAX)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for launch in self.home.list().unwrap_or_default() {
            match self.home.recover(&launch) {
                Ok(Recovered::Running(live)) => {
                    let _ = live.kill();
                    let _ = wait_readable(&live);
                }
                Ok(Recovered::Vanished {
                    task: Some(task), ..
                }) => {
                    if let Some(pid) = rustix::process::Pid::from_raw(task.pid) {
                        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                    }
                }
                _ => {}
            }
        }
    }
}

fn refs(list: &[CString]) -> Vec<&CStr> {
    list.iter().map(CString::as_c_str).collect()
}

fn logs<'a>(dir: std::os::fd::BorrowedFd<'a>, task: &Task) -> Logs<'a> {
    let (max_files, max_file_size) = (task.max_files, task.max_file_size);
    Logs {
        discarded: task.discarded,
        dir,
        stdout: OUT,
        stderr: ERR,
        max_files,
        max_file_size,
    }
}

pub fn open(path: &Path) -> File {
    File::open(path).unwrap()
}

/// Waits until a descriptor is readable; false if that never comes.
#[must_use]
pub fn wait_readable(fd: &impl AsFd) -> bool {
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&TIMEOUT)).unwrap_or(0) == 1
}

/// Waits for the end of a launch.
pub fn finish(live: &Live) -> ExitRecord {
    match outcome(live) {
        Outcome::Exited(exit) => exit,
        Outcome::ShimLost => panic!("the shim was lost"),
    }
}

pub fn outcome(live: &Live) -> Outcome {
    assert!(wait_readable(live), "the shim hangs");
    live.outcome().unwrap().unwrap()
}

/// A pidfd of a process, to see its end by.
pub fn handle(pid: i32) -> std::os::fd::OwnedFd {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap()
}

/// A pipe through which a task tells the test something: its path for the task, and our end.
///
/// The task writes to a named pipe in its directory; reading blocks until it does.
pub fn fifo(rig: &Rig, name: &str) -> PathBuf {
    let path = rig.task_dir().join(name);
    let mode = rustix::fs::Mode::from_raw_mode(0o666);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    rustix::fs::chmod(&path, mode).unwrap();
    path
}

/// Reads what one writer puts into a named pipe, until it closes it.
pub fn receive(path: &Path) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a handle of a process says how it ended: since Linux 6.15.
pub fn kernel_keeps_exit_codes() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split('.').map_while(|it| it.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}
