//! What operators do besides running jobs: files in order, settings, snapshots and archives, as a user sees
//! it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use support::{Agent, Ended, Lone, Program, TIMEOUT, World, command, free_addr, request, shims};

/// What nobody is to find in an archive or a snapshot.
const SECRET: &str = "kQ7-never-to-be-read-Zx4";

fn drover(args: &[&str]) -> Ended {
    Program::run(args)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn get(agent: &Agent, path: &str) -> (u16, String) {
    request(&agent.addr, "GET", path, None).unwrap()
}

/// A job of tasks without processes, with a secret in its environment.
fn job(id: &str) -> Value {
    let task = json!({
        "Name": "t", "Driver": "mock_driver", "Config": { "run_for": "1000h" },
        "Env": { "PASSWORD": SECRET },
    });
    json!({ "Job": { "ID": id, "TaskGroups": [{ "Name": "g", "Tasks": [task] }] } })
}

#[test]
fn fmt_changes_untidy_files_and_reports_them() {
    let world = World::new();
    let dir = world.path("files");
    fs::create_dir_all(dir.join("below")).unwrap();
    let file = |name: &str, content: &str| {
        fs::write(dir.join(name), content).unwrap();
        dir.join(name)
    };
    let untidy = file("a.nomad.hcl", "job \"x\" {\ntype=\"batch\" # c\n}\n");
    let tidy = "job \"x\" {\n  type = \"batch\" # c\n}\n";
    file("b.hcl", tidy);
    file("c.txt", "a=1");
    file("below/d.nomad", "a=1");
    let wrong = file("e.hcl", "a = [\n");
    let all = text(&dir);

    let check = drover(&["fmt", "-check", text(&untidy)]);
    assert_eq!((check.code, check.out.as_str()), (1, text(&untidy)));
    let shown = drover(&["fmt", "-write=false", "-list=false", text(&untidy)]).ok();
    assert_eq!(shown, tidy.trim_end());
    assert_ne!(fs::read_to_string(&untidy).unwrap(), tidy);

    let done = drover(&["fmt", all]);
    assert_eq!((done.code, done.out.as_str()), (1, text(&untidy)));
    assert!(done.err.contains("e.hcl:1:6:"), "{}", done.err);
    assert_eq!(fs::read_to_string(&untidy).unwrap(), tidy);
    assert_eq!(fs::read_to_string(&wrong).unwrap(), "a = [\n");
    fs::remove_file(&wrong).unwrap();
    assert_eq!(drover(&["fmt", "-check", all]).ok(), "");
    drover(&["fmt", "-check", "-recursive", all]).with(1);
    assert!(
        drover(&["fmt", "-recursive", all])
            .ok()
            .ends_with("below/d.nomad")
    );
    assert_eq!(
        fs::read_to_string(dir.join("below/d.nomad")).unwrap(),
        "a = 1"
    );
    assert_eq!(fs::read_to_string(dir.join("c.txt")).unwrap(), "a=1");
}

#[test]
fn files_to_begin_with_are_valid_and_replace_nothing() {
    let setup = Lone::new();
    let path = |name: &str| setup.world.path(name);
    for (name, option) in [("long.hcl", "-short=false"), ("short.hcl", "-short")] {
        let file = path(name);
        drover(&["job", "init", option, text(&file)]).ok();
        drover(&["fmt", "-check", text(&file)]).ok();
        setup.run(&["job", "validate", text(&file)]).ok();
        let before = fs::read_to_string(&file).unwrap();
        let stderr = drover(&["job", "init", text(&file)]).failed();
        assert!(stderr.contains("is there already"), "{stderr}");
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    for (format, name) in [("hcl", "spec.nsv.hcl"), ("json", "spec.nsv.json")] {
        let mut init = command(["var", "init", &format!("-out={format}")]);
        let dir = path(format);
        fs::create_dir(&dir).unwrap();
        Program::of(init.current_dir(&dir)).end().ok();
        let source = format!("@{}", dir.join(name).display());
        setup.run(&["var", "put", "-force", &source]).ok();
    }
    let user = setup.run(&["var", "get", "-item=user", "nomad/jobs/example"]);
    assert_eq!(user.ok(), "ada");
}

#[test]
fn configuration_is_validated_without_an_agent() {
    let world = World::new();
    let good = world.file("good.hcl", "region = \"eu\"\nleave_on_terminate = true\n");
    let checked = drover(&["config", "validate", text(&good)]);
    assert!(
        checked.err.contains("leave_on_terminate has no effect"),
        "{}",
        checked.err
    );
    assert_eq!(checked.ok(), "Configuration is valid!");
    world.file("wrong.hcl", "regoin = \"eu\"\n");
    let dir = good.parent().unwrap();
    let stderr = drover(&["config", "validate", text(dir)]).failed();
    assert!(stderr.contains("did you mean region?"), "{stderr}");
    drover(&["config", "validate", text(&world.path("none.hcl"))]).failed();
}

#[test]
fn root_key_file_is_validated_without_an_agent() {
    let world = World::new();
    let key = world.file("root.key", "too short");
    let config = format!("root_key_file = \"{}\"\n", key.display());
    let config = world.file("agent.hcl", &config);
    let mode = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
    let validate = || drover(&["config", "validate", text(&config)]);
    mode(0o600);
    let stderr = validate().failed();
    assert!(
        stderr.contains("root_key_file") && stderr.contains("needs 32"),
        "{stderr}"
    );
    fs::write(&key, "x".repeat(44)).unwrap();
    assert_eq!(validate().ok(), "Configuration is valid!");
    mode(0o644);
    let stderr = validate().failed();
    assert!(stderr.contains("chmod 0600"), "{stderr}");
    fs::remove_file(&key).unwrap();
    validate().failed();
}

#[test]
fn options_and_commands_of_nomad_alone_are_explained() {
    for (args, words) in [
        (&["job", "run", "-ui", "x.hcl"][..], "there is no web page"),
        (
            &["run", "-vault-namespace=a", "x.hcl"],
            "does not use Vault",
        ),
        (&["agent", "-bootstrap-expect", "1"], "for Nomad's servers"),
        (
            &["operator", "root", "keyring", "rotate", "-prepublish=1h"],
            "as soon as it is made",
        ),
        (&["volume", "snapshot", "list"], "storage plugins"),
        (&["service", "delete", "a", "b"], "as long as its task runs"),
    ] {
        let stderr = drover(args).failed();
        assert!(stderr.contains(words), "{args:?}: {stderr}");
        assert!(!stderr.contains("Usage"), "{args:?}: {stderr}");
    }
    let stderr = drover(&["job", "run", "-detatch", "x.hcl"]).failed();
    assert!(stderr.contains("unexpected argument"), "{stderr}");
}

/// What is tried out leaves nothing behind: no process, no directory.
#[test]
fn agent_to_try_things_out_stops_its_tasks_and_removes_its_data() {
    let world = World::new();
    let (addr, dir) = (free_addr(), world.path("tmp"));
    fs::create_dir(&dir).unwrap();
    let mut agent = command(["agent", "-dev", "-log-json", "-http", &addr]);
    let agent = Program::of(agent.env("TMPDIR", &dir));
    let ready = agent.err_line("is ready");
    assert!(ready.contains("drover-dev-"), "{ready}");
    let made = || fs::read_dir(&dir).unwrap().count();
    assert_eq!(made(), 1);
    let job = world.file("sleeper.hcl", SLEEPER);
    let run = |args: &[&str]| {
        Program::of(command(args).env("DROVER_ADDR", format!("http://{addr}"))).end()
    };
    run(&["job", "run", text(&job)]).ok();
    assert_eq!(shims(&dir).len(), 1, "its task runs");
    agent.interrupt();
    let ended = agent.end();
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(shims(&dir), Vec::<String>::new(), "its task runs on");
    assert_eq!(made(), 0, "{}", ended.err);

    let stderr = drover(&["agent", "-dev", "-data-dir", "x"]).failed();
    assert!(stderr.contains("cannot be used with"), "{stderr}");
}

/// A service that does nothing.
const SLEEPER: &str = r#"
job "sleeper" {
  group "g" {
    update {
      min_healthy_time = "0s"
    }

    task "sleep" {
      driver = "raw_exec"

      config {
        command = "/bin/sleep"
        args    = ["10000"]
      }
    }
  }
}
"#;

#[test]
fn scheduler_settings_outlive_the_agent_and_reject_jobs() {
    let setup = Lone::new();
    let set = |setup: &Lone, words: &[&str]| {
        setup.run(&[&["operator", "scheduler", "set-config"], words].concat())
    };
    set(&setup, &["-preempt-service-scheduler=true"]).ok();
    set(&setup, &["-reject-job-registration=true"]).ok();
    let setup = setup.next_agent();
    let known = setup.run(&["operator", "scheduler", "get-config"]).ok();
    assert!(
        known.contains("Preemption Service Scheduler      = true"),
        "{known}"
    );
    assert!(
        known.contains("Reject Job Registration           = true"),
        "{known}"
    );
    let (status, why) = setup.agent.put("/v1/jobs", &job("web")).unwrap();
    assert_eq!(status, 403, "{why}");
    let path = "/v1/operator/scheduler/configuration";
    let usual = json!({ "SchedulerAlgorithm": "spread" });
    let (status, stderr) = setup.agent.put(&format!("{path}?cas=0"), &usual).unwrap();
    assert_eq!(status, 200);
    let stderr: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(stderr["Updated"], false, "somebody changed it: {stderr}");
    for refused in [
        json!({ "PauseEvalBroker": true }),
        json!({ "SchedulerAlgorithm": "random" }),
        json!({ "NodeLimitForFeasibilityChecks": 3 }),
    ] {
        assert_eq!(setup.agent.put(path, &refused).unwrap().0, 400, "{refused}");
    }
    set(&setup, &["-reject-job-registration=false"]).ok();
    let (status, body) = setup.agent.put("/v1/jobs", &job("web")).unwrap();
    assert_eq!(status, 200, "{body}");
    let template = "{{ .SchedulerConfig.PreemptionConfig.ServiceSchedulerEnabled }}";
    let shown = setup.run(&["operator", "scheduler", "get-config", "-t", template]);
    assert_eq!(shown.ok(), "true");
}

#[test]
fn snapshot_brings_jobs_and_variables_to_a_new_machine() {
    let setup = Lone::new();
    let (status, body) = setup.agent.put("/v1/jobs", &job("web")).unwrap();
    assert_eq!(status, 200, "{body}");
    let secret = format!("password={SECRET}");
    setup.run(&["var", "put", "nomad/jobs/web", &secret]).ok();
    let file = setup.world.path("state.snap");
    let save = ["operator", "snapshot", "save", text(&file)];
    assert!(setup.run(&save).ok().contains("root key"));
    setup.run(&save).failed();
    let bytes = fs::read(&file).unwrap();
    let found = bytes
        .windows(SECRET.len())
        .any(|part| part == SECRET.as_bytes());
    assert!(!found, "a secret is readable");
    let known = drover(&["operator", "snapshot", "inspect", text(&file)]).ok();
    assert!(
        known.contains("job") && known.contains("variable"),
        "{known}"
    );

    // Who has the root key reads it, and what variables hold is not shown.
    let locked = drover(&["operator", "snapshot", "state", text(&file)]).failed();
    assert!(locked.contains("-root-key-file"), "{locked}");
    let data = setup.world.data();
    let state = ["operator", "snapshot", "state", "-data-dir", text(&data)];
    let state = drover(&[&state[..], &[text(&file)]].concat()).ok();
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!(state["job"]["default/web"]["job"]["ID"], "web", "{state:#}");
    let variable = &state["variable"]["default/nomad/jobs/web"];
    assert!(variable["meta"]["modify_index"].is_u64(), "{variable:#}");
    assert!(!variable.to_string().contains(SECRET), "{variable:#}");
    // Another root key opens nothing.
    let other = setup.world.file("other-root", &"x".repeat(40));
    fs::set_permissions(&other, fs::Permissions::from_mode(0o600)).unwrap();
    let state = [
        "operator",
        "snapshot",
        "state",
        "-root-key-file",
        text(&other),
    ];
    let stderr = drover(&[&state[..], &[text(&file)]].concat()).failed();
    assert!(stderr.contains("another root key"), "{stderr}");

    // Not where there is a state, unless that is meant; and not what was changed.
    let restore = ["operator", "snapshot", "restore", text(&file)];
    let stderr = setup.run(&restore).failed();
    assert!(stderr.contains("-force"), "{stderr}");
    let damaged = setup.world.path("damaged.snap");
    let mut other = bytes;
    let middle = other.len() / 2;
    other[middle] ^= 1;
    fs::write(&damaged, other).unwrap();
    let stderr = drover(&["operator", "snapshot", "inspect", text(&damaged)]).failed();
    assert!(stderr.contains("damaged"), "{stderr}");

    let new = World::new();
    let keyring = new.data().join("keyring");
    fs::create_dir_all(&keyring).unwrap();
    fs::copy(
        setup.world.data().join("keyring/root"),
        keyring.join("root"),
    )
    .unwrap();
    let data = new.data();
    drover(&[&restore[..], &["-data-dir", text(&data)]].concat()).ok();
    let agent = Agent::start(&new.data(), &free_addr());
    let (status, shown) = get(&agent, "/v1/job/web");
    assert_eq!(status, 200, "{shown}");
    assert!(shown.contains(SECRET));
    let (status, shown) = get(&agent, "/v1/var/nomad/jobs/web");
    assert!(status == 200 && shown.contains(SECRET), "{shown}");

    // The first one goes back to it as well, with what came later left out.
    assert_eq!(setup.agent.put("/v1/jobs", &job("later")).unwrap().0, 200);
    setup.run(&[&restore[..], &["-force"]].concat()).ok();
    let setup = setup.next_agent();
    assert_eq!(get(&setup.agent, "/v1/job/later").0, 404);
    assert_eq!(get(&setup.agent, "/v1/job/web").0, 200);
}

/// The host volumes of an agent: the paths of those that are ready, by their names.
fn volume_path(agent: &Agent, name: &str) -> Option<PathBuf> {
    let (_, listed) = get(agent, "/v1/volumes?type=host");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let mut volumes = listed.as_array().unwrap().iter();
    let id = volumes.find(|it| it["Name"] == name)?["ID"].as_str()?;
    let (_, shown) = get(agent, &format!("/v1/volume/host/{id}"));
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let path = shown["HostPath"].as_str()?;
    (shown["State"] == "ready").then(|| PathBuf::from(path))
}

/// Waits until a volume is ready, and says where it lies.
fn ready_volume(agent: &Agent, name: &str) -> PathBuf {
    let until = Instant::now() + TIMEOUT;
    loop {
        match volume_path(agent, name) {
            Some(path) => return path,
            None => assert!(Instant::now() < until, "volume {name} is not ready"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn volumes_of_a_snapshot_are_made_anew_in_a_new_data_directory() {
    let setup = Lone::new();
    let wanted = json!({ "Volume": { "Name": "data", "Type": "host", "PluginID": "mkdir" } });
    let create = setup.agent.put("/v1/volume/host/create", &wanted);
    assert_eq!(create.unwrap().0, 200);
    let before = ready_volume(&setup.agent, "data");
    fs::write(before.join("kept"), "x").unwrap();
    let file = setup.world.path("state.snap");
    setup
        .run(&["operator", "snapshot", "save", text(&file)])
        .ok();

    let new = World::new();
    let data = new.data();
    let keyring = data.join("keyring");
    fs::create_dir_all(&keyring).unwrap();
    let root = setup.world.data().join("keyring/root");
    fs::copy(root, keyring.join("root")).unwrap();
    let restore = ["operator", "snapshot", "restore", "-data-dir"];
    drover(&[&restore[..], &[text(&data), text(&file)]].concat()).ok();
    let agent = Agent::start(&data, &free_addr());
    let after = ready_volume(&agent, "data");
    assert!(after.starts_with(data.canonicalize().unwrap()), "{after:?}");
    assert_eq!(fs::read_dir(&after).unwrap().count(), 0, "it is empty");
    let (_, nodes) = get(&agent, "/v1/nodes");
    let nodes: Value = serde_json::from_str(&nodes).unwrap();
    let (_, node) = get(
        &agent,
        &format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap()),
    );
    assert!(node.contains("an empty directory is made"), "{node}");

    // Where it was, it stays; and an agent that goes back to its own snapshot finds what was there.
    setup
        .run(&["operator", "snapshot", "restore", "-force", text(&file)])
        .ok();
    let setup = setup.next_agent();
    assert_eq!(ready_volume(&setup.agent, "data"), before);
    assert_eq!(fs::read_to_string(before.join("kept")).unwrap(), "x");
}

#[test]
fn debug_archive_has_the_state_and_no_secrets() {
    let setup = Lone::new();
    assert_eq!(setup.agent.put("/v1/jobs", &job("web")).unwrap().0, 200);
    let secret = format!("password={SECRET}");
    setup.run(&["var", "put", "nomad/jobs/web", &secret]).ok();
    let dir = setup.world.path("captured");
    fs::create_dir(&dir).unwrap();
    let addr = format!("http://{}", setup.agent.addr);
    let mut debug = command(["operator", "debug", "-duration", "0s"]);
    let ended = Program::of(debug.env("DROVER_ADDR", addr).current_dir(&dir)).end();
    assert!(ended.ok().contains("Created drover-debug-"));
    let archive = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    let mut whole = String::new();
    let mut names = Vec::new();
    let file = fs::File::open(&archive).unwrap();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        names.push(name.split_once('/').unwrap().1.to_owned());
        entry.read_to_string(&mut whole).unwrap();
    }
    assert!(!whole.contains(SECRET), "a secret is in the archive");
    for name in [
        "index.json",
        "agent/self.json",
        "agent/host.json",
        "agent/monitor.log",
        "jobs/0000.json",
        "0000/allocations.json",
        "0000/metrics.json",
    ] {
        assert!(names.iter().any(|it| it == name), "{name}: {names:?}");
    }
    assert!(whole.contains("PASSWORD") && whole.contains("\"web\""));
    let output = setup.world.path("out");
    let words = [
        "operator",
        "debug",
        "-duration=0s",
        "-output",
        text(&output),
    ];
    setup.run(&words).ok();
    let listed = Command::new("find").arg(&output).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("0000/jobs.json"));
}
