//! Starting a task, and giving a task whose shim was killed a new one.

use super::encode;
use super::home::{ShimHome, named};
use super::live::Live;
use super::lock;
use super::process::{SLICE, ShimProcess, retry_until};
use super::record::Process;
use super::spec::{Cgroup, Isolation, LaunchSpec, Logs, SessionStreams};
use super::wire::{self, Step, Verdict};
use crate::network::Entrance;
use rustix::io::{IoSlice, read};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    send, sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Duration;

/// How often a file is executed that is busy.
const FILE_TRIES: usize = 100;

/// That shims run from their file is told once.
static TELL_REFUSED: Once = Once::new();

/// Why nothing was started.
#[derive(Debug)]
pub enum StartError {
    /// The launch was decided before: a shim has it, or had it, or it was given up.
    /// [`ShimHome::recover`] tells more.
    AlreadyClaimed,
    /// The shim could not execute the program. The launch is over.
    Exec {
        /// What it was doing.
        step: Step,
        /// The system's error number.
        errno: i32,
        /// The path of the program that was tried last, or of the cgroup file.
        path: Option<String>,
    },
    /// The shim was killed, or stopped for good, before it answered; that is nobody's fault who wanted the
    /// start. Whether the launch started is for [`ShimHome::recover`] to find out.
    Lost,
    /// There is no shim, or no answer from it. Whether the launch started is for
    /// [`ShimHome::recover`] to find out.
    Spawn(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyClaimed => f.write_str("the launch was started or given up before"),
            Self::Exec { step, errno, path } => {
                let path = path.as_deref().unwrap_or_default();
                let error = io::Error::from_raw_os_error(*errno);
                write!(f, "cannot start the task: {step:?} {path}: {error}")
            }
            Self::Lost => f.write_str("the task's shim was killed before it answered"),
            Self::Spawn(error) => write!(f, "cannot run the task's shim: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Spawn(error) => Some(error),
            Self::AlreadyClaimed | Self::Exec { .. } | Self::Lost => None,
        }
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Spawn(error)
    }
}

impl From<rustix::io::Errno> for StartError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Spawn(errno.into())
    }
}

impl ShimHome {
    /// Starts a task under a shim of its own, and comes back when its program is executed.
    ///
    /// # Errors
    /// See [`StartError`]. Unless it is `Spawn` or `Lost`, no task runs.
    pub fn start(&self, spec: &LaunchSpec<'_>) -> Result<Live, StartError> {
        let message = encode::start(&lock::parse_id(spec.launch)?, spec, None)?;
        let pipes = if spec.logs.discarded {
            None
        } else {
            Some([
                pipe_with(PipeFlags::CLOEXEC)?,
                pipe_with(PipeFlags::CLOEXEC)?,
            ])
        };
        let null = self.null.as_fd();
        let [log_dir, out, err, out_end, err_end] = match &pipes {
            None => [null; 5],
            Some([(out, out_end), (err, err_end)]) => [
                spec.logs.dir,
                out.as_fd(),
                err.as_fd(),
                out_end.as_fd(),
                err_end.as_fd(),
            ],
        };
        let run = self.run.as_fd();
        let mut fds = vec![
            run,
            log_dir,
            out,
            err,
            spec.task_dir,
            null,
            out_end,
            err_end,
        ];
        if let Some(isolation) = &spec.isolation {
            // It stands for the lifeline.
            fds.push(null);
            fds.extend(isolation.fds());
        }
        let started = self.spawn(&message, &fds, spec.entrance);
        let (shim, task) = started.map_err(|error| name_path(error, spec))?;
        let pipes = pipes.map(|pipes| pipes.map(|(read_end, _)| read_end));
        Ok(self.live(spec.launch, shim, task, pipes))
    }

    /// Starts a program that somebody is connected to, under a shim of its own that keeps no logs.
    ///
    /// # Errors
    /// As [`ShimHome::start`].
    pub fn start_session(
        &self,
        spec: &LaunchSpec<'_>,
        streams: &SessionStreams<'_>,
    ) -> Result<Live, StartError> {
        let spec = LaunchSpec {
            logs: Logs {
                discarded: true,
                ..spec.logs
            },
            ..*spec
        };
        let launch = lock::parse_id(spec.launch)?;
        let message = encode::start(&launch, &spec, Some(streams.tty))?;
        let (run, null) = (self.run.as_fd(), self.null.as_fd());
        let mut fds = vec![
            run,
            null,
            null,
            null,
            spec.task_dir,
            streams.stdin,
            streams.stdout,
            streams.stderr,
            streams.lifeline,
        ];
        fds.extend(spec.isolation.iter().flat_map(Isolation::fds));
        let started = self.spawn(&message, &fds, spec.entrance);
        let (shim, task) = started.map_err(|error| name_path(error, &spec))?;
        Ok(self.live(spec.launch, shim, task, None))
    }

