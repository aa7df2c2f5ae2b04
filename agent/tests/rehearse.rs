//! `drover rehearse`: what it finds in jobs that were written to have it, how it ends, and that
//! its seeds are good for anything.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use serde_json::Value;
use support::{Ended, Program, World};

/// One restart, and nothing afterwards.
const FRAGILE: &str = r#"
variable "image" {}

job "fragile" {
  group "app" {
    restart {
      attempts = 1
      interval = "1h"
      delay    = "1s"
      mode     = "fail"
    }

    reschedule {
      attempts  = 0
      unlimited = false
    }

    task "server" {
      driver = "docker"

      config {
        image = var.image
      }
    }
  }
}
"#;

/// Whatever happens, it is tried again within a minute.
const GENEROUS: &str = r#"
job "generous" {
  constraint {
    attribute = "${attr.kernel.name}"
    value     = "plan9"
  }

  group "app" {
    count = 2

    restart {
      attempts = 3
      interval = "1m"
      delay    = "5s"
      mode     = "delay"
    }

    update {
      healthy_deadline  = "2h"
      progress_deadline = "3h"
    }

    task "prepare" {
      driver = "docker"

      lifecycle {
        hook = "prestart"
      }

      config {
        image = "prepare:1"
      }
    }

    task "server" {
      driver = "docker"
      leader = true

      config {
        image = "server:1"
      }
    }
  }
}
"#;

fn rehearse(args: &[&str]) -> Ended {
    let all: Vec<&str> = std::iter::once("rehearse")
        .chain(args.iter().copied())
        .collect();
    Program::run(all)
}

fn written(world: &World, text: &str) -> String {
    let path = world.file("job.nomad.hcl", text);
    path.to_string_lossy().into_owned()
}

#[track_caller]
fn report(args: &[&str]) -> (i32, Value) {
    let ended = rehearse(args);
    let value = serde_json::from_str(&ended.out);
    (ended.code, value.unwrap_or_else(|_| panic!("{ended:?}")))
}

fn findings(report: &Value) -> Vec<&Value> {
    let troubles = report["Troubles"].as_array().unwrap().iter();
    let findings = troubles.flat_map(|trouble| trouble["Findings"].as_array().unwrap());
    findings.collect()
}

