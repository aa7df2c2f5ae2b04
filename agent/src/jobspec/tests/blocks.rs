//! Blocks and attributes, and the keys that they have in JSON.

use serde_json::{Value, json};

use super::{good, json};

fn group(text: &str) -> Value {
    let parsed = good(&format!("job \"j\" {{\n group \"g\" {{\n{text}\n}}\n}}\n"));
    json(&parsed)["TaskGroups"][0].clone()
}

#[test]
fn job_attributes_are_parsed() {
    let parsed = good(
        r#"
job "report" {
  name        = "Report"
  region      = "eu"
  namespace   = "ops"
  node_pool   = "big"
  type        = "batch"
  priority    = "70"
  datacenters = ["dc1", "dc2"]
  all_at_once = true
  meta { owner = "team" }
  periodic {
    crons            = ["0 1 * * *", "0 2 * * *"]
    prohibit_overlap = true
    time_zone        = "Europe/Berlin"
  }
  parameterized {
    payload       = "required"
    meta_required = ["a"]
  }
  ui {
    description = "What it is"
    link {
      label = "Docs"
      url   = "https://example.com"
    }
  }
  spread {
    attribute = "${node.datacenter}"
    weight    = 40
    target "dc1" { percent = 70 }
  }
  migrate { max_parallel = 2 }
}
"#,
    );
    assert_eq!(
        json(&parsed),
        json!({
            "ID": "report", "Name": "Report", "Region": "eu", "Namespace": "ops",
            "NodePool": "big", "Type": "batch", "Priority": 70, "AllAtOnce": true,
            "Datacenters": ["dc1", "dc2"], "Meta": {"owner": "team"},
            "Periodic": {"Enabled": true, "Specs": ["0 1 * * *", "0 2 * * *"], "SpecType": "cron",
                "ProhibitOverlap": true, "TimeZone": "Europe/Berlin"},
            "ParameterizedJob": {"Payload": "required", "MetaRequired": ["a"]},
            "UI": {"Description": "What it is",
                "Links": [{"Label": "Docs", "Url": "https://example.com"}]},
            "Spreads": [{"Attribute": "${node.datacenter}", "Weight": 40,
                "SpreadTarget": [{"Value": "dc1", "Percent": 70}]}],
            "Migrate": {"MaxParallel": 2},
        })
    );
}

#[test]
fn group_blocks_are_parsed() {
    let written = group(
        r#"
  count          = 3
  shutdown_delay = "3s"
  stop_after_client_disconnect = "1h"
  restart {
    attempts = 4
    interval = "1h30m"
    mode     = "delay"
  }
  reschedule {
    delay          = "10s"
    delay_function = "fibonacci"
    unlimited      = true
  }
  ephemeral_disk {
    size   = 500
    sticky = true
  }
  disconnect {
    lost_after = "6h"
    replace    = false
  }
  network {
    mode  = "bridge"
    mbits = 10
    port "http" { static = 8080 }
    port "db" {
      to           = 5432
      host_network = "private"
    }
    dns { servers = ["1.1.1.1"] }
    cni { args = { a = "b" } }
  }
  volume "data" {
    type      = "host"
    source    = "data"
    read_only = true
    mount_options { fs_type = "ext4" }
  }
  scaling {
    max = 5
    policy {
      cooldown = "1m"
      check "cpu" { query = "q" }
    }
  }
  consul { namespace = "n" }
"#,
    );
    assert_eq!(
        written,
        json!({
            "Name": "g", "Count": 3, "ShutdownDelay": 3_000_000_000_u64,
            "StopAfterClientDisconnect": 3_600_000_000_000_u64,
            "RestartPolicy": {"Attempts": 4, "Interval": 5_400_000_000_000_u64, "Mode": "delay"},
            "ReschedulePolicy": {"Delay": 10_000_000_000_u64, "DelayFunction": "fibonacci",
                "Unlimited": true},
            "EphemeralDisk": {"SizeMB": 500, "Sticky": true, "Migrate": false},
            "Disconnect": {"LostAfter": 21_600_000_000_000_u64, "Replace": false},
            "Networks": [{"Mode": "bridge",
                "ReservedPorts": [{"Label": "http", "Value": 8080, "To": 0,
                    "IgnoreCollision": false}],
                "DynamicPorts": [{"Label": "db", "Value": 0, "To": 5432,
                    "HostNetwork": "private", "IgnoreCollision": false}],
                "DNS": {"Servers": ["1.1.1.1"]}, "CNI": {"Args": {"a": "b"}}}],
            "Volumes": {"data": {"Name": "data", "Type": "host", "Source": "data",
                "ReadOnly": true, "PerAlloc": false, "Sticky": false,
                "MountOptions": {"FSType": "ext4"}}},
            "Scaling": {"Enabled": true, "Max": 5, "Policy": {"cooldown": "1m",
                "check": [{"cpu": [{"query": "q"}]}]}},
            "Consul": {"Namespace": "n"},
        })
    );
}

