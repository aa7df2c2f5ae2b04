//! Variables, as a user sees them: put and looked at by the program, read by templates, and told to
//! tasks when they change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use serde_json::{Value, json};
use support::{Lone, exchange, request};

#[test]
fn variable_is_put_read_and_deleted() {
    let setup = Lone::new();
    let var = |args: &[&str]| setup.run(&[&["var"], args].concat());
    let put = var(&["put", "app/db", "user=web", "password=hunter2"]).ok();
    assert!(
        put.contains("Successfully created variable \"app/db\"!"),
        "{put}"
    );
    let again = var(&["put", "app/db", "user=other"]).failed();
    assert!(again.contains("Check-and-Set conflict"), "{again}");
    assert!(!again.contains("hunter2"), "{again}");
    let shown = var(&["get", "app/db"]).ok();
    assert!(shown.contains("password = hunter2"), "{shown}");
    assert_eq!(var(&["get", "-item", "user", "app/db"]).ok(), "web");
    let whole: Value = serde_json::from_str(&var(&["get", "-json", "app/db"]).ok()).unwrap();
    assert_eq!(
        whole["Items"],
        json!({ "user": "web", "password": "hunter2" })
    );
    let index = whole["ModifyIndex"].to_string();

    let check = format!("-check-index={index}");
    let updated = var(&["put", &check, "app/db", "user=second"]).ok();
    assert!(updated.contains("updated"), "{updated}");
    var(&["put", &check, "app/db", "user=third"]).failed();
    var(&["purge", &check, "app/db"]).failed();
    let file = setup
        .world
        .file("var.json", r#"{ "Path": "other", "Items": { "a": "b" } }"#);
    var(&["put", &format!("@{}", file.display())]).ok();

    let setup = setup.next_agent();
    let var = |args: &[&str]| setup.run(&[&["var"], args].concat());
    let list = var(&["list"]).ok();
    assert!(list.contains("app/db") && list.contains("other"), "{list}");
    assert!(!list.contains("second"), "lists hold no items: {list}");
    assert!(!var(&["list", "app"]).ok().contains("other"));
    let item = var(&["get", "-item=user", "app/db"]).ok();
    assert_eq!(item, "second", "it outlives the agent");
    var(&["put", "-force", "app/db", "user=last"]).ok();
    var(&["purge", "app/db"]).ok();
    let gone = var(&["get", "app/db"]).failed();
    assert!(gone.contains("Variable not found"), "{gone}");
    let bad = var(&["put", "nomad/mine", "a=b"]).failed();
    assert!(bad.contains("nomad/jobs"), "{bad}");
}

#[test]
fn variable_api_has_nomad_status_codes() {
    let setup = Lone::new();
    let addr = setup.agent.addr.as_str();
    let ask = |method, path: &str, body: Option<&Value>| {
        request(addr, method, &format!("/v1/{path}"), body).unwrap()
    };
    let body = json!({ "Items": { "key": "value" } });
    assert_eq!(
        ask("GET", "var/a/b", None),
        (404, "variable not found".to_owned())
    );
    let (status, put) = ask("PUT", "var/a/b?cas=0", Some(&body));
    let put: Value = serde_json::from_str(&put).unwrap();
    assert_eq!(
        (status, &put["Path"], &put["Namespace"]),
        (200, &json!("a/b"), &json!("default"))
    );
    let (status, there) = ask("PUT", "var/a/b?cas=0", Some(&body));
    let there: Value = serde_json::from_str(&there).unwrap();
    assert_eq!((status, &there["ModifyIndex"]), (409, &put["ModifyIndex"]));
    let (status, none) = ask("DELETE", "var/nothing?cas=7", None);
    let none: Value = serde_json::from_str(&none).unwrap();
    assert_eq!(
        (status, &none["ModifyIndex"], &none["Items"]),
        (409, &json!(0), &Value::Null)
    );
    assert_eq!(ask("GET", "var/a/b?namespace=other", None).0, 404);
    assert_eq!(ask("PUT", "var/a/b?lock-acquire", Some(&body)).0, 501);
    for (path, body) in [
        ("var/a%20b", &body),
        ("var/a.b", &body),
        ("var/nomad/x", &body),
        ("var/a?cas=x", &body),
        ("var/a?namespace=*", &body),
        ("var/a?namespace=a%00b", &body),
        ("var/a", &json!({ "Path": "b", "Items": { "k": "v" } })),
        ("var/a", &json!({ "Items": {} })),
        ("var/a", &json!({ "Items": { "a b": "v" } })),
        ("var/a", &json!({ "Items": { "k": "v".repeat(65 * 1024) } })),
    ] {
        let (status, why) = ask("PUT", path, Some(body));
        assert_eq!(status, 400, "{path}: {why}");
    }
    let (status, why) = ask("PUT", "var/b?namespace=other", Some(&body));
    assert_eq!(status, 400, "{why}");
    assert!(why.contains("nonexistent namespace \"other\""), "{why}");
    ask("PUT", "namespace/other", Some(&json!({})));
    ask("PUT", "var/b?namespace=other", Some(&body));
    let list = |query: &str| -> Vec<String> {
        let list: Value = setup.agent.get(&format!("/v1/vars{query}"));
        let list = list.as_array().unwrap();
        assert!(list.iter().all(|one| one.get("Items").is_none()));
        list.iter()
            .map(|one| one["Path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(list(""), ["a/b"]);
    assert_eq!(list("?namespace=*"), ["a/b", "b"]);
    assert!(list("?prefix=x").is_empty());
    let (status, _) = ask("DELETE", "var/a/b", None);
    assert_eq!(status, 204);
    assert_eq!(ask("DELETE", "var/a/b", None).0, 204, "it is gone already");
    let page =
        format!("GET /v1/var/b?namespace=other HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n");
    let own = exchange(addr, format!("{page}\r\n").as_bytes()).unwrap();
    assert_eq!(own.0, 200);
    let foreign = format!("{page}Origin: http://evil.example\r\n\r\n");
    let foreign = exchange(addr, foreign.as_bytes()).unwrap();
    assert_eq!(foreign.0, 403, "{}", foreign.1);
}

const JOB: &str = r#"
job "web" {
  group "g" {
    task "signalled" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo told $(cat local/out)' HUP; echo begins $(cat local/out); while true; do sleep 0.1; done"]
      }
      template {
        data          = "{{ with nomadVar \"nomad/jobs/web\" }}{{ .key }}{{ end }}\n"
        destination   = "local/out"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        splay         = "0s"
      }
    }
    task "restarted" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "echo begins $KEY; exec sleep 1000"]
      }
      template {
        data        = "KEY={{ with nomadVar \"nomad/jobs/web\" }}{{ .key }}{{ end }}\n"
        destination = "secrets/env"
        env         = true
        splay       = "0s"
      }
    }
  }
}
"#;

