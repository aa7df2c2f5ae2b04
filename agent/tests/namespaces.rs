//! Namespaces, as people make and delete them on the command line.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::time::Instant;

use support::{Program, TIMEOUT, World, free_addr, request};

/// An agent in this world, once its API answers.
fn agent(world: &World, addr: &str) -> Program {
    let data = world.data().display().to_string();
    let agent = Program::start(["agent", "-data-dir", &data, "-http", addr]);
    let until = Instant::now() + TIMEOUT;
    while !matches!(request(addr, "GET", "/v1/agent/health", None), Ok((200, _))) {
        assert!(Instant::now() < until, "the agent does not answer");
        std::thread::yield_now();
    }
    agent
}

/// The command line, asking this agent.
fn run(addr: &str, args: &[&str]) -> support::Ended {
    let addr = format!("http://{addr}");
    Program::of(support::command(args).env("DROVER_ADDR", addr)).end()
}

const JOB: &str = r#"
job "sleep" {
  namespace = "team-a"
  group "g" {
    task "t" {
      driver = "mock_driver"
      config { run_for = "1h" }
    }
  }
}
"#;

#[test]
fn namespace_outlives_killed_agent_and_goes_when_it_is_empty() {
    let world = World::new();
    let addr = free_addr();
    let first = agent(&world, &addr);
    let job = world.file("job.nomad.hcl", JOB);
    let job = job.to_str().unwrap();
    let refused = run(&addr, &["job", "run", "-detach", job]).failed();
    assert!(
        refused.contains("nonexistent namespace \"team-a\""),
        "{refused}"
    );
    let text = "name = \"team-a\"\ndescription = \"theirs\"\nmeta {\n owner = \"anna\"\n}\ncapabilities {\n \
                enabled_task_drivers = [\"mock_driver\"]\n}\n";
    let file = world.file("team.hcl", text);
    let file = file.to_str().unwrap();
    let made = run(&addr, &["namespace", "apply", file]).ok();
    assert!(
        made.contains("Successfully applied namespace \"team-a\"!"),
        "{made}"
    );
    first.kill_9();
    let _second = agent(&world, &addr);
    let shown = run(&addr, &["namespace", "status", "team"]).ok();
    for line in [
        "Name                   = team-a",
        "Enabled Drivers        = mock_driver",
        "Disabled Drivers       = <none>",
        "owner = anna",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    let inspected = run(&addr, &["namespace", "inspect", "team-a"]).ok();
    let copy = world.file("copy.json", &inspected);
    run(&addr, &["namespace", "apply", copy.to_str().unwrap()]).ok();
    // What is not named stays as it was.
    run(
        &addr,
        &["namespace", "apply", "-description", "ours", "team-a"],
    )
    .ok();
    let listed = run(&addr, &["namespace", "list"]).ok();
    assert!(listed.contains("team-a   ours"), "{listed}");
    let shown = run(&addr, &["namespace", "status", "team-a"]).ok();
    assert!(shown.contains("owner = anna"), "{shown}");

    run(&addr, &["job", "run", "-detach", job]).ok();
    let refused = run(&addr, &["namespace", "delete", "team-a"]).failed();
    assert!(
        refused.contains("job \"sleep\", which is not dead"),
        "{refused}"
    );
    run(&addr, &["job", "stop", "-namespace", "team-a", "sleep"]).ok();
    let until = Instant::now() + TIMEOUT;
    loop {
        let ended = run(&addr, &["namespace", "delete", "team-a"]);
        if ended.code == 0 {
            break;
        }
        assert!(Instant::now() < until, "the namespace cannot be deleted");
    }
    let listed = run(&addr, &["namespace", "list"]).ok();
    assert!(!listed.contains("team-a"), "{listed}");
    let refused = run(&addr, &["job", "eval", "-namespace", "team-a", "sleep"]).failed();
    assert!(refused.contains("nonexistent namespace"), "{refused}");
}