#[test]
fn service_checks_are_parsed() {
    let written = group(
        r#"
  service {
    name         = "web"
    provider     = "nomad"
    port         = 8080
    tags         = ["a"]
    meta         = { k = "v" }
    address_mode = "host"
    check {
      type            = "http"
      path            = "/up"
      interval        = "10s"
      timeout         = "2s"
      tls_skip_verify = true
      header { Accept = ["a", "b"] }
      check_restart {
        limit = 3
        grace = "5s"
      }
    }
    check {
      type = "tcp"
      port = "x"
    }
    connect {
      sidecar_service {
        proxy {
          upstreams {
            destination_name = "db"
            local_bind_port  = 5432
          }
        }
      }
    }
  }
"#,
    );
    assert_eq!(
        written["Services"],
        json!([{
            "Name": "web", "Provider": "nomad", "PortLabel": "8080", "Tags": ["a"],
            "Meta": {"k": "v"}, "AddressMode": "host",
            "Checks": [
                {"Type": "http", "Path": "/up", "Interval": 10_000_000_000_u64,
                    "Timeout": 2_000_000_000, "TLSSkipVerify": true,
                    "Header": {"Accept": ["a", "b"]},
                    "CheckRestart": {"Limit": 3, "Grace": 5_000_000_000_u64}},
                {"Type": "tcp", "PortLabel": "x"},
            ],
            "Connect": {"SidecarService": {"Proxy": {"Upstreams":
                {"DestinationName": "db", "LocalBindPort": 5432}}}},
        }])
    );
}

#[test]
fn constraint_shorthands_are_parsed() {
    let table = [
        (
            "attribute = \"a\"\nvalue = \"b\"",
            json!({"LTarget": "a", "RTarget": "b", "Operand": "="}),
        ),
        (
            "attribute = \"a\"\noperator = \"!=\"\nvalue = \"b\"",
            json!({"LTarget": "a", "RTarget": "b", "Operand": "!="}),
        ),
        (
            "attribute = \"a\"\nversion = \">= 1\"",
            json!({"LTarget": "a", "RTarget": ">= 1", "Operand": "version"}),
        ),
        (
            "attribute = \"a\"\nsemver = \">= 1\"",
            json!({"LTarget": "a", "RTarget": ">= 1", "Operand": "semver"}),
        ),
        (
            "attribute = \"a\"\nregexp = \"^x\"",
            json!({"LTarget": "a", "RTarget": "^x", "Operand": "regexp"}),
        ),
        (
            "attribute = \"a\"\nset_contains = \"x,y\"",
            json!({"LTarget": "a", "RTarget": "x,y", "Operand": "set_contains"}),
        ),
        (
            "attribute = \"a\"\nset_contains_all = \"x\"",
            json!({"LTarget": "a", "RTarget": "x", "Operand": "set_contains_all"}),
        ),
        (
            "attribute = \"a\"\nset_contains_any = \"x\"",
            json!({"LTarget": "a", "RTarget": "x", "Operand": "set_contains_any"}),
        ),
        (
            "attribute = \"a\"\nis_set = true",
            json!({"LTarget": "a", "Operand": "is_set"}),
        ),
        (
            "attribute = \"a\"\nis_not_set = true",
            json!({"LTarget": "a", "Operand": "is_not_set"}),
        ),
        (
            "attribute = \"a\"\nis_set = false",
            json!({"LTarget": "a", "Operand": "is_not_set"}),
        ),
        (
            "distinct_hosts = true",
            json!({"RTarget": "true", "Operand": "distinct_hosts"}),
        ),
        (
            "distinct_property = \"${meta.rack}\"\nvalue = 2",
            json!({"LTarget": "${meta.rack}", "RTarget": "2", "Operand": "distinct_property"}),
        ),
    ];
    for (text, expected) in table {
        let written = group(&format!("constraint {{\n{text}\n}}"));
        assert_eq!(written["Constraints"], json!([expected]), "{text}");
    }
    let written = group("affinity {\nattribute = \"a\"\nset_contains_any = \"x\"\nweight = -3\n}");
    let expected =
        json!([{"LTarget": "a", "RTarget": "x", "Operand": "set_contains_any", "Weight": -3}]);
    assert_eq!(written["Affinities"], expected);
}