#[test]
fn task_waits_for_variable_and_sees_changes() {
    let setup = Lone::new();
    let file = setup.world.file("web.hcl", JOB);
    setup
        .run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let missing = |alloc: &Value| {
        let states = alloc["TaskStates"].as_object()?.values();
        let waits = |state: &Value| {
            let events = state["Events"].as_array().into_iter().flatten();
            let words = "Missing: nomadVar nomad/jobs/web";
            events
                .map(|event| &event["DisplayMessage"])
                .any(|message| message == words)
        };
        (states.clone().count() == 2 && states.clone().all(waits)).then_some(())
    };
    let alloc = setup.agent.wait_for("/v1/job/web/allocations", |allocs| {
        missing(allocs.get(0)?)?;
        Some(allocs[0]["ID"].as_str()?.to_owned())
    });
    setup.run(&["var", "put", "nomad/jobs/web", "key=one"]).ok();
    let logs = |setup: &Lone, task: &str| setup.start(&["alloc", "logs", "-f", &alloc, task]);
    let (signalled, restarted) = (logs(&setup, "signalled"), logs(&setup, "restarted"));
    signalled.line("begins one");
    restarted.line("begins one");
    setup
        .run(&["var", "put", "-force", "nomad/jobs/web", "key=two"])
        .ok();
    signalled.line("told two");
    restarted.line("begins two");
    drop((signalled, restarted));

    // The next agent watches too.
    let setup = setup.next_agent();
    setup
        .run(&["var", "put", "-force", "nomad/jobs/web", "key=three"])
        .ok();
    let (signalled, restarted) = (logs(&setup, "signalled"), logs(&setup, "restarted"));
    signalled.line("told three");
    restarted.line("begins three");
    setup.run(&["job", "stop", "-purge", "web"]).ok();
}

