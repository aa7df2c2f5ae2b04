//! Options of commands against an in-process agent.

use serde_json::{Value, json};

use super::tests::{alloc_of, file, run, submit};
use crate::testing::{Rig, job};

/// The first cells of a table's rows.
fn ids(out: &str) -> Vec<String> {
    let rows = out.lines().skip(1).filter(|line| !line.is_empty());
    rows.filter_map(|line| Some(line.split_whitespace().next()?.to_owned()))
        .collect()
}

async fn json_of(rig: &Rig, args: &[&str]) -> Value {
    let (code, out, err) = run(rig, args).await;
    assert_eq!(code, 0, "{args:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{args:?}: {why}: {out}"))
}

#[tokio::test]
async fn list_is_shown_page_by_page() {
    let rig = Rig::start().await;
    for id in ["a", "b", "c"] {
        submit(&rig, id, "batch", Some(0)).await;
    }
    let (_, all, err) = run(&rig, &["eval", "list"]).await;
    assert_eq!((ids(&all).len(), err.as_str()), (3, ""), "{all}");
    let (mut shown, mut more) = (Vec::new(), Vec::<String>::new());
    for page in 1..=3 {
        let mut args = vec!["eval", "list", "-per-page", "1"];
        args.extend(more.iter().map(String::as_str));
        let (code, out, err) = run(&rig, &args).await;
        assert_eq!(code, 0, "{err}");
        shown.extend(ids(&out));
        let token = err
            .split_once("-page-token ")
            .map(|(_, token)| token.trim());
        assert_eq!(token.is_some(), page < 3, "{err}");
        more = token.map_or_else(Vec::new, |token| {
            vec!["-page-token".to_owned(), token.to_owned()]
        });
    }
    assert_eq!(shown, ids(&all));
    let (_, one, _) = run(&rig, &["eval", "list", "-filter", "JobID == b"]).await;
    assert!(ids(&one).len() == 1 && one.contains(" b "), "{one}");
    let (code, _, err) = run(&rig, &["eval", "list", "-filter", "JobID =="]).await;
    assert!(code == 1 && !err.is_empty(), "{err}");
    let (_, pools, _) = run(&rig, &["node", "pool", "list", "-filter", "Name == all"]).await;
    assert_eq!(ids(&pools), ["all"]);
    let (_, jobs, err) = run(&rig, &["node", "pool", "jobs", "-per-page=2", "default"]).await;
    assert!(
        ids(&jobs) == ["a", "b"] && err.contains("-page-token"),
        "{jobs} {err}"
    );
}

#[tokio::test]
async fn deployments_are_listed_newest_first() {
    let rig = Rig::start().await;
    for id in ["first", "second"] {
        submit(&rig, id, "service", None).await;
    }
    for args in [&["deployment", "list"][..], &["deployment", "status"]] {
        let (_, out, _) = run(&rig, args).await;
        let at = |job: &str| out.find(job).unwrap_or_else(|| panic!("no {job}: {out}"));
        assert!(at("second") < at("first"), "{out}");
    }
    let filter = "JobID == first";
    let (_, out, _) = run(&rig, &["deployment", "list", "-filter", filter]).await;
    assert!(out.contains("first") && !out.contains("second"), "{out}");
    let (_, none, _) = run(&rig, &["deployment", "list", "-filter", "JobID == x"]).await;
    assert_eq!(none, "No deployments found\n");
}

#[tokio::test]
async fn node_list_shows_what_is_asked() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (_, quiet, _) = run(&rig, &["node", "status", "-quiet"]).await;
    assert_eq!(quiet.trim_end().len(), 36, "{quiet}");
    let (_, list, _) = run(&rig, &["node", "status", "-allocs", "-os"]).await;
    let header = list.lines().next().unwrap_or_default();
    assert!(header.contains("Class") && header.contains("OS"), "{list}");
    assert!(header.ends_with("Running Allocs"), "{list}");
    assert!(list.trim_end().ends_with('1'), "{list}");
    let (_, none, _) = run(&rig, &["node", "status", "-filter", "Name == other"]).await;
    assert!(ids(&none).is_empty(), "{none}");
    let (_, one, _) = run(&rig, &["node", "status", "-self", "-short"]).await;
    assert!(
        one.contains("Allocations") && !one.contains("Allocated Resources"),
        "{one}"
    );
}

