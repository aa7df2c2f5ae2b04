//! The record of a launch: the state that a shim and an agent exchange through a file.
//!
//! `run/<launch>.r` holds two slots of [`SIZE`] bytes, at offsets 0 and [`SLOT`]. A writer raises
//! `seq` and writes slot `seq % 2`, so that a write torn by a power cut leaves the older slot
//! whole; a reader takes the valid slot with the higher `seq`. Everything is little-endian.
//!
//! Who holds the file's exclusive `flock` may write. A shim holds it for its whole life, so a free
//! lock proves that the shim is dead. The first who locks an *empty* record decides the launch: a
//! shim by writing [`State::Starting`], an agent by writing [`State::Abandoned`].
//!
//! | offset | type    | field                                               |
//! |-------:|---------|-----------------------------------------------------|
//! |      0 | u32     | magic `DRVR`                                        |
//! |      4 | u16     | version                                             |
//! |      6 | u8      | state                                               |
//! |      7 | u8      | flags: 1 = out of memory, 2 = log bytes were lost   |
//! |      8 | u64     | seq                                                 |
//! |     16 | [u8;36] | launch id                                           |
//! |     52 | [u8;36] | boot id                                             |
//! |     88 | i32,u64 | shim: pid, start time (clock ticks since boot)      |
//! |    100 | i32,u64 | task: pid, start time                               |
//! |    112 | u64     | started, ns since 1970                              |
//! |    120 | u64     | finished, ns since 1970; 0 = not yet                |
//! |    128 | u32,i32 | exit: kind (0 none, 1 code, 2 signal, 3 unknown)    |
//! |    136 | u32,i32,u32 | failure: step, errno, number of the path        |
//! |    148 | u64     | the group's OOM kills before the start              |
//! |    156 | 3×u64   | stdout's log file: device, inode, index             |
//! |    180 | 3×u64   | stderr's log file                                   |
//! |    204 | i32,u64 | process that holds the namespaces: pid, start time   |
//! |    248 | u64     | FNV-1a of all before                                |

/// Bytes of one encoded record.
pub const SIZE: usize = 256;
/// Offset of the second slot: another disk sector than the first.
pub const SLOT: usize = 512;
/// Bytes to read to get both slots.
pub const FILE: usize = SLOT + SIZE;

const MAGIC: u32 = u32::from_le_bytes(*b"DRVR");
const VERSION: u16 = 1;
const SUM_AT: usize = SIZE - 8;
const OOM: u8 = 1;
const LOST: u8 = 2;

/// A launch id or a boot id: a UUID as text.
pub type Id = [u8; 36];

/// Where a launch stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Claimed by a shim; the program has not been executed.
    Starting = 1,
    /// The task's pid is known; the program is about to be, or was, executed.
    Running = 2,
    /// The main process ended and `exit` is set; what it left is being cleaned up.
    Ended = 3,
    /// Final: ended, cleaned up, all output written.
    Exited = 4,
    /// Final: the program could not be executed.
    Failed = 5,
    /// Final: an agent gave the launch up before any shim claimed it.
    Abandoned = 6,
}

impl State {
    fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Starting,
            2 => Self::Running,
            3 => Self::Ended,
            4 => Self::Exited,
            5 => Self::Failed,
            6 => Self::Abandoned,
            _ => return None,
        })
    }
}

/// A process, told apart from later ones with the same pid by its start time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Process {
    /// Process id; 0 = none.
    pub pid: i32,
    /// Clock ticks from boot to its start (field 22 of `/proc/<pid>/stat`).
    pub start_time: u64,
}

/// How the main process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// It has not.
    None,
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// It ended while no shim was there to see how.
    Unknown,
}

impl Exit {
    fn raw(self) -> (u32, i32) {
        match self {
            Self::None => (0, 0),
            Self::Code(code) => (1, code),
            Self::Signal(signal) => (2, signal),
            Self::Unknown => (3, 0),
        }
    }

    fn from_raw(kind: u32, value: i32) -> Option<Self> {
        Some(match kind {
            0 => Self::None,
            1 => Self::Code(value),
            2 => Self::Signal(value),
            3 => Self::Unknown,
            _ => return None,
        })
    }

    /// Reads a status as `wait(2)` gives it.
    pub fn from_wait_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Code((status >> 8) & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

/// Why the program could not be executed; see `wire::Step` for the steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failure {
    /// The step that failed; 0 = none.
    pub step: u32,
    /// The system's error number.
    pub errno: i32,
    /// Which of the candidate paths, or of the cgroup files, it was; counted from 0.
    pub path: u32,
}

/// Identity of the log file that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogFile {
    /// Device number.
    pub dev: u64,
    /// Inode number; 0 = no file.
    pub ino: u64,
    /// The number at the end of its name.
    pub index: u64,
}