/// One that is found, and one that finds it.
const SERVICES: &str = r#"
job "pair" {
  group "found" {
    network {
      port "http" {}
    }
    service {
      name     = "of-${NOMAD_GROUP_NAME}"
      port     = "http"
      tags     = ["v1", "n${NOMAD_ALLOC_INDEX}"]
      provider = "nomad"
    }
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      service {
        name     = "plain"
        port     = 8080
        address  = "example.org"
        provider = "nomad"
      }
    }
  }
  group "finds" {
    task "main" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "trap 'echo told $(cat local/out)' HUP; echo begins; kill -HUP $$; while true; do sleep 0.1; done"]
      }
      template {
        data          = "{{ range nomadService \"of-found\" }}at {{ .Address }}:{{ .Port }}{{ else }}nobody{{ end }} of {{ len nomadServices }}\n"
        destination   = "local/out"
        change_mode   = "signal"
        change_signal = "SIGHUP"
        splay         = "0s"
      }
    }
  }
}
"#;

#[test]
fn service_is_registered_while_task_runs() {
    let setup = Lone::new();
    let none = setup.run(&["service", "list"]).ok();
    assert!(none.contains("No service registrations found"), "{none}");
    let file = setup.world.file("pair.hcl", SERVICES);
    let file = file.to_str().unwrap();
    setup.run(&["job", "run", "-detach", file]).ok();
    let one = setup
        .agent
        .wait_for("/v1/service/of-found", |all| Some(all.get(0)?.clone()));
    let (alloc, port) = (
        one["AllocID"].as_str().unwrap(),
        one["Port"].as_u64().unwrap(),
    );
    let id = format!("_nomad-task-{alloc}-group-found-of-found-http");
    assert_eq!(one["ID"], json!(id));
    assert_eq!(one["Tags"], json!(["v1", "n0"]));
    assert_eq!(one["Address"], json!("127.0.0.1"));
    let shown = setup.run(&["service", "info", "of-found"]).ok();
    assert!(shown.contains(&format!("127.0.0.1:{port}")), "{shown}");
    let list = setup.run(&["service", "list"]).ok();
    assert!(
        list.contains("of-found") && list.contains("[n0,v1]"),
        "{list}"
    );
    let plain = setup.run(&["service", "info", "plain"]).ok();
    assert!(plain.contains("example.org:8080"), "{plain}");
    assert_eq!(setup.agent.get("/v1/service/nobody"), json!([]));
    setup.run(&["service", "info", "nobody"]).failed();
    let refused = setup.agent.delete(&format!("/v1/service/of-found/{id}"));
    assert_eq!(refused.map(|(status, _)| status), Some(501));

    let finds = setup.agent.wait_for("/v1/job/pair/allocations", |allocs| {
        let mut allocs = allocs.as_array()?.iter();
        let finds = allocs.find(|alloc| alloc["TaskGroup"] == "finds")?;
        (finds["ClientStatus"] == "running").then(|| finds["ID"].as_str().unwrap().to_owned())
    });
    let logs = setup.start(&["alloc", "logs", "-f", &finds]);
    logs.line(&format!("told at 127.0.0.1:{port} of 2"));
    // Whoever is not meant to run is not found, and who finds is told.
    let without = SERVICES.replace("group \"found\" {", "group \"found\" {\n count = 0\n");
    let without = setup.world.file("without.hcl", &without);
    setup
        .run(&["job", "run", "-detach", without.to_str().unwrap()])
        .ok();
    logs.line("told nobody of 0");
    assert_eq!(setup.agent.get("/v1/services"), json!([]));
    setup.run(&["job", "stop", "-purge", "pair"]).ok();
}

const DRIVER_NETWORK: &str = r#"
job "inside" {
  group "g" {
    network {
      port "http" {}
    }
    task "main" {
      driver = "mock_driver"
      config {
        run_for          = "1h"
        driver_ip        = "10.1.2.3"
        driver_port_map  = "http:8080"
        driver_advertise = false
      }
      dynamic "service" {
        for_each = ["driver", "auto"]
        content {
          name         = "by-${service.value}"
          port         = "http"
          address_mode = service.value
          tags         = ["port-${NOMAD_PORT_http}"]
          provider     = "nomad"
        }
      }
    }
    task "finds" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "cat local/out; while true; do sleep 0.1; done"]
      }
      lifecycle {
        hook    = "poststart"
        sidecar = true
      }
      template {
        data        = "{{ range nomadService \"by-driver\" }}at {{ .Address }}:{{ .Port }}{{ end }}\n"
        destination = "local/out"
      }
    }
  }
}
"#;

