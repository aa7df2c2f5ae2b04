//! `drover up` on the examples, as a user sees it: what is shown and in which order, how it ends,
//! and what is left.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::{Ended, Program, World, command};

fn example(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    dir.join(format!("{name}.nomad.hcl"))
}

/// The example with a shorter pause between the server's requests.
fn web(world: &World) -> Vec<String> {
    let mut args = world.up(&example("web"));
    args.extend(["-var".to_owned(), "pause=0.02".to_owned()]);
    args
}

/// Fails unless these texts stand in the output in this order.
#[track_caller]
fn in_order(out: &str, texts: &[&str]) {
    let mut rest = out;
    for text in texts {
        let (_, after) = rest
            .split_once(text)
            .unwrap_or_else(|| panic!("no {text:?} at its place in:\n{out}"));
        rest = after;
    }
}

#[test]
fn batch_job_is_restarted_and_succeeds() {
    let world = World::new();
    let out = Program::run(world.up(&example("batch"))).ok();
    let try_of = |n: u8| format!("convert  | try {n}");
    in_order(
        &out,
        &[
            "==> Agent at http://127.0.0.1:",
            "==> Allocation ",
            " batch.work[0] created",
            "convert  Received ",
            "convert  Task Setup ",
            "convert  Started ",
            "convert  Terminated   Exit Code: 1",
            "convert  Restarting ",
            "convert  Started ",
            "convert  Terminated   Exit Code: 1",
            "convert  Restarting ",
            "convert  Started ",
            "convert  Terminated   Exit Code: 0",
            "==> Job \"batch\" is complete",
        ],
    );
    in_order(
        &out,
        &[
            &try_of(3),
            "convert  | part 1 of 5",
            "convert  | part 5 of 5",
            "convert  | done",
            "==> Job \"batch\" is complete",
        ],
    );
    in_order(&out, &[&try_of(1), &try_of(2), &try_of(3)]);
    let complaint = "convert  | the input is not there yet";
    assert_eq!(out.matches(complaint).count(), 2, "{out}");
    assert_eq!(world.launches(), Vec::<String>::new());

    // Who types it again wants to see it run.
    let again = Program::run(world.up(&example("batch"))).ok();
    in_order(
        &again,
        &[
            " created",
            &try_of(1),
            &try_of(2),
            &try_of(3),
            "is complete",
        ],
    );
    assert_eq!(again.matches(" created").count(), 1, "{again}");
    assert_eq!(again.matches("convert  Started ").count(), 3, "{again}");
}

#[test]
fn lifecycle_tasks_run_in_order() {
    let world = World::new();
    let out = Program::run(world.up(&example("lifecycle"))).ok();
    in_order(
        &out,
        &[
            "prepare  Terminated   Exit Code: 0",
            "main     Task Setup",
            "main     Started",
            "announce Started",
            "main     Terminated   Exit Code: 0",
            "proxy    Main Tasks Dead",
            "proxy    Killing",
            "proxy    Killed",
            "cleanup  Started",
            "cleanup  Terminated   Exit Code: 0",
            "==> Job \"lifecycle\" is complete",
        ],
    );
    // A line may be shown before or after an event that happened at nearly the same time.
    in_order(&out, &["proxy    Started", "announce Started"]);
    in_order(&out, &["proxy    | proxy is up", "proxy    | proxy closes"]);
    in_order(
        &out,
        &["main     | main finds: ready", "main     | main is done"],
    );
    let lines = [
        "prepare  | preparing",
        "announce | lifecycle is up as lifecycle.all[0]",
        "cleanup  | cleaning up",
    ];
    for line in lines {
        in_order(&out, &[line, "==> Job \"lifecycle\" is complete"]);
    }
    assert_eq!(out.matches("Exit Code: 0").count(), 5, "{out}");
    assert_eq!(world.launches(), Vec::<String>::new());
}

#[test]
fn mock_tasks_run_without_processes() {
    let world = World::new();
    let out = Program::run(world.up(&example("mock"))).ok();
    for name in ["mock.demo[0]", "mock.demo[1]"] {
        in_order(
            &out,
            &[
                &format!("{name} created"),
                &format!("Exit Code: 0 ({name})"),
            ],
        );
    }
    // Two copies, each of which says it once and repeats it twice.
    assert_eq!(out.matches("good         | working").count(), 6, "{out}");
    in_order(
        &out,
        &[
            "slow-starter Started",
            "slow-starter Terminated   Exit Code: 0",
        ],
    );
}