#[test]
fn dynamic_blocks_are_expanded() {
    let written = group(
        r#"
  network {
    dynamic "port" {
      for_each = { http = 80, db = 5432 }
      labels   = [port.key]
      content { to = port.value }
    }
  }
  dynamic "task" {
    for_each = ["a", "b"]
    iterator = name
    labels   = ["task-${name.value}"]
    content {
      driver = "raw_exec"
      dynamic "template" {
        for_each = range(2)
        content {
          data        = "${name.value}${template.value}"
          destination = "local/${template.key}"
        }
      }
      config {
        dynamic "mount" {
          for_each = [name.key]
          content { n = mount.value }
        }
      }
    }
  }
"#,
    );
    let ports = &written["Networks"][0]["DynamicPorts"];
    assert_eq!(
        (&ports[0]["Label"], &ports[0]["To"]),
        (&json!("db"), &json!(5432))
    );
    assert_eq!(
        (&ports[1]["Label"], &ports[1]["To"]),
        (&json!("http"), &json!(80))
    );
    let second = &written["Tasks"][1];
    assert_eq!(second["Name"], "task-b");
    assert_eq!(second["Config"], json!({"mount": [{"n": 1}]}));
    let templates = second["Templates"].as_array().unwrap().iter();
    let templates = templates.map(|one| (&one["EmbeddedTmpl"], &one["DestPath"]));
    assert!(templates.eq([
        (&json!("b0"), &json!("local/0")),
        (&json!("b1"), &json!("local/1")),
    ]));
}

#[test]
fn job_level_tasks_become_groups() {
    let parsed = good(
        r#"
job "j" {
  vault { role = "job" }
  secret "s" { provider = "env" }
  group "g" {
    vault { role = "group" }
    secret "t" { provider = "file" }
    task "one" {
      secret "own" { provider = "x" }
    }
    task "two" {
      vault { role = "task" }
    }
  }
  task "alone" { driver = "raw_exec" }
}
"#,
    );
    let groups = &json(&parsed)["TaskGroups"];
    assert_eq!(groups[0]["Name"], "alone");
    assert_eq!(groups[0]["Tasks"][0]["Vault"]["Role"], "job");
    assert_eq!(groups[1]["Tasks"][0]["Vault"]["Role"], "group");
    assert_eq!(groups[1]["Tasks"][1]["Vault"]["Role"], "task");
    let names = |task: &Value| -> Vec<Value> {
        let secrets = task["Secrets"].as_array().cloned().unwrap_or_default();
        secrets
            .iter()
            .map(|secret| secret["Name"].clone())
            .collect()
    };
    assert_eq!(groups[1]["Tasks"].as_array().map(Vec::len), Some(2));
    assert_eq!(names(&groups[1]["Tasks"][0]), ["own", "t", "s"]);
    assert_eq!(names(&groups[1]["Tasks"][1]), ["t", "s"]);
    let position = parsed
        .positions
        .get("group[\"alone\"].task[\"alone\"].driver");
    assert_eq!(
        position.map(|position| (position.line, position.column)),
        Some((15, 18))
    );
}

#[test]
fn group_update_inherits_job_update() {
    let parsed = good(
        "job \"j\" {\n update {\n max_parallel = 3\n canary = 1\n}\n group \"g\" {\n update {\n canary = 2\n}\n}\n}\n",
    );
    let update = parsed.job.task_groups[0].update.as_ref().unwrap();
    assert_eq!((update.max_parallel, update.canary), (3, 2));
}

#[test]
fn positions_of_blocks_are_found() {
    let parsed = good(
        "job \"j\" {\n  constraint {\n    value = 1\n  }\n  group \"a \\\"b\" {\n    count = 2\n  }\n}\n",
    );
    let at = |path: &str| {
        parsed
            .positions
            .nearest(path)
            .map(|position| (position.line, position.column))
    };
    assert_eq!(at("job.constraint[0].value"), Some((3, 5)));
    assert_eq!(at("group[\"a \\\"b\"].count"), Some((6, 5)));
    // What was not written is found where it is missing.
    assert_eq!(at("group[\"a \\\"b\"].task[\"x.y\"].driver"), Some((5, 3)));
    assert_eq!(at("job.type"), Some((1, 1)));
    assert_eq!(at("job.constraint"), Some((2, 3)));
    assert_eq!(at("job.datacenters[3]"), Some((1, 1)));
}
