//! One output stream: from the task's pipe to its log files, without ever holding a byte.
//!
//! `splice` takes bytes out of the pipe and puts them into the file in one step, so whenever the
//! shim is killed, each byte is in exactly one of the two. Nothing is read into memory; to look for
//! the end of a line, the pipe's content is duplicated with `tee`.

use crate::logs;
use crate::record::LogFile;
use core::ffi::CStr;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, Result, ioctl_fionread, read};
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice, tee};

/// Bytes that one visit may move, so that a flood leaves time for everything else.
const VISIT: u64 = 256 << 10;

/// Near a file's end a half line is kept for the next file if up to this much room is left.
const RESERVE: u64 = 4096;

/// What a visit ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// The pipe is empty, or the visit was long enough.
    Going,
    /// Nobody can write any more and all is written.
    Ended,
    /// The disk refuses; the bytes wait in the pipe.
    Stuck,
}

/// What a step did.
enum Piece {
    /// Moved that many bytes.
    Moved(u64),
    /// Began a new file. Before a byte goes into it, the record has to name it: a shim that takes
    /// over would go on with the old one, and mix up the order.
    NewFile,
    /// The pipe is empty.
    None,
}

/// A stream.
pub struct Stream {
    /// The pipe's read end; none if output is thrown away.
    pub pipe: Option<OwnedFd>,
    /// Nobody can write any more, and all is written.
    pub ended: bool,
    /// Bytes moved so far.
    pub moved: u64,
    /// What the record says of the current file.
    pub log: LogFile,
    /// The last visit got stuck.
    pub stuck: bool,
    base: &'static CStr,
    file: Option<OwnedFd>,
    size: u64,
    full: bool,
    max_files: u32,
    max_size: u64,
}

impl Stream {
    /// A stream without a file. Without a pipe, too, it is one that ended before it began.
    pub fn new(pipe: Option<OwnedFd>, base: &'static CStr, max_files: u32, max_size: u64) -> Self {
        Self {
            ended: pipe.is_none(),
            pipe,
            moved: 0,
            log: LogFile::default(),
            stuck: false,
            base,
            file: None,
            size: 0,
            full: false,
            max_files,
            max_size,
        }
    }

    /// Goes on in the newest file, or opens a new one after all that are there.
    pub fn begin(&mut self) -> Result<()> {
        if self.pipe.is_none() {
            return Ok(());
        }
        let mut census = logs::census(self.base)?;
        match logs::newest(self.base, &census, self.max_size) {
            Some((file, log, size)) => self.go_on(file, log, size),
            None => {
                self.create(census.next)?;
                census.count += 1;
            }
        }
        if census.count > self.max_files {
            self.prune();
        }
        Ok(())
    }

    /// Goes on with the file of a dead shim; a new one if that is not what it was.
    pub fn resume(&mut self, log: LogFile) -> Result<()> {
        if self.pipe.is_none() {
            return Ok(());
        }
        match logs::reopen(self.base, log) {
            Some((file, size)) => {
                self.go_on(file, log, size);
                Ok(())
            }
            None => self.begin(),
        }
    }

    fn go_on(&mut self, file: OwnedFd, log: LogFile, size: u64) {
        (self.file, self.log, self.size, self.full) = (Some(file), log, size, false);
    }

    fn create(&mut self, from: u64) -> Result<()> {
        let (file, log) = logs::create(self.base, from)?;
        self.go_on(file, log, 0);
        Ok(())
    }

    /// A name that cannot be deleted must not stop the output.
    fn prune(&self) {
        let _ = logs::prune(self.base, self.max_files);
    }

    /// Bytes that wait in the pipe.
    pub fn waiting(&self) -> u64 {
        let waiting = self.pipe.as_ref().map(ioctl_fionread);
        waiting.and_then(Result::ok).unwrap_or(0)
    }

    /// Moves what waits, as far as a visit goes. `hung_up`: the last writer was gone before.
    pub fn visit(&mut self, hung_up: bool) {
        let mut moved = 0;
        let flow = loop {
            if moved >= VISIT {
                break Flow::Going;
            }
            match self.step() {
                Ok(Piece::Moved(bytes)) => moved += bytes,
                Ok(Piece::None) if hung_up => break Flow::Ended,
                Ok(Piece::None | Piece::NewFile) => break Flow::Going,
                Err(Errno::AGAIN | Errno::INTR) => break Flow::Going,
                Err(_) => break Flow::Stuck,
            }
        };
        self.moved += moved;
        self.stuck = flow == Flow::Stuck;
        self.ended = flow == Flow::Ended;
    }

    /// Moves one piece.
    fn step(&mut self) -> Result<Piece> {
        loop {
            let waiting = self.waiting();
            let Some(pipe) = self.pipe.as_ref().filter(|_| waiting > 0) else {
                return Ok(Piece::None);
            };
            let file = match &self.file {
                Some(file) if !self.full && self.size < self.max_size => file,
                _ => {
                    self.create(self.log.index + 1)?;
                    self.prune();
                    return Ok(Piece::NewFile);
                }
            };
            let space = self.max_size - self.size;
            let cut = if waiting + RESERVE.min(self.max_size / 4) <= space {
                Cut {
                    len: waiting,
                    full: false,
                }
            } else {
                cut(pipe, waiting.min(space), space, self.size == 0)
            };
            if cut.len == 0 {
                self.full = true;
                continue;
            }
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let len = cut.len as usize;
            let moved = splice(pipe, None, file, Some(&mut self.size), len, flags)?;
            self.full = cut.full && moved == len;
            // Nothing moved though bytes wait: a file that takes none. Do not spin.
            return if moved == 0 {
                Err(Errno::IO)
            } else {
                Ok(Piece::Moved(moved as u64))
            };
        }
    }
}

/// How much to put into the current file, and whether that ends it.
struct Cut {
    len: u64,
    full: bool,
}

/// Cuts at the end of a line: of the first `window` bytes in the pipe those up to the last newline.
fn cut(pipe: &OwnedFd, window: u64, space: u64, empty: bool) -> Cut {
    let Ok((seen, line_end)) = last_line_end(pipe, window) else {
        // No descriptor or no memory to look: cut anywhere.
        return Cut {
            len: window,
            full: false,
        };
    };
    if line_end > 0 {
        Cut {
            len: line_end,
            full: true,
        }
    } else if seen < space || empty {
        // A part of a line that fits still, or a line longer than a file.
        Cut {
            len: seen,
            full: false,
        }
    } else {
        Cut { len: 0, full: true }
    }
}

/// Looks at up to `window` bytes in the pipe: how many were seen, and how many of them end with the
/// last newline (0 = there is none).
fn last_line_end(pipe: &OwnedFd, window: u64) -> Result<(u64, u64)> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    let total = tee(pipe, &to, window as usize, SpliceFlags::NONBLOCK)? as u64;
    let mut buffer = [0; 1024];
    let (mut seen, mut line_end) = (0, 0);
    while seen < total {
        let len = read(&from, &mut buffer)?;
        if len == 0 {
            break;
        }
        let chunk = buffer.get(..len).unwrap_or_default();
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            line_end = seen + at as u64 + 1;
        }
        seen += len as u64;
    }
    Ok((seen, line_end))
}