#[test]
fn interrupt_kills_leader_first_and_leaves_nothing() {
    let world = World::new();
    let program = Program::start(web(&world));
    program.line("shipper  | shipped: GET /page/1 200");
    let launches = world.launches();
    assert!(!not_root_groups(&launches), "{launches:?}");
    program.interrupt();
    let out = program.end().ok();
    in_order(
        &out,
        &[
            "==> Stopping web; again to leave at once",
            "server   Killing      Sent interrupt",
            "server   Terminated   Exit Code: 0",
            "shipper  Killing      Sent interrupt",
            "shipper  Terminated   Exit Code: 0",
            "shipper  Killed",
            "==> Job \"web\" is stopped",
        ],
    );
    in_order(&out, &["server   Killing", "server   | server: closing"]);
    world.is_left_clean(&launches);
}

/// Whether there should be control groups and are not the two that the example makes.
fn not_root_groups(launches: &[String]) -> bool {
    rustix::process::geteuid().is_root() && launches.len() != 2
}

#[test]
fn tasks_survive_agent_crash() {
    let world = World::new();
    let first = Program::start(web(&world));
    first.line("shipper  | shipped: GET /page/3 200");
    let (shims, launches) = (support::shims(&world.data()), world.launches());
    let out = first.kill_9();
    assert_eq!(out.matches("server   Started").count(), 1, "{out}");

    let second = Program::start(web(&world));
    second.line("==> Allocation ");
    second.line("server   | GET /page/");
    second.line("shipper  | shipped: GET /page/");
    assert_eq!(support::shims(&world.data()), shims, "the same processes");
    assert_eq!(world.launches(), launches);
    second.interrupt();
    let out = second.end().ok();
    // What the first one showed is not shown again, unless it died before it had noted the start.
    let known = out.contains("web.app[0] is still running");
    assert!(known != out.contains("GET /page/1 "), "{out}");
    in_order(
        &out,
        &["server   | server: closing", "==> Job \"web\" is stopped"],
    );
    world.is_left_clean(&launches);

    let (server, shipper) = (log(&world, "server"), log(&world, "shipper"));
    let pages = server.lines().filter(|line| line.starts_with("GET "));
    for (at, line) in pages.clone().enumerate() {
        assert_eq!(line, format!("GET /page/{} 200", at + 1), "{server}");
    }
    assert!(pages.count() > 3, "{server}");
    assert!(server.ends_with("server: closing\n"), "{server}");
    // The shipper may be stopped before it has seen the last line.
    let shipped: Vec<&str> = shipper
        .lines()
        .map(|line| line.strip_prefix("shipped: ").unwrap())
        .collect();
    let written: Vec<&str> = server.lines().take(shipped.len()).collect();
    assert_eq!(shipped, written);
}

/// All that a task wrote to its standard output.
fn log(world: &World, task: &str) -> String {
    let allocs = fs::read_dir(world.data().join("alloc")).unwrap();
    let dirs: Vec<PathBuf> = allocs.map(|entry| entry.unwrap().path()).collect();
    let [dir] = dirs.as_slice() else {
        panic!("not one allocation: {dirs:?}")
    };
    let file = dir.join(format!("alloc/logs/{task}.stdout.0"));
    fs::read_to_string(file).unwrap()
}

#[test]
fn second_interrupt_exits_at_once() {
    let world = World::new();
    let job = world.file(
        "stubborn.hcl",
        r#"
        job "stubborn" {
          group "g" {
            task "mule" {
              driver       = "raw_exec"
              kill_timeout = "5m"
              config {
                command = "/bin/sh"
                args    = ["-c", "trap 'echo no' INT; echo ready; while :; do sleep 1000; done"]
              }
            }
          }
        }
        "#,
    );
    let program = Program::start(world.up(&job));
    program.line("mule     | ready");
    program.interrupt();
    program.line("==> Stopping stubborn");
    program.interrupt();
    let ended = program.end();
    assert_eq!(ended.code, 1, "not all is stopped: {ended:?}");
    in_order(&ended.out, &["Left job \"stubborn\" before it was stopped"]);
    assert_eq!(support::shims(&world.data()).len(), 1, "the task goes on");
}

