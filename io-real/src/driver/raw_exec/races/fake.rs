//! The machine of [`super::model`] as the driver sees it: every call is one or more steps.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use drover_core::effect::TaskConfig;
use drover_core::ids::{LaunchId, TaskKey};
use drover_core::model::task::LogConfig;
use rustix::io::Errno;
use tokio::task::JoinError;

use super::actor;
use super::model::{Answer, Exit, Model, Phase, Record, Shim, Task};
use crate::driver::raw_exec::launch::LaunchError;
use crate::driver::raw_exec::machine;
use crate::shim::record::State;
use crate::shim::{ExitRecord, Outcome, Process, Recovered, StartError, Step};

/// A model that the steps of many share, one at a time.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Model>>);

impl Shared {
    pub(super) fn new(model: Model) -> Shared {
        Shared(Arc::new(Mutex::new(model)))
    }

    /// Looks at it, or changes it, without a step.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Model) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A step that can be taken at any time.
    fn step<T: fmt::Debug>(&self, what: &'static str, work: impl FnOnce(&mut Model) -> T) -> T {
        self.step_once(what, |_| true, work)
    }

    /// A step that can be taken once something holds.
    fn step_once<T: fmt::Debug>(
        &self,
        what: &'static str,
        ready: impl Fn(&Model) -> bool + Send + 'static,
        work: impl FnOnce(&mut Model) -> T,
    ) -> T {
        let shared = self.clone();
        actor::step(what, move || shared.with(|model| ready(model)));
        let result = self.with(work);
        actor::note(&result);
        result
    }
}

/// A shim of that machine, as whoever holds it sees it.
pub(super) struct FakeShim {
    machine: Shared,
    at: usize,
    task: usize,
}

impl fmt::Debug for FakeShim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shim {}", self.at)
    }
}

impl Shared {
    fn shim(&self, at: usize) -> FakeShim {
        let task = self.with(|model| model.record.map_or(usize::MAX, |record| record.task));
        let machine = self.clone();
        FakeShim { machine, at, task }
    }

    /// Begins a shim and hears how it went. One that is stopped meanwhile is continued.
    fn spawn(&self, adopts: bool) -> Result<FakeShim, StartError> {
        let at = self.step("begins a shim", |model| {
            model.shims.push(Shim::born(adopts));
            model.shims.len() - 1
        });
        loop {
            let ready =
                move |model: &Model| model.shims[at].answer.is_some() || model.shims[at].stopped;
            let answer = self.step_once("hears the shim that it began", ready, |model| {
                if model.shims[at].answer.is_none() {
                    resume(model, at);
                }
                model.shims[at].answer
            });
            match answer {
                None => {}
                Some(Answer::Started) => return Ok(self.shim(at)),
                Some(Answer::Taken) => return Err(StartError::AlreadyClaimed),
                Some(Answer::Refused) => {
                    let (step, errno, path) = (Step::Exec, Errno::NOENT.raw_os_error(), None);
                    return Err(StartError::Exec { step, errno, path });
                }
                Some(Answer::Lost) => return Err(StartError::Lost),
            }
        }
    }
}

/// Continues a shim if it was stopped.
fn resume(model: &mut Model, at: usize) -> bool {
    let shim = &mut model.shims[at];
    let was_stopped = shim.phase != Phase::Gone && std::mem::take(&mut shim.stopped);
    shim.continued |= was_stopped;
    was_stopped
}

impl machine::Machine for Shared {
    type Shim = FakeShim;

    fn start(&self, _: &TaskKey, _: LaunchId, _: &TaskConfig) -> Result<FakeShim, LaunchError> {
        self.step("makes the control group", |model| {
            model.group = model.has_groups
        });
        self.spawn(false).map_err(LaunchError::Shim)
    }

    fn take_over(
        &self,
        _: &TaskKey,
        _: LaunchId,
        _: &FakeShim,
        _: LogConfig,
    ) -> Result<FakeShim, StartError> {
        self.spawn(true)
    }

