//! Tasks of `docker`, as people run them, with an engine of the tests' own. Without root or an engine, these tests say
//! so and pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "support/containers.rs"]
mod containers;
mod support;

use std::time::Instant;

use containers::engine::{Engine, IMAGE};
use containers::{agent, agent_with_rules, alloc, file, run};
use serde_json::Value;
use support::netns::{leave_network, set_up};
use support::{Lone, TIMEOUT, children, exchange, until};

#[test]
fn container_outlives_agent_and_leaves_nothing() {
    let Some((mut lone, engine)) = agent("") else {
        return;
    };
    run(
        &lone,
        "web",
        &format!(
            "config {{\n image = \"{IMAGE}\"\n command = \"/bin/sh\"\n args = [\"-c\", \"cat /local/text; echo \
             $NOMAD_TASK_NAME $PATH; exec sleep 1000\"]\n }}\n template {{\n data = \"in {{{{ env \
             \\\"NOMAD_ALLOC_DIR\\\" }}}}\\n\"\n destination = \"local/text\"\n }}"
        ),
    );
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let script = "cat /local/text; id -u";
    let run_inside = |lone: &Lone| loop {
        let ended = lone.run(&["alloc", "exec", id, "/bin/sh", "-c", script]);
        // An agent that just started asks the engine for its containers first.
        if !ended.err.contains("Task not recovered yet") {
            return ended.ok();
        }
    };
    assert_eq!(run_inside(&lone), "in /alloc\n0");
    let container = engine.containers();
    let agent = lone.agent.pid().to_string();
    assert_eq!(children(&agent), [""; 0], "processes beside a container");
    lone = lone.next_agent();
    alloc(&lone, "web", |task| task["State"] == "running");
    assert_eq!(run_inside(&lone), "in /alloc\n0");
    assert_eq!(engine.containers(), container);
    assert_eq!(
        alloc(&lone, "web", |_| true)["TaskStates"]["t"]["Restarts"],
        0
    );
    let logs = lone.run(&["alloc", "logs", id]).ok();
    // The host's PATH is nothing to an image.
    assert_eq!(logs.lines().next(), Some("in /alloc"));
    assert!(
        logs.contains("\nt /usr/local/sbin:") || logs.contains("\nt /sbin:"),
        "{logs}"
    );
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    assert_eq!(engine.containers(), [""; 0]);
}

#[test]
fn job_that_asks_for_too_much_is_refused_with_reason() {
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let image = format!("image = \"{IMAGE}\"\n command = \"/bin/true\"");
    for (name, config, expected) in [
        ("privileged", "privileged = true", "allow_privileged"),
        ("caps", "cap_add = [\"sys_admin\"]", "allow_caps"),
        ("pids", "pid_mode = \"host\"", "allowed_modes"),
        ("runtime", "runtime = \"kata\"", "allowed: runc, nvidia"),
        (
            "beside-references",
            "args = [\"${NOMAD_ALLOC_ID}\"]\n privileged = true",
            "allow_privileged",
        ),
        ("bind", "volumes = [\"/etc:/x\"]", "volumes { enabled }"),
        ("ports", "ports = [\"http\"]", "no port \"http\""),
        (
            "device",
            "devices {\n host_path = \"/proc/1/root/dev/null\"\n }",
            "below /dev",
        ),
        (
            "kernel",
            "devices {\n host_path = \"/dev/tty\"\n }",
            "allow_devices",
        ),
        (
            "foreign",
            "network_mode = \"container:other\"",
            "allowed_modes { network }",
        ),
        (
            "filter",
            "security_opt = [\"seccomp=unconfined\"]",
            "allow_unconfined",
        ),
        (
            "logging",
            "logging {\n type = \"fluentd\"\n }",
            "allowed_logging_types",
        ),
        ("threads", "pids_limit = 100000", "pids_limit of plugin"),
        (
            "priority",
            "ulimit = {\n rtprio = \"99\"\n }",
            "allow_privileged",
        ),
    ] {
        let file = file(
            &lone,
            name,
            &[("t", &format!("config {{\n {image}\n {config}\n }}"))],
        );
        for command in ["run", "validate", "plan"] {
            let ended = lone.run(&["job", command, file.to_str().unwrap()]);
            assert_ne!(ended.code, 0, "{name}: {command}: {ended:?}");
            let words = [expected, "group[\"g\"].task[\"t\"].config: "];
            let reported = words.iter().all(|it| ended.err.contains(it));
            assert!(reported, "{name}: {command}: {ended:?}");
        }
    }
    assert_eq!(lone.agent.get("/v1/jobs").as_array().unwrap().len(), 0);
    assert_eq!(
        lone.agent.get("/v1/allocations").as_array().unwrap().len(),
        0
    );
    assert_eq!(engine.containers(), [""; 0]);
    for (option, expected) in [
        ("port_map { http = 80 }", "is not supported"),
        ("comand = \"x\"", "did you mean \"command\"?"),
        (
            "mount {\n type = \"bind\"\n }",
            "mount[0].target: must be given",
        ),
    ] {
        let job = format!(
            "job \"x\" {{\n group \"g\" {{\n task \"t\" {{\n driver = \"docker\"\n config {{\n image = \"a:1\"\n \
             {option}\n }}\n }}\n }}\n}}\n"
        );
        let file = lone.world.file("x.hcl", &job);
        let refused = lone
            .run(&["job", "validate", file.to_str().unwrap()])
            .failed();
        assert!(refused.contains(expected), "{option}: {refused}");
    }
}

