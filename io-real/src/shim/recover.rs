//! Finding out what became of a launch, after the agent that started it is gone.

use super::home::ShimHome;
use super::live::{self, Live};
use super::lock::{self, Content};
use super::process::ShimProcess;
use super::record::{Process, Record, State};
use super::spec::ExitRecord;
use super::wire::Step;
use crate::proc_stat::Stat;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// How often, and how far apart, to look again at a shim that is just being born or just dying.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(2);

/// What became of a launch; what runs is a `Shim`.
#[derive(Debug)]
pub enum Recovered<Shim = Live> {
    /// The shim runs.
    Running(Shim),
    /// The shim lives and does not answer, also after it was continued. All that it is good for is to
    /// be ended ([`Live::end_shim`]).
    Silent(Shim),
    /// The task ended, nothing of it is left, all its output is written.
    Exited(ExitRecord),
    /// The program could not be executed.
    Failed {
        /// What the shim was doing.
        step: Option<Step>,
        /// The system's error number.
        errno: i32,
    },
    /// It never started, and never will.
    ///
    /// If the machine went down since the launch was saved, a record that had not reached the disk
    /// gives this answer too; nothing of the task is left then either.
    NeverStarted,
    /// The machine restarted while the task ran, so nothing of it is left.
    Rebooted,
    /// The shim was killed while the task ran, or its record is damaged.
    Vanished {
        /// The main process, if it still runs. What is left is best killed through its cgroup.
        task: Option<Process>,
        /// How it ended, if the shim saw that before it was killed itself.
        exit: Option<ExitRecord>,
    },
}

impl ShimHome {
    /// Finds out what became of a launch. An undecided one is decided: it will never start.
    ///
    /// # Errors
    /// `InvalidInput`: not a launch id. `TimedOut`: a shim holds the launch but does not answer, and its
    /// record does not say which process it is. Others: what the file system says.
    pub fn recover(&self, launch: &str) -> io::Result<Recovered> {
        let id = lock::parse_id(launch)?;
        let file = lock::open(self.run.as_fd(), launch, true)?;
        let mut last = None;
        for _ in 0..TRIES {
            if lock::try_lock(&file)? {
                return settle(&file, id);
            }
            // A shim lives, and may have been stopped. Between its lock and its socket, and between its answer and its end,
            // are moments in which it does not answer.
            match self.meet(launch, known_shim(&file)?) {
                Ok(live) => return Ok(Recovered::Running(live)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    last = Some(error);
                    break;
                }
                Err(error) => last = Some(error),
            }
            std::thread::sleep(PAUSE);
        }
        if let Some((shim, task)) = known_shim(&file)? {
            return Ok(Recovered::Silent(self.live(launch, shim, task, None)));
        }
        let reason = last.map(|error| error.to_string()).unwrap_or_default();
        let message = format!("launch {launch}: its shim lives but does not answer: {reason}");
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    }

    fn meet(&self, launch: &str, known: Option<(ShimProcess, Process)>) -> io::Result<Live> {
        let known = known.map(|(shim, _)| shim);
        let (record, pipes) = live::hello(self.run.as_fd(), launch, known.as_ref())?;
        let shim = match known {
            Some(shim) if shim.pid() == record.shim.pid => shim,
            _ => open_shim(record.shim)?,
        };
        Ok(self.live(launch, shim, record.task, pipes))
    }
}

fn open_shim(process: Process) -> io::Result<ShimProcess> {
    Ok(ShimProcess::new(open_process(process)?, process.pid))
}

/// The shim that a record names, and its task, if that shim lives.
fn known_shim(file: &File) -> io::Result<Option<(ShimProcess, Process)>> {
    let Content::Valid(record) = lock::read(file)? else {
        return Ok(None);
    };
    if record.boot != lock::boot_id()? {
        return Ok(None);
    }
    let shim = open_shim(record.shim).ok();
    Ok(shim.map(|shim| (shim, record.task)))
}

/// Opens a process, if it is still that one; `NotFound` or ESRCH if not.
pub(crate) fn open_process(process: Process) -> io::Result<OwnedFd> {
    let gone = || io::Error::from(io::ErrorKind::NotFound);
    let handle = pidfd_open(
        Pid::from_raw(process.pid).ok_or_else(gone)?,
        PidfdFlags::empty(),
    )?;
    // Looked at after the handle was opened: the handle is of the process we looked at.
    if start_time(process.pid) == Some(process.start_time) {
        Ok(handle)
    } else {
        Err(gone())
    }
}

/// The start time of a process that is not a zombie.
fn start_time(pid: i32) -> Option<u64> {
    let stat = Stat::of(pid).ok()?;
    (!stat.is_zombie).then_some(stat.start_time)
}

/// Reads a record whose lock we hold, so that its shim is dead or there was none.
fn settle(file: &File, id: super::record::Id) -> io::Result<Recovered> {
    let record = match lock::read(file)? {
        Content::Valid(record) => record,
        Content::Empty => {
            lock::bury(file, id, None)?;
            return Ok(Recovered::NeverStarted);
        }
        Content::Damaged => {
            return Ok(Recovered::Vanished {
                task: None,
                exit: None,
            });
        }
    };
    Ok(match (record.state, ExitRecord::of(&record)) {
        (State::Exited, Some(exit)) => Recovered::Exited(exit),
        (State::Failed, _) => Recovered::Failed {
            step: Step::from_raw(record.failure.step),
            errno: record.failure.errno,
        },
        (State::Abandoned, _) => Recovered::NeverStarted,
        (State::Starting, _) => {
            // The program is executed only after the record says `Running`.
            lock::bury(file, id, Some(&record))?;
            Recovered::NeverStarted
        }
        (State::Running | State::Ended | State::Exited, exit) => {
            match (record.boot == lock::boot_id()?, exit) {
                (false, None) => Recovered::Rebooted,
                (false, exit) => Recovered::Vanished { task: None, exit },
                (true, exit) => Recovered::Vanished {
                    task: survivor(&record),
                    exit,
                },
            }
        }
    })
}

/// The main process, if it still runs in this boot.
fn survivor(record: &Record) -> Option<Process> {
    let lives = start_time(record.task.pid) == Some(record.task.start_time);
    lives.then_some(record.task)
}
