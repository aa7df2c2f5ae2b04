//! Commands against an in-process agent. Those about the node are in `node_tests.rs`.

use std::io::Write;

use clap::Parser;

use super::args::{Cli, Command};
use super::context::Context;
use super::{dashes, dispatch};
use crate::testing::{Captured, Rig, job};

/// What a command exits with, says, and complains of.
pub(super) async fn run(rig: &Rig, args: &[&str]) -> (u8, String, String) {
    run_with(rig.context(), args).await
}

/// The same, by what it has at hand.
pub(super) async fn run_with(
    (mut cx, out, err): (Context, Captured, Captured),
    args: &[&str],
) -> (u8, String, String) {
    let args = ["drover"].iter().chain(args).map(|arg| (*arg).into());
    let args = dashes::rewrite(&<Cli as clap::CommandFactory>::command(), args);
    let Command::Client(command) = Cli::try_parse_from(args).unwrap().command else {
        panic!("that asks no agent");
    };
    let code = match dispatch(&mut cx, command).await {
        Ok(code) => code,
        Err(failure) => {
            cx.screen.complain(&failure.message);
            failure.code
        }
    };
    drop(cx);
    (code, out.text(), err.text())
}

/// A file with a job in the API's form.
pub(super) fn file(job: &serde_json::Value) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(serde_json::json!({ "Job": job }).to_string().as_bytes())
        .unwrap();
    file
}

pub(super) async fn submit(
    rig: &Rig,
    id: &str,
    kind: &str,
    exit: Option<i64>,
) -> (u8, String, String) {
    let file = file(&job(id, kind, exit));
    run(rig, &["job", "run", file.path().to_str().unwrap()]).await
}

/// The short id of the only allocation that a job's status shows.
pub(super) async fn alloc_of(rig: &Rig, id: &str) -> String {
    let (_, out, _) = run(rig, &["status", id]).await;
    out.lines()
        .last()
        .unwrap()
        .split("  ")
        .next()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn job_run_reports_outcome() {
    let rig = Rig::start().await;
    let (code, out, err) = submit(&rig, "web", "service", None).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let without_ids: Vec<&str> = out.lines().map(|l| l.split('"').next().unwrap()).collect();
    assert_eq!(
        without_ids[..7],
        [
            "==> 2026-11-21T04:43:14Z: Monitoring evaluation ",
            "    2026-11-21T04:43:14Z: Evaluation triggered by job ",
            "    2026-11-21T04:43:14Z: Evaluation within deployment: ",
            "    2026-11-21T04:43:14Z: Allocation ",
            "    2026-11-21T04:43:14Z: Evaluation status changed: ",
            "==> 2026-11-21T04:43:14Z: Evaluation ",
            "==> 2026-11-21T04:43:14Z: Monitoring deployment ",
        ]
    );
    assert!(out.contains("Status      = successful"), "{out}");
    assert!(
        out.contains("g           1        1       1        0"),
        "{out}"
    );
}

#[tokio::test]
async fn unplaceable_job_exits_with_2() {
    let rig = Rig::start().await;
    let mut far = job("far", "service", None);
    far["Datacenters"] = serde_json::json!(["moon"]);
    let file = file(&far);
    let (code, out, _) = run(&rig, &["run", file.path().to_str().unwrap()]).await;
    assert_eq!(code, super::monitor::PLACEMENT_FAILED);
    assert!(
        out.contains("Task Group \"g\" (failed to place 1 allocation):"),
        "{out}"
    );
    let (_, status, _) = run(&rig, &["status", "far"]).await;
    assert!(
        status.contains("Placement Failure") && status.contains("moon"),
        "{status}"
    );
}

#[tokio::test]
async fn status_finds_jobs_and_allocations() {
    let rig = Rig::start().await;
    assert_eq!(run(&rig, &["status"]).await.1, "No running jobs\n");
    submit(&rig, "web", "service", None).await;
    submit(&rig, "calc", "batch", Some(0)).await;
    let (_, list, _) = run(&rig, &["job", "status"]).await;
    let list: Vec<&str> = list.lines().collect();
    assert_eq!(list[0], "ID    Type     Priority  Status   Submit Date");
    assert!(list[1].starts_with("calc  batch    50        dead     2026-11-21T04:43:"));
    assert!(list[2].starts_with("web   service  50        running  2026-11-21T04:43:14Z"));
    let (_, web, _) = run(&rig, &["status", "we"]).await;
    assert!(web.contains("Status        = running"), "{web}");
    assert!(
        web.contains("g           0       0         1        0"),
        "{web}"
    );
    let id = alloc_of(&rig, "web").await;
    let (_, alloc, _) = run(&rig, &["status", &id]).await;
    assert!(alloc.contains("Client Status       = running"), "{alloc}");
    assert!(alloc.contains("Task \"t\" is \"running\""), "{alloc}");
    assert!(
        alloc.contains("Started     Task started by client"),
        "{alloc}"
    );
    let (code, _, err) = run(&rig, &["status", "nope"]).await;
    assert_eq!(
        (code, err.as_str()),
        (1, "No job(s) with prefix or ID \"nope\" found\n")
    );
    let (code, _, err) = run(&rig, &["alloc", "status", "ffffffff"]).await;
    let words = "No allocation(s) with prefix or id \"ffffffff\" found\n";
    assert_eq!((code, err.as_str()), (1, words));
}

/// Agents compare whole bytes of ids, so a third digit is left to the command.
#[tokio::test]
async fn prefix_with_odd_number_of_digits_is_compared_whole() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    for (kind, list, words) in [
        (
            "alloc",
            &["alloc", "status"][..],
            "allocation(s) with prefix or id",
        ),
        ("eval", &["eval", "list"], "evaluation(s) with prefix or id"),
        (
            "deployment",
            &["deployment", "list"],
            "deployment(s) with prefix or id",
        ),
        ("node", &["node", "status"], "node(s) with prefix"),
    ] {
        let template = ["-t", "{{ range . }}{{ .ID }}{{ end }}"];
        let (_, id, _) = run(&rig, &[list, &template].concat()).await;
        let (code, out, err) = run(&rig, &[kind, "status", &id[..3]]).await;
        assert!(code == 0 && out.contains(&id[..8]), "{kind}: {out}{err}");
        let other = if &id[2..3] == "0" { '1' } else { '0' };
        let prefix = format!("{}{other}", &id[..2]);
        let (code, _, err) = run(&rig, &[kind, "status", &prefix]).await;
        let words = format!("No {words} \"{prefix}\" found\n");
        assert_eq!((code, err), (1, words), "{kind}");
    }
}

