//! A launch whose shim runs.

use super::home::{ShimHome, named};
use super::process::{SLICE, ShimProcess, retry_until};
use super::record::{self, Process, Record, State};
use super::recover::open_process;
use super::spec::ExitRecord;
use super::wire;
use rustix::io::{Errno, IoSliceMut};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg, send, socket_with,
};
use rustix::process::{Signal, pidfd_send_signal};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a shim may take to answer. It answers within microseconds, unless the disk under its
/// logs hangs.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// What became of a launch whose shim is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The task ended, nothing of it is left, all its output is written.
    Exited(ExitRecord),
    /// The shim was killed. The task may run on: see [`ShimHome::takeover`].
    ShimLost,
}

/// A launch whose shim runs, or did when this was made.
///
/// As a descriptor ([`AsFd`]) it is the shim's pidfd: readable when the shim is gone.
#[derive(Debug)]
pub struct Live {
    pub(super) launch: String,
    pub(super) home: ShimHome,
    pub(super) shim: ShimProcess,
    pub(super) task: Process,
    pub(super) pipes: Option<[OwnedFd; 2]>,
}

impl AsFd for Live {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shim.as_fd()
    }
}

impl Live {
    /// The launch id.
    pub fn launch(&self) -> &str {
        &self.launch
    }

    /// The task's main process.
    pub fn task(&self) -> Process {
        self.task
    }

    /// Read ends of the task's stdout and stderr; none if its output is thrown away. Never read
    /// from them: they are held so that no task loses its output, or is killed by writing it, when
    /// its shim is killed.
    pub fn pipes(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let pipes = self.pipes.as_ref()?;
        Some(pipes.each_ref().map(OwnedFd::as_fd))
    }

    /// Sends a signal to the task's main process; never to another, whatever became of its pid. It goes
    /// there without the shim if that one does not answer.
    ///
    /// # Errors
    /// ESRCH: it ended. EINVAL: no such signal. Others: the shim does not answer, and neither can we
    /// send it.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let Err(silent) = self.ask(wire::SIGNAL, signal) else {
            return Ok(());
        };
        match Signal::from_named_raw(signal) {
            Some(signal) if silent.raw_os_error().is_none() => self.signal_alone(signal),
            _ => Err(silent),
        }
    }

    /// Opens the task's main process, to wait for its end.
    ///
    /// # Errors
    /// `NotFound` or ESRCH: it ended.
    pub fn open_task(&self) -> io::Result<OwnedFd> {
        open_process(self.task)
    }

    /// Sends a signal to the task's main process without the help of the shim.
    fn signal_alone(&self, signal: Signal) -> io::Result<()> {
        match open_process(self.task) {
            Ok(handle) => Ok(pidfd_send_signal(handle, signal)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Errno::SRCH.into()),
            Err(error) => Err(error),
        }
    }

    /// Kills the task and everything it started. Comes back when the signals are sent; the shim
    /// ends once all are gone.
    ///
    /// # Errors
    /// The shim does not answer.
    pub fn kill(&self) -> io::Result<()> {
        self.ask(wire::KILL, 0)
    }

    /// Asks the shim for its record as it stands.
    ///
    /// # Errors
    /// The shim does not answer.
    pub fn hello(&self) -> io::Result<Record> {
        hello(self.home.run.as_fd(), &self.launch, Some(&self.shim)).map(|(record, _)| record)
    }

    /// What became of the launch; `None` while the shim runs. Reaps the shim if it is our child.
    ///
    /// # Errors
    /// As [`ShimHome::read_record`].
    pub fn outcome(&self) -> io::Result<Option<Outcome>> {
        if !self.shim.is_gone_within(Duration::ZERO)? {
            return Ok(None);
        }
        self.shim.reap();
        let record = self.home.read_record(&self.launch)?;
        let exit = record.filter(|record| record.state == State::Exited);
        Ok(Some(match exit.as_ref().and_then(ExitRecord::of) {
            Some(exit) => Outcome::Exited(exit),
            None => Outcome::ShimLost,
        }))
    }

    /// How the task ended, if its shim saw that before it was lost.
    ///
    /// # Errors
    /// As [`ShimHome::read_record`].
    pub fn last_exit(&self) -> io::Result<Option<ExitRecord>> {
        let record = self.home.read_record(&self.launch)?;
        Ok(record.as_ref().and_then(ExitRecord::of))
    }

    /// Whether the shim is gone, after waiting for that for so long.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn is_gone_within(&self, within: Duration) -> io::Result<bool> {
        self.shim.is_gone_within(within)
    }

    /// Continues the shim if a signal stopped it; true if one did.
    pub fn continue_if_stopped(&self) -> bool {
        self.shim.continue_if_stopped()
    }

    /// Whether the shim had to be continued, by this or by any request to it. True once.
    pub fn take_continued(&self) -> bool {
        self.shim.take_continued()
    }

    /// Kills the shim, and nothing else, and waits for its end for so long; true if it is gone. For one
    /// that does not answer.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn end_shim(&self, within: Duration) -> io::Result<bool> {
        self.shim.end(within)
    }

    fn ask(&self, operation: u32, argument: i32) -> io::Result<()> {
        let mut answer = [0; 4];
        let asked = ask(
            self.home.run.as_fd(),
            &self.launch,
            Some(&self.shim),
            operation,
            argument,
            &mut answer,
        );
        let (len, _) = match asked {
            Ok(answered) => answered,
            // A shim that ended with its task does not answer, which is no fault of its own.
            Err(_) if matches!(self.outcome(), Ok(Some(Outcome::Exited(_)))) => {
                return Err(Errno::SRCH.into());
            }
            Err(error) => return Err(gone(&error, &self.launch)),
        };
        match (len, i32::from_le_bytes(answer)) {
            (4, 0) => Ok(()),
            (4, errno) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shim.reap();
    }
}

