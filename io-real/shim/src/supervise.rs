//! The shim's life once the task runs: move output, answer questions, see the end.

use crate::adopted::Adopted;
use crate::claim::Claim;
use crate::control::{Control, Request};
use crate::kernel;
use crate::leftovers;
use crate::proc;
use crate::record::{Exit, State};
use crate::signals;
use crate::spec::Keep;
use crate::stream::Stream;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, pidfd_send_signal, wait,
};
use rustix::thread::{Timespec, nanosleep};

/// Seconds without any progress after which an ending shim stops waiting: for a disk that is full,
/// or for strangers that hold the pipes of an adopted task.
const TIMEOUT: u32 = 10;

/// Seconds from the hang-up of a session's program to its end by force.
const HANGUP_GRACE: u32 = 5;

/// While its task runs, a shim that has worked so long, in ns, rests so many times as long: no more than a fifth of a
/// processor goes into a task's output, whatever the task writes and however slow the disk is, because the work is
/// counted as the agent's. A task that writes faster waits. What a session writes does not pass through its shim.
const WORK: u64 = 250_000;
const RESTS: u64 = 4;

/// The longest rest at once, in ns: requests wait for its end. What is left of a longer one follows after the next turn.
const LONGEST_REST: u64 = 20_000_000;

/// The task's main process.
pub enum Main {
    /// Our child: its pid is its own until we reap it.
    Child(Pid),
    /// Another shim's child.
    Adopted(Adopted),
    /// Ended, and its end is on record.
    Gone,
    /// There is none: output is moved until a kill.
    Nobody,
}

enum Phase {
    /// The main process lives.
    Running,
    /// It ended; what it left is being killed.
    Killing,
    /// Nobody is left; the pipes are being emptied up to these totals.
    Draining([u64; 2]),
}

/// Everything a shim holds while its task runs.
pub struct Supervisor {
    /// The record.
    pub claim: Claim,
    /// The socket.
    pub control: Control,
    /// stdout and stderr.
    pub streams: [Stream; 2],
    /// What the agent wants.
    pub keep: Keep,
    /// The task.
    pub main: Main,
    /// Of a session: hangs up when nobody is connected to it any more.
    pub lifeline: Option<OwnedFd>,
    /// It runs in the namespaces of another launch, and what it leaves is no child of ours.
    pub is_guest: bool,
    /// Seconds until a program that was hung up is killed.
    hung_up: Option<u32>,
    phase: Phase,
    timeout: u32,
    adopted: bool,
    /// For how much of its work it has rested, in ns.
    rested_for: u64,
}

impl Supervisor {
    /// Puts the parts together.
    pub fn new(
        claim: Claim,
        control: Control,
        streams: [Stream; 2],
        keep: Keep,
        main: Main,
    ) -> Self {
        let phase = if matches!(main, Main::Gone) {
            Phase::Killing
        } else {
            Phase::Running
        };
        let adopted = matches!(main, Main::Adopted(_) | Main::Gone);
        Self {
            claim,
            control,
            streams,
            keep,
            main,
            lifeline: None,
            is_guest: false,
            hung_up: None,
            phase,
            timeout: TIMEOUT,
            adopted,
            rested_for: kernel::worked_ns(),
        }
    }

    /// Runs until the task and all it left are gone, its output is written and its record final.
    pub fn run(mut self) {
        self.note_logs();
        loop {
            let children = self.reap();
            if matches!(self.phase, Phase::Killing) && self.kill_leftovers(children) {
                self.phase = Phase::Draining(self.goals());
            }
            if self.drained() {
                break;
            }
            self.turn();
            self.rest();
        }
        self.claim.record.lost = self.streams.iter().any(|stream| stream.waiting() > 0);
        self.claim.record.state = State::Exited;
        let _ = self.claim.save();
        self.claim.sync();
    }

