//! Log files: nothing lost, nothing doubled, nothing torn, and nobody's link followed.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use common::disk::Disk;
use common::{ERR, OUT, Rig, Task, fifo, finish, handle, is_root, outcome, receive, wait_readable};
use drover_io_real::shim::{Outcome, Recovered};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

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
fn flood_of_output_is_complete() {
    let rig = Rig::new();
    rig.run(&rotating(1, "seq 1 400000", 1000, 100_000));
    assert_eq!(rig.output(OUT, 100_000), numbers(400_000));
    // seq writes blocks that end anywhere; near a file's end, the half line goes to the next file.
    assert_whole_lines(&rig, OUT);
}

/// How long processors worked for a process, in hundredths of a second: from its `stat`.
fn worked(stat: &str) -> u64 {
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<u64>().unwrap();
    ticks(11) + ticks(12)
}

#[test]
fn flood_of_output_costs_the_shim_a_fifth_of_a_processor() {
    let rig = Rig::new();
    let uptime = "read at rest < /proc/uptime; echo $at >&2";
    let flood = "head -c 1000000000 /dev/zero";
    // Its parent is the shim.
    let script = format!("{uptime}; {flood}; {uptime}; cat /proc/$PPID/stat >&2");
    rig.run(&rotating(1, &script, 2, 1_000_000));
    let written = rig.output(ERR, 1_000_000);
    let lines: Vec<&str> = written.lines().collect();
    let seconds = |line: &str| line.parse::<f64>().unwrap();
    let took = seconds(lines[1]) - seconds(lines[0]);
    let worked = worked(lines[2]);
    println!("{worked} ticks in {took} s");
    // It rests four times as long as it works, so no machine is too slow for this. What is counted in ticks may be a
    // few too many.
    assert!(
        (worked as f64) < took * 100.0 * 0.3 + 5.0,
        "{worked} ticks in {took} s"
    );
}

#[test]
fn line_longer_than_a_file_is_split() {
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
fn next_launch_appends_to_newest_log() {
    let rig = Rig::new();
    for number in 1..=30 {
        rig.run(&rotating(number, &format!("echo {number}"), 2, 1 << 20));
    }
    assert_eq!(rig.indices(OUT), [0]);
    assert_eq!(rig.indices(ERR), [0]);
    assert_eq!(rig.stdout(), numbers(30));
}

#[test]
fn full_log_file_is_rotated_and_oldest_removed() {
    let rig = Rig::new();
    rig.run(&rotating(1, "echo one", 10, 4));
    rig.run(&rotating(2, "echo two", 10, 4));
    assert_eq!(rig.indices(OUT), [0, 1]);
    assert_eq!(rig.stdout(), "one\ntwo\n");
    rig.run(&rotating(3, "echo three", 1, 6));
    // The second has room for two bytes more, which is too little for the line.
    assert_eq!(rig.indices(OUT), [2]);
    assert_eq!(rig.stdout(), "three\n");
}

#[test]
fn foreign_log_file_is_untouched() {
    let rig = Rig::new();
    let at = |index: u32| rig.log_dir().join(format!("{OUT}.{index}"));
    let other = rig.dir.path().join("other");
    fs::write(&other, "other\n").unwrap();
    fs::hard_link(&other, at(3)).unwrap();
    rig.run(&Task::sh(1, "echo one"));
    assert_eq!(fs::read_to_string(&other).unwrap(), "other\n");
    assert_eq!(fs::read_to_string(at(4)).unwrap(), "one\n");
    // A program.
    fs::set_permissions(at(4), fs::Permissions::from_mode(0o755)).unwrap();
    rig.run(&Task::sh(2, "echo two"));
    assert_eq!(fs::read_to_string(at(5)).unwrap(), "two\n");
    if is_root() {
        // Of another user: neither counted nor written to.
        std::os::unix::fs::chown(at(5), Some(65534), None).unwrap();
        fs::remove_file(at(3)).unwrap();
        fs::remove_file(at(4)).unwrap();
        rig.run(&Task::sh(3, "echo three"));
        assert_eq!(fs::read_to_string(at(0)).unwrap(), "three\n");
        assert_eq!(fs::read_to_string(at(5)).unwrap(), "two\n");
    }
}

#[test]
fn two_shims_never_write_one_file() {
    let rig = Rig::new();
    let (reported, go) = (fifo(&rig, "said"), fifo(&rig, "go"));
    let first = Task::sh(1, "echo first; echo up > said; read x < go; echo last");
    let first = rig.start(&first).unwrap();
    assert_eq!(receive(&reported), "up");
    rig.run(&Task::sh(2, "echo second"));
    fs::write(go, "go\n").unwrap();
    finish(&first);
    assert_eq!(rig.indices(OUT), [0, 1]);
    assert_eq!(rig.stdout(), "first\nlast\nsecond\n");
}

#[test]
fn disabled_output_is_discarded() {
    let rig = Rig::new();
    let (links, go) = (fifo(&rig, "links"), fifo(&rig, "go"));
    let script = r#"echo lost; o=$(readlink /proc/$$/fd/1 /proc/$$/fd/2); echo "$o" > links; read x < go; exit 3"#;
    let task = Task {
        discarded: true,
        ..Task::sh(1, script)
    };
    let live = rig.start(&task).unwrap();
    assert_eq!(receive(&links), "/dev/null\n/dev/null");
    assert!(live.pipes().is_none());
    assert!(fs::read_dir(rig.log_dir()).unwrap().next().is_none());
    // Another agent finds it, and a killed shim is replaced, even if that one is told otherwise.
    let Recovered::Running(found) = rig.home.recover(&task.launch).unwrap() else {
        panic!("it runs");
    };
    assert!(found.pipes().is_none());
    let shim = rustix::process::Pid::from_raw(found.hello().unwrap().shim.pid).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::KILL).unwrap();
    assert_eq!(outcome(&found), Outcome::ShimLost);
    let kept = Task {
        discarded: false,
        ..task
    };
    let taken = rig.takeover(&found, &kept).unwrap();
    fs::write(go, "go\n").unwrap();
    assert_eq!(finish(&taken).code, Some(3));
    assert!(fs::read_dir(rig.log_dir()).unwrap().next().is_none());
}