    /// Gives a task whose shim was killed a new one, which goes on where the old one was. Output
    /// that was thrown away still is, and output that was kept still is, whatever `logs` says.
    ///
    /// # Errors
    /// `AlreadyClaimed` if the old shim lives, or the record is final or not of this boot.
    pub fn takeover(
        &self,
        old: &Live,
        logs: &Logs<'_>,
        cgroup: &Cgroup<'_>,
    ) -> Result<Live, StartError> {
        let logs = Logs {
            discarded: old.pipes().is_none(),
            ..*logs
        };
        let message = encode::adopt(&lock::parse_id(old.launch())?, &logs, cgroup)?;
        let [log_dir, out, err] = match old.pipes() {
            None => [self.null.as_fd(); 3],
            Some([out, err]) => [logs.dir, out, err],
        };
        let fds: [BorrowedFd<'_>; wire::ADOPT_FDS] = [self.run.as_fd(), log_dir, out, err];
        let pipes = match old.pipes() {
            None => None,
            Some([out, err]) => Some([out.try_clone_to_owned()?, err.try_clone_to_owned()?]),
        };
        let (shim, task) = self.spawn(&message, &fds, None)?;
        Ok(self.live(old.launch(), shim, task, pipes))
    }

    /// Runs a shim, tells it what to do, and hears how it went.
    pub(super) fn spawn(
        &self,
        message: &[u8],
        fds: &[BorrowedFd<'_>],
        entrance: Option<&Entrance>,
    ) -> Result<(ShimProcess, Process), StartError> {
        let flags = SocketFlags::CLOEXEC;
        let (mine, its) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Who starts in a network is born in it, with all that it starts.
        let mut child = match entrance {
            None => self.run_program(its)?,
            Some(entrance) => entrance.run(|| self.run_program(its))?,
        };
        // Our child, and not reaped: the pid is its own.
        let pid = Pid::from_child(&child);
        let shim = pidfd_open(pid, PidfdFlags::empty());
        // Without a handle it is told nothing, and ends.
        let outcome = match shim {
            Ok(shim) => {
                let shim = ShimProcess::new(shim, pid.as_raw_pid());
                converse(mine, message, fds, &shim).map(|task| (shim, task))
            }
            Err(errno) => {
                drop(mine);
                Err(errno.into())
            }
        };
        outcome.map_err(|error| end_child(&mut child, error))
    }

    /// Runs the shim program with `socket` as its standard input: from sealed memory, or from its file where
    /// that cannot be.
    fn run_program(&self, socket: OwnedFd) -> io::Result<Child> {
        let Some(sealed) = self.sealed() else {
            return self.execute(&self.program, socket, FILE_TRIES);
        };
        let again = socket.try_clone()?;
        let refused = match self.execute(&sealed.path(), again, 0) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
            // A task of root can keep the image of its shim open as if to write, which the seals forbid. As long
            // as it does, nobody can execute it.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                let copy = self.seal_again()?;
                return self.execute(&copy.path(), socket, 0);
            }
            outcome => return outcome,
        };
        // Before Linux 6.3 a task of root can take away that it can be executed.
        let again = socket.try_clone()?;
        if let Ok(child) =
            (sealed.make_executable()).and_then(|()| self.execute(&sealed.path(), again, 0))
        {
            return Ok(child);
        }
        TELL_REFUSED.call_once(|| {
            tracing::warn!(error = %refused, program = %self.program.display(),
                "no memory can be executed, so shims run from their file, which tasks of root can change");
        });
        self.execute(&self.program, socket, FILE_TRIES)
    }

    fn execute(&self, program: &Path, socket: OwnedFd, most: usize) -> io::Result<Child> {
        // No pre_exec, no uid, no group: so the standard library takes its fast way, which does not
        // copy the agent's page tables.
        let mut command = Command::new(program);
        command
            .arg0(&self.program)
            .env_clear()
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut tries = 0;
        loop {
            match command.spawn() {
                // The program was only just written, and while it was, another thread started a
                // process, which holds a copy of the descriptor until it executes its own program.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < most => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => {
                    return Err(named(&error, format!("run {}", self.program.display())));
                }
                Ok(child) => return Ok(child),
            }
        }
    }
}

