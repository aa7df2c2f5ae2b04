//! What a token may not do by another way than the plain one.

use serde_json::json;

use super::{alloc_of, ask, bootstrapped, get, is_denied, job, run, token, with_team};

const WRITES: &str = "namespace \"default\" {\n policy = \"write\"\n}";

/// Whether a job would run on this node depends on what variables hold.
#[tokio::test]
async fn plan_against_the_node_needs_what_a_job_needs() {
    let (rig, management) = bootstrapped().await;
    let reads = "namespace \"default\" {\n policy = \"read\"\n}";
    let (reader, _) = token(&rig, &management, "reader", reads).await;
    let (writer, _) = token(&rig, &management, "writer", WRITES).await;
    for (check_node, of_reader) in [(false, false), (true, true)] {
        let body = json!({ "Job": job("web", "service", None), "CheckNode": check_node });
        let asked = ask(&rig, &reader, "PUT", "/v1/validate/job", &body).await;
        assert_eq!(is_denied(asked.clone()), of_reader, "{asked:?}");
        let asked = ask(&rig, &writer, "PUT", "/v1/validate/job", &body).await;
        assert_eq!(asked.0, 200, "{}", asked.1);
    }
}

/// A version that comes back may mount more than whoever brings it back may.
#[tokio::test]
async fn reverted_job_mounts_the_host_volumes_that_its_token_may() {
    let (rig, management) = bootstrapped().await;
    let (writer, _) = token(&rig, &management, "writer", WRITES).await;
    let mut mounts = job("web", "service", None);
    mounts["TaskGroups"][0]["Volumes"] =
        json!({ "v": { "Name": "v", "Type": "host", "Source": "data" } });
    let made = ask(
        &rig,
        &management,
        "PUT",
        "/v1/jobs",
        &json!({ "Job": mounts }),
    )
    .await;
    assert_eq!(made.0, 200, "{}", made.1);
    let changed = run(&rig, &writer, "web", "default").await;
    assert_eq!(changed.0, 200, "{}", changed.1);
    let back = json!({ "JobID": "web", "JobVersion": 0 });
    let asked = ask(&rig, &writer, "PUT", "/v1/job/web/revert", &back).await;
    assert!(is_denied(asked.clone()), "{asked:?}");
    let asked = ask(&rig, &management, "PUT", "/v1/job/web/revert", &back).await;
    assert_eq!(asked.0, 200, "{}", asked.1);
}

/// A volume that is registered may be any directory of the machine.
#[tokio::test]
async fn host_volume_registration_needs_node_rights() {
    let (rig, management) = bootstrapped().await;
    let (writer, _) = token(&rig, &management, "writer", WRITES).await;
    let with_node = format!("{WRITES}\nnode {{\n policy = \"write\"\n}}");
    let (operator, _) = token(&rig, &management, "operator", &with_node).await;
    // Whoever may register it is told that it has an id already.
    let volume = json!({ "Volume": { "ID": "x", "Name": "all", "HostPath": "/" } });
    let path = "/v1/volume/host/register";
    let asked = ask(&rig, &writer, "PUT", path, &volume).await;
    assert!(is_denied(asked.clone()), "{asked:?}");
    let asked = ask(&rig, &operator, "PUT", path, &volume).await;
    assert_eq!(asked.0, 400, "{}", asked.1);
}

/// Each copy may have a volume of its own, which not everybody may mount.
#[tokio::test]
async fn scaled_job_mounts_the_host_volumes_that_its_token_may() {
    let (rig, management) = bootstrapped().await;
    let rules = format!(
        "{WRITES}\nhost_volume \"*\" {{\n policy = \"write\"\n}}\n\
         host_volume \"data[1]\" {{\n policy = \"deny\"\n}}"
    );
    let (writer, _) = token(&rig, &management, "writer", &rules).await;
    let mut mounts = job("web", "service", None);
    let volume = json!({ "Name": "v", "Type": "host", "Source": "data", "PerAlloc": true });
    mounts["TaskGroups"][0]["Volumes"] = json!({ "v": volume });
    let made = ask(&rig, &writer, "PUT", "/v1/jobs", &json!({ "Job": mounts })).await;
    assert_eq!(made.0, 200, "{}", made.1);
    let to = |count: u32| json!({ "Count": count, "Target": { "Group": "g" } });
    let scaled = ask(&rig, &writer, "PUT", "/v1/job/web/scale", &to(2)).await;
    assert!(is_denied(scaled.clone()), "{scaled:?}");
    let scaled = ask(&rig, &management, "PUT", "/v1/job/web/scale", &to(2)).await;
    // Its roll-out is what is in the way then.
    assert!(!is_denied(scaled.clone()), "{scaled:?}");
}