#[tokio::test]
async fn logs_show_task_output() {
    let rig = Rig::start().await;
    submit(&rig, "calc", "batch", Some(0)).await;
    let id = alloc_of(&rig, "calc").await;
    let out = async |args: &[&str]| run(&rig, args).await.1;
    assert_eq!(out(&["logs", &id]).await, "one\ntwo\nthree\n");
    assert_eq!(
        out(&["alloc", "logs", "-tail", "-n", "2", &id, "t"]).await,
        "two\nthree\n"
    );
    assert_eq!(out(&["logs", "-c", "6", &id]).await, "three\n");
    assert_eq!(out(&["logs", "-job", "calc"]).await, "one\ntwo\nthree\n");
    assert_eq!(run(&rig, &["logs", "-stderr", &id]).await.2, "trouble\n");
    let followed = run(&rig, &["logs", "-f", &id]).await;
    assert_eq!(
        followed,
        (0, "one\ntwo\nthree\n".to_owned(), "trouble\n".to_owned())
    );
    let (code, _, err) = run(&rig, &["logs", &id, "x"]).await;
    assert_eq!(
        (code, err.as_str()),
        (1, "Could not find task named: x, found: t\n")
    );
}

#[tokio::test]
async fn stopping_needs_the_whole_name_or_a_yes() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (code, _, err) = run(&rig, &["stop", "we"]).await;
    assert!(code == 1 && err.contains("-yes"), "{err}");
    let (code, out, _) = run(&rig, &["job", "stop", "-yes", "we"]).await;
    assert!(
        code == 0 && out.contains("finished with status \"complete\""),
        "{out}"
    );
    let (_, list, _) = run(&rig, &["status"]).await;
    assert!(list.contains("dead (stopped)"), "{list}");
    assert_eq!(run(&rig, &["stop", "-purge", "-detach", "web"]).await.0, 0);
    assert_eq!(run(&rig, &["status"]).await.1, "No running jobs\n");
}

