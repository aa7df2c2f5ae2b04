//! All that keeps tasks apart, in one world: web servers of `docker` and of `exec` behind the bridge with checks, a
//! batch job that runs out of memory, jobs with a core for themselves, an imported page with its database. Afterwards
//! nothing is left. Without root, an engine or what the bridge needs, the test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

#[path = "../../io-real/tests/common/engine.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod engine;
#[path = "../../io-real/tests/common/groups.rs"]
#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod groups;
mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use engine::{Engine, IMAGE};
use groups::Groups;
use serde_json::Value;
use support::netns::{leave_network, set_up};
use support::{Lone, Program, TIMEOUT, World, exchange, until};

const NETWORK: &str = "tour_default";

/// Processors that a job has for itself are the machine's, and both tests want one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An agent with an engine, in a network of their own.
fn begin() -> Option<(Lone, Engine)> {
    leave_network()?;
    set_up(&["addr", "add", "10.9.0.1/32", "dev", "lo"])?;
    let engine = Engine::start_with_rules()?;
    let made = engine.docker(&["network", "create", NETWORK]);
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        eprintln!("skipped: the engine makes no networks here: {why}");
        return None;
    }
    let lone = Lone::configured(&configuration(&engine));
    let node = lone.agent.wait_for("/v1/nodes?resources=true", |nodes| {
        let node = nodes.get(0)?;
        let drivers = &node["Drivers"];
        let known = drivers["docker"]["Healthy"] == true && !drivers["exec"].is_null();
        known.then(|| node["ID"].as_str().unwrap().to_owned())
    });
    let node = lone.agent.get(&format!("/v1/node/{node}"));
    let fault = &node["Attributes"]["network.bridge.fault"];
    if node["Drivers"]["exec"]["Healthy"] != true || !fault.is_null() {
        let exec = &node["Drivers"]["exec"]["HealthDescription"];
        eprintln!("skipped: {exec} {fault}");
        return None;
    }
    Some((lone, engine))
}

fn configuration(engine: &Engine) -> String {
    format!(
        "plugin \"docker\" {{\nconfig {{\nendpoint = \"unix://{}\"\n}}\n}}\n",
        engine.socket().display()
    )
}

/// A web server behind the bridge, that is checked.
fn site(driver: &str, number: u16, config: &str) -> String {
    format!(
        r#"
  group "{driver}" {{
    network {{
      mode = "bridge"
      port "http" {{
        static = {number}
        to     = 8080
      }}
    }}
    service {{
      name     = "{driver}-site"
      provider = "nomad"
      port     = "http"
      check {{
        type     = "http"
        path     = "/"
        interval = "1s"
        timeout  = "5s"
      }}
    }}
    task "web" {{
      driver = "{driver}"
      config {{
        {config}
      }}
      template {{
        data        = "I am {driver}\n"
        destination = "local/index.html"
      }}
    }}
  }}
"#
    )
}

fn sites() -> String {
    let args = r#"args = ["httpd", "-f", "-p", "8080", "-h", "/local"]"#;
    let exec = format!("command = \"/bin/busybox\"\n{args}");
    let docker = format!("image = \"{IMAGE}\"\n{exec}");
    site("docker", 18080, &docker) + &site("exec", 18081, &exec)
}

const HUNGRY: &str = r#"
  type = "batch"
  group "g" {
    restart {
      attempts = 0
      mode     = "fail"
    }
    reschedule {
      attempts  = 0
      unlimited = false
    }
    task "eats" {
      driver = "exec"
      config {
        command = "/bin/busybox"
        args    = ["tail", "/dev/zero"]
      }
      resources {
        memory = 16
      }
    }
  }
"#;

/// A job that has a processor for itself.
fn pinned(driver: &str) -> String {
    let image = match driver {
        "docker" => format!("image = \"{IMAGE}\""),
        _ => String::new(),
    };
    format!(
        r#"
  group "g" {{
    task "alone" {{
      driver       = "{driver}"
      kill_timeout = "1s"
      config {{
        {image}
        command = "/bin/sleep"
        args    = ["1000"]
      }}
      resources {{
        cores  = 1
        memory = 16
      }}
    }}
  }}
"#
    )
}

fn compose_file() -> String {
    format!(
        "name: tour\n\
         services:\n\
         \x20 page:\n\
         \x20   image: \"{IMAGE}\"\n\
         \x20   command: [sh, -c, \"busybox wget -q -O - http://db:5432/row; exec sleep 1000\"]\n\
         \x20   stop_grace_period: 1s\n\
         \x20   depends_on: {{ db: {{ condition: service_healthy }} }}\n\
         \x20 db:\n\
         \x20   image: \"{IMAGE}\"\n\
         \x20   command: [sh, -c, \"echo row > /row; exec busybox httpd -f -p 5432 -h /\"]\n\
         \x20   stop_grace_period: 1s\n\
         \x20   healthcheck: {{ test: busybox wget -q -O /dev/null http://127.0.0.1:5432/row, interval: 1s }}\n"
    )
}