#[test]
fn failed_job_sets_exit_code() {
    let world = World::new();
    let job = world.file(
        "fails.hcl",
        r#"
        job "fails" {
          type = "batch"
          group "g" {
            restart {
              attempts = 0
              mode     = "fail"
            }
            reschedule {
              attempts  = 0
              unlimited = false
            }
            task "t" {
              driver = "raw_exec"
              config {
                command = "/bin/sh"
                args    = ["-c", "printf 'no end of line'; exit 7"]
              }
            }
          }
        }
        "#,
    );
    let out = Program::run(world.up(&job)).with(1);
    in_order(
        &out,
        &[
            "t        Terminated   Exit Code: 7",
            "==> Job \"fails\" failed",
        ],
    );
    assert!(out.contains("t        | no end of line\n"), "{out}");
}

/// How a job ended is how its last allocations did.
#[test]
fn job_that_completes_when_it_is_rescheduled_exits_with_zero() {
    let world = World::new();
    let script = format!(
        "test -e {tried} && exit 0; touch {tried}; exit 7",
        tried = world.path("tried").display()
    );
    let job = format!(
        r#"
        job "again" {{
          type = "batch"
          group "g" {{
            restart {{
              attempts = 0
              mode     = "fail"
            }}
            reschedule {{
              attempts       = 1
              interval       = "1h"
              delay          = "5s"
              delay_function = "constant"
              unlimited      = false
            }}
            task "t" {{
              driver = "raw_exec"
              config {{
                command = "/bin/sh"
                args    = ["-c", "{script}"]
              }}
            }}
          }}
        }}
        "#
    );
    let out = Program::run(world.up(&world.file("again.hcl", &job))).ok();
    in_order(
        &out,
        &[
            "t        Terminated   Exit Code: 7",
            "t        Terminated   Exit Code: 0",
            "==> Job \"again\" is complete",
        ],
    );
}

#[test]
fn closed_stdout_does_not_block_job() {
    let world = World::new();
    let job = world.file(
        "chatty.hcl",
        r#"
        job "chatty" {
          type = "batch"
          group "g" {
            task "t" {
              driver = "raw_exec"
              config {
                command = "/bin/sh"
                args    = ["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done"]
              }
            }
          }
        }
        "#,
    );
    let (reader, writer) = std::io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    let mut command = command(world.up(&job));
    command.args(["-log-level", "debug"]);
    command.stdout(Stdio::from(writer.try_clone().unwrap()));
    command.stderr(Stdio::from(writer));
    let program = Program::spawn(&mut command);
    // The other ends of the pipe go, so that the program's are the only ones.
    drop(command);
    let mut first = String::new();
    BufReader::new(reader).read_line(&mut first).unwrap();
    assert!(!first.is_empty());
    let Ended { code, .. } = program.end();
    assert_eq!(code, 0);
    assert_eq!(log(&world, "t").lines().count(), 20_000);
}

/// What is dispatched of a parameterized job is shown by whoever runs that job.
#[test]
fn up_shows_dispatched_jobs() {
    let world = World::new();
    let file = world.file(
        "param.hcl",
        "job \"param\" {\n  type = \"batch\"\n  parameterized {\n    payload = \"optional\"\n  }\n  group \"g\" {\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        command = \"/bin/echo\"\n        args    = [\"from a child\"]\n      }\n    }\n  }\n}\n",
    );
    let up = Program::start(world.up(&file));
    let url = format!("http://{}", up.addr());
    let dispatched = ["job", "dispatch", "-detach", "-address", &url, "param"];
    // It may be asked for before it is there.
    let until = std::time::Instant::now() + support::TIMEOUT;
    while Program::run(dispatched).code != 0 {
        assert!(std::time::Instant::now() < until, "it cannot be dispatched");
    }
    up.line("from a child");
    up.line("Terminated");
    up.interrupt();
    up.end().ok();
}