#[tokio::test]
async fn alloc_commands_reach_tasks() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let id = alloc_of(&rig, "web").await;
    assert_eq!(run(&rig, &["alloc", "restart", &id]).await.0, 0);
    assert_eq!(
        run(&rig, &["alloc", "signal", "-s", "SIGHUP", &id]).await.0,
        0
    );
    assert_eq!(run(&rig, &["job", "restart", "-yes", "web"]).await.0, 0);
    let (_, status, _) = run(&rig, &["alloc", "status", &id]).await;
    assert!(status.contains("Total Restarts = 2"), "{status}");
    let (code, out, _) = run(&rig, &["alloc", "stop", &id]).await;
    assert!(
        code == 0 && out.contains("created: node \"ad77aaa1\""),
        "{out}"
    );
    assert_eq!(run(&rig, &["system", "gc"]).await.0, 0);
}

#[tokio::test]
async fn answers_are_shown_through_templates() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    for (args, template, wanted) in [
        (
            &["status"][..],
            "{{ range . }}{{ .ID }} {{ .Type }}{{ end }}",
            "web service",
        ),
        (&["job", "status", "web"], "{{ .ID }}", "web"),
        (
            &["job", "inspect", "web"],
            "{{ .ID }} {{ len .TaskGroups }}",
            "web 1",
        ),
        (&["job", "allocs", "web"], "{{ len . }}", "1"),
        (&["job", "deployments", "web"], "{{ len . }}", "1"),
        (
            &["alloc", "status"],
            "{{ range . }}{{ .JobID }}{{ end }}",
            "web",
        ),
        (
            &["node", "status", "-self"],
            "{{ .SchedulingEligibility }}",
            "eligible",
        ),
        (
            &["node", "pool", "list"],
            "{{ range . }}{{ .Name }} {{ end }}",
            "all default ",
        ),
        (
            &["eval", "list"],
            "{{ range . }}{{ .TriggeredBy }}{{ end }}",
            "job-register",
        ),
        (
            &["deployment", "list"],
            "{{ range . }}{{ .JobID }}{{ end }}",
            "web",
        ),
        (&["deployment", "status"], "{{ len . }}", "1"),
        (
            &["server", "members"],
            "{{ range .Members }}{{ .Status }}{{ end }}",
            "alive",
        ),
        (&["service", "list"], "{{ len . }}", "0"),
        (&["scaling", "policy", "list"], "{{ len . }}", "0"),
        (&["var", "list"], "{{ len . }}", "0"),
    ] {
        let (code, out, err) = run(&rig, &[args, &["-t", template]].concat()).await;
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        assert_eq!(out.trim_end(), wanted.trim_end(), "{args:?}");
    }
}

#[tokio::test]
async fn remaining_commands_answer() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (_, node, _) = run(&rig, &["node", "status", "-self"]).await;
    assert!(node.contains("Driver Status = mock_driver"), "{node}");
    let (_, nodes, _) = run(&rig, &["node", "status"]).await;
    assert!(nodes.contains("ad77aaa1"), "{nodes}");
    assert_eq!(run(&rig, &["node", "status", "ad77a"]).await.0, 0);
    let (_, inspected, _) = run(&rig, &["inspect", "web"]).await;
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["Job"]["ID"], "web");
    let (_, raw, _) = run(&rig, &["operator", "api", "/v1/regions"]).await;
    assert_eq!(raw, "[\"global\"]");
    let file = file(&serde_json::json!({ "ID": "x" }));
    let (code, _, err) = run(&rig, &["validate", file.path().to_str().unwrap()]).await;
    assert!(
        code == 1 && err.contains("must have at least one group"),
        "{err}"
    );
    let (code, _, err) = run(&rig, &["status", "-t", "{{.ID}}"]).await;
    assert!(code == 1 && err.contains("-t: line 1"), "{err}");
}

#[tokio::test]
async fn missing_object_is_named() {
    let rig = Rig::start().await;
    let (mut cx, _, _) = rig.context();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let connection = super::args::Connection {
        address: Some(free.to_string()),
        ..Default::default()
    };
    cx.client = super::client::Client::new(&connection, |_| None).unwrap();
    let failure = dispatch(
        &mut cx,
        super::args::ClientCommand::System(super::args::SystemCommand::Gc),
    );
    let failure = failure.await.unwrap_err();
    assert!(
        failure
            .message
            .starts_with(&format!("no agent answers at http://{free}"))
    );
    assert!(failure.message.contains("drover up"));
}

