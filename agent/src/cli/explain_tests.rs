//! What is explained, and that the commands suggested next work.

use super::tests::{alloc_of, file, run, submit};
use crate::testing::{Rig, job};

#[tokio::test]
async fn explain_says_what_is_awaited_and_what_follows() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (code, out, err) = run(&rig, &["explain", "web"]).await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(
        out.starts_with("Job \"web\" is running: version 0, submitted "),
        "{out}"
    );
    let task = "  Task \"t\" is running, since ";
    assert!(out.contains(task), "{out}");
    let next = "    next        it runs until its process exits or it is asked to end\n";
    assert!(out.contains(next), "{out}");
    let restarts = "    restarts    none allowed: when it fails, it is not started again\n";
    assert!(out.contains(restarts), "{out}");
    assert!(out.contains("    last event  Started: "), "{out}");

    let alloc = alloc_of(&rig, "web").await;
    let (code, out, _) = run(&rig, &["explain", &alloc, "t"]).await;
    assert_eq!(code, 0);
    assert!(
        out.starts_with(&format!("Allocation {alloc} web.g[0] ")),
        "{out}"
    );
    let (code, _, err) = run(&rig, &["explain", &alloc, "u"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("Could not find task named: u, found: t"),
        "{err}"
    );
    let (code, _, err) = run(&rig, &["explain", "nothing"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("No job(s) with prefix or ID \"nothing\" found"),
        "{err}"
    );
}

#[tokio::test]
async fn explain_of_unplaceable_job_says_why() {
    let rig = Rig::start().await;
    let mut big = job("big", "batch", Some(0));
    big["Constraints"] = serde_json::json!([
        { "LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "=" }
    ]);
    let file = file(&big);
    let path = file.path().to_str().unwrap();
    run(&rig, &["job", "run", "-detach", path]).await;
    let (code, out, _) = run(&rig, &["explain", "big"]).await;
    assert_eq!(code, 0);
    let why = "waits for   a placement on this node (group \"g\": ";
    assert!(out.contains(why), "{out}");
    assert!(
        out.contains("  then        it is placed as soon as that changes"),
        "{out}"
    );
}

/// What is said about how to go on works as it is said.
#[tokio::test]
async fn explain_of_manual_health_has_the_command_that_goes_on() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["Update"] = serde_json::json!({
        "MaxParallel": 1, "HealthCheck": "manual", "ProgressDeadline": 0,
    });
    let web = file(&web);
    let path = web.path().to_str().unwrap();
    run(&rig, &["job", "run", "-detach", path]).await;
    let (code, out, _) = run(&rig, &["explain", "web"]).await;
    assert_eq!(code, 0, "{out}");
    let (_, command) = out.split_once("to say so: ").expect(&out);
    let command = command.lines().next().unwrap();
    let [words, body, path] = command.split('\'').collect::<Vec<_>>()[..] else {
        panic!("{command}");
    };
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend([body, path.trim()]);
    let (code, output, err) = run(&rig, &words).await;
    assert_eq!((code, err.as_str()), (0, ""), "{command}: {output}");
    let (_, out, _) = run(&rig, &["explain", "web"]).await;
    assert!(out.contains("deployment  successful"), "{out}");
}

/// A program of the machine that has the port of a task is named, whoever started it.
#[tokio::test]
async fn explain_names_program_that_holds_the_port_of_a_failed_task() {
    let rig = Rig::start().await;
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let mut web = job("web", "service", Some(1));
    web["TaskGroups"][0]["Networks"] =
        serde_json::json!([{ "ReservedPorts": [{ "Label": "http", "Value": port }] }]);
    let web = file(&web);
    run(&rig, &["job", "run", web.path().to_str().unwrap()]).await;
    let (code, out, _) = run(&rig, &["explain", "web"]).await;
    assert_eq!(code, 0);
    let who = format!("(process {}) listens there", std::process::id());
    let port = format!("obstacle    port http = {port} of this machine: ");
    assert!(out.contains(&port) && out.contains(&who), "{out}");
    drop(held);
    let (_, out, _) = run(&rig, &["explain", "web"]).await;
    assert!(!out.contains("obstacle"), "{out}");
}
