//! The commands that ask an agent: what they show, how they end, and what they do to jobs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Ended, Lone, Program, command, free_addr, has};

/// A service whose task tells what happens to it.
const TALKER: &str = include_str!("commands/talker.hcl");

/// A batch job that ends.
const COUNTER: &str = include_str!("commands/counter.hcl");

/// Where a file with this text is.
fn written(lone: &Lone, name: &str, text: &str) -> String {
    lone.world.file(name, text).to_string_lossy().into_owned()
}

/// The id of the one running allocation of a job.
fn running(lone: &Lone, job: &str) -> String {
    let path = format!("/v1/job/{job}/allocations");
    lone.agent.wait_for(&path, |allocs| {
        let is_running =
            |it: &&Value| it["ClientStatus"] == "running" && it["DesiredStatus"] == "run";
        let found = allocs.as_array().unwrap().iter().find(is_running);
        found.map(|alloc| alloc["ID"].as_str().unwrap().to_owned())
    })
}

fn wait_for_status(lone: &Lone, job: &str, wanted: &str) {
    lone.agent.wait_for(&format!("/v1/job/{job}"), |job| {
        (job["Status"] == wanted).then_some(())
    });
}

#[test]
fn service_runs_and_is_shown() {
    let lone = Lone::new();
    let file = written(&lone, "talker.hcl", TALKER);
    let out = lone.run(&["job", "validate", &file]).ok();
    assert_eq!(out, "Job validation successful");
    let out = lone.run(&["job", "run", &file]).ok();
    let parts = [
        "Monitoring evaluation \"",
        "Evaluation triggered by job \"talker\"",
        "created: node \"",
        "finished with status \"complete\"",
        "Monitoring deployment \"",
        "= successful",
    ];
    has(&out, &parts);

    let out = lone.run(&["job", "status"]).ok();
    has(
        &out,
        &[
            "ID      Type     Priority  Status   Submit Date",
            "talker  service  50        running  ",
        ],
    );
    let out = lone.run(&["status", "talker"]).ok();
    has(
        &out,
        &[
            "= talker",
            "Summary\n",
            "Latest Deployment\n",
            "Allocations\n",
        ],
    );
    assert_eq!(
        lone.run(&["job", "status", "-short", "talker"])
            .ok()
            .matches("Summary")
            .count(),
        0
    );
    assert_eq!(lone.json(&["job", "status", "-json"])[0]["ID"], "talker");
    assert_eq!(
        lone.json(&["job", "status", "--json", "talker"])["ID"],
        "talker"
    );
    assert_eq!(
        lone.json(&["job", "inspect", "-json", "talker"])["ID"],
        "talker"
    );
    assert_eq!(
        lone.json(&["job", "inspect", "talker"])["Job"]["ID"],
        "talker"
    );
    let version = lone.json(&["inspect", "-version", "0", "talker"]);
    assert_eq!(version["Job"]["Version"], 0);
    let err = lone
        .run(&["job", "inspect", "-version=7", "talker"])
        .failed();
    assert_eq!(err, "No version 7 of job \"talker\" is kept");

    let alloc = running(&lone, "talker");
    let out = lone.run(&["alloc", "status", &alloc[..8]]).ok();
    has(
        &out,
        &[
            "= talker.talk[0]",
            "Client Status",
            "= running",
            "Task \"say\"",
            "Started",
        ],
    );
    assert_eq!(
        lone.json(&["alloc", "status", "-json", &alloc])["ID"],
        alloc.as_str()
    );
    has(&lone.run(&["alloc", "status"]).ok(), &[&alloc[..8]]);
    has(
        &lone.run(&["status", &alloc[..7]]).ok(),
        &["= talker.talk[0]"],
    );
    let eval = lone.json(&["alloc", "status", "-json", &alloc]);
    let eval = eval["EvalID"].as_str().unwrap();
    has(
        &lone.run(&["eval", "status", eval]).ok(),
        &["= complete", "= talker"],
    );
    assert_eq!(lone.json(&["eval", "status", "-json", eval])["ID"], eval);
    let deployments = lone.json(&["deployment", "status", "-json"]);
    let deployment = deployments[0]["ID"].as_str().unwrap();
    has(
        &lone.run(&["deployment", "status", deployment]).ok(),
        &["= successful"],
    );

    let nodes = lone.json(&["node", "status", "-json"]);
    let node = nodes[0]["ID"].as_str().unwrap();
    has(&lone.run(&["node", "status"]).ok(), &[&node[..8], "ready"]);
    has(
        &lone.run(&["node", "status", &node[..8]]).ok(),
        &["raw_exec", "ready"],
    );
    has(&lone.run(&["node", "status", "-self"]).ok(), &[node]);
    assert_eq!(lone.json(&["node", "status", "-self", "-json"])["ID"], node);
    assert_eq!(
        lone.json(&["operator", "api", "/v1/jobs"])[0]["ID"],
        "talker"
    );
    lone.run(&["operator", "api", "/v1/job/nobody"]).with(1);
    lone.run(&["system", "gc"]).ok();
    wait_for_status(&lone, "talker", "running");
}

