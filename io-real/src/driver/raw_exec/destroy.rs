//! Ending a launch by force.
//!
//! The launch's own record goes only with `Forget`, which leaves when it is saved that the launch
//! is over: until then its end can be reported again after a crash.
//!
//! Its shim is asked to, since it sees how the task ends and writes what is left of its output. But the
//! task may be an enemy of its shim: one that was stopped is continued, and one that does not answer is
//! killed, and then the task, which was proved to be ours, and its control group.

use std::io;
use std::time::{Duration, Instant};

use drover_core::ids::LaunchId;
use drover_core::model::alloc::ExitResult;

use super::machine::{Machine, Shim};
use super::{Held, exit_result};
use crate::shim::record::State;
use crate::shim::{ExitRecord, Outcome, Recovered};

/// How long killing one launch may take before it is tried again.
const KILL_TIME: Duration = Duration::from_secs(10);

/// How long a shim that is killed may take to be gone.
const SHIM_TIME: Duration = Duration::from_secs(2);

/// How often a shim that was told to end is looked at.
const SLICE: Duration = Duration::from_millis(250);

/// How the end of a launch came about.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// How it ended, if that is known.
    pub(super) exit: Option<ExitResult>,
    /// What its shim did about it.
    pub(super) shim: ShimConduct,
}

/// How a shim behaved when its launch was ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ShimConduct {
    /// It did what it should, or was gone before.
    #[default]
    Fine,
    /// It was stopped, and had to be continued.
    Continued,
    /// It did not answer, and was killed.
    Killed,
}

impl Ended {
    fn of(exit: Option<ExitRecord>) -> Ended {
        Ended {
            exit: exit.as_ref().map(exit_result),
            shim: ShimConduct::Fine,
        }
    }
}

/// Ends whatever of a launch is alive and removes its control group. Its record stays: it is how
/// its end can be told again.
pub(super) fn destroy<M: Machine>(
    machine: &M,
    held: &Held<M::Shim>,
    launch: LaunchId,
) -> io::Result<Ended> {
    let ended = match held.begin_end(launch) {
        Some(live) => end(machine, &*live),
        None => find_and_end(machine, launch),
    };
    // Also if its shim cannot be found or resists.
    let removed = remove_group(machine, launch);
    let ended = ended?;
    removed?;
    held.destroyed(launch);
    Ok(ended)
}

/// Ends a launch that is not in hand.
fn find_and_end<M: Machine>(machine: &M, launch: LaunchId) -> io::Result<Ended> {
    match machine.recover(launch)? {
        Recovered::Running(live) => end(machine, &live),
        Recovered::Silent(live) => force(machine, &live),
        Recovered::Exited(exit) => Ok(Ended::of(Some(exit))),
        Recovered::Vanished { task, exit } => {
            task.map_or(Ok(()), |task| machine.kill(task))?;
            Ok(Ended::of(exit))
        }
        Recovered::Failed { .. } | Recovered::NeverStarted | Recovered::Rebooted => {
            Ok(Ended::default())
        }
    }
}

/// Removes the record of a launch that is over. That of one which never started stays: it is what
/// keeps a shim that is late from starting it after all.
pub(super) fn forget<M: Machine>(machine: &M, launch: LaunchId) -> io::Result<()> {
    // One that cannot be read says nothing that could be needed.
    match machine.state(launch) {
        Ok(Some(State::Abandoned)) => Ok(()),
        Ok(_) | Err(_) => machine.forget(launch),
    }
}

/// Kills what is left in a launch's control group, and removes it.
pub(super) fn remove_group<M: Machine>(machine: &M, launch: LaunchId) -> io::Result<()> {
    if machine.remove_empty_group(launch)? {
        return Ok(());
    }
    if !machine.kill_group(launch, KILL_TIME)? {
        return Err(io::Error::other("processes of the task do not die"));
    }
    machine.remove_group(launch)
}

/// Kills a launch and waits for its shim's last word. What a killed shim left in the control group is
/// for whoever calls.
pub(super) fn end<M: Machine>(machine: &M, live: &M::Shim) -> io::Result<Ended> {
    let until = Instant::now() + KILL_TIME;
    loop {
        if let Some(outcome) = live.outcome()? {
            return exited(machine, live, outcome);
        }
        if Instant::now() >= until {
            let kind = io::ErrorKind::TimedOut;
            return Err(io::Error::new(kind, "the task does not die"));
        }
        match live.kill() {
            // It is told again if it was stopped meanwhile.
            Ok(()) => {
                while !live.is_gone_within(SLICE)? && Instant::now() < until {
                    if live.continue_if_stopped() {
                        break;
                    }
                }
            }
            // It may have ended between the look and the word, and hears nothing while it goes.
            Err(_) if live.is_gone_within(SLICE)? => {}
            Err(_) => return force(machine, live),
        }
    }
}

fn exited<M: Machine>(machine: &M, live: &M::Shim, outcome: Outcome) -> io::Result<Ended> {
    let mut ended = match outcome {
        Outcome::Exited(exit) => Ended::of(Some(exit)),
        // What the shim left alive has no other owner, where there are no control groups.
        Outcome::ShimLost => {
            machine.kill(live.task())?;
            Ended::of(live.last_exit()?)
        }
    };
    if live.take_continued() {
        ended.shim = ShimConduct::Continued;
    }
    Ok(ended)
}

/// Ends a launch whose shim does not answer: first the shim, then the task. What the task wrote and the
/// shim did not move to the logs is lost.
fn force<M: Machine>(machine: &M, live: &M::Shim) -> io::Result<Ended> {
    let gone = live.end(SHIM_TIME);
    // In any case.
    machine.kill(live.task())?;
    if !gone? {
        let kind = io::ErrorKind::TimedOut;
        return Err(io::Error::new(kind, "the task's shim does not die"));
    }
    let unseen =
        || ExitResult::unknown("it was killed together with its shim, which did not answer");
    let exit = live.last_exit()?;
    Ok(Ended {
        exit: Some(exit.as_ref().map_or_else(unseen, exit_result)),
        shim: ShimConduct::Killed,
    })
}