/// A job file.
fn file_of(world: &World, name: &str, says: &str) -> PathBuf {
    let job = format!("job \"{name}\" {{{says}}}\n");
    world.file(&format!("{name}.hcl"), &job)
}

/// The compose file, as the job file that is made of it.
fn imported(world: &World) -> PathBuf {
    let compose = world.file("compose.yml", &compose_file());
    let shop = compose.with_file_name("tour.nomad.hcl");
    let words = ["job", "import", compose.to_str().unwrap(), "-o"];
    Program::run(words.into_iter().chain(shop.to_str())).ok();
    shop
}

fn submit(lone: &Lone, name: &str, says: &str) {
    let file = file_of(&lone.world, name, says);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// The allocation of a group of a job, once it is so far.
fn alloc(lone: &Lone, job: &str, group: &str, far: impl Fn(&Value) -> bool) -> Value {
    lone.agent
        .wait_for(&format!("/v1/job/{job}/allocations"), |all| {
            let mut all = all.as_array()?.iter();
            let found = all.find(|one| one["TaskGroup"] == group && far(one))?;
            Some(found.clone())
        })
}

fn is_running(alloc: &Value) -> bool {
    alloc["ClientStatus"] == "running"
}

/// What a web server answers; it may have to begin first.
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

/// The processors on which a task may run.
fn cores(lone: &Lone, alloc: &Value) -> BTreeSet<u32> {
    let id = alloc["ID"].as_str().unwrap();
    let words = ["alloc", "exec", id, "/bin/cat", "/proc/self/status"];
    cores_in(&lone.run(&words).ok())
}

/// The same of the only task of an agent in the foreground.
fn cores_from_up(program: &Program) -> BTreeSet<u32> {
    let address = format!("http://{}", program.addr());
    let words = ["alloc", "exec", "-address", &address, "-job", "pinned"];
    let words = words.into_iter().chain(["/bin/cat", "/proc/self/status"]);
    cores_in(&Program::run(words).ok())
}

/// What the kernel says of the processors of a process.
fn cores_in(status: &str) -> BTreeSet<u32> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let parts = list.unwrap().trim().split(',');
    let ranges = parts.map(|part| part.split_once('-').unwrap_or((part, part)));
    let number = |text: &str| text.parse::<u32>().unwrap();
    let each = ranges.flat_map(|(first, last)| number(first)..=number(last));
    each.collect()
}

/// Whether a task can have a processor for itself here, and leave others to the rest.
fn processors_can_be_kept() -> bool {
    let Some(groups) = Groups::new("tour") else {
        return false;
    };
    let kept = groups.groups.set_aside("probe", &[0].into());
    let shared = groups.groups.shared_cores().unwrap().unwrap_or_default();
    groups.groups.give_back("probe").unwrap();
    let processors = std::thread::available_parallelism();
    let has_two = processors.is_ok_and(|it| it.get() > 1);
    has_two && kept.is_ok() && !shared.cores.is_empty() && !shared.is_all
}

/// Runs a job that has a processor for itself, beside the web servers.
fn keeps_a_processor_for_itself(lone: &Lone, driver: &str) {
    let name = format!("pinned-{driver}");
    submit(lone, &name, &pinned(driver));
    let alone = alloc(lone, &name, "g", is_running);
    let own = cores(lone, &alone);
    assert_eq!(own.len(), 1, "{driver}: {own:?}");
    for group in ["docker", "exec"] {
        let site = alloc(lone, "sites", group, is_running);
        let until = Instant::now() + TIMEOUT;
        // What shares processors is moved when one is reserved.
        while !cores(lone, &site).is_disjoint(&own) {
            assert!(
                Instant::now() < until,
                "{group} still runs on {own:?} of {driver}"
            );
        }
    }
    lone.run(&["job", "stop", "-detach", &name]).ok();
    alloc(lone, &name, "g", |it| it["ClientStatus"] == "complete");
}

