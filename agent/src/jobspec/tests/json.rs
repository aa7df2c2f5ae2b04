//! The forms in JSON.

use drover_core::model::job::JobType;

use super::super::from_api_json;
use super::{bad, good, json};

const NATIVE: &str = r#"
variable "n" { default = 2 }
job "j" {
  type = "batch"
  meta = { "a.b" = "c" }
  constraint { value = "x" }
  constraint { value = "y" }
  group "g" {
    count = var.n
    network {
      port "http" { to = 80 }
    }
    dynamic "volume" {
      for_each = ["d"]
      iterator = v
      labels   = [v.value]
      content { source = v.value }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/${upper("x")}"
        dir     = "${NOMAD_TASK_DIR}"
        nested  = { a = [1, 2.5, true] }
      }
      env { A = "é😀/" }
      kill_timeout = "3s"
    }
  }
}
"#;

const JSON: &str = r#"
{
  "variable": {"n": {"default": 2}},
  "job": {"j": {
    "//": "a comment",
    "type": "batch",
    "meta": {"a.b": "c"},
    "constraint": [{"value": "x"}, {"value": "y"}],
    "group": {"g": {
      "count": "${var.n}",
      "network": {"port": {"http": {"to": 80}}},
      "dynamic": {"volume": {
        "for_each": ["d"], "iterator": "v", "labels": ["${v.value}"],
        "content": {"source": "${v.value}"}
      }},
      "task": [{"t": {
        "driver": "raw_exec",
        "config": {
          "command": "/bin/${upper(\"x\")}",
          "dir": "${NOMAD_TASK_DIR}",
          "nested": {"a": [1, 2.5, true]}
        },
        "env": {"A": "\u00e9\ud83d\ude00\/"},
        "kill_timeout": "3s"
      }}]
    }}
  }}
}
"#;

#[test]
fn hcl_and_json_syntax_agree() {
    let (native, in_json) = (good(NATIVE), good(JSON));
    assert_eq!(json(&native), json(&in_json));
    assert_eq!(native.job.meta.get("a.b").map(String::as_str), Some("c"));
    let position = in_json
        .positions
        .get("group[\"g\"].task[\"t\"].kill_timeout");
    assert_eq!(position.map(|position| position.line), Some(24));
}

#[test]
fn api_json_round_trips() {
    let parsed = good(NATIVE);
    let bare = serde_json::to_string(&parsed.job).unwrap();
    assert!(bare.contains(":null"));
    assert_eq!(good(&bare).job, parsed.job);
    assert_eq!(good(&format!("{{\"Job\": {bare}}}")).job, parsed.job);
    assert_eq!(from_api_json(bare.as_bytes()), Ok(parsed.job));
}

#[test]
fn api_json_accepts_empty_values() {
    let job = from_api_json(
        br#"{"Job": {"ID": "x", "Type": "", "Meta": null, "Unknown": 1, "TaskGroups": [
            {"Name": "g", "RestartPolicy": {"Mode": ""}, "Tasks": [
                {"Name": "t", "Resources": {"Cores": 2}}]}]}}"#,
    );
    let job = job.unwrap();
    assert_eq!(job.job_type, JobType::Service);
    assert_eq!(job.task_groups[0].tasks[0].resources.cpu, 0);
}

#[test]
fn json_mistakes_are_reported() {
    let path = bad(r#"{"ID": "x", "TaskGroups": [{"Count": "many"}]}"#);
    assert!(
        path.starts_with("test.nomad: TaskGroups[0].Count: invalid type: string \"many\""),
        "{path}"
    );
    let syntax = bad("{\"job\": {\n \"x\": }}");
    assert!(
        syntax.starts_with("test.nomad:2:7: this is no JSON"),
        "{syntax}"
    );
    let unknown =
        bad("{\"job\": {\"x\": {\n  \"cuont\": 1,\n  \"group\": {\"g\": {\"cuont\": 1}}}}}");
    assert!(
        unknown.contains("test.nomad:2:4: unknown attribute \"cuont\" in job \"x\""),
        "{unknown}"
    );
    assert!(
        unknown.contains("test.nomad:3:20: unknown attribute \"cuont\" in group \"g\""),
        "{unknown}"
    );
    let block = bad("{\"job\": {\"x\": {\"update\": 3}}}");
    assert!(block.contains("\"update\" is a block"), "{block}");
    assert!(from_api_json(b"[]").is_err());
    assert!(from_api_json(b"\xff").is_err());
    let deep = format!("{{\"ID\": {}1{}}}", "[".repeat(1000), "]".repeat(1000));
    assert!(from_api_json(deep.as_bytes()).is_err());
    assert!(from_api_json(&vec![b' '; 11 << 20]).is_err());
}
