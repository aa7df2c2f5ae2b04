//! Parameterized jobs as a user has them: dispatched with a payload and with meta, looked at, and
//! kept apart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Agent, Ended, Program, World, command, free_addr};

/// Tells what it was given.
const PARAMETERIZED: &str = r#"
job "sum" {
  type = "batch"

  parameterized {
    payload       = "optional"
    meta_required = ["who"]
    meta_optional = ["why"]
  }

  group "g" {
    task "tell" {
      driver = "raw_exec"

      config {
        command = "/bin/sh"
        args    = ["-c", <<-EOT
          set -u
          echo "who $NOMAD_META_who, why ($NOMAD_META_WHY), parent $NOMAD_JOB_PARENT_ID"
          test ! -e local/in/data || cksum < local/in/data
        EOT
        ]
      }

      dispatch_payload {
        file = "in/data"
      }
    }
  }
}
"#;

struct Setup {
    agent: Agent,
    world: World,
}

impl Setup {
    fn new() -> Setup {
        let world = World::new();
        let setup = Setup {
            agent: Agent::start(&world.data(), &free_addr()),
            world,
        };
        let file = setup.world.file("sum.hcl", PARAMETERIZED);
        let out = setup.run(&["job", "run", &file.to_string_lossy()]).ok();
        assert_eq!(out, "Job registration successful");
        setup
    }

    fn run(&self, args: &[&str]) -> Ended {
        let addr = format!("http://{}", self.agent.addr);
        Program::of(command(args).env("DROVER_ADDR", addr)).end()
    }

    /// Dispatches, waits for the end, and gives back the id.
    fn dispatched(&self, args: &[&str]) -> String {
        let args: Vec<&str> = ["job", "dispatch"].iter().chain(args).copied().collect();
        self.over(&self.run(&args).ok())
    }

    fn over(&self, out: &str) -> String {
        let line = out
            .lines()
            .find(|line| line.starts_with("Dispatched Job ID"));
        let id = line.unwrap().split("= ").nth(1).unwrap().to_owned();
        let path = format!("/v1/job/{}", id.replace('/', "%2F"));
        self.agent
            .wait_for(&path, |job| (job["Status"] == "dead").then_some(()));
        id
    }

    fn shown(&self, job: &str) -> String {
        self.run(&["alloc", "logs", "-job", job]).ok()
    }
}

#[test]
fn dispatched_task_has_payload_and_meta() {
    let setup = Setup::new();
    let bytes: Vec<u8> = (0..16 * 1024)
        .map(|at| u8::try_from(at % 256).unwrap())
        .collect();
    let file = setup.world.path("bytes");
    fs::write(&file, &bytes).unwrap();
    let file = file.to_string_lossy();
    let id = setup.dispatched(&["-meta", "who=me", "-id-prefix-template", "eu", "sum", &file]);
    assert!(id.starts_with("sum/dispatch-eu-"), "{id}");
    let shown = setup.shown(&id);
    assert!(shown.contains("who me, why (), parent sum"), "{shown}");
    assert!(shown.trim_end().ends_with(" 16384"), "{shown}");
    // What is read from a pipe, and nothing.
    let addr = format!("http://{}", setup.agent.addr);
    let args = [
        "job",
        "dispatch",
        "-detach",
        "-meta=who=you",
        "-meta=why=so",
        "sum",
        "-",
    ];
    let mut child = command(args)
        .env("DROVER_ADDR", addr)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"four").unwrap();
    let out = child.wait_with_output().unwrap();
    let id = setup.over(&String::from_utf8_lossy(&out.stdout));
    let shown = setup.shown(&id);
    assert!(
        shown.contains("who you, why (so)") && shown.trim_end().ends_with(" 4"),
        "{shown}"
    );
    let id = setup.dispatched(&["-meta", "who=nobody", "sum"]);
    assert_eq!(
        setup.shown(&id).trim_end(),
        "who nobody, why (), parent sum"
    );
}