/// Sees the end of a shim that refused, or closed its socket without an answer: either way it is ending.
/// One that is stopped again and again is not.
fn end_child(child: &mut Child, error: StartError) -> StartError {
    if matches!(&error, StartError::Spawn(error) if error.kind() == io::ErrorKind::WouldBlock) {
        let _ = child.kill();
    }
    let status = child.wait();
    let killed = status.is_ok_and(|status| status.signal().is_some());
    match error {
        StartError::Spawn(_) if killed => StartError::Lost,
        error => error,
    }
}

/// Says what to do, and hears how it went. A shim that is stopped meanwhile is continued; else there is
/// no limit to how long it may take, since the program may lie on a disk that is slow.
fn converse(
    socket: OwnedFd,
    message: &[u8],
    fds: &[BorrowedFd<'_>],
    shim: &ShimProcess,
) -> Result<Process, StartError> {
    for side in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, side, Some(SLICE))?;
    }
    let shim = Some(shim);
    let (header, body) = message.split_at(wire::HEADER);
    const MOST: usize = wire::START_FDS + wire::MORE_FDS;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    let header = [IoSlice::new(header)];
    let sent = retry_until(shim, None, || {
        sendmsg(&socket, &header, &mut control, SendFlags::NOSIGNAL)
    });
    // A shim that refuses does not read on: then its answer says more than a broken pipe does.
    let sent = sent.and_then(|_| write_all(&socket, body, shim));
    let mut answer = [0; wire::ANSWER];
    let received = read_exact(&socket, &mut answer, shim);
    if received.is_err() {
        sent?;
        received.map_err(|error| named(&error, "the shim died before it answered".to_owned()))?;
    }
    parse(&answer)
}

fn write_all(socket: &OwnedFd, mut bytes: &[u8], shim: Option<&ShimProcess>) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = retry_until(shim, None, || send(socket, bytes, SendFlags::NOSIGNAL))?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

fn read_exact(socket: &OwnedFd, answer: &mut [u8], shim: Option<&ShimProcess>) -> io::Result<()> {
    let mut len = 0;
    while let Some(rest) = answer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match retry_until(shim, None, || read(socket, &mut *rest))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => len += more,
        }
    }
    Ok(())
}

fn parse(answer: &[u8; wire::ANSWER]) -> Result<Process, StartError> {
    let mut words = [0_u32; wire::ANSWER / 4];
    for (word, bytes) in words.iter_mut().zip(answer.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    let [kind, step, errno, path, pid, _, low, high] = words;
    if kind == Verdict::Started as u32 {
        let start_time = u64::from(low) | u64::from(high) << 32;
        return Ok(Process {
            pid: pid.cast_signed(),
            start_time,
        });
    }
    if kind == Verdict::AlreadyClaimed as u32 {
        return Err(StartError::AlreadyClaimed);
    }
    match (kind == Verdict::Failed as u32, Step::from_raw(step)) {
        (true, Some(step)) => Err(StartError::Exec {
            step,
            errno: errno.cast_signed(),
            path: Some(path.to_string()),
        }),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the shim's answer is invalid").into()),
    }
}

/// Puts the path in place of its number.
fn name_path(error: StartError, spec: &LaunchSpec<'_>) -> StartError {
    let StartError::Exec { step, errno, path } = error else {
        return error;
    };
    let number = path
        .and_then(|path| path.parse::<usize>().ok())
        .unwrap_or_default();
    let path = match step {
        Step::Cgroup => spec
            .cgroup
            .procs
            .get(number)
            .map(|path| path.display().to_string()),
        Step::Exec => spec
            .program
            .get(number)
            .map(|path| path.to_string_lossy().into_owned()),
        Step::Mount => {
            let mounts = spec
                .isolation
                .map_or(&[][..], |isolation| isolation.mounts());
            let place = mounts.get(number).map(|it| it.place.to_string_lossy());
            place.map(|place| format!("/{place}"))
        }
        Step::WorkDir => spec
            .work_dir
            .map(|path| path.to_string_lossy().into_owned()),
        _ => None,
    };
    StartError::Exec { step, errno, path }
}