#[test]
fn driver_network_reaches_services_templates_and_the_status() {
    let setup = Lone::new();
    let file = setup.world.file("inside.hcl", DRIVER_NETWORK);
    let file = file.to_str().unwrap();
    setup.run(&["job", "run", "-detach", file]).ok();
    let alloc = setup
        .agent
        .wait_for("/v1/job/inside/allocations", |allocs| {
            let alloc = allocs.get(0)?;
            (alloc["ClientStatus"] == "running").then(|| alloc["ID"].as_str().unwrap().to_owned())
        });
    let logs = setup.start(&["alloc", "logs", "-f", &alloc, "finds"]);
    logs.line("at 10.1.2.3:8080");

    let by_driver = &setup.agent.get("/v1/service/by-driver")[0];
    assert_eq!(by_driver["Address"], json!("10.1.2.3"));
    assert_eq!(by_driver["Port"], json!(8080));
    assert_eq!(by_driver["Tags"], json!(["port-8080"]));
    let of_host = &setup.agent.get("/v1/service/by-auto")[0];
    assert_eq!(of_host["Address"], json!("127.0.0.1"), "{of_host}");
    assert_ne!(of_host["Port"], json!(8080));

    let whole = setup.agent.get(&format!("/v1/allocation/{alloc}"));
    let network = &whole["NetworkStatus"];
    assert_eq!(network["Address"], json!("10.1.2.3"));
    let network = &whole["TaskStates"]["main"]["DriverNetwork"];
    assert_eq!(network["PortMap"], json!({ "http": 8080 }));
    assert_eq!(whole["TaskStates"]["finds"]["DriverNetwork"], Value::Null);
    let shown = setup.run(&["alloc", "status", &alloc]).ok();
    assert!(shown.contains("Driver Network:"), "{shown}");
    assert!(shown.contains("http: 8080"), "{shown}");
    setup.run(&["job", "stop", "-purge", "inside"]).ok();
}

/// Files below a directory in which this can be read.
fn readable_in(dir: &std::path::Path, secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(readable_in(&path, secret));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes
                .windows(secret.len())
                .any(|part| part == secret.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn variable_is_encrypted_and_its_key_is_rotated() {
    const SECRET: &str = "kQ7-never-to-be-read-Zx4";
    let setup = Lone::new();
    setup
        .run(&["var", "put", "app/db", &format!("password={SECRET}")])
        .ok();
    let keyring =
        |setup: &Lone, args: &[&str]| setup.run(&[&["operator", "root", "keyring"], args].concat());
    let keys = |setup: &Lone| -> Vec<Value> {
        serde_json::from_str(&keyring(setup, &["list", "-json"]).ok()).unwrap()
    };
    let first = keys(&setup)[0]["KeyID"].as_str().unwrap().to_owned();
    let refused = keyring(&setup, &["remove", &first]).failed();
    assert!(refused.contains("is active"), "{refused}");
    keyring(&setup, &["rotate"]).ok();
    let refused = keyring(&setup, &["remove", &first]).failed();
    assert!(refused.contains("rotate with -full"), "{refused}");
    let made = keyring(&setup, &["rotate", "-full"]).ok();
    assert!(made.contains("active"), "{made}");
    let removed = keyring(&setup, &["remove", &first]).ok();
    assert!(removed.contains(&first), "{removed}");
    let states: Vec<Value> = keys(&setup)
        .iter()
        .map(|key| key["State"].clone())
        .collect();
    assert_eq!(states, [json!("inactive"), json!("active")]);
    assert!(!keyring(&setup, &["remove", "x"]).failed().is_empty());

    let setup = setup.next_agent();
    assert_eq!(
        setup.run(&["var", "get", "-item=password", "app/db"]).ok(),
        SECRET
    );
    assert_eq!(
        readable_in(&setup.world.data(), SECRET),
        <Vec<String>>::new()
    );
}

#[test]
fn agent_with_another_root_key_does_not_start() {
    use std::os::unix::fs::PermissionsExt;
    let world = support::World::new();
    let config = |key: &str| {
        let file = world.file(&format!("{key}.key"), &key.repeat(32));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let text = format!("root_key_file = {:?}\n", file.display().to_string());
        world.file(&format!("{key}.hcl"), &text)
    };
    let agent = |config: &std::path::Path| {
        let args = ["agent", "-http=127.0.0.1:0", "-data-dir"].map(std::path::PathBuf::from);
        args.into_iter()
            .chain([world.data(), "-config".into(), config.to_owned()])
    };
    let first = support::Program::start(agent(&config("a")));
    first.err_line("is ready");
    first.interrupt();
    first.end();
    let refused = support::Program::run(agent(&config("b"))).failed();
    assert!(refused.contains("the root key does not open"), "{refused}");
    let again = support::Program::start(agent(&config("a")));
    again.err_line("is ready");
    again.interrupt();
    again.end();
}
