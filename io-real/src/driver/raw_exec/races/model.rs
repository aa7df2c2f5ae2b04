//! A machine with one launch: its record, its control group, its shims and its processes, as plain data. What shims and
//! processes do by themselves are moves of their own; the record protocol is that of [`crate::shim`].

use std::hash::{Hash, Hasher};

use crate::shim::record::State;

/// The machine. It outlives agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Model {
    /// Whether it has control groups.
    pub has_groups: bool,
    /// Whether there is one of the launch.
    pub group: bool,
    /// What the record says, if anything.
    pub record: Option<Record>,
    /// Every shim that was ever begun.
    pub shims: Vec<Shim>,
    /// Every process that was ever forked for the launch.
    pub tasks: Vec<Task>,
    /// How often the launch's program was executed.
    pub executed: u32,
    /// What may still happen to it.
    pub troubles: Troubles,
}

/// What may happen once more: each at any time, or never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Troubles {
    /// A shim is killed.
    pub kills: u32,
    /// A shim is stopped by a signal.
    pub stops: u32,
    /// A shim is kept so busy that it answers nobody any more.
    pub silences: u32,
    /// The program cannot be executed.
    pub refusals: u32,
    /// The agent dies, and the next one begins.
    pub deaths: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub state: State,
    /// The task's process, once there is one.
    pub task: usize,
    pub exit: Option<Exit>,
}

impl Hash for Record {
    fn hash<H: Hasher>(&self, to: &mut H) {
        (self.state as u8, self.task, self.exit).hash(to);
    }
}