#[test]
fn planted_log_files_are_untouched() {
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
fn output_flood_blocks_no_signals() {
    let rig = Rig::new();
    let script = "trap 'exit 9' TERM; while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done & \
        yes >&2 & echo up > ready; while :; do wait; done";
    let ready = fifo(&rig, "ready");
    let live = rig.start(&rotating(1, script, 2, 1 << 20)).unwrap();
    assert_eq!(receive(&ready), "up");
    for _ in 0..100 {
        assert_eq!(live.hello().unwrap().task, live.task());
    }
    live.signal(15).unwrap();
    assert_eq!(finish(&live).code, Some(9));
}

#[test]
fn silent_client_blocks_no_other() {
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
fn inherited_pipe_does_not_delay_exit() {
    let rig = Rig::new();
    let pid = fifo(&rig, "pid");
    let live = rig
        .start(&Task::sh(1, "echo said; echo $$ > pid; exec sleep 1000"))
        .unwrap();
    let main = receive(&pid);
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

#[test]
fn full_disk_delays_output_without_loss() {
    let rig = Rig::new();
    let Some(_disk) = Disk::mount(&rig.log_dir(), "256k") else {
        return;
    };
    let filler = rig.log_dir().join("filler");
    assert!(
        fs::write(&filler, vec![0; 1 << 20]).is_err(),
        "the disk is larger than it should be"
    );
    let ready = fifo(&rig, "ready");
    let live = rig
        .start(&Task::sh(1, "echo 0; echo up > ready; seq 1 20000"))
        .unwrap();
    assert_eq!(receive(&ready), "up");
    // The shim looks at the output before it answers, so after two answers it has met the full disk.
    live.hello().unwrap();
    live.hello().unwrap();
    assert_eq!(rig.stdout(), "");
    fs::remove_file(filler).unwrap();
    let exit = finish(&live);
    assert_eq!((exit.code, exit.output_lost), (Some(0), false));
    assert_eq!(rig.stdout(), format!("0\n{}", numbers(20_000)));
}
