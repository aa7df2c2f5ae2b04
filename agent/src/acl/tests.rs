//! Policies from their text to what they allow.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::policy::{MAX_RULES, MAX_TEXT};
use super::ready::{self, READY};
use super::*;

fn rights(texts: &[&str]) -> Rights {
    let policies: Vec<Policy> = (texts.iter())
        .map(|text| Policy::parse(text).unwrap())
        .collect();
    Rights::of(&policies)
}

fn why(text: &str) -> String {
    Policy::parse(text).unwrap_err().to_string()
}

const TEAM: &str = r#"
namespace "team-*" {
  policy       = "read"
  capabilities = ["submit-job"]
  variables {
    path "*" {
      capabilities = ["list"]
    }
    path "app/*" {
      capabilities = ["write", "read"]
    }
    path "app/secret" {
      capabilities = ["deny"]
    }
  }
}
node { policy = "read" }
node_pool "gpu-*" { policy = "write" }
host_volume "data-*" { capabilities = ["mount-readwrite"] }
plugin { policy = "list" }
quota { policy = "read" }
"#;

#[test]
fn policy_allows_what_it_names_and_nothing_else() {
    let rights = rights(&[TEAM]);
    assert!(rights.may("team-a", Capability::ReadJob));
    assert!(rights.may("team-a", Capability::SubmitJob));
    assert!(!rights.may("team-a", Capability::AllocExec));
    assert!(!rights.may("default", Capability::ListJobs));
    assert!(rights.may_in_any(Capability::SubmitJob));
    assert!(!rights.may_in_any(Capability::ReadLogs));
    assert!(rights.may_see_namespace("team-a") && !rights.may_see_namespace("default"));
    assert!(rights.node(Level::Read) && !rights.node(Level::Write));
    assert!(!rights.agent(Level::Read) && !rights.operator(Level::Read));
    assert!(rights.plugin(Level::List) && !rights.plugin(Level::Read));
    assert!(rights.may_pool("gpu-1", PoolCapability::Delete));
    assert!(!rights.may_pool("default", PoolCapability::Read));
    assert!(!rights.is_management());
}

#[test]
fn rule_of_a_variable_is_that_of_the_nearest_path() {
    use VariableCapability::{Destroy, List, Read, Write};
    let rights = rights(&[TEAM]);
    let may = |path, capability| rights.may_variable("team-a", path, capability);
    assert!(may("other", List) && !may("other", Read));
    assert!(may("app/db", Read) && may("app/db", Write) && may("app/db", List));
    assert!(!may("app/db", Destroy));
    assert!(!may("app/secret", Read) && !may("app/secret", List));
    assert!(!rights.may_variable("default", "app/db", List));
    assert!(rights.may_any_variable("*", Write) && !rights.may_any_variable("*", Destroy));
}

#[test]
fn write_access_to_a_host_volume_includes_reading() {
    use HostVolumeCapability::{MountReadonly, MountReadwrite};
    let rights = rights(&[TEAM]);
    assert!(rights.may_host_volume("data-1", MountReadwrite));
    assert!(rights.may_host_volume("data-1", MountReadonly));
    assert!(!rights.may_host_volume("other", MountReadonly));
}

#[test]
fn several_policies_add_up_and_deny_wins() {
    let write = "namespace \"default\" { policy = \"write\" }\nagent { policy = \"write\" }";
    let scale = "namespace \"default\" { policy = \"scale\" }\nagent { policy = \"read\" }";
    let exec = "namespace \"default\" { capabilities = [\"alloc-node-exec\"] }";
    let deny = "namespace \"default\" { policy = \"deny\" }\nagent { policy = \"deny\" }";
    let both = rights(&[write, exec, scale]);
    assert!(both.may("default", Capability::SubmitJob));
    assert!(both.may("default", Capability::AllocNodeExec));
    assert!(both.agent(Level::Write));
    let denied = rights(&[deny, write, exec]);
    assert!(!denied.may("default", Capability::ListJobs));
    assert!(!denied.agent(Level::Read) && !denied.may_in_any(Capability::ListJobs));
    // The rule of the exact name goes before a pattern, also if it allows less.
    let all = "namespace \"*\" { policy = \"write\" }";
    let own = rights(&[all, "namespace \"ops\" { policy = \"read\" }"]);
    assert!(!own.may("ops", Capability::SubmitJob) && own.may("web", Capability::SubmitJob));
}

