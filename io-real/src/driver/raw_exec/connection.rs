//! The standard streams of a session's program: pipes, or a terminal; and its lifeline.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::session::{CHUNK, WindowSize};
use crate::shim::SessionStreams;

/// What a terminal takes for the end of its input.
const END_OF_TRANSMISSION: u8 = 4;

/// The agent's ends.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) streams: Streams,
    /// The program is hung up when this is dropped, also because the agent dies.
    pub(super) lifeline: OwnedFd,
}

/// Where a program's input goes and its output comes from.
#[derive(Debug)]
pub(super) enum Streams {
    /// A terminal.
    Terminal(OwnedFd),
    /// Three pipes.
    Pipes {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
}

/// The program's ends.
#[derive(Debug)]
pub(super) struct Ends {
    /// One of a terminal; of pipes one for each standard stream.
    streams: Vec<OwnedFd>,
    lifeline: OwnedFd,
    tty: bool,
}

impl Ends {
    /// As the shim wants them.
    pub(super) fn streams(&self) -> SessionStreams<'_> {
        let end = |at: usize| {
            let own = self.streams.get(at).or(self.streams.first());
            own.unwrap_or(&self.lifeline).as_fd()
        };
        SessionStreams {
            stdin: end(0),
            stdout: end(1),
            stderr: end(2),
            tty: self.tty,
            lifeline: self.lifeline.as_fd(),
        }
    }
}

/// What a program's streams are to be.
#[derive(Debug)]
pub(super) enum Wanted {
    /// Three pipes.
    Pipes,
    /// A terminal of the machine.
    Terminal,
    /// A terminal of the task, which this is one side of.
    OwnTerminal(OwnedFd),
}

/// Makes both ends of a program's streams. A terminal belongs to `owner`, or else to the agent's user.
pub(super) fn open(wanted: Wanted, owner: Option<u32>) -> io::Result<(Connection, Ends)> {
    let (lifeline_end, lifeline) = pipe()?;
    let tty = !matches!(wanted, Wanted::Pipes);
    let (streams, ends) = match wanted {
        Wanted::Pipes => pipes()?,
        Wanted::Terminal => {
            let made = openpt(FLAGS).and_then(|made| terminal(made, owner));
            made.map_err(|errno| no_terminal(&errno.into()))?
        }
        Wanted::OwnTerminal(own) => {
            terminal(own, owner).map_err(|errno| no_terminal(&errno.into()))?
        }
    };
    let ends = Ends {
        streams: ends,
        lifeline: lifeline_end,
        tty,
    };
    Ok((Connection { streams, lifeline }, ends))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}

fn pipes() -> io::Result<(Streams, Vec<OwnedFd>)> {
    let [
        (stdin_end, stdin),
        (stdout, stdout_end),
        (stderr, stderr_end),
    ] = [pipe()?, pipe()?, pipe()?];
    let streams = Streams::Pipes {
        stdin,
        stdout,
        stderr,
    };
    Ok((streams, vec![stdin_end, stdout_end, stderr_end]))
}

/// How both sides of a terminal are opened.
const FLAGS: OpenptFlags = OpenptFlags::RDWR
    .union(OpenptFlags::NOCTTY)
    .union(OpenptFlags::CLOEXEC);

/// A terminal, and the side of the program that uses it: never by its path, which may lead elsewhere by now.
fn terminal(terminal: OwnedFd, owner: Option<u32>) -> Result<(Streams, Vec<OwnedFd>), Errno> {
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    let end = ioctl_tiocgptpeer(&terminal, FLAGS)?;
    if let Some(owner) = owner {
        // The group, which may write to each other's terminals, stays as the system wants it.
        let group = Gid::from_raw(fstat(&end)?.st_gid);
        fchown(&end, Some(Uid::from_raw(owner)), Some(group))?;
        fchmod(&end, Mode::RUSR | Mode::WUSR | Mode::WGRP)?;
    }
    Ok((Streams::Terminal(terminal), vec![end]))
}

/// Says what was wanted.
pub(super) fn no_terminal(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot make a terminal: {error}"))
}

/// One of the agent's ends, without blocking. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    fd: Arc<AsyncFd<OwnedFd>>,
    is_terminal: bool,
}

impl Stream {
    pub(super) fn new(fd: OwnedFd, interest: Interest, is_terminal: bool) -> io::Result<Stream> {
        let flags = fcntl_getfl(&fd)?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        // SAFETY: the registration owns the descriptor, and never gives it away.
        let fd = unsafe { AsyncFd::register_with_interest(fd, interest) }?;
        let fd = Arc::new(fd);
        Ok(Stream { fd, is_terminal })
    }

    /// Some output; nothing at its end.
    pub(super) async fn read(&self) -> io::Result<Bytes> {
        let mut chunk = vec![0; CHUNK];
        let read = self.fd.async_io(Interest::READABLE, |fd| {
            Ok(rustix::io::read(fd, chunk.as_mut_slice())?)
        });
        match read.await {
            Ok(count) => {
                chunk.truncate(count);
                Ok(Bytes::from(chunk))
            }
            // What a terminal says that no program has open any more.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
                Ok(Bytes::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes all of it, as fast as the program reads.
    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let write = |fd: &OwnedFd| Ok(rustix::io::write(fd, bytes)?);
            let count = self.fd.async_io(Interest::WRITABLE, write).await?;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Whether it is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Tells a program with a terminal that there is no more input.
    pub(super) async fn end_of_input(&self) {
        if self.is_terminal {
            // Who does not read does not see it either.
            let _ = self.write(&[END_OF_TRANSMISSION]).await;
        }
    }

    /// The terminal is so large from now on, if it is one.
    pub(super) fn resize(&self, size: WindowSize) {
        if self.is_terminal {
            let size = Winsize {
                ws_row: size.height,
                ws_col: size.width,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            // It goes with the program, whose end is seen elsewhere.
            let _ = tcsetwinsize(&*self.fd, size);
        }
    }
}