#[tokio::test]
async fn job_status_shows_evaluations_on_request() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let (_, plain, _) = run(&rig, &["job", "status", "web"]).await;
    assert!(!plain.contains("Evaluations"), "{plain}");
    let (_, shown, _) = run(&rig, &["job", "status", "-evals", "-all-allocs", "web"]).await;
    let (_, evals) = shown.split_once("\nEvaluations\n").unwrap_or_default();
    assert!(
        evals.contains("job-register") && evals.contains("complete"),
        "{shown}"
    );
}

#[tokio::test]
async fn evaluation_and_deployment_are_followed_again() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    submit(&rig, "bad", "service", Some(1)).await;
    for (job, code) in [("web", 0), ("bad", 1)] {
        let evals = json_of(&rig, &["eval", "list", "-json", "-job", job]).await;
        let eval = evals[0]["ID"].as_str().unwrap_or_default().to_owned();
        let followed = run(&rig, &["eval", "status", "-monitor", &eval]).await;
        assert!(
            followed.1.contains("Monitoring deployment"),
            "{}",
            followed.1
        );
        assert_eq!(followed.0, code, "{}", followed.1);
        let rollouts = json_of(&rig, &["job", "deployments", "-json", job]).await;
        let rollout = rollouts[0]["ID"].as_str().unwrap_or_default().to_owned();
        let followed = run(&rig, &["deployment", "status", "-monitor", &rollout]).await;
        assert!(followed.1.contains("Description"), "{}", followed.1);
        assert_eq!(followed.0, 0, "{}", followed.1);
    }
}

#[tokio::test]
async fn job_is_restarted_in_batches() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Count"] = json!(3);
    let file = file(&web);
    run(&rig, &["job", "run", file.path().to_str().unwrap()]).await;
    let (code, out, err) = run(&rig, &["job", "restart", "-yes", "-batch-size=50%", "web"]).await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("Batch 1 of 2: 2 allocations"), "{out}");
    assert!(out.contains("Batch 2 of 2: 1 allocation\n"), "{out}");
    assert!(out.contains("Job restarted successfully!"), "{out}");

    let before = json_of(&rig, &["job", "allocs", "-json", "web"]).await;
    let (code, out, err) = run(&rig, &["job", "restart", "-yes", "-reschedule", "web"]).await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let after = json_of(&rig, &["job", "allocs", "-json", "web"]).await;
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    assert_eq!((count(&before), count(&after)), (3, 6), "{out}");

    for (options, words) in [
        (&["-group=x"][..], "it has: g"),
        (&["-task=x"], "has a task \"x\""),
        (&["-batch-size=0"], "-batch-size=0"),
    ] {
        let args = [&["job", "restart", "-yes"], options, &["web"]].concat();
        let (code, _, err) = run(&rig, &args).await;
        assert!(code == 1 && err.contains(words), "{options:?}: {err}");
    }
}