impl Record {
    pub(super) fn of(state: State) -> Record {
        let (task, exit) = (usize::MAX, None);
        Record { state, task, exit }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shim {
    pub phase: Phase,
    /// It goes on with a launch whose shim was killed.
    pub adopts: bool,
    pub stopped: bool,
    pub silent: bool,
    /// It was continued, and nobody asked about that yet.
    pub continued: bool,
    /// What it told whoever began it.
    pub answer: Option<Answer>,
}

impl Shim {
    /// One that was just begun.
    pub(super) fn born(adopts: bool) -> Shim {
        Shim {
            phase: Phase::Born,
            adopts,
            stopped: false,
            silent: false,
            continued: false,
            answer: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// It has not looked at the record.
    Born,
    /// It holds the record.
    Claimed,
    /// The record says `Running`, and the child waits for its word.
    Recorded,
    /// The program is executed, or another shim's is taken over.
    Executed,
    /// It answers.
    Up,
    /// The record says `Ended`; it still answers.
    Ended,
    /// The record says `Exited`; it does not answer.
    Leaving,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Answer {
    Started,
    Taken,
    Refused,
    /// It was killed before it said anything.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Task {
    /// Forked, and not executed.
    Forked,
    Runs,
    Dead(Exit),
}

/// What happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Move {
    /// A shim does what is next.
    Shim(usize),
    /// A task ends.
    Exit(usize),
    KillShim(usize),
    StopShim(usize),
    SilenceShim(usize),
    RefuseProgram(usize),
}

impl Move {
    /// Whether it happens sooner or later; else it may or may not.
    pub(super) fn is_certain(self) -> bool {
        matches!(self, Move::Shim(_) | Move::Exit(_))
    }
}

impl Model {
    /// Lets the launch run, as an earlier agent started it.
    pub(super) fn run(&mut self) {
        self.group = self.has_groups;
        self.shims.push(Shim::born(false));
        while self.shims.iter().all(|shim| shim.phase != Phase::Up) {
            self.go_on(0);
        }
    }

    /// Everything that can happen by itself next.
    pub(super) fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for (at, shim) in self.shims.iter().enumerate() {
            let lives = shim.phase != Phase::Gone;
            let is_up = matches!(shim.phase, Phase::Up | Phase::Ended);
            let troubles = &self.troubles;
            let may = [
                (Move::Shim(at), self.can_go_on(shim)),
                (Move::KillShim(at), lives && troubles.kills > 0),
                (
                    Move::StopShim(at),
                    lives && !shim.stopped && troubles.stops > 0,
                ),
                (
                    Move::SilenceShim(at),
                    is_up && !shim.silent && troubles.silences > 0,
                ),
                (
                    Move::RefuseProgram(at),
                    shim.phase == Phase::Claimed && troubles.refusals > 0,
                ),
            ];
            moves.extend(may.into_iter().filter(|(_, may)| *may).map(|(one, _)| one));
        }
        let running = self.tasks.iter().enumerate();
        let running = running.filter(|(_, task)| **task == Task::Runs);
        moves.extend(running.map(|(at, _)| Move::Exit(at)));
        moves
    }

    fn can_go_on(&self, shim: &Shim) -> bool {
        let waits = match shim.phase {
            Phase::Gone => true,
            Phase::Up => self.has_task(),
            Phase::Born
            | Phase::Claimed
            | Phase::Recorded
            | Phase::Executed
            | Phase::Ended
            | Phase::Leaving => false,
        };
        !waits && !shim.stopped
    }

    /// Whether the process that the record names runs.
    pub(super) fn has_task(&self) -> bool {
        let task = self.record.and_then(|record| self.tasks.get(record.task));
        matches!(task, Some(Task::Runs | Task::Forked))
    }

    /// The shim that holds the record.
    pub(super) fn holder(&self) -> Option<usize> {
        let holds = |shim: &Shim| !matches!(shim.phase, Phase::Born | Phase::Gone);
        self.shims.iter().position(holds)
    }

    /// Whether anything of the launch runs.
    pub(super) fn runs(&self) -> bool {
        self.tasks.iter().any(|task| !matches!(task, Task::Dead(_)))
    }

    /// Lets it happen.
    pub(super) fn happen(&mut self, what: Move) {
        match what {
            Move::Shim(at) => self.go_on(at),
            Move::Exit(at) => self.tasks[at] = Task::Dead(Exit::Code(7)),
            Move::KillShim(at) => {
                self.troubles.kills -= 1;
                self.kill_shim(at);
            }
            Move::StopShim(at) => {
                self.troubles.stops -= 1;
                self.shims[at].stopped = true;
            }
            Move::SilenceShim(at) => {
                self.troubles.silences -= 1;
                self.shims[at].silent = true;
            }
            Move::RefuseProgram(at) => {
                self.troubles.refusals -= 1;
                self.refuse(at);
            }
        }
    }

    /// What a shim does next.
    fn go_on(&mut self, at: usize) {
        let next = match self.shims[at].phase {
            Phase::Born if self.holder().is_some() => return self.turn_away(at),
            Phase::Born if self.shims[at].adopts => match &mut self.record {
                Some(record) if matches!(record.state, State::Running | State::Ended) => {
                    Phase::Executed
                }
                Some(_) | None => return self.turn_away(at),
            },
            Phase::Born => match self.record {
                Some(_) => return self.turn_away(at),
                None => {
                    self.record = Some(Record::of(State::Starting));
                    Phase::Claimed
                }
            },
            // Its child cannot join a group that is not there.
            Phase::Claimed if self.has_groups && !self.group => return self.refuse(at),
            Phase::Claimed => {
                let task = self.tasks.len();
                self.tasks.push(Task::Forked);
                self.record = Some(Record {
                    task,
                    ..Record::of(State::Running)
                });
                Phase::Recorded
            }
            Phase::Recorded => {
                self.execute();
                Phase::Executed
            }
            Phase::Executed => {
                self.shims[at].answer = Some(Answer::Started);
                Phase::Up
            }
            Phase::Up => {
                self.note_end(at);
                Phase::Ended
            }
            Phase::Ended => {
                self.set_state(State::Exited);
                Phase::Leaving
            }
            Phase::Leaving | Phase::Gone => Phase::Gone,
        };
        self.shims[at].phase = next;
    }

    fn turn_away(&mut self, at: usize) {
        self.shims[at].answer = Some(Answer::Taken);
        self.shims[at].phase = Phase::Gone;
    }

    fn refuse(&mut self, at: usize) {
        self.set_state(State::Failed);
        self.shims[at].answer = Some(Answer::Refused);
        self.shims[at].phase = Phase::Gone;
    }

    /// Unless the child was killed with its group meanwhile.
    fn execute(&mut self) {
        let Some(record) = self.record else { return };
        if self.tasks[record.task] == Task::Forked {
            self.tasks[record.task] = Task::Runs;
            self.executed += 1;
        }
    }

    fn set_state(&mut self, state: State) {
        if let Some(record) = &mut self.record {
            record.state = state;
        }
    }

    /// A shim takes note of the end of its task. One that took over sees it only if it was there.
    fn note_end(&mut self, at: usize) {
        let adopts = self.shims[at].adopts;
        let Some(record) = &mut self.record else {
            return;
        };
        if record.exit.is_none() {
            let seen = match self.tasks[record.task] {
                Task::Dead(exit) if !adopts => exit,
                Task::Dead(_) | Task::Forked | Task::Runs => Exit::Unknown,
            };
            record.exit = Some(seen);
        }
        record.state = State::Ended;
    }

    /// Kills a shim. A child that waits for its word never executes the program.
    pub(super) fn kill_shim(&mut self, at: usize) {
        if self.shims[at].phase == Phase::Gone {
            return;
        }
        if self.shims[at].phase == Phase::Recorded
            && let Some(record) = self.record
            && self.tasks[record.task] == Task::Forked
        {
            self.tasks[record.task] = Task::Dead(Exit::Signal(9));
        }
        let answer = self.shims[at].answer.unwrap_or(Answer::Lost);
        self.shims[at].answer = Some(answer);
        self.shims[at].phase = Phase::Gone;
    }

    pub(super) fn kill_task(&mut self, at: usize, signal: i32) {
        if let Some(task @ (Task::Forked | Task::Runs)) = self.tasks.get_mut(at) {
            *task = Task::Dead(Exit::Signal(signal));
        }
    }
}
