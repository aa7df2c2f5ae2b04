//! Every field that programs of Nomad find in an answer is there, and of its type: a program in Go
//! that follows a pointer which nobody sent crashes.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};

use crate::testing::{Rig, job};

const TABLE: &str = include_str!("nomad_fields.txt");

/// What of the table is in none of the answers: in this world nobody fingerprints the machine, no task is measured, and
/// nothing happened to the node before it was asked for.
const NOT_THERE: [&str; 13] = [
    "allocstats Tasks{}",
    "allocstats Tasks{}.ResourceUsage",
    "allocstats Tasks{}.ResourceUsage.CpuStats",
    "allocstats Tasks{}.ResourceUsage.MemoryStats",
    "node Events[]",
    "node NodeResources.Networks[]",
    "node NodeResources.NodeNetworks[]",
    "node NodeResources.NodeNetworks[].Addresses[]",
    "node NodeResources.Processors.Topology.Cores[]",
    "nodes [].NodeResources.Networks[]",
    "nodes [].NodeResources.NodeNetworks[]",
    "nodes [].NodeResources.NodeNetworks[].Addresses[]",
    "nodes [].NodeResources.Processors.Topology.Cores[]",
];

/// Fields of one object: the path to it, and its fields with their types.
type Object = (String, Vec<(String, String)>);

/// The objects of each route.
fn table() -> BTreeMap<String, Vec<Object>> {
    let mut routes: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    let mut route = String::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            name.clone_into(&mut route);
        } else if let Some((path, types)) = line.split_once(": ") {
            let mut fields = Vec::new();
            for group in types.split(", ") {
                let (kind, names) = group.split_once(' ').unwrap();
                fields.extend(
                    names
                        .split(' ')
                        .map(|name| (name.to_owned(), kind.to_owned())),
                );
            }
            let path = path.trim_start_matches('.').to_owned();
            routes
                .entry(route.clone())
                .or_default()
                .push((path, fields));
        }
    }
    routes
}

/// Everything that lies at a path.
fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    let spaced = path.replace("[]", ".[]").replace("{}", ".{}");
    for step in spaced.split('.').filter(|step| !step.is_empty()) {
        let below = |value: &'a Value| -> Vec<&'a Value> {
            match step {
                "[]" => value.as_array().into_iter().flatten().collect(),
                "{}" => value
                    .as_object()
                    .into_iter()
                    .flat_map(|it| it.values())
                    .collect(),
                name => value.get(name).into_iter().collect(),
            }
        };
        found = found
            .into_iter()
            .flat_map(below)
            .filter(|it| !it.is_null())
            .collect();
    }
    found
}

/// What is wrong with a field, if anything is.
fn fault(object: &Value, name: &str, kind: &str) -> Option<String> {
    let (name, optional) = match name.strip_prefix('~') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let Some(value) = object.get(name) else {
        return (!optional).then(|| format!("{name} is missing"));
    };
    let right = match kind.trim_end_matches('?') {
        "any" => true,
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "str" => value.is_string(),
        "list" => value.is_array(),
        "map" => value.is_object(),
        other => panic!("no such type: {other}"),
    };
    let right = right || (value.is_null() && (kind.ends_with('?') || optional));
    (!right).then(|| format!("{name} is {value}, and should be {kind}"))
}

/// A job with ports, a service, a lifecycle: all that makes objects in answers.
fn whole_job(id: &str) -> Value {
    let mut job = job(id, "service", None);
    let group = &mut job["TaskGroups"][0];
    group["Networks"] = json!([{
        "ReservedPorts": [{ "Label": "fixed", "Value": 18_123 }],
        "DynamicPorts": [{ "Label": "http" }],
    }]);
    group["Services"] = json!([{
        "Name": format!("{id}-api"), "PortLabel": "http", "Provider": "nomad", "Tags": ["x"],
    }]);
    group["Scaling"] = json!({ "Min": 0, "Max": 3 });
    group["Update"] = json!({ "MinHealthyTime": 0 });
    let mut init = group["Tasks"][0].clone();
    init["Name"] = json!("side");
    init["Lifecycle"] = json!({ "Hook": "prestart", "Sidecar": true });
    group["Tasks"].as_array_mut().unwrap().push(init);
    job
}

