//! The blocks of tasks, and drivers' configurations.

use serde_json::{Value, json};

use super::{good, json};

fn task(text: &str) -> Value {
    let parsed = good(&format!(
        "job \"j\" {{\n group \"g\" {{\n task \"t\" {{\n{text}\n}}\n}}\n}}\n"
    ));
    json(&parsed)["TaskGroups"][0]["Tasks"][0].clone()
}

#[test]
fn task_blocks_are_parsed() {
    let written = task(
        r#"
  driver       = "exec"
  user         = "nobody"
  kill_timeout = "20s"
  kill_signal  = "SIGINT"
  leader       = true
  env = { "a.b" = 1, C = true }
  meta { k = "v" }
  lifecycle {
    hook    = "poststart"
    sidecar = true
  }
  logs {
    max_files     = 3
    max_file_size = 20
  }
  resources {
    cpu        = 500
    memory     = 256
    memory_max = -1
    device "vendor/gpu" {
      count = 2
      constraint {
        attribute = "${device.attr.memory}"
        operator  = ">="
        value     = "4 GiB"
      }
    }
    numa { affinity = "prefer" }
  }
  artifact {
    source      = "https://example.com/x.tgz"
    destination = "local/x"
    mode        = "file"
    options { checksum = "md5:abc" }
    headers = { X-A = "b" }
  }
  template {
    data          = "x"
    destination   = "local/t"
    change_mode   = "script"
    splay         = "1s"
    perms         = "0600"
    uid           = 5
    change_script {
      command = "/bin/true"
      timeout = "2s"
    }
    wait {
      min = "1s"
      max = "4s"
    }
  }
  volume_mount {
    volume        = "data"
    destination   = "/data"
    selinux_label = "Z"
  }
  dispatch_payload { file = "in.txt" }
  action "hello" {
    command = "/bin/echo"
    args    = ["hi"]
  }
  identity { env = true }
  identity {
    name = "vault"
    aud  = ["v"]
    ttl  = "1h"
  }
"#,
    );
    assert_eq!(
        written,
        json!({
            "Name": "t", "Driver": "exec", "User": "nobody", "KillTimeout": 20_000_000_000_u64,
            "KillSignal": "SIGINT", "Leader": true, "Env": {"a.b": "1", "C": "true"},
            "Meta": {"k": "v"}, "ShutdownDelay": 0,
            "Lifecycle": {"Hook": "poststart", "Sidecar": true},
            "LogConfig": {"MaxFiles": 3, "MaxFileSizeMB": 20, "Disabled": false},
            "Resources": {"CPU": 500, "Cores": 0, "MemoryMB": 256, "MemoryMaxMB": -1,
                "SecretsMB": 0, "NUMA": {"Affinity": "prefer"},
                "Devices": [{"Name": "vendor/gpu", "Count": 2, "Constraints": [{
                    "LTarget": "${device.attr.memory}", "Operand": ">=", "RTarget": "4 GiB"}]}]},
            "Artifacts": [{"GetterSource": "https://example.com/x.tgz",
                "RelativeDest": "local/x", "GetterMode": "file",
                "GetterOptions": {"checksum": "md5:abc"}, "GetterHeaders": {"X-A": "b"},
                "GetterInsecure": false, "Chown": false}],
            "Templates": [{"EmbeddedTmpl": "x", "DestPath": "local/t", "ChangeMode": "script",
                "Splay": 1_000_000_000, "Perms": "0600", "Uid": 5, "Envvars": false,
                "ErrMissingKey": false, "LeftDelim": "{{", "RightDelim": "}}", "Once": false,
                "VaultGrace": 0,
                "ChangeScript": {"Command": "/bin/true", "Timeout": 2_000_000_000,
                    "FailOnError": false, "RunOnFirstRender": false},
                "Wait": {"Min": 1_000_000_000, "Max": 4_000_000_000_u64}}],
            "VolumeMounts": [{"Volume": "data", "Destination": "/data", "ReadOnly": false, "SELinuxLabel": "Z"}],
            "DispatchPayload": {"File": "in.txt"},
            "Actions": [{"Name": "hello", "Command": "/bin/echo", "Args": ["hi"]}],
            "Identity": {"ChangeMode": "noop", "Env": true, "File": false, "TTL": 0},
            "Identities": [{"Name": "vault", "Audience": ["v"], "ChangeMode": "noop",
                "Env": false, "File": false, "TTL": 3_600_000_000_000_u64}],
        })
    );
}

#[test]
fn driver_config_is_passed_through() {
    let written = task(
        r#"
  config {
    image  = "x"
    gone   = null
    number = 1.5
    labels { a = "b" }
    mount {
      type = "bind"
      options { ro = true }
    }
    mount { type = "tmpfs" }
  }
"#,
    );
    assert_eq!(
        written["Config"],
        json!({
            "image": "x", "number": 1.5, "labels": [{"a": "b"}],
            "mount": [{"type": "bind", "options": [{"ro": true}]}, {"type": "tmpfs"}],
        })
    );
}

#[test]
fn image_update_is_parsed() {
    let written = task(
        r#"
  driver = "docker"
  config { image = "app:1.2" }
  image_update {
    schedule  = "0 4 * * *"
    time_zone = "Europe/Berlin"
  }
"#,
    );
    assert_eq!(
        written["ImageUpdate"],
        json!({"Enabled": true, "Schedule": "0 4 * * *", "Policy": "digest",
            "TimeZone": "Europe/Berlin"})
    );
    assert_eq!(written.get("ImageDigest"), None, "that is Drover's own");
}