#[tokio::test]
async fn allocation_is_stopped_without_shutdown_delay() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let alloc = alloc_of(&rig, "web").await;
    let (code, _, err) = run(&rig, &["alloc", "stop", "-no-shutdown-delay", &alloc]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let shown = json_of(&rig, &["alloc", "status", "-json", &alloc]).await;
    assert_eq!(shown["DesiredTransition"]["NoShutdownDelay"], true);
    let next = shown["NextAllocation"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let options = ["job", "stop", "-no-shutdown-delay", "-global", "web"];
    assert_eq!(run(&rig, &options).await.0, 0);
    let shown = json_of(&rig, &["alloc", "status", "-json", &next]).await;
    assert_eq!(shown["DesiredTransition"]["NoShutdownDelay"], true);
    assert_eq!(shown["ClientStatus"], "complete");
}

/// What is wanted of each allocation of a job.
async fn wanted(rig: &Rig, job: &str) -> Vec<Value> {
    let allocs = json_of(rig, &["job", "allocs", "-json", job]).await;
    let allocs = allocs.as_array().into_iter().flatten();
    allocs.map(|alloc| alloc["DesiredStatus"].clone()).collect()
}

/// As Nomad has it, whose command line waits for allocations that are wanted.
#[tokio::test]
async fn replaced_failed_allocation_is_not_wanted_any_more() {
    let rig = Rig::start().await;
    submit(&rig, "bad", "batch", Some(1)).await;
    let allocs = json_of(&rig, &["job", "allocs", "-json", "bad"]).await;
    assert_eq!(allocs[0]["DesiredStatus"], "run", "nothing replaces it");
    let (code, _, _) = run(&rig, &["job", "eval", "-detach", "bad"]).await;
    let allocs = json_of(&rig, &["job", "allocs", "-json", "bad"]).await;
    assert_eq!((code, allocs.as_array().map(Vec::len)), (0, Some(1)));
    let (code, _, _) = run(&rig, &["job", "eval", "-force-reschedule", "bad"]).await;
    assert_eq!(code, 0);
    assert_eq!(
        wanted(&rig, "bad").await,
        ["run", "stop"],
        "the newest first"
    );
}

#[tokio::test]
async fn policy_shows_replaced_failed_allocation_as_stopped() {
    let rig = Rig::start().await;
    let mut bad = job("bad", "batch", Some(1));
    bad["TaskGroups"][0]["ReschedulePolicy"] =
        json!({ "Attempts": 1, "Interval": 86_400_000_000_000_i64, "Unlimited": false });
    let file = file(&bad);
    run(&rig, &["job", "run", file.path().to_str().unwrap()]).await;
    assert_eq!(
        wanted(&rig, "bad").await,
        ["run", "stop"],
        "the newest first"
    );
}

#[tokio::test]
async fn api_is_asked_as_the_options_say() {
    let rig = Rig::start().await;
    for id in ["a", "b"] {
        submit(&rig, id, "batch", Some(0)).await;
    }
    let args = ["operator", "api", "-filter", "ID == b", "/v1/jobs"];
    let jobs = json_of(&rig, &args).await;
    assert_eq!(
        (jobs.as_array().map(Vec::len), &jobs[0]["ID"]),
        (Some(1), &json!("b"))
    );
    let args = ["operator", "api", "-H", "X-A: b", "-dryrun", "/v1/jobs"];
    let (code, out, _) = run(&rig, &args).await;
    assert!(code == 0 && out.starts_with("curl "), "{out}");
    assert!(
        out.contains("-H 'x-a: b'") && out.trim_end().ends_with("/v1/jobs'"),
        "{out}"
    );
    let (_, out, err) = run(&rig, &["operator", "api", "-verbose", "/v1/regions"]).await;
    assert_eq!(out, "[\"global\"]");
    assert!(
        err.contains("> GET /v1/regions") && err.contains("< 200"),
        "{err}"
    );
    let (_, out, _) = run(&rig, &["operator", "metrics", "-t", "{{ len .Gauges }}"]).await;
    assert!(out.trim().parse::<u32>().is_ok(), "{out}");
}

#[tokio::test]
async fn job_is_scaled_only_at_its_index() {
    let rig = Rig::start().await;
    submit(&rig, "web", "service", None).await;
    let web = json_of(&rig, &["job", "inspect", "-json", "web"]).await;
    let index = web["JobModifyIndex"].to_string();
    let wrong = run(&rig, &["job", "scale", "-check-index=1", "web", "2"]).await;
    assert!(wrong.0 == 1 && !wrong.2.is_empty(), "{}", wrong.1);
    let right = run(&rig, &["job", "scale", "-check-index", &index, "web", "2"]).await;
    assert_eq!(right.0, 0, "{}", right.2);
}

#[tokio::test]
async fn plan_is_shown_through_a_template() {
    let rig = Rig::start().await;
    let file = file(&job("web", "service", None));
    let path = file.path().to_str().unwrap();
    let (code, out, err) = run(&rig, &["job", "plan", "-t", "{{ .Diff.Type }}", path]).await;
    assert_eq!((code, out.trim_end(), err.as_str()), (1, "Added", ""));
    for option in ["-json-output", "-output-json"] {
        let (code, out, _) = run(&rig, &["job", "plan", option, path]).await;
        let plan: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &plan["Diff"]["Type"]), (1, &json!("Added")));
    }
}
