//! The life of a job: plans, versions, scaling.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use hyper::Method;
use serde_json::{Value, json};

use super::tests::{allocs, failure, register};
use crate::admission::{FileOptions, read_file};
use crate::testing::{Rig, job};

async fn put(rig: &Rig, path: &str, body: Value) -> Value {
    let (status, text) = failure(rig, Method::PUT, path, &body.to_string()).await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

async fn get(rig: &Rig, path: &str) -> Value {
    let (status, text) = failure(rig, Method::GET, path, "").await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn plan_shows_effects_of_registering_and_changes_nothing() {
    let rig = Rig::start().await;
    let plan = |job: Value| {
        let body = json!({ "Job": job, "Diff": true });
        put(&rig, "/v1/job/web/plan", body)
    };
    let updates = |planned: &Value| planned["Annotations"]["DesiredTGUpdates"]["g"].clone();
    let web = || job("web", "service", None);
    let planned = plan(web()).await;
    assert_eq!(updates(&planned)["Place"], json!(1), "{planned}");
    assert_eq!(planned["Diff"]["Type"], json!("Added"));
    assert_eq!(planned["JobModifyIndex"], json!(0));
    assert_eq!(get(&rig, "/v1/jobs").await, json!([]));

    let registered = register(&rig, web()).await;
    let planned = plan(web()).await;
    assert_eq!(updates(&planned)["Ignore"], json!(1), "{planned}");
    assert_eq!(planned["Diff"]["Type"], json!("None"));
    assert_eq!(
        planned["JobModifyIndex"],
        json!(registered.job_modify_index)
    );

    let mut changed = web();
    changed["TaskGroups"][0]["Tasks"][0]["Env"] = json!({ "A": "b" });
    let planned = plan(changed).await;
    assert_eq!(
        updates(&planned)["DestructiveUpdate"],
        json!(1),
        "{planned}"
    );
    let group = &planned["Diff"]["TaskGroups"][0];
    assert_eq!(group["Updates"], json!({ "create/destroy update": 1 }));
    let annotations = &group["Tasks"][0]["Annotations"];
    assert_eq!(*annotations, json!(["forces create/destroy update"]));
    let versions = get(&rig, "/v1/job/web/versions").await;
    assert_eq!(versions["Versions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn plan_of_unplaceable_job_says_why() {
    let rig = Rig::start().await;
    let mut nowhere = job("nowhere", "batch", Some(0));
    nowhere["TaskGroups"][0]["Count"] = json!(2);
    nowhere["Constraints"] =
        json!([{ "LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "=" }]);
    let planned = put(&rig, "/v1/job/nowhere/plan", json!({ "Job": nowhere })).await;
    let failed = &planned["FailedTGAllocs"]["g"];
    assert_eq!(failed["CoalescedFailures"], json!(1), "{planned}");
    assert_eq!(failed["NodesFiltered"], json!(1));
    assert_eq!(planned["Diff"], Value::Null);
}

#[tokio::test]
async fn plan_of_another_job_is_refused() {
    let rig = Rig::start().await;
    let body = json!({ "Job": { "ID": "bbb" } }).to_string();
    let refused = failure(&rig, Method::PUT, "/v1/job/aaa/plan", &body).await;
    assert_eq!(refused, (400, "Job ID does not match".to_owned()));
    let refused = failure(&rig, Method::PUT, "/v1/job/aaa/plan", "{}").await;
    assert_eq!(refused, (400, "Job must be specified".to_owned()));
    let body = json!({ "Job": { "ID": "aaa" } }).to_string();
    let (status, _) = failure(&rig, Method::PUT, "/v1/job/aaa/plan", &body).await;
    assert_eq!(status, 500);
}

fn changed(value: &str) -> Value {
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Tasks"][0]["Env"] = json!({ "V": value });
    web
}

/// A job file, as our own command hands it in.
fn read() -> Value {
    let text = r#"
        job "web" {
          group "g" {
            count = 0 # nothing is checked again and again
            network {
              port "http" { to = 8080 }
            }
            service {
              name     = "web"
              port     = "http"
              provider = "nomad"
              check {
                type     = "http"
                path     = "/"
                interval = "10s"
                timeout  = "2s"
                check_restart { limit = 3 }
              }
            }
            task "t" {
              driver = "mock_driver"
              config { run_for = "1000h" }
              service {
                provider = "nomad"
                port     = "http"
              }
            }
          }
        }
    "#;
    let read = read_file(text, "web.nomad.hcl", &FileOptions::default()).unwrap();
    serde_json::to_value(read.admit().unwrap().job).unwrap()
}

/// A service with all its fields, most of which say nothing.
fn all_fields(name: &str, checks: Value) -> Value {
    json!({
        "Name": name, "TaskName": "", "PortLabel": "http", "AddressMode": "", "Address": "", "Provider": "nomad",
        "Tags": null, "CanaryTags": null, "Meta": null, "CanaryMeta": null, "TaggedAddresses": null,
        "EnableTagOverride": false, "OnUpdate": "", "Cluster": "", "Kind": "", "Connect": null,
        "CheckRestart": null, "Identity": null, "Weights": null, "Checks": checks,
    })
}

/// The same job file as a program with Nomad's types hands it in.
fn typed() -> Value {
    let check = json!({
        "Name": "", "Type": "http", "Path": "/", "Interval": 10_000_000_000_i64, "Timeout": 2_000_000_000,
        "Command": "", "Args": null, "Protocol": "", "PortLabel": "", "AddressMode": "", "Advertise": "",
        "InitialStatus": "", "Notes": "", "Method": "", "Body": "", "Header": null, "TaskName": "", "OnUpdate": "",
        "TLSServerName": "", "TLSSkipVerify": false, "GRPCService": "", "GRPCUseTLS": false, "Expose": false,
        "SuccessBeforePassing": 0, "FailuresBeforeCritical": 0, "FailuresBeforeWarning": 0,
        "CheckRestart": { "Limit": 3, "Grace": null, "IgnoreWarnings": false },
    });
    let port = json!({
        "Label": "http", "Value": 0, "To": 8080, "HostNetwork": "", "IgnoreCollision": false,
    });
    let network = json!({
        "Mode": "", "Device": "", "CIDR": "", "IP": "", "DNS": null, "ReservedPorts": null,
        "DynamicPorts": [port], "Hostname": "", "MBits": null, "CNI": null,
    });
    let task = json!({
        "Name": "t", "Driver": "mock_driver", "Config": { "run_for": "1000h" }, "User": "", "Leader": false,
        "Constraints": null, "Affinities": null, "Env": null, "Meta": null, "Resources": null, "Vault": null,
        "LogConfig": null, "RestartPolicy": null, "KillTimeout": null, "ShutdownDelay": 0, "KillSignal": "",
        "Services": [all_fields("", Value::Null)],
    });
    json!({
        "ID": "web", "Name": "web", "Type": null, "Priority": null, "Region": null, "Namespace": null,
        "Datacenters": null, "AllAtOnce": null, "Constraints": null, "Update": null, "Periodic": null,
        "Meta": null, "VaultNamespace": null, "Version": null, "SubmitTime": null,
        "TaskGroups": [{
            "Name": "g", "Count": 0, "Constraints": null, "RestartPolicy": null, "ReschedulePolicy": null,
            "EphemeralDisk": null, "Update": null, "Migrate": null, "Networks": [network], "Volumes": null,
            "Services": [all_fields("web", json!([check]))], "Tasks": [task],
        }],
    })
}

/// People hand in one file by turns with our command and with Nomad's.
#[tokio::test]
async fn unchanged_file_makes_no_version_whoever_hands_it_in() {
    let rig = Rig::start().await;
    let mut handed_in = vec![read(), typed(), read(), typed()];
    while let Some(job) = handed_in.pop() {
        register(&rig, job).await;
        // So does who reads it and hands it in as it is shown.
        register(&rig, get(&rig, "/v1/job/web").await).await;
        let history = get(&rig, "/v1/job/web/versions?diffs=true").await;
        let versions = history["Versions"].as_array().unwrap();
        assert_eq!(versions.len(), 1, "{:#}", history["Diffs"]);
    }
    let planned = put(
        &rig,
        "/v1/job/web/plan",
        json!({ "Job": typed(), "Diff": true }),
    )
    .await;
    assert_eq!(planned["Diff"]["Type"], json!("None"), "{planned:#}");
}

/// Versions, their differences and tags, and going back, as Nomad's programs read them.
#[tokio::test]
async fn job_goes_back_to_earlier_version() {
    let rig = Rig::start().await;
    for value in ["one", "two", "three"] {
        let submission =
            json!({ "Source": value, "Format": "hcl2", "Variables": "", "VariableFlags": null });
        let body = json!({ "Job": changed(value), "Submission": submission });
        put(&rig, "/v1/jobs", body).await;
    }
    let history = get(&rig, "/v1/job/web/versions?diffs=true").await;
    let versions = history["Versions"].as_array().unwrap();
    let numbers: Vec<_> = versions.iter().map(|one| one["Version"].clone()).collect();
    assert_eq!(numbers, [2, 1, 0]);
    let diffs = history["Diffs"].as_array().unwrap();
    assert_eq!(diffs.len(), 2);
    let task = &diffs[0]["TaskGroups"][0]["Tasks"][0];
    let env = &task["Fields"][0];
    assert_eq!((&env["Old"], &env["New"]), (&json!("two"), &json!("three")));
    let base = get(&rig, "/v1/job/web/versions?diff_version=0").await;
    let diffs = base["Diffs"].as_array().unwrap();
    let old = &diffs[0]["TaskGroups"][0]["Tasks"][0]["Fields"][0]["Old"];
    assert_eq!((diffs.len(), old), (2, &json!("one")));

    let tag = json!({ "Version": 0, "Description": "as it was", "Latest": false });
    let tagged = put(&rig, "/v1/job/web/versions/good/tag", tag).await;
    assert_eq!(tagged["Name"], json!("good"));
    assert!(tagged["TaggedTime"].as_i64().unwrap() > 0);
    let history = get(&rig, "/v1/job/web/versions?diff_tag=good").await;
    assert_eq!(history["Diffs"].as_array().unwrap().len(), 2);
    assert_eq!(history["Versions"][0]["VersionTag"], Value::Null);
    assert_eq!(
        history["Versions"][2]["VersionTag"]["Description"],
        json!("as it was")
    );

    let back = json!({ "JobID": "web", "JobVersion": 0, "EnforcePriorVersion": null });
    let reverted = put(&rig, "/v1/job/web/revert", back).await;
    assert_ne!(reverted["EvalID"], json!(""));
    let now = get(&rig, "/v1/job/web").await;
    assert_eq!(now["Version"], json!(3));
    let text = get(&rig, "/v1/job/web/submission?version=3").await;
    assert_eq!(
        (&text["Source"], &text["Version"]),
        (&json!("one"), &json!(3))
    );
    let marked = json!({ "JobID": "web", "JobVersion": 1, "Stable": true });
    let marked = put(&rig, "/v1/job/web/stable", marked).await;
    assert!(marked["Index"].as_u64().unwrap() > 0);
    let history = get(&rig, "/v1/job/web/versions").await;
    assert_eq!(history["Versions"][2]["Stable"], json!(true));
}

#[tokio::test]
async fn version_requests_are_refused_with_nomads_words() {
    let rig = Rig::start().await;
    register(&rig, changed("one")).await;
    let revert = |version: u64| json!({ "JobID": "web", "JobVersion": version }).to_string();
    let at = "/v1/job/web/revert";
    for (method, path, body, status, words) in [
        (
            Method::PUT,
            at,
            revert(0),
            500,
            "can't revert to current version",
        ),
        (
            Method::PUT,
            at,
            revert(99),
            500,
            "job \"web\" in namespace \"default\" at version 99 not found",
        ),
        (
            Method::PUT,
            "/v1/job/none/revert",
            revert(0),
            400,
            "Job ID does not match",
        ),
        (Method::GET, at, String::new(), 405, "Invalid method"),
        (
            Method::DELETE,
            "/v1/job/web/versions/x/tag",
            String::new(),
            500,
            "tag \"x\" not found on job \"web\"",
        ),
        (
            Method::GET,
            "/v1/job/web/submission?version=0",
            String::new(),
            404,
            "job source not found",
        ),
        (
            Method::GET,
            "/v1/job/web/submission",
            String::new(),
            400,
            "Unable to parse job submission version parameter",
        ),
        (
            Method::GET,
            "/v1/job/no/versions",
            String::new(),
            404,
            "job versions not found",
        ),
    ] {
        let refused = failure(&rig, method, path, &body).await;
        assert_eq!(refused, (status, words.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn text_of_job_file_is_bounded() {
    let rig = Rig::start().await;
    let source = "x".repeat(2 << 20);
    let body = json!({ "Job": changed("one"), "Submission": { "Source": source } });
    let registered = put(&rig, "/v1/jobs", body).await;
    let warnings = registered["Warnings"].as_str().unwrap();
    assert!(warnings.contains("is not kept"), "{warnings}");
    let (status, _) = failure(&rig, Method::GET, "/v1/job/web/submission?version=0", "").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn group_is_scaled_within_its_bounds() {
    let rig = Rig::start().await;
    let mut web = job("web", "service", None);
    web["TaskGroups"][0]["Scaling"] =
        json!({ "Min": 0, "Max": 3, "Enabled": true, "Policy": null });
    register(&rig, web).await;
    let status = get(&rig, "/v1/job/web/scale").await;
    let group = &status["TaskGroups"]["g"];
    assert_eq!(
        (&group["Desired"], &group["Events"]),
        (&json!(1), &Value::Null)
    );
    let target = json!({ "Job": "web", "Group": "g" });
    let at = "/v1/job/web/scale";
    for (body, words) in [
        (
            json!({ "Count": 99, "Target": target }),
            "group count was greater than scaling policy maximum: 99 > 3",
        ),
        (
            json!({ "Count": 1, "Target": { "Group": "nope" } }),
            "task group \"nope\" specified for scaling does not exist in job",
        ),
        (
            json!({ "Count": 1, "Target": { "Job": "other", "Group": "g" } }),
            "job ID in payload did not match URL",
        ),
    ] {
        let refused = failure(&rig, Method::PUT, at, &body.to_string()).await;
        assert_eq!(refused, (400, words.to_owned()));
    }
    let meta = json!({ "by": "somebody", "load": 1.5 });
    let note = json!({ "Message": "just a note", "Meta": meta, "Target": target });
    let noted = put(&rig, at, note).await;
    assert_eq!(
        (&noted["EvalID"], &noted["EvalCreateIndex"]),
        (&json!(""), &json!(0))
    );
    let asked = json!({ "Count": 2, "Message": "more", "Target": target, "Meta": null });
    let scaled = put(&rig, at, asked).await;
    assert_ne!(scaled["EvalID"], json!(""));
    let status = get(&rig, at).await;
    let events = status["TaskGroups"]["g"]["Events"].as_array().unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(
        (&events[0]["Count"], &events[0]["PreviousCount"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(events[0]["EvalID"], scaled["EvalID"]);
    assert_eq!(
        (&events[1]["Count"], &events[1]["EvalID"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(events[1]["Meta"], json!({ "by": "somebody", "load": 1.5 }));

    let policies = get(&rig, "/v1/scaling/policies?job=web").await;
    let policy = &policies[0];
    assert_eq!(
        policy["Target"],
        json!({ "Namespace": "default", "Job": "web", "Group": "g" })
    );
    let id = policy["ID"].as_str().unwrap();
    let whole = get(&rig, &format!("/v1/scaling/policy/{id}")).await;
    assert_eq!((&whole["Min"], &whole["Max"]), (&json!(0), &json!(3)));
    assert_eq!(whole["Policy"], Value::Null);
    let missing = "/v1/scaling/policy/00000000-0000-0000-0000-000000000000";
    let missing = failure(&rig, Method::GET, missing, "").await;
    assert_eq!(missing, (404, "policy not found".to_owned()));
}

#[tokio::test]
async fn canary_that_fails_is_wanted_no_more_once_its_rollout_failed() {
    let rig = Rig::start().await;
    let version = |exit: Option<i64>| {
        let mut web = job("web", "service", exit);
        web["Update"] =
            json!({ "MaxParallel": 1, "Canary": 1, "MinHealthyTime": 10_000_000_000_i64 });
        web
    };
    register(&rig, version(None)).await;
    register(&rig, version(Some(3))).await;
    let deployment = get(&rig, "/v1/job/web/deployment").await;
    assert_eq!(deployment["Status"], json!("failed"), "{deployment}");
    let allocs = allocs(&rig, "web").await;
    let wanted = |version: u64| {
        let one = allocs.iter().find(|alloc| alloc.job_version == version);
        let one = one.unwrap();
        let status = (one.client_status.as_str(), one.desired_status.as_str());
        (status, one.desired_description.as_str())
    };
    assert_eq!(wanted(0), (("running", "run"), ""));
    let not_needed = "alloc not needed due to job update";
    assert_eq!(wanted(1), (("failed", "stop"), not_needed));
}
