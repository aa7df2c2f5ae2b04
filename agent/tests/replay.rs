//! `drover replay` as a user sees it, on a recording of an agent that was killed while a service ran.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use drover_recorder::{FORMAT, file};
use serde_json::Value;
use support::{Ended, Program, World, command};

fn recording(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sim-tests/recordings");
    dir.join(format!("{name}.rec"))
}

fn killed() -> String {
    let path = recording("agent-killed-and-tasks-found-again");
    path.to_str().unwrap().to_owned()
}

fn replay(options: &[&str]) -> Ended {
    let mut args = vec!["replay".to_owned(), killed()];
    args.extend(options.iter().map(|&option| option.to_owned()));
    Program::run(args)
}

fn json(options: &[&str]) -> Value {
    serde_json::from_str(&replay(options).ok()).unwrap()
}

/// The debugger's answers to these lines.
fn debug(lines: &str) -> String {
    let mut args = vec!["replay".to_owned(), "-debug".to_owned()];
    args.push(killed());
    let mut process = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn replay_reports_identical_effects() {
    assert_eq!(replay(&[]).ok(), "77 steps, same effects");
    let output = json(&["-json"]);
    assert_eq!(
        (&output["Steps"], &output["Same"]),
        (&77.into(), &true.into())
    );
    assert_eq!(output["Difference"], Value::Null);
}

/// A copy of the recording, changed.
fn changed(world: &World, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
    let path = world.path("changed.rec");
    fs::write(&path, change(fs::read(killed()).unwrap())).unwrap();
    path
}

/// The lines of a recording, and a recording of such lines.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(file::read(bytes).0).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn packed(lines: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines {
        file::member(&mut bytes, format!("{line}\n").as_bytes()).unwrap();
    }
    bytes
}

#[test]
fn replay_names_first_differing_step() {
    let world = World::new();
    let path = changed(&world, |bytes| {
        let mut lines = lines(&bytes);
        let exited = lines
            .iter_mut()
            .find(|line| line.contains("\"Exited\":{\"launch\""))
            .expect("a task exits in the recording");
        *exited = exited.replace("\"code\":4", "\"code\":0");
        packed(&lines)
    });
    let ended = Program::run(["replay".as_ref(), path.as_os_str()]);
    let output = ended.with(1);
    for words in [
        " 26 of 77 differ",
        "what is saved\n  expected: ",
        "\n  came:     ",
        "\n  today:    commit ",
    ] {
        assert!(output.contains(words), "no {words:?} in {output}");
    }
}

#[test]
fn torn_end_loses_last_write_only() {
    let world = World::new();
    let path = changed(&world, |bytes| {
        let mut bytes = packed(&lines(&bytes));
        bytes.truncate(bytes.len() - 5);
        bytes
    });
    let last = packed(&lines(&fs::read(killed()).unwrap())[76..]);
    let torn = last.len() - 5;
    let output = Program::run(["replay".as_ref(), path.as_os_str()]).ok();
    assert_eq!(
        output,
        format!("76 steps, same effects (the last {torn} bytes of a file cannot be read)")
    );
}

