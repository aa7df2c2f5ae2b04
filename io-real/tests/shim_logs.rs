//! Log files: nothing lost, nothing doubled, nothing torn, and nobody's link followed.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::{ERR, OUT, Rig, Task, fifo, finish, handle, hear, wait_readable};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;

/// The lines `seq 1 last` writes.
fn numbers(last: u32) -> String {
    (1..=last).fold(String::new(), |mut text, number| {
        writeln!(text, "{number}").unwrap();
        text
    })
}

fn rotating(number: u32, script: &str, max_files: u32, max_file_size: u64) -> Task {
    Task {
        max_files,
        max_file_size,
        ..Task::sh(number, script)
    }
}

/// Each file but the last must end with a whole line.
fn assert_whole_lines(rig: &Rig, base: &str) {
    for index in rig.indices(base) {
        let content = fs::read_to_string(rig.log_dir().join(format!("{base}.{index}"))).unwrap();
        assert!(
            content.is_empty() || content.ends_with('\n'),
            "{base}.{index} ends in a torn line"
        );
    }
}

#[test]
fn rotation_keeps_every_line_whole() {
    let rig = Rig::new();
    // One write for each line, so that lines are whole in the pipe.
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo $i; echo $i >&2; done";
    rig.run(&rotating(1, script, 1000, 500));
    for base in [OUT, ERR] {
        assert_eq!(rig.output(base, 500), numbers(3000));
        assert!(rig.indices(base).len() > 20);
        assert_whole_lines(&rig, base);
    }
}

#[test]
fn a_flood_written_in_blocks_is_complete() {
    let rig = Rig::new();
    rig.run(&rotating(1, "seq 1 400000", 1000, 100_000));
    assert_eq!(rig.output(OUT, 100_000), numbers(400_000));
    // seq writes blocks that end anywhere; near a file's end, the half line goes to the next file.
    assert_whole_lines(&rig, OUT);
}

#[test]
fn a_line_longer_than_a_file_is_split() {
    let rig = Rig::new();
    let script = "echo short; head -c 100000 /dev/zero | tr '\\0' x; echo; echo end";
    rig.run(&rotating(1, script, 1000, 4000));
    let expected = format!("short\n{}\nend\n", "x".repeat(100_000));
    assert_eq!(rig.output(OUT, 4000), expected);
}

#[test]
fn only_the_newest_files_are_kept() {
    let rig = Rig::new();
    for base in [
        "task.stdout.x",
        "task.stdout.01",
        "task.stdoutx.0",
        "task.stdout.",
    ] {
        fs::write(rig.log_dir().join(base), "not a log").unwrap();
    }
    rig.run(&rotating(1, "seq 1 20000", 3, 10_000));
    let logs: Vec<_> = rig
        .indices(OUT)
        .into_iter()
        .filter(|index| *index != 1)
        .collect();
    assert_eq!(logs.len(), 3, "{logs:?}");
    let kept = fs::read_to_string(rig.log_dir().join(format!("{OUT}.{}", logs[2]))).unwrap();
    assert!(kept.ends_with("20000\n"));
    for base in [
        "task.stdout.x",
        "task.stdout.01",
        "task.stdoutx.0",
        "task.stdout.",
    ] {
        assert_eq!(
            fs::read_to_string(rig.log_dir().join(base)).unwrap(),
            "not a log"
        );
    }
}

#[test]
fn a_next_launch_goes_on_counting() {
    let rig = Rig::new();
    rig.run(&Task::sh(1, "echo one"));
    rig.run(&Task::sh(2, "echo two"));
    assert_eq!(rig.indices(OUT), [0, 1]);
    assert_eq!(rig.stdout(), "one\ntwo\n");
    let one = Task {
        max_files: 1,
        ..Task::sh(3, "echo three")
    };
    rig.run(&one);
    assert_eq!(rig.stdout(), "three\n");
}

#[test]
fn planted_files_are_not_touched() {
    let rig = Rig::new();
    let victim = rig.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let at = |index: u32| rig.log_dir().join(format!("{OUT}.{index}"));
    symlink(&victim, at(0)).unwrap();
    symlink(rig.dir.path().join("created"), at(1)).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, at(2), mode).unwrap();
    fs::create_dir(at(3)).unwrap();
    // The next launch starts at 0, since none of these is a log of ours; a hard link to a file of
    // our own user cannot be told from a log, but is not written to either.
    rig.run(&rotating(1, "seq 1 2000", 100, 3000));
    fs::hard_link(&victim, at(50)).unwrap();
    rig.run(&rotating(2, "seq 1 10", 100, 3000));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!rig.dir.path().join("created").exists());
    assert!(at(3).is_dir() && at(0).is_symlink());
    fs::remove_file(at(50)).unwrap();
    assert_eq!(rig.output(OUT, 3000), numbers(2000) + &numbers(10));
    assert_eq!(rig.indices(OUT)[0], 4);
    assert_eq!(*rig.indices(OUT).last().unwrap(), 51);
}

#[test]
fn a_flood_blocks_neither_signals_nor_answers() {
    let rig = Rig::new();
    let script = "trap 'exit 9' TERM; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done & \
        yes >&2 & echo up > ready; while :; do wait; done";
    let ready = fifo(&rig, "ready");
    let live = rig.start(&rotating(1, script, 2, 1 << 20)).unwrap();
    assert_eq!(hear(&ready), "up");
    for _ in 0..100 {
        assert_eq!(live.hello().unwrap().task, live.task());
    }
    live.signal(15).unwrap();
    assert_eq!(finish(&live).code, Some(9));
}

#[test]
fn a_silent_client_holds_nobody_up() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
    let rig = Rig::new();
    let live = rig.start(&Task::sh(1, "exec sleep 1000")).unwrap();
    let socket_path = rig
        .dir
        .path()
        .join("data/run")
        .join(format!("{}.s", live.launch()));
    let address = SocketAddrUnix::new(&socket_path).unwrap();
    let silent: Vec<_> = (0..3)
        .map(|_| {
            let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
            connect(&client, &address).unwrap();
            client
        })
        .collect();
    live.hello().unwrap();
    live.kill().unwrap();
    finish(&live);
    drop(silent);
}

#[test]
fn a_stranger_with_the_pipe_does_not_hold_up_the_end() {
    let rig = Rig::new();
    let pid = fifo(&rig, "pid");
    let live = rig
        .start(&Task::sh(1, "echo said; echo $$ > pid; exec sleep 1000"))
        .unwrap();
    let main = hear(&pid);
    // Somebody else opens the task's output and keeps it open.
    let stolen = fs::OpenOptions::new()
        .write(true)
        .open(format!("/proc/{main}/fd/1"))
        .unwrap();
    let main = handle(main.parse().unwrap());
    live.signal(9).unwrap();
    assert_eq!(finish(&live).signal, Some(9));
    assert!(wait_readable(&main));
    assert_eq!(rig.stdout(), "said\n");
    drop(stolen);
}