/// Access and answer are about the same namespace: the first, as with Nomad.
#[tokio::test]
async fn namespace_given_twice_is_the_first() {
    let (rig, management, team) = with_team().await;
    let twice = "namespace=default&namespace=team";
    for (method, path) in [
        ("GET", "/v1/job/other"),
        ("GET", "/v1/job/other/allocations"),
        ("GET", "/v1/jobs"),
        ("DELETE", "/v1/job/other"),
    ] {
        let path = format!("{path}?{twice}");
        let asked = ask(&rig, &team, method, &path, &json!({})).await;
        assert!(is_denied(asked.clone()), "{method} {path}: {asked:?}");
    }
    let other = get(&rig, &management, &format!("/v1/job/other?{twice}")).await;
    assert_eq!(other.0, 200, "{}", other.1);
    let own = "/v1/job/own?namespace=team&namespace=default";
    let own = get(&rig, &team, own).await;
    assert_eq!(own.0, 200, "{}", own.1);
}

/// The record of an allocation outlives its directory, and is no less of its namespace.
#[tokio::test]
async fn collected_allocation_belongs_to_its_namespace() {
    let (rig, management, team) = with_team().await;
    for (namespace, of_team) in [("default", false), ("team", true)] {
        let mut ended = job("ended", "batch", Some(0));
        ended["Namespace"] = json!(namespace);
        let body = json!({ "Job": ended });
        let made = ask(&rig, &management, "PUT", "/v1/jobs", &body).await;
        assert_eq!(made.0, 200, "{}", made.1);
        let id = alloc_of(&rig, &management, "ended", namespace).await;
        let collect = format!("/v1/client/allocation/{id}/gc");
        let collected = ask(&rig, &management, "PUT", &collect, &json!({})).await;
        assert_eq!(collected.0, 200, "{}", collected.1);
        // Of why it is where it is nothing is left.
        for (part, status) in [("", 200), ("/explain", 404)] {
            let path = format!("/v1/allocation/{id}{part}");
            let whole = get(&rig, &management, &path).await;
            assert_eq!(whole.0, status, "{path}: {}", whole.1);
            let seen = get(&rig, &team, &path).await;
            match of_team {
                true => assert_eq!(seen, whole, "{path}"),
                false => assert!(is_denied(seen.clone()), "{path}: {seen:?}"),
            }
        }
    }
}

/// Where the query names no namespace, the body may.
#[tokio::test]
async fn variable_is_written_by_the_rights_in_the_namespace_of_its_body() {
    let (rig, management, team) = with_team().await;
    let rules = WRITES.replace(
        '}',
        " variables {\n path \"*\" {\n capabilities = [\"write\"]\n }\n }\n}",
    );
    let (writer, _) = token(&rig, &management, "writer", &rules).await;
    for (given, namespace, denied) in [
        (&writer, "team", true),
        (&writer, "default", false),
        (&team, "default", true),
        (&team, "team", false),
    ] {
        let body = json!({ "Namespace": namespace, "Items": { "by": given } });
        let written = ask(&rig, given, "PUT", "/v1/var/app/db", &body).await;
        assert_eq!(
            is_denied(written.clone()),
            denied,
            "{namespace}: {written:?}"
        );
        assert!(denied || written.0 == 200, "{namespace}: {written:?}");
        let path = format!("/v1/var/app/db?namespace={namespace}");
        let (_, there) = get(&rig, &management, &path).await;
        assert_eq!(there.contains(given.as_str()), !denied, "{there}");
    }
}