/// Everything that is known about a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// Counts the writes.
    pub seq: u64,
    /// Where the launch stands.
    pub state: State,
    /// The launch.
    pub launch: Id,
    /// The boot in which the processes below lived.
    pub boot: Id,
    /// The shim that wrote this.
    pub shim: Process,
    /// The task's main process.
    pub task: Process,
    /// The first process of an isolated task's namespaces, which holds them; of others none.
    pub holder: Process,
    /// Start of the task, wall clock, ns.
    pub started_ns: u64,
    /// End of the main process, wall clock, ns.
    pub finished_ns: u64,
    /// How the main process ended.
    pub exit: Exit,
    /// The kernel killed something in the task's cgroup for lack of memory.
    pub oom: bool,
    /// Output that could not be written was dropped at the end.
    pub lost: bool,
    /// Why it could not be started.
    pub failure: Failure,
    /// OOM kills counted in the cgroup before the start.
    pub oom_base: u64,
    /// Log files of stdout and stderr.
    pub logs: [LogFile; 2],
}

impl Record {
    /// A record of `launch` with nothing in it.
    pub fn new(launch: Id, boot: Id, state: State) -> Self {
        Self {
            seq: 0,
            state,
            launch,
            boot,
            shim: Process::default(),
            task: Process::default(),
            holder: Process::default(),
            started_ns: 0,
            finished_ns: 0,
            exit: Exit::None,
            oom: false,
            lost: false,
            failure: Failure::default(),
            oom_base: 0,
            logs: [LogFile::default(); 2],
        }
    }

    /// Offset in the file of the slot this version belongs to.
    pub fn offset(&self) -> u64 {
        (self.seq % 2) * SLOT as u64
    }

    /// Encodes the record for its slot.
    pub fn encode(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        let mut w = Writer {
            out: &mut out,
            at: 0,
        };
        w.put(&MAGIC.to_le_bytes());
        w.put(&VERSION.to_le_bytes());
        let flags = if self.oom { OOM } else { 0 } | if self.lost { LOST } else { 0 };
        w.put(&[self.state as u8, flags]);
        w.u64(self.seq);
        w.put(&self.launch);
        w.put(&self.boot);
        for process in [self.shim, self.task] {
            w.i32(process.pid);
            w.u64(process.start_time);
        }
        w.u64(self.started_ns);
        w.u64(self.finished_ns);
        let (kind, value) = self.exit.raw();
        w.u32(kind);
        w.i32(value);
        w.u32(self.failure.step);
        w.i32(self.failure.errno);
        w.u32(self.failure.path);
        w.u64(self.oom_base);
        for log in self.logs {
            w.u64(log.dev);
            w.u64(log.ino);
            w.u64(log.index);
        }
        w.i32(self.holder.pid);
        w.u64(self.holder.start_time);
        let sum = checksum(&out);
        Writer {
            out: &mut out,
            at: SUM_AT,
        }
        .u64(sum);
        out
    }

    /// Decodes one slot; `None` if it is torn, foreign or of another version.
    pub fn decode(slot: &[u8]) -> Option<Self> {
        let slot: &[u8; SIZE] = slot.get(..SIZE)?.try_into().ok()?;
        let mut sum = Reader {
            bytes: slot,
            at: SUM_AT,
        };
        if sum.u64()? != checksum(slot) {
            return None;
        }
        let mut r = Reader { bytes: slot, at: 0 };
        if r.u32()? != MAGIC || u16::from_le_bytes(r.take()?) != VERSION {
            return None;
        }
        let [state, flags] = r.take()?;
        let seq = r.u64()?;
        let mut record = Self::new(r.take()?, r.take()?, State::from_raw(state)?);
        record.seq = seq;
        record.oom = flags & OOM != 0;
        record.lost = flags & LOST != 0;
        record.shim = Process {
            pid: r.i32()?,
            start_time: r.u64()?,
        };
        record.task = Process {
            pid: r.i32()?,
            start_time: r.u64()?,
        };
        record.started_ns = r.u64()?;
        record.finished_ns = r.u64()?;
        record.exit = Exit::from_raw(r.u32()?, r.i32()?)?;
        record.failure = Failure {
            step: r.u32()?,
            errno: r.i32()?,
            path: r.u32()?,
        };
        record.oom_base = r.u64()?;
        for log in &mut record.logs {
            *log = LogFile {
                dev: r.u64()?,
                ino: r.u64()?,
                index: r.u64()?,
            };
        }
        record.holder = Process {
            pid: r.i32()?,
            start_time: r.u64()?,
        };
        Some(record)
    }

    /// Takes the newest valid slot of a file's content.
    pub fn newest(file: &[u8]) -> Option<Self> {
        let first = Self::decode(file);
        let second = file.get(SLOT..).and_then(Self::decode);
        match (first, second) {
            (Some(a), Some(b)) => Some(if a.seq > b.seq { a } else { b }),
            (a, b) => a.or(b),
        }
    }
}

fn checksum(slot: &[u8; SIZE]) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for byte in slot.iter().take(SUM_AT) {
        sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    sum
}

struct Writer<'a> {
    out: &'a mut [u8; SIZE],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        for (to, from) in self.out.iter_mut().skip(self.at).zip(bytes) {
            *to = *from;
        }
        self.at += bytes.len();
    }

    fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.bytes.get(self.at..)?.get(..N)?;
        self.at += N;
        bytes.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn i32(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