#[test]
fn invalid_recording_is_refused_with_reason() {
    let world = World::new();
    let text = world.file("job.hcl", "job \"web\" {}");
    let refused = |path: &Path| Program::run(["replay".as_ref(), path.as_os_str()]).failed();
    assert!(refused(&text).contains("job.hcl is no recording: it has no header"));
    assert!(refused(&world.path("nowhere")).contains("cannot read"));
    let empty = world.path("empty");
    fs::create_dir(&empty).unwrap();
    assert!(refused(&empty).contains("there is no recording in"));
    let torn = changed(&world, |bytes| bytes[..1000].to_vec());
    assert!(refused(&torn).contains("its header is incomplete"));
    let written = |line: &str| {
        let path = world.path("strange.rec");
        fs::write(&path, packed(&[line.to_owned()])).unwrap();
        refused(&path)
    };
    let future = written(r#"{"format":99,"version":"9.9.9"}"#);
    let reads = format!("its format is 99, and this version reads {FORMAT}");
    assert!(future.contains(&reads), "{future}");
    for strange in ["[]", "1", "{}", "{", r#"{"format":4}"#] {
        let output = written(strange);
        assert!(output.contains("is no recording"), "{strange}: {output}");
    }
    let old = world.file(
        "old.rec",
        "0000003a 00c0ffee00c0ffee {\"shared\":[],\"value\":{\"format\":3,\"version\":\"0.1.0\"}}\n",
    );
    let old = refused(&old);
    let reads = format!("its format is 3, and this version reads {FORMAT}; drover 0.1.0 wrote it");
    assert!(old.contains(&reads), "{old}");
}

#[test]
fn damaged_segment_is_named_and_others_are_played() {
    let world = World::new();
    let dir = world.path("recording");
    fs::create_dir(&dir).unwrap();
    let whole = fs::read(killed()).unwrap();
    for number in [1, 2, 3] {
        fs::write(dir.join(format!("{number:08}.rec")), &whole).unwrap();
    }
    let mut damaged = whole.clone();
    damaged[500] ^= 1;
    fs::write(dir.join("00000002.rec"), &damaged).unwrap();
    let run = |option: &str| Program::run(["replay".as_ref(), option.as_ref(), dir.as_os_str()]);
    let named = "00000002.rec is left out: its header is incomplete";
    let output = Program::run(["replay".as_ref(), dir.as_os_str()]).ok();
    assert!(output.starts_with("154 steps, same effects"), "{output}");
    assert!(
        output.lines().nth(1).unwrap().starts_with(named),
        "{output}"
    );
    let output: Value = serde_json::from_str(&run("-json").ok()).unwrap();
    let damage = &output["Damages"][0];
    assert_eq!(damage["File"], "00000002.rec");
    assert_eq!(damage["Played"], Value::Null);
    let story = run("-timeline");
    assert!(story.err.contains(named), "{}", story.err);
    assert!(story.ok().contains("shop.web[0]"));
}

#[test]
fn replay_shows_state_at_step() {
    let state = json(&["-at", "10"]);
    assert_eq!(state["config"]["node"]["name"], "node");
    assert_eq!(state["shared"]["counters"]["steps"], 9);
    let refused = replay(&["-at", "78"]).failed();
    assert!(
        refused.contains("there is no step 78: the recording has steps 1 to 77"),
        "{refused}"
    );
    replay(&["-at", "0"]).failed();
}

#[test]
fn replay_prints_timeline() {
    let story = replay(&["-timeline"]).ok();
    assert!(story.contains("shop.web[0]"), "{story}");
    let lines = json(&["-timeline", "-json"]);
    let words: Vec<&str> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["words"].as_str().unwrap())
        .collect();
    assert!(
        words.iter().any(|words| words.ends_with("deregister shop")),
        "{words:?}"
    );
    assert_eq!(lines[0]["step"], 1);
}

#[test]
fn replay_explains_entity() {
    let output = replay(&["-why", "shop"]).ok();
    assert!(output.contains("deregister shop\n"), "{output}");
    assert!(output.contains("so: shop.web[0]/main stop "), "{output}");
    let chain = json(&["-why", "shop", "-json"]);
    assert!(chain.as_array().unwrap().len() > 20);
    assert!(
        replay(&["-why", "nobody"])
            .failed()
            .contains("is called \"nobody\"; jobs are shop")
    );
}

#[test]
fn debugger_steps_forwards_and_backwards() {
    let output = debug("step\nstep 2\nback\ngo 0\nback 5\ngo 3\n");
    let firsts: Vec<&str> = output
        .lines()
        .filter(|line| line.contains("->") || line.contains("begins") || line.contains("before"))
        .collect();
    assert!(
        firsts[0].starts_with("     1 -> the agent starts"),
        "{output}"
    );
    assert!(firsts[1].starts_with("     3 "), "{output}");
    assert!(firsts[2].starts_with("     2 "), "{output}");
    assert_eq!(firsts[3..5], ["before the first step"; 2], "{output}");
    assert_eq!(
        firsts[5], firsts[1],
        "the same step, however one came there"
    );
}

#[test]
fn debugger_stops_at_breakpoint() {
    let output = debug("break shop\nbreaks\nrun\nclear\nrun\nrun\n");
    assert!(output.contains("break difference\nbreak shop"), "{output}");
    assert!(output.contains("stopped: shop is touched"), "{output}");
    assert!(output.trim_end().ends_with("the end"), "{output}");
    // Nothing is wrong in this recording.
    let output = debug("break violation\nrun\n");
    assert!(!output.contains("stopped"), "{output}");
}

#[test]
fn debugger_shows_states_and_differences() {
    let output = debug("go 5\ndiff\nshow shared.counters\nshow nowhere\ndiff 5 5\npending\n");
    assert!(output.contains("shared.counters.steps: 3 -> 4"), "{output}");
    assert!(output.contains("\"steps\": 4"), "{output}");
    assert!(
        output.contains("there is no \"nowhere\"; there are allocs, "),
        "{output}"
    );
    assert!(
        output.contains("nothing changed from step 5 to step 5"),
        "{output}"
    );
    assert!(output.contains(" waits for "), "{output}");
}

#[test]
fn debugger_has_help_and_refuses_unknown_commands() {
    let output = debug("help\nfly\nback much\nshow\nquit\nstep\n");
    assert!(output.contains("break violation   stop where"), "{output}");
    assert!(
        output.contains("no command is called \"fly\"; try help"),
        "{output}"
    );
    assert!(output.contains("\"much\" is not a number"), "{output}");
    assert!(
        output.contains("there is no state before the first step"),
        "{output}"
    );
    assert!(
        !output.contains("the agent starts"),
        "it quit before: {output}"
    );
}