    /// Buries the dead; false if there are no children at all.
    ///
    /// Called on every turn, not on a signal: a wait that finds output ready returns without
    /// delivering `SIGCHLD`, and under a flood it always does.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if matches!(self.main, Main::Child(main) if main == pid) {
                        self.ended(exit_of(status));
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn ended(&mut self, exit: Exit) {
        self.main = Main::Gone;
        self.phase = Phase::Killing;
        self.timeout = TIMEOUT;
        let record = &mut self.claim.record;
        record.exit = exit;
        record.finished_ns = kernel::now_ns();
        record.oom = self
            .keep
            .oom
            .is_some_and(|path| proc::oom_kills(path) > record.oom_base);
        record.state = State::Ended;
        // Should this fail, the last save says it all again.
        let _ = self.claim.save();
    }

    /// True when nobody is left who can be killed.
    fn kill_leftovers(&mut self, children: bool) -> bool {
        leftovers::kill_group(self.keep.kill);
        if self.adopted || self.is_guest {
            leftovers::kill_session(self.claim.record.task);
        }
        if self.adopted {
            leftovers::kill_holder(self.claim.record.holder);
        }
        !children || !leftovers::kill_children()
    }

    /// How much each stream will have moved when it has moved what is in the pipe now. The dead
    /// write no more, and a stranger who holds the pipe must not keep us.
    fn goals(&self) -> [u64; 2] {
        let [out, err] = &self.streams;
        // The kills of an adopted task's leftovers may still be under way: wait for the pipes' end.
        let goal = |stream: &Stream| {
            if self.adopted {
                u64::MAX
            } else {
                stream.moved + stream.waiting()
            }
        };
        [goal(out), goal(err)]
    }

    fn drained(&self) -> bool {
        let Phase::Draining(goals) = &self.phase else {
            return false;
        };
        let done = |(stream, goal): (&Stream, &u64)| stream.ended || stream.moved >= *goal;
        self.timeout == 0 || self.streams.iter().zip(goals).all(done)
    }

    /// Waits for something to happen and sees to it.
    fn turn(&mut self) {
        let ready = self.wait();
        let [out, err, agent_handle, client, task, lifeline] = ready;
        for (stream, ready) in self.streams.iter_mut().zip([out, err]) {
            if stream.stuck || !ready.is_empty() {
                stream.visit(ready.contains(PollFlags::HUP));
            }
        }
        self.note_logs();
        if !client.is_empty() {
            self.serve();
        }
        if !agent_handle.is_empty() {
            self.control.accept();
        }
        self.check_adopted(!task.is_empty());
        if !lifeline.is_empty() {
            self.hang_up();
        }
        if self.hung_up == Some(0) {
            let _ = self.signal(Signal::KILL);
        }
    }

    /// Leaves processors to others, if it worked long enough.
    fn rest(&mut self) {
        let worked = kernel::worked_ns().saturating_sub(self.rested_for);
        if matches!(self.phase, Phase::Running) && worked >= WORK {
            let rest = worked.saturating_mul(RESTS).min(LONGEST_REST);
            let _ = nanosleep(&Timespec {
                tv_sec: 0,
                tv_nsec: i64::try_from(rest).unwrap_or(0),
            });
            self.rested_for += rest / RESTS;
        }
    }

    /// Nobody is connected to the session any more: its program is told, and then has to end.
    fn hang_up(&mut self) {
        self.lifeline = None;
        self.hung_up = Some(HANGUP_GRACE);
        if let Main::Child(pid) = &self.main {
            // The program leads a group of its own, which dies with it at last.
            for signal in [Signal::HUP, Signal::CONT] {
                let _ = kill_process_group(*pid, signal);
            }
        }
    }