#[test]
fn container_goes_on_under_tighter_settings_until_it_starts_again() {
    let allowing = "volumes {\n enabled = true\n }";
    let Some((lone, engine)) = agent(allowing) else {
        return;
    };
    let image = format!("image = \"{IMAGE}\"\n command = \"/bin/sleep\"\n args = [\"1000\"]");
    let task = format!("config {{\n {image}\n volumes = [\"/etc:/x:ro\"]\n }}");
    run(&lone, "web", &task);
    alloc(&lone, "web", |task| task["State"] == "running");
    let containers = engine.containers();
    let settings = lone.world.path("agent.hcl");
    let lone = lone.next_agent_after(|| {
        let text = std::fs::read_to_string(&settings).unwrap();
        std::fs::write(&settings, text.replace(allowing, "")).unwrap();
    });
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    assert_eq!(engine.containers(), containers);
    // It asks again when it starts, and so does the job.
    let refused = lone.run(&["job", "run", lone.world.path("web.hcl").to_str().unwrap()]);
    assert!(refused.err.contains("volumes { enabled }"), "{refused:?}");
    let id = found["ID"].as_str().unwrap();
    lone.run(&["alloc", "restart", id]);
    let failed = alloc(&lone, "web", |task| task["State"] == "dead");
    let events = failed["TaskStates"]["t"]["Events"].to_string();
    assert!(events.contains("volumes { enabled }"), "{events}");
    assert_eq!(engine.containers(), [""; 0]);
}

/// A web server in a container, and a neighbour that is none, behind the bridge.
fn group_behind_bridge() -> String {
    format!(
        r#"
job "web" {{
  group "g" {{
    network {{
      mode = "bridge"
      port "http" {{
        static = 18080
        to     = 8080
      }}
      dns {{ servers = ["10.9.8.7"] }}
    }}
    service {{
      name     = "web"
      provider = "nomad"
      port     = "http"
      check {{
        type     = "http"
        path     = "/"
        interval = "1s"
        timeout  = "5s"
      }}
    }}
    task "t" {{
      driver = "docker"
      config {{
        image   = "{IMAGE}"
        command = "/bin/httpd"
        args    = ["-f", "-p", "8080", "-h", "/local"]
        ports   = ["http"]
      }}
      template {{
        data        = "I am {{{{ env \"NOMAD_ALLOC_ADDR_http\" }}}}\n"
        destination = "local/index.html"
      }}
    }}
    task "beside" {{
      driver = "exec"
      config {{
        command = "/bin/sleep"
        args    = ["1000"]
      }}
    }}
  }}
}}
"#
    )
}