#[test]
fn exhaustible_budget_is_reported_with_setting_and_seed() {
    let world = World::new();
    let file = written(&world, FRAGILE);
    let ended = rehearse(&["-runs", "30", "-var", "image=nginx 1", &file]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    let begins = |text: &str| lines.iter().position(|line| line.starts_with(text));
    let from = begins("crash-now-and-then: ").unwrap();
    let rest = &lines[from..];
    assert!(rest[1].contains("or for ever (") || rest[1].contains("down for ever in"));
    assert!(rest[2].starts_with("  BAD   app: never whole again by itself in "));
    assert!(rest[2].contains("server used up its restarts (exceeded allowed attempts 1 in"));
    let restart = format!(
        r#"        by {file}:6: restart {{ attempts = 1, interval = "1h", delay = "1s", mode = "fail" }}"#
    );
    assert_eq!(rest[3], restart);
    assert!(rest[4].contains(&format!("{file}:13: reschedule {{ attempts = 0,")));
    let command = rest[5].trim().strip_prefix("see drover rehearse ").unwrap();
    assert!(command.contains("-var 'image=nginx 1'"), "{command}");
    assert!(ended.out.contains("What might help\n"));
    assert!(ended.out.contains("unlimited = true"));

    let seed = command.split(' ').nth(1).unwrap();
    let trouble = "crash-now-and-then";
    let story = rehearse(&[
        "-seed",
        seed,
        "-trouble",
        trouble,
        "-timeline",
        "-var",
        "image=nginx 1",
        &file,
    ]);
    assert_eq!(story.code, 1);
    let head = story.out.lines().next().unwrap();
    assert!(
        head.contains("│ agent") && head.contains("fragile.app[0]/server"),
        "{head}"
    );
    assert!(story.out.contains("✗ app/server ends by itself"));
    assert!(
        story
            .out
            .contains("emit Not Restarting: Exceeded allowed attempts 1")
    );
    assert!(
        story
            .out
            .contains("never whole again by itself in 1 of 1 runs: server")
    );
}

#[test]
fn generous_policy_always_recovers() {
    let world = World::new();
    let file = written(&world, GENEROUS);
    let (code, report) = report(&["-runs", "30", "-json", &file]);
    assert_eq!(code, 0, "{report:#}");
    assert_eq!(report["Bad"], false);
    for finding in findings(&report) {
        assert_ne!(finding["Kind"], "budget-used-up", "{finding:#}");
        assert_ne!(finding["Kind"], "unhealthy", "{finding:#}");
    }
    for trouble in report["Troubles"].as_array().unwrap() {
        if trouble["NotFor"].is_null() {
            let group = &trouble["Groups"][0];
            assert_eq!(
                (&group["Group"], &group["Lost"]),
                (&"app".into(), &0.into())
            );
            assert_eq!(group["Count"], 2);
        } else {
            assert_eq!(trouble["Trouble"], "server-gone", "the leader may die");
        }
    }
    let crash = &report["Troubles"][1];
    assert_eq!(crash["Trouble"], "crash-at-start");
    let hour = 3_600_000_000_000_i64;
    let worst = crash["Groups"][0]["Worst"]["Down"].as_i64().unwrap();
    assert!(worst > hour / 2 && worst < hour + hour / 20, "{worst}");
}

#[test]
fn same_seed_gives_same_report() {
    let file = "../examples/web.nomad.hcl";
    let of = |seed| rehearse(&["-runs", "5", "-seed", seed, file]);
    let (one, same, other) = (of("1"), of("1"), of("400"));
    assert_eq!((one.code, &one.err), (0, &String::new()), "{one:?}");
    assert_eq!(one.out, same.out);
    assert_ne!(one.out, other.out);
    assert!(
        one.out
            .contains(r#"by group["app"].restart, not written, so the default: restart"#)
    );
    let alone = rehearse(&["-runs", "5", "-trouble", "reboot", file]);
    let begin = one.out.find("reboot: ").unwrap();
    let block = one.out[begin..].split("\n\n").next().unwrap();
    assert!(alone.out.starts_with(block), "{block}\n{}", alone.out);
}

#[test]
fn all_examples_can_be_rehearsed() {
    let mut examples = 0;
    for example in std::fs::read_dir("../examples").unwrap() {
        let path = example.unwrap().path();
        if path.extension().is_none_or(|kind| kind != "hcl") {
            continue;
        }
        let (code, report) = report(&["-runs", "3", "-json", &path.to_string_lossy()]);
        assert!(code == 0 || code == 1, "{}", path.display());
        assert_eq!(code == 1, report["Bad"] == true);
        for finding in findings(&report) {
            assert_ne!(finding["Kind"], "agent-at-fault", "{finding:#}");
            assert_ne!(finding["Kind"], "out-of-order", "{finding:#}");
        }
        examples += 1;
    }
    assert!(examples >= 4);
}

#[test]
fn unsupported_rehearsal_has_own_error() {
    let world = World::new();
    let bad = written(
        &world,
        "job \"x\" {\n  group \"g\" {\n    task \"t\" {\n    }\n  }\n}\n",
    );
    let refused = rehearse(&[&bad]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains(&format!("{bad}:3")), "{refused:?}");
    let validated = Program::run(["validate", &bad]);
    assert_eq!(validated.err, refused.err, "as for `job run`");

    for (args, why) in [
        (vec!["-trouble", "rebot", &bad], "did you mean \"reboot\"?"),
        (vec!["/no/such/file"], "cannot open"),
        (vec!["-runs", "0", &bad], "invalid value"),
        (vec![], "required"),
        (vec!["-timeline", &bad], "-trouble"),
    ] {
        let ended = rehearse(&args);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{args:?}");
        assert!(ended.err.contains(why), "{ended:?}");
    }
    let leaderless = [
        "-trouble",
        "leader-dies",
        "-timeline",
        "../examples/batch.nomad.hcl",
    ];
    let ended = rehearse(&leaderless);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("no task is a leader"));
}

#[test]
fn troubles_are_listed_with_descriptions() {
    let ended = rehearse(&["-list"]);
    assert_eq!(ended.code, 0);
    let lines: Vec<&str> = ended.out.lines().skip(1).collect();
    assert_eq!(lines.len(), 12);
    assert!(lines.iter().all(|line| line.ends_with('.')));
}
