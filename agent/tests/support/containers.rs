//! An agent with an engine of the test's own, and jobs whose tasks are its containers.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "every test has its own copy of it, and uses a part"
)]

#[path = "../../../io-real/tests/common/engine.rs"]
pub mod engine;
#[path = "../../../io-real/tests/common/registry.rs"]
pub mod registry;

use std::path::{Path, PathBuf};

use engine::Engine;
use serde_json::Value;

use crate::support::Lone;

/// An agent whose engine it is, with these settings of the plugin; none where there is no engine.
pub fn agent(more: &str) -> Option<(Lone, Engine)> {
    Some(agent_of(Engine::start(false)?, more, None))
}

/// The same, for which programs of this directory are there, too.
pub fn agent_with_programs(programs: &Path, more: &str) -> Option<(Lone, Engine)> {
    Some(agent_of(Engine::start(false)?, more, Some(programs)))
}

/// The same, whose engine has a bridge and rules in the packet filter. For a network of the test's own.
pub fn agent_with_rules() -> Option<(Lone, Engine)> {
    Some(agent_of(Engine::start_with_rules()?, "", None))
}

fn agent_of(engine: Engine, more: &str, programs: Option<&Path>) -> (Lone, Engine) {
    let endpoint = engine.socket();
    let config = format!(
        "plugin \"docker\" {{\nconfig {{\nendpoint = \"unix://{}\"\n{more}\n}}\n}}\n",
        endpoint.display()
    );
    let lone = Lone::with_programs(&config, programs);
    lone.agent.wait_for("/v1/nodes?resources=true", |nodes| {
        let driver = &nodes.get(0)?["Drivers"]["docker"];
        (driver["Healthy"] == true).then_some(())
    });
    (lone, engine)
}

/// Registers a job whose only task, `t`, says this.
pub fn run(lone: &Lone, name: &str, task: &str) {
    run_all(lone, name, &[("t", task)]);
}

/// Registers a job whose tasks have these names and say this. None of them is started twice.
pub fn run_all(lone: &Lone, name: &str, tasks: &[(&str, &str)]) {
    let file = file(lone, name, tasks);
    lone.run(&["job", "run", "-detach", file.to_str().unwrap()])
        .ok();
}

/// The file of such a job.
pub fn file(lone: &Lone, name: &str, tasks: &[(&str, &str)]) -> PathBuf {
    let tasks: String = tasks
        .iter()
        .map(|(task, says)| format!(" task \"{task}\" {{\n driver = \"docker\"\n {says}\n }}\n"))
        .collect();
    let job = format!(
        "job \"{name}\" {{\n group \"g\" {{\n restart {{\n attempts = 0\n mode = \"fail\"\n }}\n reschedule \
         {{\n attempts = 0\n unlimited = false\n }}\n{tasks} }}\n}}\n"
    );
    lone.world.file(&format!("{name}.hcl"), &job)
}

/// The allocation of a job, once its task `t` is so far.
pub fn alloc(lone: &Lone, job: &str, far: impl Fn(&Value) -> bool) -> Value {
    alloc_of(lone, job, |tasks| far(&tasks["t"]))
}

/// The allocation of a job, once its tasks are so far.
pub fn alloc_of(lone: &Lone, job: &str, far: impl Fn(&Value) -> bool) -> Value {
    lone.agent
        .wait_for(&format!("/v1/job/{job}/allocations"), |all| {
            let alloc = all.get(0)?;
            far(&alloc["TaskStates"]).then(|| alloc.clone())
        })
}