    fn recover(&self, _: LaunchId) -> io::Result<Recovered<FakeShim>> {
        loop {
            let holder = self.step("tries to lock the record", |model| {
                let holder = model.holder();
                holder.ok_or_else(|| settle(model))
            });
            let at = match holder {
                Err(settled) => return Ok(settled.into()),
                Ok(at) => at,
            };
            let ready = move |model: &Model| {
                let shim = &model.shims[at];
                let is_up = matches!(shim.phase, Phase::Up | Phase::Ended);
                is_up || shim.stopped || shim.phase == Phase::Gone
            };
            let answers = self.step_once("asks the shim that has the record", ready, |model| {
                resume(model, at);
                let shim = &model.shims[at];
                let is_up = matches!(shim.phase, Phase::Up | Phase::Ended);
                is_up.then_some(!shim.silent)
            });
            match answers {
                Some(true) => return Ok(Recovered::Running(self.shim(at))),
                Some(false) => return Ok(Recovered::Silent(self.shim(at))),
                None => {}
            }
        }
    }

    fn state(&self, _: LaunchId) -> io::Result<Option<State>> {
        let read = |model: &mut Model| model.record.map(|record| record.state);
        Ok(self.step("reads the record's state", read))
    }

    fn forget(&self, _: LaunchId) -> io::Result<()> {
        self.step("removes the record", |model| model.record = None);
        Ok(())
    }

    fn remove_empty_group(&self, _: LaunchId) -> io::Result<bool> {
        Ok(
            self.step("removes the control group if it is empty", |model| {
                let has_members = model.group && model.runs();
                model.group &= has_members;
                !has_members
            }),
        )
    }

    fn kill_group(&self, _: LaunchId, _: Duration) -> io::Result<bool> {
        self.step("kills the control group", |model| {
            if model.group {
                (0..model.tasks.len()).for_each(|task| model.kill_task(task, 9));
            }
        });
        Ok(true)
    }

    fn remove_group(&self, _: LaunchId) -> io::Result<()> {
        self.step("removes the control group", |model| model.group = false);
        Ok(())
    }

    fn memory_marks(&self, _: LaunchId) -> Option<(u64, u64)> {
        None
    }

    fn kill(&self, process: Process) -> io::Result<()> {
        let task = usize::try_from(process.pid).unwrap_or(usize::MAX);
        self.step("kills the task", |model| model.kill_task(task, 9));
        Ok(())
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        Ok(work())
    }

    async fn outcome(&self, shim: &Arc<FakeShim>) -> io::Result<Outcome> {
        loop {
            self.until(shim.at, |model, at| model.shims[at].phase == Phase::Gone)
                .await;
            if let Some(outcome) = machine::Shim::outcome(&**shim)? {
                return Ok(outcome);
            }
        }
    }

    async fn task_ended(&self, shim: &FakeShim) {
        self.until(shim.task, |model, at| {
            matches!(model.tasks[at], Task::Dead(_))
        })
        .await;
    }

    /// Nobody can see that time passes while nothing is wrong.
    async fn pause(&self, _: Duration) {
        let is_stopped = |model: &Model, _| {
            let lives = |shim: &Shim| shim.phase != Phase::Gone && shim.stopped;
            model.shims.iter().any(lives)
        };
        self.until(0, is_stopped).await;
        self.step("has waited for a while", |_| ());
    }
}

impl Shared {
    /// Waits until something holds.
    async fn until(&self, at: usize, holds: fn(&Model, usize) -> bool) {
        poll_fn(|_| {
            if self.with(|model| holds(model, at)) {
                return Poll::Ready(());
            }
            let shared = self.clone();
            actor::wait_for(move || shared.with(|model| holds(model, at)));
            Poll::Pending
        })
        .await;
    }
}

/// What whoever has the record's lock makes of it.
#[derive(Debug)]
enum Settled {
    Exited(Exit),
    Failed,
    NeverStarted,
    Vanished(Option<usize>, Option<Exit>),
}

fn settle(model: &mut Model) -> Settled {
    let record = *model.record.get_or_insert(Record::of(State::Abandoned));
    match (record.state, record.exit) {
        (State::Exited, Some(exit)) => Settled::Exited(exit),
        (State::Failed, _) => Settled::Failed,
        (State::Abandoned | State::Starting, _) => {
            model.record = Some(Record::of(State::Abandoned));
            Settled::NeverStarted
        }
        (State::Running | State::Ended | State::Exited, exit) => {
            let lives = matches!(model.tasks[record.task], Task::Runs | Task::Forked);
            Settled::Vanished(lives.then_some(record.task), exit)
        }
    }
}