#[test]
fn all_isolation_features_work_together_and_leave_nothing() {
    let _alone = alone();
    let Some((lone, engine)) = begin() else {
        return;
    };
    submit(&lone, "sites", &sites());
    submit(&lone, "hungry", HUNGRY);
    let shop = imported(&lone.world);
    lone.run(&["job", "run", "-detach", shop.to_str().unwrap()])
        .ok();

    for (group, at) in [("docker", "127.0.0.1:18080"), ("exec", "127.0.0.1:18081")] {
        alloc(&lone, "sites", group, is_running);
        assert_eq!(fetch(at), format!("I am {group}\n"));
        let healthy = |alloc: &Value| alloc["DeploymentStatus"]["Healthy"] == true;
        alloc(&lone, "sites", group, healthy);
    }
    let failed = alloc(&lone, "hungry", "g", |it| it["ClientStatus"] == "failed");
    let events = failed["TaskStates"]["eats"]["Events"].to_string();
    assert!(events.contains("OOM Killed"), "{events}");
    assert!(events.contains("16 MiB"), "{events}");
    let page = alloc(&lone, "tour", "page", is_running);
    let id = page["ID"].as_str().unwrap();
    until(|| {
        let seen = lone.run(&["alloc", "logs", id]).ok();
        seen.contains("row").then_some(())
    });

    if processors_can_be_kept() {
        keeps_a_processor_for_itself(&lone, "exec");
        keeps_a_processor_for_itself(&lone, "docker");
    } else {
        eprintln!("skipped: processors cannot be kept apart here");
    }

    for job in ["sites", "tour"] {
        lone.run(&["job", "stop", "-detach", job]).ok();
    }
    lone.agent.wait_for("/v1/allocations", |all| {
        let mut all = all.as_array()?.iter();
        let is_over =
            |it: &Value| it["ClientStatus"] == "complete" || it["ClientStatus"] == "failed";
        all.all(is_over).then_some(())
    });
    for job in ["sites", "tour", "pinned-exec", "pinned-docker"] {
        lone.agent.delete(&format!("/v1/job/{job}?purge=true"));
    }
    lone.purge("hungry");
    assert_eq!(engine.containers(), [""; 0]);
    // It fails if something is leaked.
    lone.run(&["system", "audit"]).ok();
    engine.says(&["network", "rm", NETWORK]);
}

/// An agent in the foreground with one of the jobs, and nothing else.
fn up(world: &World, config: &Path, job: &Path) -> Program {
    let mut words = world.up(job);
    words.extend(["-config".to_owned(), config.to_str().unwrap().to_owned()]);
    Program::start(words)
}

#[test]
fn each_of_them_runs_from_up_and_leaves_nothing() {
    let _alone = alone();
    let Some((lone, engine)) = begin() else {
        return;
    };
    // What it found out is known: each job has an agent and a data directory of its own.
    drop(lone);
    let begin = || {
        let world = World::new();
        let config = world.file("agent.hcl", &configuration(&engine));
        (world, config)
    };

    let (world, config) = begin();
    let job = file_of(&world, "sites", &sites());
    let program = up(&world, &config, &job);
    for (group, at) in [("docker", "127.0.0.1:18080"), ("exec", "127.0.0.1:18081")] {
        assert_eq!(fetch(at), format!("I am {group}\n"));
    }
    let at = program.addr();
    let ask = format!("GET /v1/allocations HTTP/1.0\r\nHost: {at}\r\n\r\n");
    until(|| {
        let (_, allocs) = exchange(&at, ask.as_bytes()).ok()?;
        (allocs.matches("\"Healthy\":true").count() == 2).then_some(())
    });
    end(&world, &engine, program);

    let (world, config) = begin();
    let job = file_of(&world, "hungry", HUNGRY);
    let output = up(&world, &config, &job).end().with(1);
    assert!(output.contains("OOM Killed"), "{output}");
    assert!(output.contains("16 MiB"), "{output}");
    assert_eq!(world.launches(), [""; 0]);

    let (world, config) = begin();
    let program = up(&world, &config, &imported(&world));
    program.line("| row");
    end(&world, &engine, program);

    if processors_can_be_kept() {
        for driver in ["exec", "docker"] {
            let (world, config) = begin();
            let job = file_of(&world, "pinned", &pinned(driver));
            let program = up(&world, &config, &job);
            program.line("Started");
            assert_eq!(cores_from_up(&program).len(), 1, "{driver}");
            end(&world, &engine, program);
        }
    }
    // It fails if something is leaked, also of agents that are gone.
    let next = Lone::configured(&configuration(&engine));
    next.run(&["system", "audit"]).ok();
    engine.says(&["network", "rm", NETWORK]);
}

/// Ends a job as whoever typed `up` does. Nothing is left.
fn end(world: &World, engine: &Engine, program: Program) {
    program.interrupt();
    program.end().ok();
    assert_eq!(engine.containers(), [""; 0]);
    world.is_left_clean(&[]);
}