#[tokio::test]
async fn responses_have_all_nomad_fields_with_types() {
    let rig = Rig::start().await;
    let put = async |path: &str, body: Value| {
        let sent = super::tests::failure(&rig, Method::PUT, path, &body.to_string()).await;
        assert_eq!(sent.0, 200, "{path}: {}", sent.1);
        serde_json::from_str::<Value>(&sent.1).unwrap()
    };
    let mut answers = BTreeMap::new();
    let body = json!({ "Job": whole_job("web") });
    answers.insert("register", put("/v1/jobs", body.clone()).await);
    answers.insert("validate", put("/v1/validate/job", body).await);
    let mut changed = whole_job("web");
    changed["TaskGroups"][0]["Tasks"][0]["Env"] = json!({ "A": "b" });
    let planned = json!({ "Job": changed, "Diff": true });
    let path = "/v1/job/web/plan";
    let planned = super::tests::failure(&rig, Method::PUT, path, &planned.to_string()).await;
    answers.insert("plan", serde_json::from_str(&planned.1).unwrap());
    let mut nowhere = job("nowhere", "batch", Some(0));
    nowhere["Constraints"] = json!([
        { "LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "=" }
    ]);
    // Nothing is checked of it: the clock goes on until there is nothing to do.
    nowhere["TaskGroups"][0]["Services"] = json!([{
        "Name": "api", "Provider": "nomad", "Address": "127.0.0.1",
        "Checks": [{ "Type": "tcp", "PortLabel": "80", "Interval": 10_000_000_000_u64, "Timeout": 1_000_000_000 }],
    }]);
    put("/v1/jobs", json!({ "Job": nowhere })).await;
    let get = |path: String, query: &'static [(&'static str, &'static str)]| {
        let client = rig.client.clone();
        async move { client.get::<Value>(&path, query).await.unwrap() }
    };
    let id = |list: &Value| list[0]["ID"].as_str().unwrap().to_owned();
    let alloc = id(&get("/v1/job/web/allocations".to_owned(), &[]).await);
    let node = id(&get("/v1/nodes".to_owned(), &[]).await);
    let eval = id(&get("/v1/job/nowhere/evaluations".to_owned(), &[]).await);
    let deployment = id(&get("/v1/job/web/deployments".to_owned(), &[]).await);
    for (route, path) in [
        ("job", "/v1/job/web".to_owned()),
        ("checked", "/v1/job/nowhere".to_owned()),
        ("jobs", "/v1/jobs".to_owned()),
        ("summary", "/v1/job/web/summary".to_owned()),
        ("alloc", format!("/v1/allocation/{alloc}")),
        ("allocs", "/v1/allocations".to_owned()),
        ("eval", format!("/v1/evaluation/{eval}")),
        ("evals", "/v1/evaluations".to_owned()),
        ("deployment", format!("/v1/deployment/{deployment}")),
        ("deployments", "/v1/deployments".to_owned()),
        ("node", format!("/v1/node/{node}")),
        ("services", "/v1/services".to_owned()),
        ("service", "/v1/service/web-api".to_owned()),
        ("metrics", "/v1/metrics".to_owned()),
        ("members", "/v1/agent/members".to_owned()),
        ("clientstats", "/v1/client/stats".to_owned()),
        ("allocstats", format!("/v1/client/allocation/{alloc}/stats")),
    ] {
        answers.insert(route, whole(&rig, &path).await);
    }
    answers.insert("nodes", whole(&rig, "/v1/nodes?resources=true").await);
    // In both forms.
    let more = whole(&rig, "/v1/allocations?resources=true").await;
    let allocs = answers.get_mut("allocs").and_then(Value::as_array_mut);
    allocs.unwrap().extend(more.as_array().unwrap().clone());
    let path = "/v1/job/web";
    let stopped = rig
        .client
        .change::<Value>(Method::DELETE, path, &[], None)
        .await;
    answers.insert("stop", stopped.unwrap());
    // A drain waits for it.
    put("/v1/jobs", json!({ "Job": job("long", "batch", None) })).await;
    let of_node = |part: &str| format!("/v1/node/{node}{part}");
    let body = json!({ "Eligibility": "ineligible", "NodeID": node });
    answers.insert("eligibility", put(&of_node("/eligibility"), body).await);
    let body = json!({
        "DrainSpec": { "Deadline": 0, "IgnoreSystemJobs": false },
        "Meta": { "message": "draining" },
    });
    answers.insert("drain", put(&of_node("/drain"), body).await);
    answers.insert("drained", whole(&rig, &of_node("")).await);
    let mut faults = Vec::new();
    let mut missing = Vec::new();
    for (route, objects) in table() {
        // Files are compared where there is a directory.
        let Some(answer) = answers.get(route.as_str()) else {
            assert!(route.starts_with("fs"), "{route} is never asked for");
            continue;
        };
        for (path, fields) in objects {
            let found = at(answer, &path);
            // Which disks there are is the business of the machine.
            if found.is_empty() && (route.as_str(), path.as_str()) != ("clientstats", "DiskStats[]")
            {
                missing.push(format!("{route} {path}"));
            }
            for object in found {
                let wrong = fields
                    .iter()
                    .filter_map(|(name, kind)| fault(object, name, kind));
                faults.extend(wrong.map(|why| format!("{route} {path}: {why}")));
            }
        }
    }
    faults.sort();
    faults.dedup();
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(missing, NOT_THERE);
}

/// An answer as it was sent, with its nulls.
async fn whole(rig: &Rig, path: &str) -> Value {
    let text = super::tests::failure(rig, Method::GET, path, "").await;
    assert_eq!(text.0, 200, "{path}: {}", text.1);
    serde_json::from_str(&text.1).unwrap()
}