#[tokio::test]
async fn top_shows_running_tasks() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    submit(&rig, "work", "batch", Some(0)).await;
    let id = alloc_of(&rig, "web").await;
    assert_eq!(run(&rig, &["alloc", "restart", &id]).await.0, 0);
    let (code, out, err) = run(&rig, &["top", "-sort", "name"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].contains("1 task, CPU"), "{out}");
    assert_eq!(
        lines[2..],
        [
            "JOB  TASK  ALLOC     CPU %  MEMORY  DEVICES  RESTARTS  WAITS FOR".to_owned(),
            format!("web  t     {id}  -      -       0        1"),
        ]
    );
}

#[tokio::test]
async fn job_plan_exits_by_whether_something_starts_or_ends() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    let plan = |job: serde_json::Value| {
        let file = file(&job);
        let rig = &rig;
        async move {
            let path = file.path().to_str().unwrap().to_owned();
            run(rig, &["job", "plan", "-json", &path]).await
        }
    };
    let (code, out, _) = plan(web.clone()).await;
    assert_eq!(code, 1, "{out}");
    assert!(
        out.starts_with("+ Job: \"web\"\n+ Task Group: \"g\" (1 create)\n"),
        "{out}"
    );
    assert!(out.contains("- All tasks successfully allocated."), "{out}");
    submit(&rig, "web", "service", None).await;
    let (code, out, _) = plan(web.clone()).await;
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("Job: \"web\"\nTask Group: \"g\" (1 ignore)\n"),
        "{out}"
    );
    web["TaskGroups"][0]["Tasks"][0]["Env"] = serde_json::json!({ "A": "b" });
    let (code, out, _) = plan(web.clone()).await;
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("    + Env[A]: \"b\""), "{out}");
    web["TaskGroups"][0]["Tasks"] = serde_json::json!([]);
    assert_eq!(plan(web).await.0, 255);
}

#[tokio::test]
async fn job_plan_of_periodic_job_says_when_it_is_launched_first() {
    let rig = Rig::start().await;
    let mut cron = job("cron", "batch", Some(0));
    cron["Periodic"] = serde_json::json!({ "Spec": "0 0 1 1 *", "Enabled": true });
    let cron = file(&cron);
    let path = cron.path().to_str().unwrap();
    let (code, out, err) = run(&rig, &["job", "plan", "-json", path]).await;
    assert!(code < 2, "{out}{err}");
    let (_, next) = out.split_once("\n- Next periodic launch: ").expect(&out);
    assert!(next.contains("-01-01T00:00:00Z ("), "{next}");
}

#[tokio::test]
async fn job_logs_of_periodic_job_says_where_they_are() {
    let rig = Rig::start().await;
    let mut cron = job("cron", "batch", Some(0));
    cron["Periodic"] = serde_json::json!({ "Spec": "0 0 1 1 *", "Enabled": true });
    let cron = file(&cron);
    run(&rig, &["job", "run", cron.path().to_str().unwrap()]).await;
    let (code, _, err) = run(&rig, &["job", "logs", "cron"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("runs nothing itself"), "{err}");
}

#[tokio::test]
async fn completion_knows_commands_jobs_and_allocations() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let alloc = alloc_of(&rig, "web").await;
    let (_, out, _) = run(&rig, &["__complete", "job", "status", "-verbose", "w"]).await;
    assert_eq!(out, "web\n");
    let (_, out, _) = run(&rig, &["__complete", "alloc", "logs", &alloc[..3]]).await;
    assert!(out.starts_with(&alloc), "{out}");
    let (_, out, _) = run(&rig, &["__complete", "alloc", "log"]).await;
    assert_eq!(out, "logs\n");
    let (_, out, _) = run(&rig, &["__complete", "job", "run", ""]).await;
    assert_eq!(out, "", "the shell knows files");
    let (_, out, _) = run(&rig, &["completion", "bash"]).await;
    assert!(
        out.contains("complete -o default -F _drover drover"),
        "{out}"
    );
}

#[tokio::test]
async fn failed_rollout_ends_with_its_cause() {
    let rig = Rig::start().await;
    let (code, out, err) = submit(&rig, "web", "service", Some(3)).await;
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    let cause = out
        .split_once("\nTask \"t\" of allocation \"")
        .map(|(_, cause)| cause);
    let cause = cause.unwrap_or_else(|| panic!("no cause: {out}"));
    assert!(cause.contains("(web.g[0]) is dead and failed"), "{cause}");
    assert!(cause.contains("Terminated       Exit Code: 3"), "{cause}");
    assert!(cause.contains("See also: drover alloc logs "), "{cause}");
}