fn gone(error: &io::Error, launch: &str) -> io::Error {
    named(error, format!("shim of launch {launch} does not answer"))
}

/// Asks the shim of a launch who it is.
pub(super) fn hello(
    run: BorrowedFd<'_>,
    launch: &str,
    shim: Option<&ShimProcess>,
) -> io::Result<(Record, Option<[OwnedFd; 2]>)> {
    let mut answer = [0; record::SIZE];
    let (_, pipes) = ask(run, launch, shim, wire::HELLO, 0, &mut answer)?;
    // None, if output is thrown away.
    let pipes = match pipes.len() {
        0 => Some(None),
        _ => <[OwnedFd; 2]>::try_from(pipes).ok().map(Some),
    };
    Record::decode(&answer)
        .zip(pipes)
        .ok_or_else(|| io::ErrorKind::ConnectionAborted.into())
}

/// One request, one answer: its length, and the descriptors that came with it. `shim` is continued if it
/// was stopped.
fn ask(
    run: BorrowedFd<'_>,
    launch: &str,
    shim: Option<&ShimProcess>,
    operation: u32,
    argument: i32,
    answer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>)> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    for side in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, side, Some(SLICE))?;
    }
    let until = Some(Instant::now() + ANSWER_TIME);
    if let Some(shim) = shim {
        shim.continue_if_stopped();
    }
    // A socket's path has 108 bytes at most, and a data directory may be deep.
    let path = format!("/proc/self/fd/{}/{launch}.s", run.as_raw_fd());
    let address = SocketAddrUnix::new(path)?;
    retry_until(shim, until, || connect(&socket, &address))?;
    let mut request = [0; wire::REQUEST];
    request[..4].copy_from_slice(&operation.to_le_bytes());
    request[4..].copy_from_slice(&argument.to_le_bytes());
    retry_until(shim, until, || send(&socket, &request, SendFlags::NOSIGNAL))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = retry_until(shim, until, || {
        let mut parts = [IoSliceMut::new(answer)];
        recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut fds = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    if message.bytes == 0 {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    // Descriptors came, and there was no room for them: not to be taken for none.
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Errno::MFILE.into());
    }
    Ok((message.bytes, fds))
}