impl From<Settled> for Recovered<FakeShim> {
    fn from(settled: Settled) -> Recovered<FakeShim> {
        match settled {
            Settled::Exited(exit) => Recovered::Exited(exit.into()),
            Settled::Failed => Recovered::Failed {
                step: Some(Step::Exec),
                errno: Errno::NOENT.raw_os_error(),
            },
            Settled::NeverStarted => Recovered::NeverStarted,
            Settled::Vanished(task, exit) => Recovered::Vanished {
                task: task.map(process),
                exit: exit.map(ExitRecord::from),
            },
        }
    }
}

impl From<Exit> for ExitRecord {
    fn from(exit: Exit) -> ExitRecord {
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
            Exit::Unknown => (None, None),
        };
        ExitRecord {
            code,
            signal,
            oom: false,
            known: exit != Exit::Unknown,
            output_lost: false,
            started_ns: 0,
            finished_ns: 0,
        }
    }
}

fn process(task: usize) -> Process {
    Process {
        pid: i32::try_from(task).unwrap_or(i32::MAX),
        start_time: 1,
    }
}

impl FakeShim {
    /// One request, as the shim answers it: the error number if it does.
    fn ask(&self, what: &'static str, signal: i32) -> io::Result<()> {
        let (at, task) = (self.at, self.task);
        let answer = self.machine.step(what, |model| {
            resume(model, at);
            let exited = model.record.is_some_and(|it| it.state == State::Exited);
            match model.shims[at].phase {
                Phase::Up | Phase::Ended if model.shims[at].silent => Some(Errno::AGAIN),
                Phase::Up => {
                    model.kill_task(task, signal);
                    None
                }
                Phase::Ended if signal == 9 => None,
                Phase::Ended => Some(Errno::SRCH),
                Phase::Gone if exited => Some(Errno::SRCH),
                Phase::Born
                | Phase::Claimed
                | Phase::Recorded
                | Phase::Executed
                | Phase::Leaving
                | Phase::Gone => Some(Errno::CONNREFUSED),
            }
        });
        answer.map_or(Ok(()), |errno| Err(errno.into()))
    }
}

impl machine::Shim for FakeShim {
    fn task(&self) -> Process {
        process(self.task)
    }

    fn outcome(&self) -> io::Result<Option<Outcome>> {
        let at = self.at;
        let look = |model: &mut Model| model.shims[at].phase == Phase::Gone;
        if !self.machine.step("looks whether the shim is gone", look) {
            return Ok(None);
        }
        let read = |model: &mut Model| {
            let exited = model.record.filter(|it| it.state == State::Exited);
            exited.and_then(|record| record.exit)
        };
        let exit = self.machine.step("reads the record", read);
        let outcome = exit.map(|exit| Outcome::Exited(exit.into()));
        Ok(Some(outcome.unwrap_or(Outcome::ShimLost)))
    }

    fn last_exit(&self) -> io::Result<Option<ExitRecord>> {
        let read = |model: &mut Model| model.record.and_then(|record| record.exit);
        let exit = self.machine.step("reads the exit in the record", read);
        Ok(exit.map(ExitRecord::from))
    }

    fn kill(&self) -> io::Result<()> {
        self.ask("asks the shim to kill", 9)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        self.ask("asks the shim to send a signal", signal)
    }

    /// Time passes while a shim that goes on by itself is not gone.
    fn is_gone_within(&self, within: Duration) -> io::Result<bool> {
        let at = self.at;
        let ready = move |model: &Model| {
            let shim = &model.shims[at];
            let is_busy = shim.silent && model.has_task();
            within.is_zero() || shim.phase == Phase::Gone || shim.stopped || is_busy
        };
        let look = |model: &mut Model| model.shims[at].phase == Phase::Gone;
        Ok(self
            .machine
            .step_once("waits for the shim's end", ready, look))
    }

    fn continue_if_stopped(&self) -> bool {
        let at = self.at;
        self.machine
            .step("continues the shim", |model| resume(model, at))
    }

    fn take_continued(&self) -> bool {
        let at = self.at;
        let take = |model: &mut Model| std::mem::take(&mut model.shims[at].continued);
        let taken = self.machine.with(take);
        actor::note(&taken);
        taken
    }

    fn end(&self, _: Duration) -> io::Result<bool> {
        let at = self.at;
        self.machine
            .step("kills the shim", |model| model.kill_shim(at));
        Ok(true)
    }
}