/// What a web server on this host answers; it may have to begin first.
fn fetch(at: &str) -> String {
    let until = Instant::now() + TIMEOUT;
    loop {
        if let Ok((200, body)) = exchange(at, b"GET / HTTP/1.0\r\n\r\n") {
            return body;
        }
        assert!(Instant::now() < until, "nobody serves at {at}");
        std::thread::yield_now();
    }
}

#[test]
fn container_is_in_network_of_its_group_and_leaves_nothing() {
    let Some(()) = leave_network() else { return };
    let Some((mut lone, engine)) = agent("") else {
        return;
    };
    let file = lone.world.file("web.hcl", &group_behind_bridge());
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let running = |lone: &Lone, restarts: u64| {
        alloc(lone, "web", |task| {
            task["State"] == "running" && task["Restarts"] == restarts
        })
    };
    let id = running(&lone, 0)["ID"].as_str().unwrap().to_owned();
    let whole = lone.agent.get(&format!("/v1/allocation/{id}"));
    let own = whole["NetworkStatus"]["Address"].as_str().unwrap();
    let expected = format!("I am {own}:8080\n");
    let check = |lone: &Lone| {
        assert_eq!(fetch("127.0.0.1:18080"), expected);
        assert_eq!(fetch(&format!("{own}:8080")), expected);
        let inside = |task: &str, words: &[&str]| {
            let all = [&["alloc", "exec", "-task", task, &id][..], words].concat();
            lone.run(&all).ok()
        };
        let neighbour = ["/bin/busybox", "wget", "-qO-", "http://127.0.0.1:8080/"];
        assert_eq!(inside("beside", &neighbour), expected.trim_end());
        assert_eq!(inside("t", &["/bin/hostname"]), id[..8]);
        let hosts = inside("t", &["/bin/cat", "/etc/hosts"]);
        assert!(
            hosts.contains(&format!("{own} {}", &id[..8])),
            "hosts: {hosts}"
        );
        let names = inside("t", &["/bin/cat", "/etc/resolv.conf"]);
        assert_eq!(names, "nameserver 10.9.8.7");
        // What led it there is not needed any more, and ends.
        let until = Instant::now() + TIMEOUT;
        while engine.containers().len() != 1 {
            assert!(Instant::now() < until, "{:?}", engine.containers());
            std::thread::yield_now();
        }
    };
    check(&lone);
    lone.run(&["alloc", "restart", &id, "t"]).ok();
    running(&lone, 1);
    check(&lone);
    lone = lone.next_agent();
    // An agent that just started asks the engine for its containers first.
    let until = Instant::now() + TIMEOUT;
    let words = ["alloc", "exec", "-task", "t", &id, "/bin/true"];
    while lone.run(&words).err.contains("Task not recovered yet") {
        assert!(Instant::now() < until, "the task is not recovered");
    }
    check(&lone);
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    let until = Instant::now() + TIMEOUT;
    let networks = lone.world.data().join("networks");
    let left = || std::fs::read_dir(&networks).unwrap().filter_map(Result::ok);
    while !engine.containers().is_empty() || left().any(|it| it.path().is_dir()) {
        assert!(Instant::now() < until, "left: {:?}", engine.containers());
        std::thread::yield_now();
    }
    lone.purge("web");
}

#[test]
fn container_with_own_names_in_group_network_is_refused_with_reason() {
    let Some(()) = leave_network() else { return };
    let Some((lone, _engine)) = agent("") else {
        return;
    };
    let job = group_behind_bridge().replace("ports   =", "hostname = \"x\"\n ports =");
    let file = lone.world.file("web.hcl", &job);
    let reported = lone.run(&["job", "run", "-detach", file.to_str().unwrap()]);
    assert_eq!(reported.code, 1, "{reported:?}");
    let stderr = reported.err.as_str();
    let why =
        stderr.contains("hostname: the group has a network") && stderr.contains("leave it out");
    assert!(why, "{reported:?}");
}