#[test]
fn blocks_of_one_namespace_in_one_policy_add_up_and_deny_wins() {
    use VariableCapability::{Destroy, List, Read};
    let both = rights(&[r#"
namespace "team" {
  policy = "read"
  variables {
    path "app/*" {
      capabilities = ["read"]
    }
    path "app/secret" {
      capabilities = ["deny"]
    }
  }
}
namespace "team" {
  capabilities = ["submit-job"]
  variables {
    path "app/*" {
      capabilities = ["destroy"]
    }
  }
}
"#]);
    assert!(both.may("team", Capability::ReadJob) && both.may("team", Capability::SubmitJob));
    let may = |path, capability| both.may_variable("team", path, capability);
    assert!(may("app/db", Read) && may("app/db", Destroy));
    for capability in [List, Read, Destroy] {
        assert!(!may("app/secret", capability), "{capability:?}");
    }
    let [deny, write] =
        ["deny", "write"].map(|it| format!("namespace \"a\" {{ policy = \"{it}\" }}\n"));
    for text in [format!("{deny}{write}"), format!("{write}{deny}")] {
        assert!(!rights(&[&text]).may("a", Capability::ListJobs), "{text}");
    }
}

#[test]
fn right_to_write_host_volumes_brings_the_others() {
    let rights = rights(&["namespace \"a\" { capabilities = [\"host-volume-write\"] }"]);
    for capability in [
        Capability::HostVolumeCreate,
        Capability::HostVolumeRegister,
        Capability::HostVolumeDelete,
        Capability::HostVolumeRead,
    ] {
        assert!(rights.may("a", capability), "{capability:?}");
    }
    assert!(!rights.may("a", Capability::SubmitJob));
}

#[test]
fn management_token_may_do_everything_and_anonymous_nothing() {
    let (all, none) = (Rights::all(), Rights::none());
    assert!(all.is_management() && all.may("x", Capability::AllocNodeExec));
    assert!(all.may_variable("x", "y", VariableCapability::Destroy));
    assert!(all.operator(Level::Write));
    for capability in Capability::ALL {
        assert!(!none.may("default", *capability) && !none.may_in_any(*capability));
    }
    assert!(!none.node(Level::Read) && !none.may_see_namespace("default"));
}

#[test]
fn policy_in_json_says_the_same() {
    let json = r#"{
      "namespace": {
        "team-*": {
          "policy": "read",
          "capabilities": ["submit-job"],
          "variables": { "path": {
            "*": { "capabilities": ["list"] },
            "app/*": { "capabilities": ["write", "read"] },
            "app/secret": { "capabilities": ["deny"] }
          } }
        }
      },
      "node": { "policy": "read" },
      "node_pool": { "gpu-*": { "policy": "write" } },
      "host_volume": { "data-*": { "capabilities": ["mount-readwrite"] } },
      "plugin": { "policy": "list" },
      "quota": { "policy": "read" }
    }"#;
    assert_eq!(Policy::parse(json), Policy::parse(TEAM));
}

#[test]
fn mistake_in_a_policy_has_its_line() {
    for (text, words) in [
        ("", "no rules"),
        ("{}", "no rules"),
        ("namespace \"a\" {\n}", "policy:1:1: the rule says nothing"),
        ("\nnode {\n}", "policy:2:1: the rule says nothing"),
        (
            "\nnode {\n policy = \"admin\"\n}",
            "policy:3:11: policy cannot be \"admin\"",
        ),
        (
            "node {\n policy = \"list\"\n}",
            "It is one of read, write, deny",
        ),
        ("nodes {}", "Did you mean \"node\"?"),
        ("namespace {\n policy = \"read\"\n}", "exactly one label"),
        (
            "namespace \"\" {\n policy = \"read\"\n}",
            "the name of a rule",
        ),
        (
            "namespace \"a\" {\n capabilities = [\"read-job\", \"reed-logs\"]\n}",
            "policy:2:17: capabilities cannot be \"reed-logs\"",
        ),
        (
            "namespace \"a\" {\n capability = []\n}",
            "unknown attribute \"capability\"",
        ),
        (
            "namespace \"a\" {\n capabilities = \"read-job\"\n}",
            "a list of strings",
        ),
        ("namespace \"a\" {\n variables {\n }\n}", "there is no path"),
        (
            "namespace \"a\" {\n variables \"*\" {\n }\n}",
            "takes no label",
        ),
        (
            "node {\n policy = \"read\"\n}\nnode {\n policy = \"read\"\n}",
            "only one \"node\"",
        ),
        ("node {\n policy = \"read\"", "policy:"),
    ] {
        let why = why(text);
        assert!(why.contains(words), "{text}: {why}");
    }
}

#[test]
fn policy_is_bounded() {
    let large = format!(
        "# {}\nnode {{\n policy = \"read\"\n}}",
        "x".repeat(MAX_TEXT)
    );
    assert!(why(&large).contains("more than"));
    let many = "host_volume \"a\" { policy = \"read\" }\n".repeat(MAX_RULES + 1);
    assert!(why(&many).contains("must not have more than"));
    let deep = "[".repeat(20_000);
    assert!(Policy::parse(&format!("namespace \"a\" {{\n capabilities = {deep}\n}}")).is_err());
    let long = "n".repeat(600);
    assert!(why(&format!("namespace \"{long}\" {{\n policy = \"read\"\n}}")).contains("bytes"));
}

#[test]
fn ready_policies_do_what_their_descriptions_say() {
    for ready in READY {
        assert_eq!(ready::named(ready.name), Some(&ready));
        assert!(Policy::parse(ready.rules).is_ok(), "{}", ready.name);
    }
    let of = |name| rights(&[ready::named(name).unwrap().rules]);
    let (read, deploy) = (of("read"), of("deploy"));
    assert!(read.may("any", Capability::ReadJob) && read.agent(Level::Read));
    for capability in [
        Capability::SubmitJob,
        Capability::ReadLogs,
        Capability::ReadFs,
        Capability::AllocExec,
    ] {
        assert!(!read.may("any", capability) && deploy.may("any", capability));
    }
    for rights in [&read, &deploy] {
        assert!(rights.node(Level::Read) && !rights.node(Level::Write));
        assert!(!rights.may_any_variable("*", VariableCapability::List));
        assert!(!rights.operator(Level::Write) && !rights.agent(Level::Write));
        assert!(!rights.may("any", Capability::AllocNodeExec));
    }
    assert!(deploy.may_host_volume("data", HostVolumeCapability::MountReadwrite));
    assert!(!read.may_host_volume("data", HostVolumeCapability::MountReadwrite));
    assert_eq!(ready::named("admin"), None);
}
