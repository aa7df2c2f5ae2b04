//! Sockets of clients: those that come over the network, and those of the agent's own user, who opens a file.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
use std::time::Duration;

use drover_io_real::connect::keep_alive;
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, open, renameat, unlinkat};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixListener, UnixStream};

/// How long a connection is silent before the kernel asks whether its client still exists.
const SILENCE: Duration = Duration::from_secs(60);

/// Over what a request came. The default is what is trusted with nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::http) enum Transport {
    /// A network, be it that of this machine alone.
    #[default]
    Network,
    /// The unix socket, which nobody but the agent's own user can open.
    Local,
}

/// The socket of a client.
#[derive(Debug)]
pub(super) enum Socket {
    Network(TcpStream),
    Local(UnixStream),
}

impl Socket {
    pub(super) fn transport(&self) -> Transport {
        match self {
            Socket::Network(_) => Transport::Network,
            Socket::Local(_) => Transport::Local,
        }
    }

    /// Sets what cannot fail on a socket, and would do no harm.
    pub(super) fn prepare(&self) {
        let Socket::Network(stream) = self else {
            return;
        };
        // Log lines shall not wait for more of them.
        let _ = stream.set_nodelay(true);
        keep_alive(stream, SILENCE);
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        match self {
            Socket::Network(stream) => stream.readable().await,
            Socket::Local(stream) => stream.readable().await,
        }
    }

    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Network(stream) => stream.try_read(into),
            Socket::Local(stream) => stream.try_read(into),
        }
    }

    /// What is there, as [`Socket::try_read`]. After less than there is room for nothing is read again until more
    /// arrives: that would be a system call for each request, in vain.
    pub(super) fn try_read_all(&self, into: &mut [u8]) -> io::Result<usize> {
        let room = into.len();
        let mut last = None;
        let read = || match rustix::io::read(self, &mut *into) {
            Ok(count) if count == 0 || count == room => Ok(count),
            // As if it had been asked once more, and had had nothing.
            Ok(count) => {
                last = Some(count);
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(errno) => Err(errno.into()),
        };
        let read = match self {
            Socket::Network(stream) => stream.try_io(Interest::READABLE, read),
            Socket::Local(stream) => stream.try_io(Interest::READABLE, read),
        };
        last.map_or(read, Ok)
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Network(stream) => stream.try_write(bytes),
            Socket::Local(stream) => stream.try_write(bytes),
        }
    }

    pub(super) fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Network(stream) => stream.try_write_vectored(parts),
            Socket::Local(stream) => stream.try_write_vectored(parts),
        }
    }

    pub(super) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Network(stream) => stream.poll_read_ready(cx),
            Socket::Local(stream) => stream.poll_read_ready(cx),
        }
    }

    pub(super) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Network(stream) => stream.poll_write_ready(cx),
            Socket::Local(stream) => stream.poll_write_ready(cx),
        }
    }

    /// What comes next, which is still there afterwards. Nothing on a unix socket: there it is not needed.
    pub(super) async fn peek(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Network(stream) => stream.peek(into).await,
            Socket::Local(_) => Ok(0),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Network(stream) => stream.as_fd(),
            Socket::Local(stream) => stream.as_fd(),
        }
    }
}

/// The unix socket of an agent. Its file is removed with this.
#[derive(Debug)]
pub struct LocalSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is: a later agent's has the same name.
    file: (u64, u64),
}

impl LocalSocket {
    /// Its name in the agent's directory.
    pub const NAME: &str = "api.sock";

    /// Listens in a directory of which no other agent makes use. What an earlier agent left there is replaced.
    ///
    /// # Errors
    /// The disk says no.
    pub fn listen(dir: &Path) -> io::Result<LocalSocket> {
        const NEW: &str = ".api.sock.new";
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = open(dir, flags, Mode::empty())?;
        let _ = unlinkat(&handle, NEW, AtFlags::empty());
        // By its handle, since a path of a socket must be short. Until it is closed to others it has another name.
        let bound = UnixListener::bind(format!("/proc/self/fd/{}/{NEW}", handle.as_raw_fd()));
        let listener = bound?;
        chmodat(&handle, NEW, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        renameat(&handle, NEW, &handle, LocalSocket::NAME)?;
        let path = dir.join(LocalSocket::NAME);
        Ok(LocalSocket {
            listener,
            file: file_at(&path)?,
            path,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next client, who is the agent's own user or root.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let peer = stream.peer_cred()?.uid();
            if peer == 0 || peer == rustix::process::geteuid().as_raw() {
                return Ok(stream);
            }
            tracing::warn!(
                user = peer,
                "another user opened the unix socket of the API"
            );
        }
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if file_at(&self.path).is_ok_and(|file| file == self.file) {
            // It may be gone with its directory.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}
