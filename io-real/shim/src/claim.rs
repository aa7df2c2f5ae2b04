//! The claim on a launch: its locked record, and the control socket beside it.

use crate::proc;
use crate::record::{self, Id, Record, State};
use crate::spec::Fault;
use crate::text::Text;
use crate::wire::Step;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, fdatasync, flock, openat, unlinkat};
use rustix::io::{Errno, Result, pread, pwrite};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::process::{Pid, getpid};

/// The record with its lock. The lock lasts until every copy of the descriptor is closed.
pub struct Claim {
    file: OwnedFd,
    /// What the file says, or will once it is saved.
    pub record: Record,
}

impl Claim {
    /// Writes the record.
    pub fn save(&mut self) -> Result<()> {
        self.record.seq += 1;
        pwrite(&self.file, &self.record.encode(), self.record.offset()).map(|_| ())
    }

    /// In a forked child: closes its copy of the file, or the child would hold the lock as well.
    pub fn abandon_copy(&mut self) {
        // SAFETY: the child never returns from here into code that uses or drops the file.
        unsafe { rustix::io::close(self.file.as_raw_fd()) };
    }

    /// Makes what was saved survive a power cut.
    pub fn sync(&self) {
        let _ = fdatasync(&self.file);
    }
}

/// Why a record was not had.
pub enum Refusal {
    /// The launch is decided already.
    Taken,
    /// Something failed.
    Fault(Fault),
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Locks the record in the current directory. `None` as content means that it was empty.
fn lock(launch: &Id, create: OFlags) -> core::result::Result<(OwnedFd, Option<Record>), Refusal> {
    let fault = Fault::at(Step::Record);
    let name = Text::new().push(launch).push(b".r");
    let flags = OFlags::RDWR | create | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = match openat(CWD, name.as_c_str(), flags, mode) {
        // Forgotten meanwhile: nobody's any more.
        Err(Errno::NOENT) => return Err(Refusal::Taken),
        file => file.map_err(&fault)?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(Refusal::Taken),
        Err(errno) => return Err(fault(errno).into()),
    }
    let mut content = [0; record::FILE];
    match pread(&file, &mut content, 0).map_err(&fault)? {
        0 => Ok((file, None)),
        _ => match Record::newest(&content) {
            Some(record) => Ok((file, Some(record))),
            None => Err(Refusal::Taken),
        },
    }
}

/// Claims a launch that nobody decided yet. The current directory must be the run directory.
pub fn fresh(launch: &Id) -> core::result::Result<(Claim, OwnedFd), Refusal> {
    let (file, content) = lock(launch, OFlags::CREATE)?;
    if content.is_some() {
        return Err(Refusal::Taken);
    }
    // The socket comes first: who reads `Starting` can connect, and waits for an answer.
    let socket = open_socket(launch)?;
    let mut claim = Claim {
        file,
        record: Record::new(*launch, proc::boot_id(), State::Starting),
    };
    claim.record.shim = myself();
    claim.save().map_err(Fault::at(Step::Record))?;
    Ok((claim, socket))
}

/// Takes the record of a shim that died while its task ran.
pub fn inherit(launch: &Id) -> core::result::Result<(Claim, OwnedFd), Refusal> {
    let (file, content) = lock(launch, OFlags::empty())?;
    let record = match content {
        Some(record)
            if matches!(record.state, State::Running | State::Ended)
                && record.boot == proc::boot_id() =>
        {
            record
        }
        _ => return Err(Refusal::Taken),
    };
    let socket = open_socket(launch)?;
    let mut claim = Claim { file, record };
    claim.record.shim = myself();
    claim.save().map_err(Fault::at(Step::Record))?;
    Ok((claim, socket))
}

fn myself() -> record::Process {
    proc::identity(Pid::as_raw(Some(getpid())))
}

/// Listens at `<launch>.s` in the current directory: a full path may exceed a socket's 108 bytes.
fn open_socket(launch: &Id) -> core::result::Result<OwnedFd, Fault> {
    let fault = Fault::at(Step::Socket);
    let name = Text::new().push(launch).push(b".s");
    // We hold the lock, so whoever left this socket is dead.
    let _ = unlinkat(CWD, name.as_c_str(), AtFlags::empty());
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(&fault)?;
    let address = SocketAddrUnix::new(name.as_c_str()).map_err(&fault)?;
    bind(&socket, &address).map_err(&fault)?;
    listen(&socket, 4).map_err(&fault)?;
    Ok(socket)
}
