//! Credential helpers: programs that know who the agent is for a registry.
//!
//! A helper reads the name of a registry and prints what it knows. It has a deadline, and is killed after it, with all
//! that it started in its process group. What one that ends by itself leaves running is its own affair.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bollard::auth::DockerCredentials;
use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::Value;

use crate::timed_child::TimedChild;

/// How long one may take.
const TIME: Duration = Duration::from_secs(30);

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// The longest name of a registry, in bytes: one that is longer is none.
const MAX_NAME: usize = 512;

/// The most letters of what one says that fails.
const MAX_WORDS: usize = 200;

/// What one says that knows nothing of a registry.
const NOT_FOUND: &str = "credentials not found";

/// Why a helper says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HelperError {
    /// Its program is not there.
    Missing(String),
    /// It cannot be run, takes too long, or fails.
    Failed(String),
}

impl From<HelperError> for String {
    fn from(failure: HelperError) -> String {
        match failure {
            HelperError::Missing(why) | HelperError::Failed(why) => why,
        }
    }
}

/// What the helper of this name knows of a registry; none if it knows nothing of it. Blocks.
///
/// # Errors
/// It is not there, cannot be run, takes too long, or fails.
pub(super) fn ask(name: &str, registry: &str) -> Result<Option<DockerCredentials>, HelperError> {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        let why = format!("{name:?} is no name of a credential helper");
        return Err(HelperError::Failed(why));
    }
    let odd = |it: char| it.is_whitespace() || it.is_control();
    if registry.len() > MAX_NAME || registry.contains(odd) {
        return Ok(None);
    }
    run_helper(&format!("docker-credential-{name}"), registry)
}

/// What a program says of a registry.
fn run_helper(program: &str, registry: &str) -> Result<Option<DockerCredentials>, HelperError> {
    let answered = answer(program, registry, Instant::now() + TIME);
    let (status, text) = answered.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HelperError::Missing(format!("{program}: {error}")),
        io::ErrorKind::TimedOut => {
            let seconds = TIME.as_secs();
            HelperError::Failed(format!("{program}: it did not end within {seconds} s"))
        }
        _ => HelperError::Failed(format!("{program}: {error}")),
    })?;
    if !status.success() {
        let text = String::from_utf8_lossy(&text);
        return match text.contains(NOT_FOUND) {
            true => Ok(None),
            false => Err(HelperError::Failed(format!(
                "{program}: {status}: {}",
                words(&text)
            ))),
        };
    }
    let answer = serde_json::from_slice(&text);
    let answer: Value =
        answer.map_err(|error| HelperError::Failed(format!("{program}: {error}")))?;
    Ok(credentials(&answer, registry))
}

/// What an answer says; none if it holds no secret.
fn credentials(answer: &Value, registry: &str) -> Option<DockerCredentials> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let username = text("Username");
    let secret = text("Secret").filter(|secret| !secret.is_empty())?;
    let mut found = DockerCredentials {
        serveraddress: Some(registry.to_owned()),
        ..DockerCredentials::default()
    };
    match username.as_deref() {
        Some("<token>") => found.identitytoken = Some(secret),
        _ => (found.username, found.password) = (username, Some(secret)),
    }
    Some(found)
}

/// The first line of what a helper says that failed, unless that may be an answer.
fn words(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = if line.contains('{') { "" } else { line };
    let plain = line.chars().filter(|it| !it.is_control());
    plain.take(MAX_WORDS).collect()
}

/// How a helper ended, and what it printed.
fn answer(program: &str, registry: &str, deadline: Instant) -> io::Result<(ExitStatus, Vec<u8>)> {
    let (reader, writer) = io::pipe()?;
    let mut running = TimedChild::spawn(
        Command::new(program)
            .arg("get")
            .stdin(Stdio::piped())
            .stdout(writer)
            .stderr(Stdio::null()),
    )?;
    if let Some(mut stdin) = running.child().stdin.take() {
        // It fits into the pipe. One that does not read it says what is wrong by its end.
        let _ = stdin.write_all(registry.as_bytes());
    }
    let mut printed = File::from(OwnedFd::from(reader));
    fcntl_setfl(&printed, OFlags::NONBLOCK)?;
    let mut text = Vec::new();
    loop {
        let is_over = running.is_over_or_says(&printed, deadline)?;
        let may_say_more = read(&mut printed, &mut text)?;
        if is_over {
            return Ok((running.wait()?, text));
        }
        if !may_say_more {
            running.until_over(deadline)?;
            return Ok((running.wait()?, text));
        }
    }
}

/// Reads what there is. False if nothing can follow.
fn read(from: &mut File, text: &mut Vec<u8>) -> io::Result<bool> {
    let mut space = [0; 4096];
    loop {
        match from.read(&mut space) {
            Ok(0) => return Ok(false),
            Ok(read) => text.extend_from_slice(space.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if text.len() > MAX_ANSWER {
            return Err(io::Error::other("its answer is too long"));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    use tempfile::TempDir;

    use super::*;

    fn program(script: &str) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker-credential-test");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        (dir, path)
    }

    #[test]
    fn helper_that_does_not_end_is_killed() {
        let (_dir, path) = program("cat; while true; do sleep 1; done");
        let path = path.to_str().unwrap();
        let error = answer(path, "reg", Instant::now()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        for running in fs::read_dir("/proc").unwrap().flatten() {
            let words = fs::read(running.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&words).contains(path) {
                let pid = running.file_name().to_str().unwrap().parse().unwrap();
                assert!(ends_soon(pid), "it runs on");
            }
        }
    }

    /// What the helper started is killed with it, and not awaited.
    fn ends_soon(pid: i32) -> bool {
        let Ok(pidfd) = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()) else {
            return true;
        };
        let limit = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) == Ok(1)
    }

    #[test]
    fn helper_gets_the_registry() {
        let (_dir, path) = program("echo \"$1 $(cat)\"; exit 3");
        let soon = Instant::now() + TIME;
        let (status, text) = answer(path.to_str().unwrap(), "reg.example", soon).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(String::from_utf8_lossy(&text), "get reg.example\n");
    }

    #[test]
    fn helper_that_fails_is_an_error_unless_it_knows_nothing() {
        let of = |script: &str| {
            let (_dir, path) = program(script);
            run_helper(path.to_str().unwrap(), "reg")
        };
        let none = of("echo credentials not found in native keychain; exit 1");
        assert_eq!(none, Ok(None));
        let why: String = of("echo the keychain is locked; exit 1")
            .unwrap_err()
            .into();
        assert!(why.contains("the keychain is locked"), "{why}");
        assert!(of("echo no JSON").is_err());
        let missing = run_helper("/there/is/none", "reg");
        assert!(
            matches!(missing, Err(HelperError::Missing(_))),
            "{missing:?}"
        );
    }

    #[test]
    fn answer_without_secret_is_none() {
        let of = |answer: &str| credentials(&serde_json::from_str(answer).unwrap(), "reg");
        let found = of(r#"{"Username":"joe","Secret":"x"}"#).unwrap();
        assert_eq!(found.username.as_deref(), Some("joe"));
        let found = of(r#"{"Username":"<token>","Secret":"x"}"#).unwrap();
        assert_eq!(found.identitytoken.as_deref(), Some("x"));
        assert_eq!(of(r#"{"Username":"","Secret":""}"#), None);
    }

    #[test]
    fn words_of_failure_are_short_and_no_answer() {
        assert_eq!(words("no\u{7} key\nmore"), "no key");
        assert_eq!(words(r#"{"Secret":"x"}"#), "");
    }
}
