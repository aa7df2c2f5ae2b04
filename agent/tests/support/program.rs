//! The program as a user runs it: its arguments, what it writes, and how it ends.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::TIMEOUT;

/// A process of the program; killed when dropped.
pub struct Program {
    child: Child,
    out: Arc<Output>,
    err: Arc<Output>,
}

/// What a process left when it ended.
#[derive(Debug)]
pub struct Ended {
    /// The exit code, or 128 and the signal.
    pub code: i32,
    pub out: String,
    pub err: String,
}

#[derive(Default)]
struct Output {
    state: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

/// The program with these arguments and an environment without its variables, not started yet.
pub fn command<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_drover"));
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("DROVER_") || text.starts_with("NOMAD_") {
            command.env_remove(&name);
        }
    }
    command
}

impl Program {
    /// Starts the program and reads along what it writes.
    pub fn start<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Program {
        Program::of(&mut command(args))
    }

    /// As [`Program::start`], for a command that was prepared.
    pub fn of(command: &mut Command) -> Program {
        Program::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Starts a command, and reads along only those outputs that are pipes to here.
    pub fn spawn(command: &mut Command) -> Program {
        Program::child(command.spawn().unwrap())
    }

    /// Reads along what a child writes to here.
    pub fn child(mut child: Child) -> Program {
        let out = child.stdout.take().map(Output::of);
        let err = child.stderr.take().map(Output::of);
        Program {
            child,
            out: out.unwrap_or_else(Output::closed),
            err: err.unwrap_or_else(Output::closed),
        }
    }

    /// Runs the program to its end.
    pub fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ended {
        Program::start(args).end()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of standard output that contains `text`, and gives it back.
    pub fn line(&self, text: &str) -> String {
        self.nth_line(text, 0)
    }

    /// As [`Program::line`], passing over the first `skip` of such lines.
    pub fn nth_line(&self, text: &str, skip: usize) -> String {
        let found = self.out.find(text, skip);
        found.unwrap_or_else(|| {
            let (out, err) = (self.out.text(), self.err.text());
            panic!("no line with {text:?} in:\n{out}\nstandard error:\n{err}")
        })
    }

    /// Whether there is such a line by now.
    pub fn has_line(&self, text: &str) -> bool {
        let state = self.out.state.lock().unwrap();
        state.0.iter().any(|line| line.contains(text))
    }

    /// How many lines of standard output there are by now.
    pub fn count_lines(&self) -> usize {
        self.out.state.lock().unwrap().0.len()
    }

    /// As [`Program::line`], of the error output.
    pub fn err_line(&self, text: &str) -> String {
        let found = self.err.find(text, 0);
        found.unwrap_or_else(|| panic!("no line with {text:?} in:\n{}", self.err.text()))
    }

    /// Where the API of its agent is, from its first line.
    pub fn addr(&self) -> String {
        let line = self.line("Agent at http://");
        let rest = line.split("http://").nth(1).unwrap();
        rest.split(',').next().unwrap().to_owned()
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Kills it as a crash would. What it wrote.
    pub fn kill_9(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.out.whole();
        self.out.text()
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let handle = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let mut fds = [PollFd::new(&handle, PollFlags::IN)];
        let timeout = Timespec::try_from(TIMEOUT).unwrap();
        let ready = poll(&mut fds, Some(&timeout)).unwrap();
        assert!(
            ready > 0,
            "the program does not end:\n{}\nstandard error:\n{}",
            self.out.text(),
            self.err.text()
        );
        let status = self.child.wait().unwrap();
        self.out.whole();
        self.err.whole();
        let signal = || status.signal().map_or(0, |signal| 128 + signal);
        Ended {
            code: status.code().unwrap_or_else(signal),
            out: self.out.text(),
            err: self.err.text(),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Gone already, in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// Checks the exit code, and gives back the standard output.
    #[track_caller]
    pub fn with(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        self.out
    }

    #[track_caller]
    pub fn ok(self) -> String {
        self.with(0)
    }

    /// Checks that it failed with exit code 1, and gives back the error output.
    #[track_caller]
    pub fn failed(self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        self.err
    }
}

impl Output {
    fn of(from: impl Read + Send + 'static) -> Arc<Output> {
        let output = Arc::new(Output::default());
        let to = output.clone();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8_lossy(&line);
                let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
                to.state.lock().unwrap().0.push(text);
                to.changed.notify_all();
                line.clear();
            }
            to.state.lock().unwrap().1 = true;
            to.changed.notify_all();
        });
        output
    }

    fn closed() -> Arc<Output> {
        Output::of(std::io::empty())
    }

    fn find(&self, text: &str, skip: usize) -> Option<String> {
        let until = Instant::now() + TIMEOUT;
        let mut state = self.state.lock().unwrap();
        loop {
            let mut hits = state.0.iter().filter(|line| line.contains(text));
            if let Some(found) = hits.nth(skip) {
                return Some(found.clone());
            }
            let left = until.saturating_duration_since(Instant::now());
            if state.1 || left.is_zero() {
                return None;
            }
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until nobody can write any more.
    fn whole(&self) {
        let state = self.state.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(state, TIMEOUT, |state| !state.1);
        assert!(
            waited.unwrap().0.1,
            "something that the program started still holds its output"
        );
    }

    fn text(&self) -> String {
        self.state.lock().unwrap().0.join("\n")
    }
}