#[test]
fn container_that_is_elsewhere_has_nothing_of_its_groups_network() {
    let Some(()) = leave_network() else { return };
    let Some((lone, _engine)) = agent("") else {
        return;
    };
    let job = group_behind_bridge().replace("ports   =", "network_mode = \"none\"\n ports =");
    let file = lone.world.file("web.hcl", &job);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let whole = lone.agent.get(&format!("/v1/allocation/{id}"));
    let own = whole["NetworkStatus"]["Address"].as_str().unwrap();
    let inside = |file: &str| {
        lone.run(&["alloc", "exec", "-task", "t", id, "/bin/cat", file])
            .ok()
    };
    assert!(!inside("/etc/hosts").contains(own));
    assert!(!inside("/etc/resolv.conf").contains("10.9.8.7"));
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    lone.purge("web");
}

/// A web server in a container of a group without a network of its own: the engine makes the ports lead there.
fn published(network: &str) -> String {
    format!(
        r#"
job "web" {{
  group "g" {{
    network {{
      port "http" {{
        static = 18080
        to     = 8080
      }}
    }}
    task "t" {{
      driver = "docker"
      config {{
        image   = "{IMAGE}"
        command = "/bin/httpd"
        args    = ["-f", "-p", "8080", "-h", "/local"]
        ports   = ["http"]
        {network}
      }}
      service {{
        name         = "web"
        provider     = "nomad"
        port         = "http"
        address_mode = "driver"
      }}
      template {{
        data        = "published\n"
        destination = "local/index.html"
      }}
    }}
  }}
}}
"#
    )
}

/// The only one there is of what a path of the API lists, once it is there.
fn only(lone: &Lone, path: &str) -> Value {
    lone.agent.wait_for(path, |all| {
        let all = all.as_array()?;
        (all.len() == 1).then(|| all[0].clone())
    })
}

/// What is told of such a job's container.
#[derive(Debug, PartialEq)]
struct DriverNetwork {
    address: String,
    /// Whether others are to use it.
    is_for_others: Value,
    /// What others in its network call it.
    names: String,
}

