//! Sessions of Nomad's own command line, where there is a program `nomad` on the PATH: the files in `clients/cli`, each
//! against an agent of its own. `DROVER_CLI_SESSION=nomad` runs them against development agents of Nomad instead, which
//! says whether the steps are right; `DROVER_CLI_FILES=jobs,variables` runs only these.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod cli_session;
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cli_session::{Dev, Outcome, Session, parse};
use support::Lone;

/// How many agents there are at once.
const AT_ONCE: usize = 3;

/// The agents' settings; `DIR` is a directory of theirs.
const SETTINGS: &str = include_str!("clients/cli/agent.hcl");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/cli")
}

/// The files of sessions, in order.
fn sessions() -> Vec<PathBuf> {
    let only = std::env::var("DROVER_CLI_FILES").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "session"));
    files.retain(|file| {
        let name = file.file_stem().unwrap().to_string_lossy();
        only.is_empty() || only.contains(&name.as_ref())
    });
    assert!(!files.is_empty(), "no sessions are called {only:?}");
    files.sort();
    files
}

/// A directory with what the session's commands name, in which they run.
fn copy_of_folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, dir.path().join(from.file_name().unwrap())).unwrap();
    }
    std::fs::create_dir(dir.path().join("shared")).unwrap();
    dir
}

/// Plays one file, and says how each of its steps went.
fn run(file: &Path, nomad: &Path, against_nomad: bool) -> Vec<Outcome> {
    let text = std::fs::read_to_string(file).unwrap();
    let steps = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let dir = copy_of_folder();
    let settings = SETTINGS.replace("DIR", &dir.path().display().to_string());
    let play = |addr: &str| {
        let known = BTreeMap::new();
        let mut session = Session {
            program: nomad,
            dir: dir.path(),
            addr,
            known,
        };
        session.play(&steps)
    };
    match against_nomad {
        true => play(&Dev::start(nomad, dir.path(), &settings).addr),
        false => play(&Lone::configured(&settings).agent.addr),
    }
}

#[test]
fn nomads_command_line_works_with_this_agent() {
    let nomad = match cli_session::nomad() {
        Ok(nomad) => nomad,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let against_nomad = std::env::var("DROVER_CLI_SESSION").is_ok_and(|it| it == "nomad");
    let waiting = Mutex::new(sessions());
    let requests = Mutex::new((0, 0, 0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().pop();
                    let Some(file) = next else { break };
                    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
                    let outcomes = run(&file, &nomad, against_nomad);
                    let of = |it: fn(&Outcome) -> bool| outcomes.iter().filter(|o| it(o)).count();
                    let passed = of(|it| matches!(it, Outcome::Passed));
                    let otherwise = of(|it| matches!(it, Outcome::Otherwise));
                    let all = outcomes.len();
                    eprintln!("{name}: {passed} of {all} steps, {otherwise} otherwise on purpose");
                    let mut requests = requests.lock().unwrap();
                    requests.0 += passed;
                    requests.1 += otherwise;
                    requests.2 += all;
                    for outcome in outcomes {
                        if let Outcome::Failed(why) = outcome {
                            requests.3.push(format!("{name}.session:{why}"));
                        }
                    }
                }
            });
        }
    });
    let (passed, otherwise, all, failures) = requests.into_inner().unwrap();
    eprintln!("in all: {passed} of {all} steps, {otherwise} otherwise on purpose");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
