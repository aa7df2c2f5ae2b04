//! Operators are notified of what happens: by requests to a web server of theirs, and by a program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::{Value, json};
use support::{Does, Lone, Server, TIMEOUT, request};

const SECRET: &str = "s3cret-of-the-task";

/// A target of this name at this path of the server.
fn hook(name: &str, server: &Server, path: &str, more: &str) -> String {
    let url = server.url(path);
    format!(
        "notify \"{name}\" {{\n {more}\n webhook {{\n url = \"{url}\"\n timeout = \"2s\"\n }}\n}}\n"
    )
}

/// A job with one task that runs a script, and is not tried again.
fn shell(id: &str, kind: &str, script: &str) -> Value {
    json!({
        "ID": id, "Type": kind, "Datacenters": ["*"],
        "TaskGroups": [{
            "Name": "g",
            "RestartPolicy": { "Attempts": 0, "Mode": "fail" },
            "ReschedulePolicy": { "Attempts": 0, "Unlimited": false },
            "Tasks": [{
                "Name": "t", "Driver": "raw_exec",
                "Config": { "command": "/bin/sh", "args": ["-c", script] },
                "Env": { "TOKEN": SECRET },
                "Resources": { "CPU": 100, "MemoryMB": 32 },
            }],
        }],
    })
}

fn run(lone: &Lone, job: &Value) {
    let (status, body) = lone.agent.put("/v1/jobs", &json!({ "Job": job })).unwrap();
    assert_eq!(status, 200, "{body}");
}

/// The first message at this path that is wanted.
#[track_caller]
fn message(server: &Server, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + TIMEOUT;
    let mut seen = 0;
    loop {
        let posts = server.posted(path, seen);
        for post in &posts[seen..] {
            let message: Value = serde_json::from_str(post).unwrap_or(Value::Null);
            if wanted(&message) {
                return message;
            }
        }
        seen = posts.len();
        assert!(Instant::now() < until, "no such message in {posts:#?}");
    }
}

fn is(event: &'static str, job: &'static str) -> impl Fn(&Value) -> bool {
    move |message| message["event"] == event && message["job"] == job
}

