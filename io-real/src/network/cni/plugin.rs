//! One plugin, run once. It is a program of the operator's: it gets what the contract says and nothing else of the
//! agent's, and is held to a deadline and to an answer of a sane length.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_setfl};

use super::answer::complaint;
use crate::timed_child::TimedChild;

/// The longest answer, in bytes.
const ANSWER: usize = 256 * 1024;

/// How much is kept of what it says beside that.
const WORDS: usize = 4096;

/// Where plugins find programs that they run themselves, such as `iptables`.
const PROGRAMS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs it with these variables and this input. Answers what it says on its output.
///
/// # Errors
/// It cannot be started, complains, says too much, or does not end in time. Then it is killed, with all that is in its
/// process group. The words say why, but not which plugin it was.
pub(super) fn run(
    program: &Path,
    env: &[(&str, String)],
    input: File,
    deadline: Instant,
) -> io::Result<Vec<u8>> {
    let (answer, to_answer) = io::pipe()?;
    let (words, to_words) = io::pipe()?;
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", PROGRAMS)
        .envs(env.iter().map(|(name, value)| (*name, value.as_str())))
        .current_dir("/")
        .stdin(Stdio::from(input))
        .stdout(to_answer)
        .stderr(to_words);
    let running = TimedChild::spawn(&mut command)?;
    // Its ends of the pipes are its own alone, so that we see when it closes them.
    drop(command);
    let mut answer = Output::new(answer.into(), ANSWER)?;
    let mut words = Output::new(words.into(), WORDS)?;
    loop {
        let open: Vec<&File> = [&answer, &words]
            .into_iter()
            .filter_map(Output::open)
            .collect();
        let over = running.is_over_or_one_says(&open, deadline);
        let over = over.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => late(),
            _ => error,
        })?;
        // First it is seen that it is over, then what it said until then is read.
        answer.take()?;
        words.take()?;
        if answer.lost > 0 {
            let why = format!("its answer is longer than {ANSWER} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if over {
            let status = running.wait()?;
            return match status.success() {
                true => Ok(answer.bytes),
                false => Err(failed(status, &answer.bytes, &words.bytes)),
            };
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it did not end in time")
}

/// Why it failed: as it says itself by the contract, or else in whatever words it has.
fn failed(status: ExitStatus, answer: &[u8], words: &[u8]) -> io::Error {
    let why = complaint(answer).unwrap_or_else(|| {
        let all = [words, answer].concat();
        let output = super::answer::plain(&String::from_utf8_lossy(&all));
        match output.is_empty() {
            true => format!("{status}, and it does not say why"),
            false => format!("{status}: {output}"),
        }
    });
    io::Error::other(why)
}

/// What comes out of a program.
struct Output {
    from: File,
    is_open: bool,
    most: usize,
    bytes: Vec<u8>,
    /// How much came that was not kept.
    lost: usize,
}

impl Output {
    fn new(from: OwnedFd, most: usize) -> io::Result<Output> {
        fcntl_setfl(&from, OFlags::NONBLOCK)?;
        Ok(Output {
            from: from.into(),
            is_open: true,
            most,
            bytes: Vec::new(),
            lost: 0,
        })
    }

    fn open(&self) -> Option<&File> {
        self.is_open.then_some(&self.from)
    }

    /// Takes some of what there is: so much that one who never pauses does not keep us from the deadline.
    fn take(&mut self) -> io::Result<()> {
        let mut buffer = [0; 8192];
        for _ in 0..64 {
            let length = match self.from.read(&mut buffer) {
                Ok(0) => {
                    self.is_open = false;
                    return Ok(());
                }
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let remaining = self.most.saturating_sub(self.bytes.len()).min(length);
            self.bytes
                .extend(buffer.get(..remaining).unwrap_or_default());
            self.lost = self.lost.saturating_add(length.saturating_sub(remaining));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;

    struct Script {
        dir: tempfile::TempDir,
    }

    impl Script {
        fn new(text: &str) -> Script {
            let dir = tempfile::tempdir().unwrap();
            let script = Script { dir };
            fs::write(script.path(), format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(script.path(), fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(script.file("input"), "{\"name\": \"mine\"}").unwrap();
            script
        }

        fn file(&self, name: &str) -> PathBuf {
            self.dir.path().join(name)
        }

        fn path(&self) -> PathBuf {
            self.file("plugin")
        }

        fn run_for(&self, time: Duration) -> Result<String, String> {
            let input = File::open(self.file("input")).unwrap();
            let env = [("CNI_COMMAND", "ADD".to_owned())];
            let output = run(&self.path(), &env, input, Instant::now() + time);
            output
                .map(|output| String::from_utf8(output).unwrap())
                .map_err(|error| error.to_string())
        }

        fn run(&self) -> Result<String, String> {
            self.run_for(Duration::from_secs(60))
        }
    }

    #[test]
    fn plugin_gets_the_contract_and_nothing_else() {
        let output = Script::new("/usr/bin/env | sort; cat; echo noise >&2").run();
        let output = output.unwrap();
        assert!(output.contains("CNI_COMMAND=ADD\n"), "{output}");
        assert!(output.ends_with("{\"name\": \"mine\"}"), "{output}");
        let own = ["CNI_COMMAND", "PATH", "PWD", "SHLVL", "_", "OLDPWD", "{"];
        let foreign = |line: &&str| !own.iter().any(|name| line.starts_with(name));
        assert_eq!(output.lines().find(foreign), None, "{output}");
    }

    #[test]
    fn plugin_error_is_reported() {
        let script = r#"echo '{"cniVersion": "1.0.0", "code": 11, "msg": "no address", "details": "pool is empty"}'
            exit 1"#;
        let why = Script::new(script).run().unwrap_err();
        assert_eq!(why, "no address: pool is empty (code 11)");
        let why = Script::new("echo boom >&2; exit 3").run().unwrap_err();
        assert!(
            why.contains("exit status: 3") && why.contains("boom"),
            "{why}"
        );
        let why = Script::new("exit 4").run().unwrap_err();
        assert!(why.contains("does not say why"), "{why}");
        let why = Script::new("kill -9 $$").run().unwrap_err();
        assert!(why.contains("signal"), "{why}");
    }

    #[test]
    fn flood_is_cut_off() {
        for text in [
            "while :; do echo flood; done",
            "trap '' PIPE; head -c 1000000 /dev/zero; exec sleep 1000",
        ] {
            let why = Script::new(text).run().unwrap_err();
            assert!(why.contains("longer than"), "{why}");
        }
        let beside = Script::new("head -c 1000000 /dev/zero >&2; echo '{}'").run();
        assert_eq!(beside, Ok("{}\n".to_owned()));
        // What it says beside its answer is no end of it, and no reason to wait for ever.
        let noise = Script::new("exec yes >&2");
        let why = noise.run_for(Duration::from_millis(500)).unwrap_err();
        assert!(why.contains("in time"), "{why}");
    }

    #[test]
    fn hanging_plugin_is_killed_with_its_group() {
        let script = Script::new("sleep 1000 & echo $! > ${0%/*}/child; exec sleep 1000");
        // It has the time to say who its child is.
        let mut time = Duration::from_millis(200);
        let child = loop {
            let why = script.run_for(time).unwrap_err();
            assert!(why.contains("in time"), "{why}");
            match fs::read_to_string(script.file("child")) {
                Ok(child) if child.ends_with('\n') => break child,
                _ => time *= 2,
            }
        };
        let until = Instant::now() + Duration::from_secs(60);
        let state = || fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        // It may be a zombie for as long as whoever inherits it likes.
        while state().is_ok_and(|stat| !stat.contains(") Z")) {
            assert!(Instant::now() < until, "{child} is alive");
            std::thread::yield_now();
        }
        // One that closes its outputs and goes on does not keep us busy, nor from the deadline.
        let silent = Script::new("exec >&- 2>&-; exec sleep 1000");
        let why = silent.run_for(Duration::from_millis(200)).unwrap_err();
        assert!(why.contains("in time"), "{why}");
    }

    #[test]
    fn child_left_by_plugin_does_not_delay_its_answer() {
        let script = Script::new("sleep 1000 & echo $! > ${0%/*}/child; echo '{}'");
        assert_eq!(script.run(), Ok("{}\n".to_owned()));
        let child = fs::read_to_string(script.file("child")).unwrap();
        let child = child
            .trim()
            .parse()
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(child.unwrap(), rustix::process::Signal::KILL).unwrap();
    }
}
