//! From what the core says of a start to what the shim is told.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use drover_core::driver::config::RawExecConfig;
use drover_core::effect::TaskConfig;
use drover_core::ids::LaunchId;
use drover_core::input::TaskKey;
use drover_core::model::task::LogConfig;
use drover_core::task::environment::filter_env;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use crate::cgroup::{Cgroups, Group, Limits};
use crate::dirs::AllocDirs;
use crate::shim::{self, Cgroup, LaunchSpec, Live, Logs, Process, ShimHome, StartError, User};
use crate::user;

/// Why a launch did not start.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// What was asked for cannot be done.
    Invalid(String),
    /// The machine did not do it.
    Io(io::Error),
    /// The shim did not do it.
    Shim(StartError),
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> LaunchError {
        LaunchError::Io(error)
    }
}

impl From<StartError> for LaunchError {
    fn from(error: StartError) -> LaunchError {
        LaunchError::Shim(error)
    }
}

/// Starts a launch under a shim of its own.
pub(super) fn start(
    home: &ShimHome,
    dirs: &AllocDirs,
    cgroups: Option<&Cgroups>,
    task: &TaskKey,
    launch: LaunchId,
    config: &TaskConfig,
) -> Result<Live, LaunchError> {
    let own = RawExecConfig::decode(&config.config).map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        LaunchError::Invalid(texts.join("; "))
    })?;
    let user = match config.user.as_str() {
        "" => None,
        name => Some(user::find(name).map_err(|error| LaunchError::Invalid(error.to_string()))?),
    };
    let env = filter_env(config.env.clone(), &own.denied_envvars);
    let env = strings(env.iter().map(|(key, value)| format!("{key}={value}")))?;
    let args = strings(
        core::iter::once(&own.command)
            .chain(&own.args)
            .map(String::as_str),
    )?;
    let program = candidates(&own.command)?;
    let work_dir = own.work_dir.map(CString::new).transpose().map_err(nul)?;
    let task_dir = dirs.open(task.alloc, task.task.as_str())?;
    let log_dir = dirs.open(task.alloc, "alloc/logs")?;
    let name = launch.to_string();
    let group = cgroups
        .map(|groups| groups.create(&name, &limits(config)))
        .transpose()?;
    let names = LogNames::of(task);
    let spec = LaunchSpec {
        launch: &name,
        program: &refs(&program),
        args: &refs(&args),
        env: &refs(&env),
        user: User {
            ids: user.as_ref().map(|user| (user.uid, user.gid)),
            groups: user.as_ref().map(|user| user.groups.as_slice()),
        },
        task_dir: task_dir.as_fd(),
        work_dir: work_dir.as_deref(),
        oom_score_adj: Some(own.oom_score_adj),
        umask: None,
        cgroup: Cgroup::default(),
        logs: names.logs(log_dir.as_fd(), config.logs),
    };
    Ok(with_group(group.as_ref(), |cgroup| {
        home.start(&LaunchSpec { cgroup, ..spec })
    })?)
}

/// Gives a launch whose shim was killed another one.
pub(super) fn take_over(
    home: &ShimHome,
    dirs: &AllocDirs,
    cgroups: Option<&Cgroups>,
    task: &TaskKey,
    launch: LaunchId,
    live: &Live,
    logs: LogConfig,
) -> io::Result<Live> {
    let log_dir = dirs.open(task.alloc, "alloc/logs")?;
    let group = cgroups.map(|groups| groups.create(&launch.to_string(), &Limits::default()));
    let names = LogNames::of(task);
    let logs = names.logs(log_dir.as_fd(), logs);
    let group = group.transpose()?;
    let taken = with_group(group.as_ref(), |cgroup| home.takeover(live, &logs, &cgroup));
    taken.map_err(io::Error::other)
}

/// Kills a process that was proved to be ours, and only that one.
pub(super) fn kill_process(process: Process) -> io::Result<()> {
    match shim::open_process(process) {
        Ok(handle) => Ok(pidfd_send_signal(handle, Signal::KILL)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        Err(error) => Err(error),
    }
}

struct LogNames {
    stdout: String,
    stderr: String,
}

impl LogNames {
    fn of(task: &TaskKey) -> LogNames {
        LogNames {
            stdout: format!("{}.stdout", task.task),
            stderr: format!("{}.stderr", task.task),
        }
    }

    fn logs<'a>(&'a self, dir: BorrowedFd<'a>, config: LogConfig) -> Logs<'a> {
        Logs {
            dir,
            stdout: &self.stdout,
            stderr: &self.stderr,
            max_files: u32::try_from(config.max_files.max(1)).unwrap_or(u32::MAX),
            max_file_size: file_size(config.max_file_size_mb),
        }
    }
}

fn file_size(megabytes: i64) -> u64 {
    u64::try_from(megabytes.max(1))
        .unwrap_or(1)
        .saturating_mul(1024 * 1024)
}

/// Where the program may be, in the field's order: below the task's `local` directory, below the
/// task's directory, then on the agent's path.
fn candidates(command: &str) -> Result<Vec<CString>, LaunchError> {
    if command.starts_with('/') {
        return strings([command]);
    }
    let mut paths = vec![format!("local/{command}"), command.to_owned()];
    if !command.contains('/') {
        let path = std::env::var("PATH").unwrap_or_default();
        let dirs = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
        paths.extend(dirs.map(|dir| dir.join(command).to_string_lossy().into_owned()));
    }
    strings(paths)
}

fn limits(config: &TaskConfig) -> Limits {
    let some = |bytes: u64| (bytes > 0).then_some(bytes);
    Limits {
        cpu_shares: some(config.cpu_shares).map(|shares| shares.max(2)),
        memory_max: some(config.memory_limit),
        memory_reserved: some(config.memory_reserved),
        no_swap: false,
    }
}

fn with_group<T>(group: Option<&Group>, work: impl FnOnce(Cgroup<'_>) -> T) -> T {
    let Some(group) = group else {
        return work(Cgroup::default());
    };
    let procs: Vec<_> = group.procs.iter().map(PathBuf::as_path).collect();
    work(Cgroup {
        procs: &procs,
        kill: group.kill.as_deref(),
        oom: group.oom.as_deref(),
    })
}

fn strings<T: Into<Vec<u8>>>(
    texts: impl IntoIterator<Item = T>,
) -> Result<Vec<CString>, LaunchError> {
    texts
        .into_iter()
        .map(|text| CString::new(text.into()).map_err(nul))
        .collect()
}

fn refs(texts: &[CString]) -> Vec<&std::ffi::CStr> {
    texts.iter().map(CString::as_c_str).collect()
}

fn nul(_: std::ffi::NulError) -> LaunchError {
    LaunchError::Invalid("a NUL character in the command, its arguments or environment".to_owned())
}