#[test]
fn node_driver_has_update_time() {
    let lone = Lone::new();
    let node = lone.json(&["node", "status", "-self", "-json"]);
    let changed = node["Drivers"]["raw_exec"]["UpdateTime"].as_str().unwrap();
    assert!(changed.starts_with("20"), "{changed}");
}

#[test]
fn tasks_are_signalled_restarted_and_stopped() {
    let lone = Lone::new();
    let file = written(&lone, "talker.hcl", TALKER);
    lone.run(&["run", &file]).ok();
    let alloc = running(&lone, "talker");
    let id = &alloc[..8];
    let logs = lone.start(&["alloc", "logs", "-f", "-stdout", id]);
    logs.line(&format!("hello from {alloc}"));

    lone.run(&["alloc", "signal", "-s", "SIGUSR1", id]).ok();
    logs.line("got USR1");
    lone.run(&["alloc", "restart", id, "say"]).ok();
    logs.line("goodbye");
    logs.nth_line("hello from", 1);
    lone.run(&["job", "restart", "-yes", "talker"]).ok();
    logs.nth_line("hello from", 2);
    running(&lone, "talker");
    let err = lone.run(&["alloc", "restart", id, "nobody"]).failed();
    assert_eq!(err, "Could not find task named: nobody, found: say");
    let err = lone.run(&["alloc", "signal", "-s", "SIGWHAT", id]).failed();
    has(&err, &["SIGWHAT"]);

    // A stop brings a replacement, and the end of what is followed.
    let out = lone.run(&["alloc", "stop", id]).ok();
    has(&out, &["finished with status \"complete\""]);
    let out = logs.end().ok();
    assert_eq!(out.matches("goodbye").count(), 3, "{out}");
    assert!(out.ends_with("goodbye"), "{out}");
    let next = running(&lone, "talker");
    assert_ne!(next, alloc);

    let logs = lone.start(&["alloc", "logs", "-f", &next]);
    logs.line("hello from");
    let out = lone.run(&["job", "stop", "talker"]).ok();
    has(
        &out,
        &["Monitoring evaluation", "finished with status \"complete\""],
    );
    let ended = logs.end();
    has(&ended.err, &["a complaint"]);
    has(&ended.ok(), &["goodbye"]);
    wait_for_status(&lone, "talker", "dead");
    has(
        &lone.run(&["job", "status", "talker"]).ok(),
        &["= dead (stopped)"],
    );
    assert_eq!(lone.world.launches(), Vec::<String>::new());

    let out = lone
        .run(&["job", "stop", "-purge", "-detach", "talker"])
        .ok();
    assert_eq!(out.trim().len(), 36, "an evaluation: {out}");
    lone.agent.wait_for("/v1/jobs", |jobs| {
        jobs.as_array().unwrap().is_empty().then_some(())
    });
    let err = lone.run(&["job", "status", "talker"]).failed();
    assert_eq!(err, "No job(s) with prefix or ID \"talker\" found");
    assert_eq!(lone.run(&["job", "status"]).ok(), "No running jobs");
}