#[test]
fn unsuitable_dispatch_is_refused_with_reason() {
    let setup = Setup::new();
    let refused = |args: &[&str], why: &str| {
        let args: Vec<&str> = ["job", "dispatch"].iter().chain(args).copied().collect();
        let output = setup.run(&args).failed();
        assert!(output.contains(why), "{why:?} is not in {output}");
    };
    refused(
        &["sum"],
        "Dispatch did not provide required meta keys: [who]",
    );
    refused(
        &["-meta=who=a", "-meta=zz=b", "sum"],
        "unpermitted metadata keys: [zz]",
    );
    refused(&["-meta=who", "sum"], "expected KEY=VALUE");
    let id = setup.dispatched(&["-meta=who=a", "sum"]);
    refused(&[&id], "is not a parameterized job");
    let large = setup.world.path("large");
    fs::write(&large, vec![0; 16 * 1024 + 1]).unwrap();
    refused(
        &["-meta=who=a", "sum", &large.to_string_lossy()],
        "larger than 16384 bytes",
    );
    let put = |path: &str, body: Value| setup.agent.put(path, &body).unwrap();
    for (body, status) in [
        (
            json!({ "Payload": "no base64!", "Meta": { "who": "a" } }),
            400,
        ),
        (
            json!({ "Payload": "YQ==".repeat(9000), "Meta": { "who": "a" } }),
            400,
        ),
        (
            json!({ "Payload": "YWFh".repeat(9000), "Meta": { "who": "a" } }),
            500,
        ),
        (
            json!({ "IdPrefixTemplate": "a b", "Meta": { "who": "a" } }),
            500,
        ),
        (json!({ "Priority": 101, "Meta": { "who": "a" } }), 500),
    ] {
        let (found, output) = put("/v1/job/sum/dispatch", body);
        assert_eq!(found, status, "{output}");
    }
    assert_eq!(put("/v1/job/nobody/dispatch", json!({})).0, 404);
    assert_eq!(put("/v1/job/sum/evaluate", json!({})).0, 500);
    let job = json!({ "Job": { "ID": "own", "Payload": "YQ==" } });
    let (found, output) = put("/v1/jobs", job);
    assert!(
        found == 500 && output.contains("comes with a dispatch"),
        "{output}"
    );
}

#[test]
fn parameterized_job_shows_children() {
    let setup = Setup::new();
    let token = "-idempotency-token=once";
    let args = ["-meta=who=a", token, "sum"];
    let first = setup.dispatched(&args);
    assert_eq!(
        setup.dispatched(&args),
        first,
        "the same token is the same job"
    );
    let out = setup.run(&["job", "status", "sum"]).ok();
    for part in [
        "Parameterized = true",
        "Required Metadata = who",
        "Optional Metadata = why",
        "Dispatched Jobs\n",
        "Pending  Running  Dead\n0        0        1",
        &format!("{first}  dead"),
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let out = setup.run(&["job", "status"]).ok();
    assert!(
        out.contains("batch/parameterized  50        running"),
        "{out}"
    );
    let inspected = setup.run(&["job", "inspect", &first]).ok();
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["Job"]["ParentID"], "sum");
    assert_eq!(inspected["Job"]["Dispatched"], true);
    assert_eq!(inspected["Job"]["Meta"]["who"], "a");
    assert_eq!(setup.run(&["job", "stop", "-purge", "sum"]).code, 0);
    let path = format!("/v1/job/{}", first.replace('/', "%2F"));
    let child = setup.agent.get(&path);
    assert_eq!(child["Stop"], false, "{child}");
}

/// Templates of a dispatched job read what those of the job that it was made of may.
#[test]
fn dispatched_job_reads_variables_of_parent() {
    let setup = Setup::new();
    let job = PARAMETERIZED.replace(
        "dispatch_payload {",
        "template {
        data        = \"{{ with nomadVar `nomad/jobs/sum` }}{{ .key }}{{ end }}\"
        destination = \"local/key\"
      }

      dispatch_payload {",
    );
    let job = job.replace("set -u\n", "set -u\n          cat local/key; echo\n");
    let file = setup.world.file("sum.hcl", &job);
    setup.run(&["job", "run", &file.to_string_lossy()]).ok();
    let variable = ["var", "put", "nomad/jobs/sum", "key=of the parent"];
    setup.run(&variable).ok();
    let id = setup.dispatched(&["-meta", "who=me", "sum"]);
    let shown = setup.shown(&id);
    assert!(shown.starts_with("of the parent\nwho me"), "{shown}");
}
