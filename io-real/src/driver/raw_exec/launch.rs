//! From the core's start request to the shim's.

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use drover_core::driver::config::{ExecConfig, IoLimits, RawExecConfig};
use drover_core::driver::isolation::{EXEC, Profile};
use drover_core::effect::request::SessionProgram;
use drover_core::effect::{Program, TaskConfig};
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::task::LogConfig;
use drover_core::task::environment::filter_env;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::RAW_EXEC;
use super::connection::{self, Connection, Wanted, no_terminal};
use super::program;
use crate::cgroup::{Cgroups, Group, Limits};
use crate::dirs::AllocDirs;
use crate::driver::exec::{ExecSettings, Isolated, open_multiplexer};
use crate::driver::shims::LogNames;
use crate::gate::Gate;
use crate::network::{Entrance, Networks};
use crate::shim::{
    self, Cgroup, LaunchSpec, Live, Process, SessionStreams, ShimHome, StartError, Step,
};
use crate::user::{self, User};

/// What launches are made with.
pub(super) struct LaunchDependencies {
    /// Where shims live.
    pub(super) home: ShimHome,
    /// Where tasks work.
    pub(super) dirs: AllocDirs,
    /// What limits them.
    pub(super) cgroups: Option<Cgroups>,
    /// Their soft limit of open files; the agent's if none.
    pub(super) open_files: Option<u64>,
    /// How isolated ones are isolated.
    pub(super) isolation: ExecSettings,
    /// In what networks they are whose allocation has its own.
    pub(super) networks: Option<Networks>,
    /// Where work is done that blocks.
    pub(super) gate: Gate,
}

/// What is launched.
struct LaunchRequest<'a> {
    /// The id of the launch.
    name: &'a str,
    /// What the job says of it.
    own: RawExecConfig,
    config: &'a TaskConfig,
    logs: LogConfig,
    /// In whose control group; in one of its own if none.
    beside: Option<LaunchId>,
    /// Who is connected to it, if anybody is.
    streams: Option<SessionStreams<'a>>,
}