    /// Waits; tells what is ready: stdout, stderr, a new client, the client, an adopted task, the end of the
    /// lifeline.
    fn wait(&mut self) -> [PollFlags; 6] {
        let [out, err] = &self.streams;
        let none = PollFlags::empty();
        let agent_handle = self.control.listener.as_fd();
        // Whatever is not waited for is stood in for by the listener, asked for nothing.
        let entry = |fd, events| PollFd::from_borrowed_fd(fd, events);
        let stream = |stream: &'_ Stream| !stream.ended && !stream.stuck;
        let mut fds = [
            match &out.pipe {
                Some(pipe) if stream(out) => entry(pipe.as_fd(), PollFlags::IN),
                _ => entry(agent_handle, none),
            },
            match &err.pipe {
                Some(pipe) if stream(err) => entry(pipe.as_fd(), PollFlags::IN),
                _ => entry(agent_handle, none),
            },
            entry(agent_handle, PollFlags::IN),
            match &self.control.client {
                Some(client) => entry(client.as_fd(), PollFlags::IN),
                None => entry(agent_handle, none),
            },
            match &self.main {
                // Once it is a zombie of someone else's, only its end as such is of interest.
                Main::Adopted(task) if self.timeout == TIMEOUT => {
                    entry(task.handle.as_fd(), PollFlags::IN)
                }
                Main::Adopted(task) => entry(task.handle.as_fd(), none),
                _ => entry(agent_handle, none),
            },
            match &self.lifeline {
                Some(lifeline) => entry(lifeline.as_fd(), none),
                None => entry(agent_handle, none),
            },
        ];
        let stuck = self.streams.iter().any(|stream| stream.stuck);
        let ending = !matches!(self.phase, Phase::Running) || self.timeout < TIMEOUT;
        let counting = stuck || ending || self.hung_up.is_some();
        let seconds = if counting { Some(1) } else { None };
        let ready = kernel::ppoll(&mut fds, seconds, &signals::wait_mask());
        if ready == Ok(0) && ending {
            self.timeout = self.timeout.saturating_sub(1);
        }
        if ready == Ok(0) {
            self.hung_up = self.hung_up.map(|seconds| seconds.saturating_sub(1));
        }
        match ready {
            Ok(1..) => fds.map(|fd| fd.revents()),
            _ => [none; 6],
        }
    }

    /// An adopted task that ended tells how, sooner or later; at last we stop asking.
    fn check_adopted(&mut self, ready: bool) {
        let Main::Adopted(task) = &self.main else {
            return;
        };
        if !ready && self.timeout == TIMEOUT {
            return;
        }
        match task.exit() {
            Some(exit) => self.ended(exit),
            None if self.timeout == 0 => self.ended(Exit::Unknown),
            None => self.timeout = self.timeout.min(TIMEOUT - 1),
        }
    }

    fn serve(&mut self) {
        match self.control.request() {
            None => {}
            Some(Request::Hello) => {
                let [out, err] = &self.streams;
                let pipes = out.pipe.as_ref().zip(err.pipe.as_ref());
                let pipes = pipes.map(|(out, err)| [out.as_fd(), err.as_fd()]);
                self.control.introduce(&self.claim.record, pipes);
            }
            Some(Request::Signal(number)) => {
                let errno = match signals::from_number(number) {
                    Some(signal) => self.signal(signal),
                    None => Err(Errno::INVAL),
                };
                self.control
                    .answer(errno.err().map_or(0, Errno::raw_os_error));
            }
            Some(Request::Kill) => {
                leftovers::kill_group(self.keep.kill);
                // What is in no cgroup follows when the main process is gone.
                let _ = self.signal(Signal::KILL);
                if matches!(self.main, Main::Nobody) {
                    self.ended(Exit::Code(0));
                }
                self.control.answer(0);
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match &self.main {
            Main::Child(pid) => kill_process(*pid, signal),
            Main::Adopted(task) => pidfd_send_signal(&task.handle, signal),
            Main::Gone | Main::Nobody => Err(Errno::SRCH),
        }
    }

    /// Keeps the record's log files right, for the shim that may have to go on with them.
    fn note_logs(&mut self) {
        let [out, err] = &self.streams;
        let logs = [out.log, err.log];
        if self.claim.record.logs != logs {
            self.claim.record.logs = logs;
            let _ = self.claim.save();
        }
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    Exit::from_wait_status(status.as_raw())
}