#[test]
fn logs_are_shown_by_offset_and_tail() {
    let lone = Lone::new();
    let file = written(&lone, "counter.hcl", COUNTER);
    has(
        &lone.run(&["job", "run", &file]).ok(),
        &["finished with status \"complete\""],
    );
    let allocs = lone.json(&["operator", "api", "/v1/job/counter/allocations"]);
    let id = allocs[0]["ID"].as_str().unwrap();
    // Followed until the task ends, which may be now or be long ago.
    let ended = lone.run(&["logs", "-f", id]);
    assert_eq!(ended.err, "three");
    assert_eq!(ended.ok(), "1\n2\n3");
    assert_eq!(lone.run(&["alloc", "logs", id]).ok(), "1\n2\n3");
    assert_eq!(
        lone.run(&["alloc", "logs", "-job", "counter"]).ok(),
        "1\n2\n3"
    );
    assert_eq!(
        lone.run(&["alloc", "logs", "-tail", "-n", "2", id, "up"])
            .ok(),
        "2\n3"
    );
    assert_eq!(
        lone.run(&["alloc", "logs", "-tail", "-c=3", id]).ok(),
        "\n3"
    );
    assert_eq!(lone.run(&["job", "logs", "-now", "counter"]).ok(), "");
    let ended = lone.run(&["alloc", "logs", "-stderr", id]);
    assert_eq!(ended.err, "three");
    assert_eq!(ended.ok(), "");
    assert_eq!(
        lone.run(&["alloc", "logs", "-task", "beside", id]).ok(),
        "beside"
    );
    let err = lone.run(&["alloc", "logs", id, "nobody"]).failed();
    assert_eq!(err, "Could not find task named: nobody, found: beside, up");
    for nothing in ["ffffffff", "zz", "", "../etc"] {
        let err = lone.run(&["alloc", "logs", nothing]).failed();
        assert_eq!(
            err,
            format!("No allocation(s) with prefix or id \"{nothing}\" found")
        );
    }
    wait_for_status(&lone, "counter", "dead");
}