/// Why a launch did not start.
#[derive(Debug)]
pub(super) enum LaunchError {
    /// What was asked for cannot be done.
    Invalid(String),
    /// There is no such program.
    NotFound(String),
    /// There is no such program in the root of an isolated task.
    NotInRoot(String),
    /// The machine did not do it.
    Io(io::Error),
    /// The shim did not do it.
    Shim(StartError),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Invalid(why) => f.write_str(why),
            LaunchError::NotFound(command) if command.starts_with('/') => {
                write!(
                    f,
                    "there is no program {command:?}, or its interpreter is missing"
                )
            }
            LaunchError::NotFound(command) => write!(
                f,
                "there is no program {command:?} in the task's directory, below its \"local\", or \
                 on the agent's path, or its interpreter is missing"
            ),
            LaunchError::NotInRoot(command) => write!(
                f,
                "there is no program {command:?} in the task's root, or its interpreter is missing; of the \
                 host it has what chroot_env of the agent's configuration names"
            ),
            LaunchError::Io(error) => error.fmt(f),
            LaunchError::Shim(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for LaunchError {
    fn from(error: io::Error) -> LaunchError {
        LaunchError::Io(error)
    }
}

impl LaunchDependencies {
    /// Starts a launch under a shim of its own.
    pub(super) fn start(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        config: &TaskConfig,
    ) -> Result<Live, LaunchError> {
        let name = launch.to_string();
        let making = LaunchRequest {
            name: &name,
            own: decode(config)?,
            config,
            logs: config.logs,
            beside: None,
            streams: None,
        };
        self.make(task, making)
    }

    /// Starts a program beside a launch, under a shim of its own and within the launch's control group.
    pub(super) fn exec(
        &self,
        task: &TaskKey,
        beside: LaunchId,
        script: LaunchId,
        program: &Program,
    ) -> Result<Live, LaunchError> {
        let name = script.to_string();
        let own = RawExecConfig {
            command: program.command.clone(),
            args: program.args.clone(),
            ..decode(&program.task)?
        };
        let logs = LogConfig {
            disabled: true,
            ..program.task.logs
        };
        let making = LaunchRequest {
            name: &name,
            own,
            config: &program.task,
            logs,
            beside: Some(beside),
            streams: None,
        };
        self.make(task, making)
    }

    /// Starts the program of a session beside a launch, as [`LaunchDependencies::exec`] does.
    pub(super) fn session(
        &self,
        task: &TaskKey,
        beside: LaunchId,
        session: LaunchId,
        program: &SessionProgram,
    ) -> Result<(Live, Connection), LaunchError> {
        let name = session.to_string();
        let own = RawExecConfig {
            command: program.command.clone(),
            args: program.args.clone(),
            ..decode(&program.task)?
        };
        let owner = find_user(&program.task.user)?.map(|user| user.uid);
        let wanted = match (program.tty, program.task.profile) {
            (false, _) => Wanted::Pipes,
            (true, None) => Wanted::Terminal,
            (true, Some(_)) => {
                let opened = open_multiplexer(self.holder(beside)?);
                Wanted::OwnTerminal(opened.map_err(|error| no_terminal(&error))?)
            }
        };
        let (connection, ends) = connection::open(wanted, owner)?;
        let making = LaunchRequest {
            name: &name,
            own,
            config: &program.task,
            logs: program.task.logs,
            beside: Some(beside),
            streams: Some(ends.streams()),
        };
        Ok((self.make(task, making)?, connection))
    }

    fn make(&self, task: &TaskKey, making: LaunchRequest<'_>) -> Result<Live, LaunchError> {
        let LaunchRequest {
            name,
            own,
            config,
            logs,
            beside,
            streams,
        } = making;
        let named = find_named(&config.user)?;
        if config.profile.is_none() {
            self.admit(named.as_ref())?;
        }
        let user = named.filter(is_another);
        let entrance = self.entrance(task, config)?;
        let mut env = filter_env(config.env.clone(), &own.denied_envvars);
        let isolated = match &config.profile {
            None => None,
            Some(profile) => {
                let user = user.as_ref().ok_or_else(no_user)?;
                env.extend(user.variables());
                Some(self.isolate(task, beside, config, *profile, user)?)
            }
        };
        let env = strings(env.iter().map(|(key, value)| format!("{key}={value}")))?;
        let command = core::iter::once(&own.command);
        let args = strings(command.chain(&own.args).map(String::as_str))?;
        let programs = match &isolated {
            None => program::candidates(&own.command),
            Some(_) => program::candidates_in_root(&own.command),
        };
        let programs = programs.map_err(nul)?;
        let work_dir = own
            .work_dir
            .clone()
            .map(CString::new)
            .transpose()
            .map_err(nul)?;
        let open = |name| {
            let dir = self.dirs.open(task.alloc, name);
            dir.map_err(because("the task's directories cannot be opened"))
        };
        let task_dir = open(task.task.as_str())?;
        let log_dir = open("alloc/logs")?;
        let owner = user.as_ref().map_or(geteuid().as_raw(), |user| user.uid);
        let in_root = isolated.is_some();
        program::allow(task_dir.as_fd(), &programs, owner, in_root);
        let group = match beside {
            None => self.group(name, &limits(config)),
            Some(launch) => self.find_group(launch),
        };
        let group = group.map_err(because("the task's control group cannot be made"))?;
        let names = LogNames::of(task);
        let spec = LaunchSpec {
            launch: name,
            program: &refs(&programs),
            args: &refs(&args),
            env: &refs(&env),
            user: shim::User {
                ids: user.as_ref().map(|user| (user.uid, user.gid)),
                groups: user.as_ref().map(|user| user.groups.as_slice()),
            },
            task_dir: task_dir.as_fd(),
            work_dir: work_dir.as_deref(),
            oom_score_adj: Some(own.oom_score_adj),
            umask: None,
            open_files: self.open_files,
            cgroup: Cgroup::default(),
            logs: names.logs(log_dir.as_fd(), logs),
            isolation: isolated.as_ref().map(Isolated::as_spec),
            entrance: entrance.as_ref(),
        };
        let started = with_group(group.as_ref(), |cgroup| {
            let cgroup = match beside {
                None => cgroup,
                // The group is the task's: the end of a script is not its end.
                Some(_) => Cgroup {
                    kill: None,
                    oom: None,
                    ..cgroup
                },
            };
            let spec = LaunchSpec { cgroup, ..spec };
            match &streams {
                None => self.home.start(&spec),
                Some(streams) => self.home.start_session(&spec, streams),
            }
        });
        started.map_err(|error| explain(error, &own.command, in_root))
    }

    /// The network in which it starts, if that is not the host's.
    fn entrance(
        &self,
        task: &TaskKey,
        config: &TaskConfig,
    ) -> Result<Option<Entrance>, LaunchError> {
        let wanted = config.network.as_ref().filter(|network| network.own);
        match (&self.networks, wanted) {
            (_, None) => Ok(None),
            (Some(networks), wanted) => Ok(networks.entrance(task.alloc, wanted)?),
            (None, Some(_)) => Err(LaunchError::Invalid(
                "there are no networks of allocations here".to_owned(),
            )),
        }
    }

    /// Admits the user of a task that is not isolated; the agent's own if it names none.
    fn admit(&self, named: Option<&User>) -> Result<(), LaunchError> {
        let admitted = self.isolation.admit_user(RAW_EXEC, named);
        admitted.map_err(LaunchError::Invalid)
    }

    /// How a launch is isolated: in namespaces of its own, or in those of the launch beside which it runs.
    fn isolate(
        &self,
        task: &TaskKey,
        beside: Option<LaunchId>,
        config: &TaskConfig,
        profile: Profile,
        user: &User,
    ) -> Result<Isolated, LaunchError> {
        let settings = &self.isolation;
        let admitted = settings.admit_user(EXEC, Some(user));
        admitted.map_err(LaunchError::Invalid)?;
        let Some(beside) = beside else {
            let dirs = &self.dirs;
            let networks = self.networks.as_ref();
            let made = Isolated::make(settings, (dirs, networks), task, config, profile, user.uid);
            return Ok(made.map_err(because("the task's root cannot be put together"))?);
        };
        let holder = shim::open_process(self.holder(beside)?);
        let holder = holder.map_err(because("the task's namespaces are gone"))?;
        Ok(Isolated::enter(holder, profile, user.uid)?)
    }

    /// The process that holds the namespaces of a launch.
    fn holder(&self, launch: LaunchId) -> io::Result<Process> {
        let record = self.home.read_record(&launch.to_string())?;
        Ok(record.map(|record| record.holder).unwrap_or_default())
    }

    /// Gives a launch whose shim was killed another one.
    pub(super) fn take_over(
        &self,
        task: &TaskKey,
        launch: LaunchId,
        live: &Live,
        logs: LogConfig,
    ) -> Result<Live, StartError> {
        let log_dir = self.dirs.open(task.alloc, "alloc/logs")?;
        let names = LogNames::of(task);
        let logs = names.logs(log_dir.as_fd(), logs);
        let group = self.find_group(launch)?;
        with_group(group.as_ref(), |cgroup| {
            self.home.takeover(live, &logs, &cgroup)
        })
    }

    fn find_group(&self, launch: LaunchId) -> io::Result<Option<Group>> {
        let cgroups = self.cgroups.as_ref();
        cgroups
            .map(|groups| groups.find(&launch.to_string()))
            .transpose()
    }

    fn group(&self, name: &str, limits: &Limits) -> io::Result<Option<Group>> {
        let cgroups = self.cgroups.as_ref();
        if cgroups.is_none() && !limits.io.is_none() {
            let what =
                "reading and writing cannot be limited without control groups; leave out `io`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, what));
        }
        cgroups
            .map(|groups| groups.create(name, limits))
            .transpose()
    }
}

/// What the job says. What an isolated task may say is a part of what others may.
fn decode(config: &TaskConfig) -> Result<RawExecConfig, LaunchError> {
    let decoded = match config.profile {
        None => RawExecConfig::decode(&config.config),
        Some(_) => ExecConfig::decode(&config.config).map(|own| RawExecConfig {
            command: own.command,
            args: own.args,
            work_dir: own.work_dir,
            ..RawExecConfig::default()
        }),
    };
    decoded.map_err(|problems| {
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        LaunchError::Invalid(texts.join("; "))
    })
}

/// What could not be done, and why.
fn because(what: &str) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

fn no_user() -> LaunchError {
    LaunchError::Invalid("an isolated task needs a user".to_owned())
}

/// Whom to become; nobody else if nobody is named, or if the agent is that user and may become
/// nobody else.
fn find_user(name: &str) -> Result<Option<User>, LaunchError> {
    Ok(find_named(name)?.filter(is_another))
}

/// The user that is named, if one is. Looked up once for each launch, so that who is admitted is who runs.
fn find_named(name: &str) -> Result<Option<User>, LaunchError> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = user::find(name).map_err(|error| LaunchError::Invalid(error.to_string()))?;
    Ok(Some(found))
}

/// Whether a user is to be become: an agent that is not root may become nobody else.
fn is_another(user: &User) -> bool {
    let me = geteuid();
    me.is_root() || user.uid != me.as_raw()
}

/// A program that is not there is the commonest mistake: it gets words of its own.
fn explain(error: StartError, command: &str, in_root: bool) -> LaunchError {
    match error {
        StartError::Exec {
            step: Step::Exec,
            errno,
            ..
        } if in_root && errno == Errno::NOENT.raw_os_error() => {
            LaunchError::NotInRoot(command.to_owned())
        }
        StartError::Exec {
            step: Step::Mount,
            errno,
            path: Some(place),
        } => {
            let error = io::Error::from_raw_os_error(errno);
            LaunchError::Invalid(format!(
                "nothing can be mounted at {place} of the task's root: {error}"
            ))
        }
        StartError::Exec {
            step: Step::Exec,
            errno,
            ..
        } if errno == Errno::NOENT.raw_os_error() => LaunchError::NotFound(command.to_owned()),
        error => LaunchError::Shim(error),
    }
}

fn limits(config: &TaskConfig) -> Limits {
    let some = |bytes: u64| (bytes > 0).then_some(bytes);
    Limits {
        cpu_shares: some(config.cpu_shares).map(|shares| shares.max(2)),
        cpu_quota: (config.cpu_quota)
            .and_then(|it| Some((it.quota, u64::try_from(it.period).ok()?))),
        memory_max: some(config.memory_limit),
        memory_reserved: some(config.memory_reserved),
        // As of containers: a limit of memory is one of memory and swap.
        no_swap: true,
        processes: None,
        cores: config.cores.clone(),
        io: IoLimits::of(&config.config),
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
