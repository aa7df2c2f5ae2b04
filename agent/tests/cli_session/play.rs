//! Runs the steps of a session, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use super::{Check, Step};

/// The longest that one command may take, and that a step may be tried again.
const LIMIT: Duration = Duration::from_secs(45);

/// How often something is looked at again.
const PAUSE: Duration = Duration::from_millis(50);

/// How a step went.
pub(crate) enum Outcome {
    Passed,
    /// It did not pass, on purpose, and the command did not crash.
    Otherwise,
    /// The line and the command, what was missed, and what it wrote.
    Failed(String),
}

/// A session that is under way.
pub(crate) struct Session<'a> {
    pub(crate) program: &'a Path,
    /// In which the commands run.
    pub(crate) dir: &'a Path,
    /// Where the agent is.
    pub(crate) addr: &'a str,
    /// What was taken from what earlier commands wrote.
    pub(crate) known: BTreeMap<String, String>,
}

/// How a command ended.
struct Written {
    /// The exit code, or 128 and the signal.
    code: i32,
    text: String,
}

impl Session<'_> {
    pub(crate) fn play(&mut self, steps: &[Step]) -> Vec<Outcome> {
        let (mut outcomes, mut late) = (Vec::new(), 0);
        for step in steps {
            let outcome = self.step(step);
            late += usize::from(step.until && matches!(outcome, Outcome::Failed(_)));
            outcomes.push(outcome);
            // Where the agent is dead, say, all that follow would wait as long.
            if late > 1 {
                break;
            }
        }
        outcomes
    }

    fn step(&mut self, step: &Step) -> Outcome {
        let until = Instant::now() + LIMIT;
        let args = step.args.iter();
        let args: Vec<String> = args.map(|arg| self.filled(arg, str::to_owned)).collect();
        loop {
            let written = self.run(step, &args);
            let crashed = ["panic:", "goroutine "].map(|it| written.text.contains(it));
            let missed = match crashed.contains(&true) {
                true => Some("it crashed".to_owned()),
                false => self.missed(step, &written),
            };
            match missed {
                None => return Outcome::Passed,
                Some(_) if step.until && Instant::now() < until => std::thread::sleep(PAUSE),
                Some(_) if step.otherwise && !crashed.contains(&true) => return Outcome::Otherwise,
                Some(why) => {
                    let (line, args) = (step.line, args.join(" "));
                    let Written { code, text } = written;
                    return Outcome::Failed(format!(
                        "{line}: nomad {args}\n  {why}\n  exit code {code}, and it wrote:\n{text}"
                    ));
                }
            }
        }
    }

    /// The first thing that is not as it must be, if any. What the step takes is known afterwards.
    fn missed(&mut self, step: &Step, written: &Written) -> Option<String> {
        if written.code != step.code {
            return Some(format!("the exit code is not {}", step.code));
        }
        let mut checks = step.checks.iter();
        checks.find_map(|check| self.miss(check, &written.text))
    }

    fn miss(&mut self, check: &Check, text: &str) -> Option<String> {
        match check {
            Check::Has(it) => {
                let it = squeezed(&self.filled(it, str::to_owned));
                (!text.contains(&it)).then(|| format!("it lacks: {it}"))
            }
            Check::Lacks(it) => {
                let it = squeezed(&self.filled(it, str::to_owned));
                text.contains(&it).then(|| format!("it has: {it}"))
            }
            Check::Like(it) => {
                (!self.regex(it).is_match(text)).then(|| format!("it is not like: {it}"))
            }
            Check::Take { name, expression } => {
                let found = self.regex(expression).captures(text);
                let Some(found) = found.and_then(|all| all.get(1)) else {
                    return Some(format!("nothing to take: {expression}"));
                };
                self.known.insert(name.clone(), found.as_str().to_owned());
                None
            }
        }
    }

    fn regex(&self, text: &str) -> Regex {
        let text = self.filled(text, regex::escape);
        Regex::new(&format!("(?m){text}")).unwrap()
    }

    /// Puts what is known in its place: `$name`. Longer names first: one may begin as another does.
    fn filled(&self, text: &str, form: fn(&str) -> String) -> String {
        let mut text = text.to_owned();
        for (name, value) in self.known.iter().rev() {
            text = text.replace(&format!("${name}"), &form(value));
        }
        text
    }

    /// Runs a command to its end, or until it wrote what it must if it is interrupted then.
    fn run(&mut self, step: &Step, args: &[String]) -> Written {
        let mut child = self.start(step, args);
        let text = Arc::new(Mutex::new(Vec::new()));
        let out = child.stdout.take().map(|from| collect(from, text.clone()));
        let err = child.stderr.take().map(|from| collect(from, text.clone()));
        let so_far = || squeezed(&String::from_utf8_lossy(&text.lock().unwrap()));
        let until = Instant::now() + LIMIT;
        let mut interrupted = false;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            if step.interrupt && !interrupted {
                let mut checks = step.checks.iter();
                interrupted = checks.all(|check| self.miss(check, &so_far()).is_none());
                if interrupted {
                    interrupt(&child);
                }
            }
            std::thread::sleep(PAUSE);
        };
        for reader in [out, err].into_iter().flatten() {
            reader.join().unwrap();
        }
        let (code, text) = (code_of(status), so_far());
        Written { code, text }
    }

    fn start(&self, step: &Step, args: &[String]) -> Child {
        let input = step.input.as_ref();
        let input = input.map(|name| Stdio::from(File::open(self.dir.join(name)).unwrap()));
        // A shell may have told what it started to ignore interrupts.
        Command::new("/usr/bin/env")
            .arg("--default-signal=INT")
            .arg(self.program)
            .args(args)
            .current_dir(self.dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.dir)
            .env("TZ", "UTC")
            .env("NOMAD_ADDR", format!("http://{}", self.addr))
            .stdin(input.unwrap_or_else(Stdio::null))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

fn code_of(status: ExitStatus) -> i32 {
    let signal = || status.signal().map_or(0, |signal| 128 + signal);
    status.code().unwrap_or_else(signal)
}

/// Spaces that follow each other as one, and none at the ends of lines.
fn squeezed(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

fn interrupt(child: &Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
}

fn collect(mut from: impl Read + Send + 'static, text: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let read = buffer.get(..read).unwrap_or_default();
            text.lock().unwrap().extend_from_slice(read);
        }
    })
}