/// A metric of a target, from the text of Prometheus.
fn metric(lone: &Lone, name: &str, target: &str) -> u64 {
    let path = "/v1/metrics?format=prometheus";
    let (_, text) = request(&lone.agent.addr, "GET", path, None).unwrap();
    let label = format!("target=\"{target}\"");
    let line = text
        .lines()
        .find(|it| it.starts_with(name) && it.contains(&label));
    let line = line.unwrap_or_else(|| panic!("no {name} of {target} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[track_caller]
fn wait_for_metric(lone: &Lone, name: &str, target: &str, wanted: u64) {
    let until = Instant::now() + TIMEOUT;
    while metric(lone, name, target) != wanted {
        assert!(Instant::now() < until, "{name} of {target} is not {wanted}");
        std::thread::yield_now();
    }
}

#[test]
fn failed_task_is_notified_without_secrets() {
    let server = Server::new();
    server.gives("/all", b"");
    server.gives("/web", b"");
    let all = hook("all", &server, "/all", "");
    let web = hook(
        "web",
        &server,
        "/web",
        "jobs = [\"web-*\"]\n on = [\"failed\"]",
    );
    let lone = Lone::configured(&format!("{all}{web}"));
    run(&lone, &shell("other", "batch", "echo $TOKEN; exit 3"));
    let notice = message(&server, "/all", is("failed", "other"));
    assert_eq!(notice["exit_code"], 3);
    assert_eq!(notice["reason"], "exit code 3; Policy allows no restarts");
    for (field, value) in [("namespace", "default"), ("group", "g"), ("task", "t")] {
        assert_eq!(notice[field], value, "{notice:#}");
    }
    assert_eq!(notice["allocation_name"], "other.g[0]");
    message(&server, "/all", is("job_dead", "other"));
    // What the driver says quotes the variable.
    let mut broken = shell("web-1", "batch", "");
    broken["TaskGroups"][0]["Tasks"][0]["Config"] = json!({ "command": "/none/${TOKEN}" });
    run(&lone, &broken);
    let notice = message(&server, "/web", is("failed", "web-1"));
    assert!(
        notice["reason"]
            .as_str()
            .unwrap()
            .contains("its driver could not start it")
    );
    message(&server, "/all", is("job_dead", "web-1"));
    let alloc = lone.agent.get("/v1/job/web-1/allocations")[0]["ID"].clone();
    let events = lone
        .agent
        .get(&format!("/v1/allocation/{}", alloc.as_str().unwrap()));
    assert!(
        events.to_string().contains(SECRET),
        "the message that quotes it is there"
    );
    let posts = server.posted("/all", 0);
    assert!(
        !posts.iter().any(|post| post.contains(SECRET)),
        "{posts:#?}"
    );
    let of_web = server.posted("/web", 0);
    assert_eq!(of_web.len(), 1, "{of_web:#?}");
}

#[test]
fn oom_kill_is_notified_once_for_each() {
    let server = Server::new();
    server.gives("/", b"");
    let lone = Lone::configured(&hook(
        "ops",
        &server,
        "/",
        "on = [\"oom_killed\", \"failed\"]",
    ));
    let mut job = shell("greedy", "batch", "exec tail /dev/zero");
    job["TaskGroups"][0]["RestartPolicy"] = json!({ "Attempts": 1, "Mode": "fail", "Delay": 1_000_000, "Interval": 60_000_000_000_u64 });
    run(&lone, &job);
    let failed = message(&server, "/", is("failed", "greedy"));
    assert_eq!(failed["signal"], 9, "{failed:#}");
    let posts = server.posted("/", 0);
    let killed: Vec<&String> = posts
        .iter()
        .filter(|it| it.contains("oom_killed"))
        .collect();
    assert_eq!(killed.len(), 2, "{posts:#?}");
    assert_ne!(killed[0], killed[1]);
}

#[test]
fn deployments_are_notified_with_their_outcome() {
    let server = Server::new();
    server.gives("/", b"");
    let lone = Lone::configured(&hook("ops", &server, "/", ""));
    let mut job = shell("web", "service", "exec sleep 1000");
    job["Update"] = json!({
        "MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": 1_000_000,
        "HealthyDeadline": 30_000_000_000_u64, "ProgressDeadline": 60_000_000_000_u64,
    });
    run(&lone, &job);
    let notice = message(&server, "/", is("deployed", "web"));
    assert_eq!(notice["version"], 0);
    job["Update"]["MinHealthyTime"] = json!(20_000_000_000_u64);
    job["TaskGroups"][0]["Tasks"][0]["Config"]["args"] = json!(["-c", "exit 1"]);
    run(&lone, &job);
    let notice = message(&server, "/", is("deployment_failed", "web"));
    assert_eq!(notice["version"], 1);
    message(&server, "/", is("unhealthy", "web"));
}

#[test]
fn failed_and_recovered_check_is_notified() {
    let server = Server::new();
    server.gives("/", b"");
    let lone = Lone::configured(&hook("ops", &server, "/", ""));
    let flag = lone.world.file("works", "");
    let mut job = shell("web", "service", "exec sleep 1000");
    job["TaskGroups"][0]["Services"] = json!([{
        "Name": "web", "Provider": "nomad", "TaskName": "t",
        "Checks": [{
            "Name": "works", "Type": "script", "TaskName": "t",
            "Command": "/bin/sh", "Args": ["-c", format!("echo {SECRET}; test -e {} || exit 2", flag.display())],
            "Interval": 1_000_000_000, "Timeout": 1_000_000_000,
        }],
    }]);
    run(&lone, &job);
    let passes = |value: &Value| {
        let mut all = value.as_object()?.values();
        all.any(|check| check["Status"] == "success").then_some(())
    };
    let alloc = lone.agent.wait_for("/v1/job/web/allocations", |seen| {
        Some(seen[0]["ID"].as_str()?.to_owned())
    });
    let checks = format!("/v1/client/allocation/{alloc}/checks");
    lone.agent.wait_for(&checks, passes);
    fs::remove_file(&flag).unwrap();
    let notice = message(&server, "/", is("unhealthy", "web"));
    assert_eq!(notice["reason"], "check \"works\" of service \"web\" fails");
    fs::write(&flag, "").unwrap();
    message(&server, "/", is("healthy", "web"));
    assert!(
        !server
            .posted("/", 0)
            .iter()
            .any(|post| post.contains(SECRET))
    );
}

/// Whoever begins does not pass its check at once.
#[test]
fn check_failing_only_during_start_is_not_notified() {
    let server = Server::new();
    server.gives("/", b"");
    let lone = Lone::configured(&hook("ops", &server, "/", ""));
    let flag = lone.world.path("works");
    let mut job = shell("web", "service", "exec sleep 1000");
    job["Update"] = json!({ "MinHealthyTime": 1_000_000 });
    job["TaskGroups"][0]["Services"] = json!([{
        "Name": "web", "Provider": "nomad", "TaskName": "t",
        "Checks": [{
            "Name": "works", "Type": "script", "TaskName": "t",
            "Command": "/bin/sh", "Args": ["-c", format!("test -e {} || exit 2", flag.display())],
            "Interval": 1_000_000_000, "Timeout": 1_000_000_000,
        }],
    }]);
    run(&lone, &job);
    let alloc = lone.agent.wait_for("/v1/job/web/allocations", |seen| {
        Some(seen[0]["ID"].as_str()?.to_owned())
    });
    let checks = format!("/v1/client/allocation/{alloc}/checks");
    lone.agent.wait_for(&checks, |value| {
        let mut all = value.as_object()?.values();
        all.any(|check| check["Status"] == "failure").then_some(())
    });
    fs::write(&flag, "").unwrap();
    message(&server, "/", is("deployed", "web"));
    let posts = server.posted("/", 0);
    let of_health = |post: &String| {
        ["unhealthy", "healthy"]
            .iter()
            .any(|event| post.contains(&format!("\"event\":\"{event}\"")))
    };
    assert!(!posts.iter().any(of_health), "{posts:#?}");
    fs::remove_file(&flag).unwrap();
    message(&server, "/", is("unhealthy", "web"));
}

#[test]
fn full_disk_is_notified() {
    let server = Server::new();
    server.gives("/", b"");
    let limits = "client {\n gc_interval = \"1s\"\n gc_disk_usage_threshold = 1\n}\n";
    let target = hook("ops", &server, "/", "jobs = [\"none\"]");
    let lone = Lone::configured(&format!("{limits}{target}"));
    let notice = message(&server, "/", |message| message["event"] == "disk_pressure");
    assert!(
        notice["job"].is_null() && notice["node"].is_string(),
        "{notice:#}"
    );
    drop(lone);
}

#[test]
fn target_that_fails_for_a_while_misses_nothing() {
    let server = Server::new();
    server.does("/ops", Does::Refuses(503));
    server.gives("/other", b"");
    let ops = hook("ops", &server, "/ops", "on = [\"failed\"]");
    let other = hook("other", &server, "/other", "on = [\"failed\"]");
    let lone = Lone::configured(&format!("{ops}{other}"));
    run(&lone, &shell("one", "batch", "exit 1"));
    run(&lone, &shell("two", "batch", "exit 1"));
    let first = message(&server, "/ops", |message| message["event"] == "failed");
    // Another target does not wait for it.
    message(&server, "/other", is("failed", "one"));
    message(&server, "/other", is("failed", "two"));
    assert_eq!(metric(&lone, "drover_notify_sent", "ops"), 0);
    server.gives("/ops", b"");
    wait_for_metric(&lone, "drover_notify_sent", "ops", 2);
    let posts = server.posted("/ops", 0);
    let same = |post: &String| serde_json::from_str::<Value>(post).unwrap()["id"] == first["id"];
    assert!(
        posts.iter().filter(|post| same(post)).count() >= 2,
        "tried again: {posts:#?}"
    );
    assert!(metric(&lone, "drover_notify_failed", "ops") >= 1, "tries");
    assert_eq!(metric(&lone, "drover_notify_given_up", "ops"), 0);
}

#[test]
fn hanging_or_flooding_target_delays_no_other() {
    let server = Server::new();
    let _stalled = server.stalls("/hangs");
    server.does("/floods", Does::Gives(vec![b'x'; 64 << 20]));
    server.gives("/works", b"");
    let config: String = ["hangs", "floods", "works"]
        .map(|name| hook(name, &server, &format!("/{name}"), "on = [\"failed\"]"))
        .concat();
    let lone = Lone::configured(&config);
    for id in ["one", "two", "three"] {
        run(&lone, &shell(id, "batch", "exit 1"));
    }
    wait_for_metric(&lone, "drover_notify_sent", "works", 3);
    wait_for_metric(&lone, "drover_notify_sent", "floods", 3);
    // Its time is 2 s.
    wait_for_metric(&lone, "drover_notify_failed", "hangs", 1);
    assert_eq!(metric(&lone, "drover_notify_sent", "hangs"), 0);
}

#[test]
fn redirect_is_not_followed_and_the_next_message_counts_what_was_missed() {
    let (server, elsewhere) = (Server::new(), Server::new());
    elsewhere.gives("/", b"");
    server.does("/ops", Does::SendsOn(elsewhere.url("/")));
    let lone = Lone::configured(&hook("ops", &server, "/ops", "on = [\"failed\"]"));
    run(&lone, &shell("one", "batch", "exit 1"));
    wait_for_metric(&lone, "drover_notify_given_up", "ops", 1);
    server.gives("/ops", b"");
    run(&lone, &shell("two", "batch", "exit 1"));
    let notice = message(&server, "/ops", is("failed", "two"));
    assert_eq!(notice["missed"], 1);
    assert!(elsewhere.posted("/", 0).is_empty());
    // Whoever follows a redirect asks, and hands in nothing.
    assert_eq!(elsewhere.asked("/"), Vec::<String>::new());
}

#[test]
fn template_says_what_the_body_is() {
    let server = Server::new();
    server.gives("/", b"");
    let url = server.url("/");
    let lone = Lone::configured(&format!(
        "notify \"chat\" {{\n on = [\"failed\"]\n webhook {{\n url = \"{url}\"\n \
         headers = {{ Authorization = \"Bearer t0ken\" }}\n template = <<EOT\n\
         {{\"chat\": {{{{ env \"NOTICE_TEXT\" | toJSON }}}}, \"code\": {{{{ env \"NOTICE_EXIT_CODE\" }}}}}}\n\
         EOT\n }}\n}}\n"
    ));
    run(&lone, &shell("one", "batch", "exit 7"));
    let notice = message(&server, "/", |message| message["code"] == 7);
    let text = notice["chat"].as_str().unwrap();
    assert!(
        text.starts_with("Task \"t\" of one.g[0] failed: exit code 7"),
        "{text}"
    );
    let heads = server.heads("/");
    assert!(
        heads[0].contains("authorization: bearer t0ken"),
        "{heads:?}"
    );
}

#[test]
fn next_agent_sends_unsent_notices_and_no_notice_twice() {
    let server = Server::new();
    server.gives("/ops", b"");
    let config = hook("ops", &server, "/ops", "on = [\"failed\"]");
    let lone = Lone::configured(&config);
    run(&lone, &shell("one", "batch", "exit 1"));
    wait_for_metric(&lone, "drover_notify_sent", "ops", 1);
    let noted = lone.world.data().join("notify/ops.json");
    let until = Instant::now() + TIMEOUT;
    while !fs::read_to_string(&noted).unwrap().contains("failed/") {
        assert!(Instant::now() < until, "what was told is not noted");
        std::thread::yield_now();
    }
    server.does("/ops", Does::Refuses(503));
    run(&lone, &shell("two", "batch", "exit 1"));
    message(&server, "/ops", is("failed", "two"));
    let lone = lone.next_agent();
    server.gives("/ops", b"");
    wait_for_metric(&lone, "drover_notify_sent", "ops", 1);
    run(&lone, &shell("three", "batch", "exit 1"));
    message(&server, "/ops", is("failed", "three"));
    let posts = server.posted("/ops", 0);
    let of = |job: &str| {
        let job = format!("\"job\":\"{job}\"");
        posts.iter().filter(|post| post.contains(&job)).count()
    };
    assert_eq!((of("one"), of("three")), (1, 1), "{posts:#?}");
    assert!(of("two") >= 2, "{posts:#?}");
}

#[test]
fn notify_command_gets_notice_by_stdin_and_variables_alone() {
    let world = support::World::new();
    let (notice, env) = (world.path("told"), world.path("env"));
    // An agent that may dump nothing at all, as its unit may say, starts programs, too.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).unwrap();
    let script = format!(
        "cat > {notice}.new; env > {env}; cd /; ls -l /proc/self/fd > {env}.fds; \
         sleep 1000 & yes | head -c 10000000; mv {notice}.new {notice}",
        notice = notice.display(),
        env = env.display()
    );
    let lone = Lone::configured(&format!(
        "notify \"pager\" {{\n on = [\"failed\"]\n command {{\n command = \"/bin/sh\"\n \
         args = [\"-c\", \"{script}\"]\n }}\n}}\n"
    ));
    run(&lone, &shell("one", "batch", "exit 1"));
    wait_for_metric(&lone, "drover_notify_sent", "pager", 1);
    let message: Value = serde_json::from_str(&fs::read_to_string(&notice).unwrap()).unwrap();
    assert_eq!(
        (&message["event"], &message["job"]),
        (&json!("failed"), &json!("one"))
    );
    let env = fs::read_to_string(&env).unwrap();
    let allowed = ["NOTICE_", "PATH=", "PWD=", "SHLVL=", "_=", "OLDPWD="];
    for line in env.lines() {
        assert!(allowed.iter().any(|name| line.starts_with(name)), "{line}");
    }
    assert!(
        env.contains("NOTICE_JOB=one\n") && env.contains("NOTICE_EXIT_CODE=1\n"),
        "{env}"
    );
    // Itself, its input, both outputs, and the directory that is listed.
    let fds = fs::read_to_string(world.path("env.fds")).unwrap();
    assert!(fds.lines().count() <= 5, "{fds}");
}