/// Says that the port of such a job leads to its container, whose address is told.
fn leads_there(lone: &Lone, engine: &Engine, network: &str) -> DriverNetwork {
    let found = alloc(lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let whole = lone.agent.get(&format!("/v1/allocation/{id}"));
    let port = &whole["AllocatedResources"]["Shared"]["Ports"][0];
    let host = port["HostIP"].as_str().unwrap();
    assert_eq!((&port["Value"], &port["To"]), (&18080.into(), &8080.into()));
    assert_eq!(fetch(&format!("{host}:18080")), "published\n");
    let container = engine.containers()[0].clone();
    let of_network = |what: &str| {
        let form = format!("{{{{.NetworkSettings.Networks.{network}.{what}}}}}");
        engine.says(&["inspect", "-f", &form, &container])
    };
    let address = of_network("IPAddress");
    assert_eq!(fetch(&format!("{address}:8080")), "published\n");
    let path = format!("/v1/allocation/{id}");
    let reported = lone.agent.wait_for(&path, |whole| {
        let reported = &whole["TaskStates"]["t"]["DriverNetwork"];
        (!reported.is_null()).then(|| reported.clone())
    });
    assert_eq!(reported["IP"], address);
    assert_eq!(reported["PortMap"]["http"], 8080);
    let service = only(lone, "/v1/service/web");
    let at = (&service["Address"], &service["Port"]);
    assert_eq!(at, (&address.as_str().into(), &8080.into()));
    DriverNetwork {
        address,
        is_for_others: reported["AutoAdvertise"].clone(),
        names: of_network("Aliases"),
    }
}

/// Runs such a job, and says that this is so with the next agent, too.
fn run_published(mut lone: Lone, engine: &Engine, more: &str, network: &str) -> DriverNetwork {
    let file = lone.world.file("web.hcl", &published(more));
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let first = leads_there(&lone, engine, network);
    lone = lone.next_agent();
    assert_eq!(leads_there(&lone, engine, network), first);
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
    lone.agent.wait_for("/v1/service/web", |all| {
        all.as_array()?.is_empty().then_some(())
    });
    assert_eq!(engine.containers(), [""; 0]);
    first
}

/// An agent with an engine that makes networks, on a machine with an address.
fn publishing_agent() -> Option<(Lone, Engine)> {
    leave_network()?;
    set_up(&["addr", "add", "10.9.0.1/32", "dev", "lo"])?;
    agent_with_rules()
}

#[test]
fn container_port_is_reachable_from_host_and_its_address_reported() {
    let Some((lone, engine)) = publishing_agent() else {
        return;
    };
    let reported = run_published(lone, &engine, "", "bridge");
    // Nobody reaches that from another machine.
    assert_eq!(reported.is_for_others, false);
}

#[test]
fn container_in_a_network_of_the_engine_has_the_address_and_the_names_it_asks_for() {
    let Some((lone, engine)) = publishing_agent() else {
        return;
    };
    engine.says(&["network", "create", "--subnet", "10.77.0.0/24", "lone"]);
    let more =
        "network_mode = \"lone\"\n network_aliases = [\"db\"]\n ipv4_address = \"10.77.0.9\"";
    let reported = run_published(lone, &engine, more, "lone");
    assert_eq!(reported.address, "10.77.0.9");
    assert_eq!(reported.is_for_others, true);
    assert!(reported.names.contains("db"), "{reported:?}");
}

#[test]
fn container_is_measured_also_by_the_next_agent() {
    let Some((mut lone, _engine)) = agent("") else {
        return;
    };
    let script = "while true; do cat /bin/busybox > /dev/null; done";
    run(
        &lone,
        "busy",
        &format!(
            "config {{\n image = \"{IMAGE}\"\n command = \"/bin/sh\"\n args = [\"-c\", \"{script}\"]\n }}"
        ),
    );
    for _ in 0..2 {
        let found = alloc(&lone, "busy", |task| task["State"] == "running");
        let path = format!(
            "/v1/client/allocation/{}/stats",
            found["ID"].as_str().unwrap()
        );
        // An agent that just started asks the engine for its containers first.
        until(|| {
            let stats = lone.agent.try_get(&path)?;
            let all = [
                &stats["ResourceUsage"],
                &stats["Tasks"]["t"]["ResourceUsage"],
            ];
            let is_measured = |it: &&Value| {
                let (memory, cpu) = (&it["MemoryStats"], &it["CpuStats"]);
                memory["Usage"].as_u64() > Some(0) && cpu["TotalTicks"].as_f64() > Some(0.0)
            };
            all.iter().all(is_measured).then_some(())
        });
        lone = lone.next_agent();
    }
    lone.run(&["job", "stop", "-detach", "busy"]).ok();
    alloc(&lone, "busy", |task| task["State"] == "dead");
}

#[test]
fn container_that_its_image_finds_unhealthy_is_restarted() {
    let Some((lone, engine)) = agent("") else {
        return;
    };
    let line = "HEALTHCHECK --interval=1s --retries=1 CMD test ! -e /tmp/ill";
    engine.image_with("drover-health:1", line);
    let job = r#"job "web" {
  group "g" {
    restart {
      attempts = 1
      delay    = "0s"
      mode     = "fail"
    }
    task "t" {
      driver = "docker"
      config {
        image   = "drover-health:1"
        command = "/bin/sleep"
        args    = ["1000"]
      }
      service {
        name     = "web"
        provider = "nomad"
        check {
          name     = "own"
          type     = "healthcheck"
          interval = "1s"
          timeout  = "5s"
          check_restart {
            limit = 1
            grace = "0s"
          }
        }
      }
    }
  }
}
"#;
    let file = lone.world.file("web.hcl", job);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
    let found = alloc(&lone, "web", |task| task["State"] == "running");
    let id = found["ID"].as_str().unwrap();
    let checks = format!("/v1/client/allocation/{id}/checks");
    lone.agent.wait_for(&checks, |checks| {
        let first = checks.as_object()?.values().next()?;
        (first["Status"] == "success").then_some(())
    });
    lone.run(&["alloc", "exec", id, "/bin/touch", "/tmp/ill"])
        .ok();
    let restarted = alloc(&lone, "web", |task| {
        task["Restarts"] == 1 && task["State"] == "running"
    });
    let events = restarted["TaskStates"]["t"]["Events"].to_string();
    assert!(
        events.contains("healthcheck: check \\\"own\\\" unhealthy"),
        "{events}"
    );
    lone.run(&["job", "stop", "-detach", "web"]).ok();
    alloc(&lone, "web", |task| task["State"] == "dead");
}