#[test]
fn job_files_have_variables() {
    let lone = Lone::new();
    let file = written(&lone, "talker.hcl", TALKER);
    let values = written(&lone, "values.hcl", "word = \"from a file\"\ncopies = 0\n");
    let args = |job: &Value| job["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["args"].to_string();
    let job = lone.json(&["job", "run", "-output", "-var-file", &values, &file]);
    has(&args(&job), &["from a file from "]);
    assert_eq!(job["Job"]["TaskGroups"][0]["Count"], 0);
    let both = [
        "run",
        "--output",
        "--var-file",
        &values,
        "--var=word=given",
        "-var",
        "copies=3",
        &file,
    ];
    let job = lone.json(&both);
    has(&args(&job), &["given from "]);
    assert_eq!(job["Job"]["TaskGroups"][0]["Count"], 3);
    let mut from_env = command(["run", "-output", &file]);
    let out = Program::of(from_env.env("NOMAD_VAR_word", "environment"))
        .end()
        .ok();
    has(&out, &["environment from "]);

    let err = lone
        .run(&["job", "validate", "-var", "wrd=x", &file])
        .failed();
    has(&err, &["wrd", "word"]);
    lone.run(&[
        "job",
        "validate",
        "-var",
        "wrd=x",
        "-hcl2-strict=false",
        &file,
    ])
    .ok();
    let err = lone
        .run(&["job", "validate", "-var", "copies=many", &file])
        .failed();
    has(&err, &["copies", "number"]);
    let err = lone
        .run(&["job", "validate", "-var", "nonsense", &file])
        .failed();
    has(&err, &["-var nonsense: expected NAME=VALUE"]);
    let err = lone
        .run(&["job", "validate", "-var-file", "/nowhere/at/all", &file])
        .failed();
    has(&err, &["cannot open /nowhere/at/all: No such file"]);

    let out = lone
        .run(&["job", "run", "-detach", "-var-file", &values, &file])
        .ok();
    has(&out, &["Job registration successful\nEvaluation ID: "]);
    assert_eq!(
        lone.json(&["job", "inspect", "talker"])["Job"]["TaskGroups"][0]["Count"],
        0
    );
    // What is there is not replaced when only a new job is meant.
    let err = lone
        .run(&["job", "run", "-check-index", "0", &file])
        .failed();
    has(&err, &["Error submitting job: "]);
    let json = lone.json(&["run", "-output", &file]).to_string();
    let json = written(&lone, "talker.json", &json);
    lone.run(&["job", "validate", "-json", &json]).ok();
}

#[test]
fn job_file_is_read_from_stdin() {
    let lone = Lone::new();
    let mut command = command(["job", "run", "-output", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(COUNTER.as_bytes())
        .unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    let job: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(job["Job"]["ID"], "counter");
    drop(lone);
}

#[test]
fn agent_address_comes_from_option_or_environment() {
    let lone = Lone::new();
    let addr = format!("http://{}", lone.agent.addr);
    let nobody = format!("http://{}", free_addr());
    let ask = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = command(args);
        for (name, value) in env {
            command.env(name, value);
        }
        Program::of(&mut command).end()
    };
    let status = ["job", "status"];
    let found = "No running jobs";
    assert_eq!(ask(&status, &[("NOMAD_ADDR", &addr)]).ok(), found);
    assert_eq!(
        ask(&status, &[("DROVER_ADDR", &addr), ("NOMAD_ADDR", &nobody)]).ok(),
        found
    );
    for option in ["-address", "--address"] {
        let args = ["job", "status", option, &addr];
        assert_eq!(ask(&args, &[("DROVER_ADDR", &nobody)]).ok(), found);
    }
    assert_eq!(
        ask(&["job", "status", &format!("-address={addr}")], &[]).ok(),
        found
    );

    let file = written(&lone, "talker.hcl", TALKER);
    let asking: [&[&str]; 7] = [
        &["job", "status"],
        &["job", "run", &file],
        &["job", "stop", "talker"],
        &["alloc", "status", "abcd"],
        &["alloc", "logs", "-f", "abcd"],
        &["node", "status"],
        &["system", "gc"],
    ];
    for args in asking {
        let err = ask(args, &[("DROVER_ADDR", &nobody)]).failed();
        let words = format!("no agent answers at {nobody}: nothing listens there\nStart one with");
        assert!(err.starts_with(&words), "{args:?}: {err}");
    }
    // These need none.
    has(
        &ask(&["job", "validate", &file], &[("DROVER_ADDR", &nobody)]).ok(),
        &["successful"],
    );
    for version in ["version", "-version", "--version", "-v"] {
        has(
            &ask(&[version], &[]).ok(),
            &["Drover v", env!("CARGO_PKG_VERSION")],
        );
    }
    has(
        &ask(&["-help"], &[]).ok(),
        &["Usage: drover", "up", "agent", "job"],
    );
    let err = ask(&["job", "status", "-address", "ftp://here"], &[]).failed();
    has(&err, &["speaks http and https", "not ftp"]);
}

#[test]
fn command_line_mistakes_are_reported() {
    let failure = |args: &[&str]| Program::run(args).failed();
    has(
        &failure(&["jobs", "run"]),
        &["unrecognized subcommand 'jobs'", "similar", "'job'"],
    );
    has(
        &failure(&["job", "run", "-detatch", "x.hcl"]),
        &["-detatch", "detach"],
    );
    has(&failure(&["job", "run"]), &["<FILE>", "Usage:"]);
    for agent in [&["agent"][..], &["up", "/nowhere/job.hcl"]] {
        let args = [agent, &["-address", "http://127.0.0.1:1"]].concat();
        has(&failure(&args), &["-http ADDR:PORT"]);
    }
    has(
        &failure(&["job", "run", "/nowhere/job.hcl"]),
        &["cannot open /nowhere/job.hcl: No such file"],
    );
    has(
        &failure(&["job", "validate", "/"]),
        &["cannot read /: Is a directory"],
    );
    has(
        &failure(&["alloc", "logs", "-n", "many", "abcd"]),
        &["many"],
    );
}

#[test]
fn ambiguous_id_prefix_is_refused() {
    let lone = Lone::new();
    let none = "copies = 0\n";
    let values = written(&lone, "values.hcl", none);
    for name in ["web-one", "web-two"] {
        let text = TALKER.replace("\"talker\"", &format!("{name:?}"));
        let file: PathBuf = lone.world.file("job.hcl", &text);
        let file = file.to_string_lossy().into_owned();
        lone.run(&["run", "-detach", "-var-file", &values, &file])
            .ok();
    }
    assert_eq!(
        lone.json(&["job", "status", "-json", "web-o"])["ID"],
        "web-one"
    );
    let err = lone.run(&["job", "inspect", "web"]).failed();
    has(
        &err,
        &["Prefix \"web\" matched multiple jobs", "web-one", "web-two"],
    );
    // Nobody is there to be asked whether this is the right one.
    let out = lone.run(&["job", "stop", "web-o"]);
    assert!(!out.out.contains("Monitoring"), "{out:?}");
    assert_eq!(
        lone.json(&["job", "inspect", "web-one"])["Job"]["Stop"],
        Value::Bool(false)
    );
    lone.run(&["job", "stop", "-yes", "web-o"]).ok();
    assert_eq!(
        lone.json(&["job", "inspect", "web-one"])["Job"]["Stop"],
        Value::Bool(true)
    );
}

#[test]
fn unplaceable_job_has_own_exit_code() {
    let lone = Lone::new();
    let text = TALKER.replace("\"raw_exec\"", "\"qemu\"");
    let file = written(&lone, "qemu.hcl", &text);
    let out = lone.run(&["job", "run", &file]).with(2);
    has(
        &out,
        &[
            "Failed Placements",
            "failed to place 1 allocation",
            "driver",
            "qemu",
        ],
    );
    let out = lone.run(&["job", "status", "talker"]).ok();
    has(&out, &["Placement Failure", "qemu", "= pending"]);
    lone.run(&["job", "stop", "talker"]).ok();
}

/// Links, pipes and names that are no text are left out, whichever way a directory is copied.
#[test]
fn copy_says_what_it_leaves_out() {
    let lone = Lone::new();
    let file = written(&lone, "talker.hcl", TALKER);
    lone.run(&["run", &file]).ok();
    let id = running(&lone, "talker");
    let odd = |dir: &PathBuf| {
        std::os::unix::fs::symlink("plain", dir.join("link")).unwrap();
        std::fs::write(dir.join(OsStr::from_bytes(b"n\xff")), "").unwrap();
        let made = Command::new("mkfifo").arg(dir.join("pipe")).status();
        assert!(made.unwrap().success());
    };
    let is_reported = |outcome: &Ended, from: &str| {
        assert_eq!((outcome.code, &*outcome.out), (0, ""), "{outcome:?}");
        let lines = [
            "Left out 3:".to_owned(),
            format!("{from}/link\": a symbolic link"),
            format!("{from}/pipe\": neither a plain file nor a directory"),
            "its name is not plain text".to_owned(),
        ];
        has(&outcome.err, &lines.each_ref().map(String::as_str));
    };

    let here = lone.world.path("tree");
    std::fs::create_dir_all(here.join("below")).unwrap();
    std::fs::write(here.join("plain"), "words").unwrap();
    std::fs::write(here.join("below/other"), "more").unwrap();
    let from = here.to_string_lossy().into_owned();
    let there = format!("{id}:alloc/data/tree");
    let copied = lone.run(&["alloc", "cp", &from, &there]);
    assert_eq!((copied.code, &*copied.err), (0, ""), "{copied:?}");
    odd(&here);
    is_reported(&lone.run(&["alloc", "cp", &from, &there]), &from);

    let data = lone
        .world
        .data()
        .join("alloc")
        .join(&id)
        .join("alloc/data/tree");
    assert!(!data.join("link").is_symlink() && data.join("below/other").is_file());
    odd(&data);
    let back = lone.world.path("back");
    let to = back.to_string_lossy().into_owned();
    let copied = lone.run(&["alloc", "cp", &there, &to]);
    is_reported(&copied, "alloc/data/tree");
    assert_eq!(std::fs::read(back.join("below/other")).unwrap(), b"more");
    assert_eq!(std::fs::read_dir(&back).unwrap().count(), 2);
}
