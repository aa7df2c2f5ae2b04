//! Mistakes of people, programs and machines: each is reported in words that help, and costs nothing
//! else. A job that ran before runs on.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;
#[path = "bad_input/unusable.rs"]
mod unusable;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use support::{Agent, Ended, Program, TIMEOUT, World, command, exchange, free_addr, has, shims};

/// An agent with a job that must live through everything.
struct Kept {
    agent: Agent,
    shims: Vec<String>,
    data: PathBuf,
    world: World,
}

fn shell_job(id: &str, script: &str) -> Value {
    json!({ "Job": { "ID": id, "TaskGroups": [{
        "Name": "g",
        "EphemeralDisk": { "SizeMB": 10 },
        "RestartPolicy": { "Attempts": 100, "Delay": 1_000_000, "Mode": "delay" },
        "Tasks": [{
            "Name": "t",
            "Driver": "raw_exec",
            "Config": { "command": "/bin/sh", "args": ["-c", script] },
            "LogConfig": { "MaxFiles": 1, "MaxFileSizeMB": 5 },
        }],
    }] } })
}

fn is_running(allocs: &Value) -> Option<String> {
    let running = |alloc: &&Value| alloc["ClientStatus"] == "running";
    let found = allocs.as_array().unwrap().iter().find(running)?;
    Some(found["ID"].as_str().unwrap().to_owned())
}

impl Kept {
    fn new() -> Kept {
        let world = World::new();
        let data = world.data();
        Kept::within(world, data)
    }

    fn within(world: World, data: PathBuf) -> Kept {
        let agent = Agent::start(&data, &free_addr());
        run_job(&agent, "keeper", "echo kept; while :; do sleep 1000; done");
        let shims = shims(&data);
        assert_eq!(shims.len(), 1);
        Kept {
            agent,
            shims,
            data,
            world,
        }
    }

    fn drover(&self, args: &[&str]) -> Ended {
        Program::of(command(args).env("DROVER_ADDR", format!("http://{}", self.agent.addr))).end()
    }

    /// The job from before runs on, in the same process, and the agent takes further ones.
    #[track_caller]
    fn goes_on(&self) {
        let allocs = self.agent.get("/v1/job/keeper/allocations");
        assert_eq!(allocs.as_array().unwrap().len(), 1, "{allocs}");
        assert!(is_running(&allocs).is_some(), "{allocs}");
        let now = shims(&self.data);
        assert!(self.shims.iter().all(|shim| now.contains(shim)), "{now:?}");
    }

    #[track_caller]
    fn no_job_but_the_kept(&self) {
        let jobs = self.agent.get("/v1/jobs");
        assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
        self.goes_on();
    }

    fn send(&self, request: &str) -> (u16, String) {
        exchange(&self.agent.addr, request.as_bytes()).unwrap()
    }
}

/// Runs a job until its task runs. The id of the allocation.
fn run_job(agent: &Agent, id: &str, script: &str) -> String {
    let (status, body) = agent.put("/v1/jobs", &shell_job(id, script)).unwrap();
    assert_eq!(status, 200, "{body}");
    agent.wait_for(&format!("/v1/job/{id}/allocations"), is_running)
}

/// A job file with this in its only task, from line 4 on.
fn task(body: &str) -> String {
    format!("job \"x\" {{\n  group \"g\" {{\n    task \"t\" {{\n{body}\n    }}\n  }}\n}}\n")
}

#[test]
fn job_file_mistakes_have_positions() {
    let kept = Kept::new();
    let good = "driver = \"raw_exec\"\nconfig {\n  command = \"/bin/true\"\n}";
    let cases: Vec<(String, Vec<&str>)> = vec![
        (
            "job \"x\" {\n  group = = 1\n}\n".to_owned(),
            vec!["bad.hcl:2:11: ", "  2 |   group = = 1", "^"],
        ),
        (
            "job \"x\" {\n".to_owned(),
            vec!["bad.hcl:1:", "job \"x\" {", "^", "expected `}`"],
        ),
        (String::new(), vec!["bad.hcl", "job"]),
        (
            task(&format!("{good}\nconfg {{}}")),
            vec![
                "bad.hcl:8:1: ",
                "unknown block \"confg\"",
                "Did you mean \"config\"?",
                "^",
            ],
        ),
        (
            task(&format!("{good}\nkill_timout = \"5s\"")),
            vec![
                "bad.hcl:8:1: ",
                "kill_timout",
                "Did you mean \"kill_timeout\"?",
            ],
        ),
        (
            task("driver = \"raw_exec\"\nconfig {\n}"),
            vec!["bad.hcl:5:1: ", "config.command: must be given"],
        ),
        (
            task("driver = \"raw_exec\"\nconfig {\n  comand = \"x\"\n}"),
            vec![
                "bad.hcl:6:3: ",
                "unknown option \"comand\"",
                "did you mean \"command\"",
            ],
        ),
        (
            task("config {\n  command = \"/bin/true\"\n}"),
            vec!["bad.hcl:3:", "driver"],
        ),
        (
            task(good).replace("\"g\" {", "\"g\" {\ncount = -1"),
            vec!["bad.hcl:3:", "count: must not be negative"],
        ),
        (
            task(good).replace("\"g\" {", "\"g\" {\ncount = 1000000"),
            vec!["must not have more than", "1000000"],
        ),
        (
            task(good).replace("\"t\"", "\"../x\""),
            vec!["bad.hcl:3:", "../x"],
        ),
        (
            task(good).replace("job \"x\"", "job \"../../x y\""),
            vec!["bad.hcl:1:"],
        ),
        (
            task(&good.replace("\"/bin/true\"", "upper(attr.kernel.name)")),
            vec!["bad.hcl:6:", "${attr.kernel.name}", "run time only"],
        ),
        (
            task(&good.replace("/bin/true", "${uper(\"x\")}")),
            vec!["bad.hcl:6:", "uper", "upper"],
        ),
        (
            task(&good.replace("/bin/true", "${var.nothing}")),
            vec!["bad.hcl:6:", "nothing"],
        ),
        (
            task(&good.replace("\"/bin/true\"", "7 + \"x\"")),
            vec!["bad.hcl:6:", "number"],
        ),
        (
            format!(
                "job \"x\" {{ group \"g\" {{ count = {} }} }}",
                "(".repeat(100_000)
            ),
            vec!["bad.hcl"],
        ),
        (
            format!("{} {}", task(good), task(good)),
            vec!["bad.hcl:", "job"],
        ),
    ];
    for (text, parts) in cases {
        let file = kept.world.file("bad.hcl", &text);
        let err = kept
            .drover(&["job", "run", file.to_str().unwrap()])
            .failed();
        has(&err, &parts);
        assert!(
            err.len() < 4000,
            "no more than anybody reads: {}",
            err.len()
        );
    }
    let file = kept.world.file("bad.hcl", &"#\n".repeat(25 * 1024 * 1024));
    for verb in ["run", "validate"] {
        let err = kept.drover(&[verb, file.to_str().unwrap()]).failed();
        has(&err, &["bad.hcl is larger than 10 MiB"]);
    }
    fs::write(&file, b"job \"\xff\xfe\" {}").unwrap();
    let err = kept.drover(&["run", file.to_str().unwrap()]).failed();
    has(&err, &["cannot read ", "bad.hcl", "UTF-8"]);
    kept.no_job_but_the_kept();
}

#[test]
fn hostile_json_is_refused() {
    let kept = Kept::new();
    let job = |job: &str| format!("{{\"Job\":{job}}}");
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let good = shell_job("x", "true").to_string();
    let bodies = [
        String::new(),
        "not json".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "{}".to_owned(),
        job("null"),
        job("[]"),
        job("\"x\""),
        job("{}"),
        job("{\"ID\":null}"),
        job("{\"ID\":7}"),
        job("{\"ID\":\"x\"}"),
        job("{\"ID\":\"x\",\"TaskGroups\":[null]}"),
        job("{\"ID\":\"x\",\"TaskGroups\":{}}"),
        job("{\"ID\":\"x\",\"TaskGroups\":[{}]}"),
        job(&deep(100_000)),
        deep(1_000_000),
        job(&format!("{{\"ID\":\"x\",\"Meta\":{}}}", deep(120))),
        good.replace("\"x\"", "\"../../x\\u0000\""),
        good.replace("\"Name\":\"g\"", "\"Name\":\"g\",\"Count\":1e99"),
        good.replace("\"Name\":\"g\"", "\"Name\":\"g\",\"Count\":-1"),
        good.replace(
            "\"Name\":\"g\"",
            "\"Name\":\"g\",\"Count\":9223372036854775807",
        ),
        good.replace(
            "\"Name\":\"g\"",
            "\"Name\":\"g\",\"Count\":99999999999999999999999999",
        ),
        good.replace("\"Name\":\"g\"", "\"Name\":\"g\",\"Count\":\"many\""),
        good.replace("\"Name\":\"t\"", "\"Name\":\"../t\""),
        good.replace("\"Name\":\"t\"", "\"Name\":\"\""),
        good.replace("\"Attempts\":100", "\"Attempts\":-9223372036854775808"),
        good.replace("\"command\":\"/bin/sh\"", "\"command\":[\"/bin/sh\"]"),
        good.replace("\"command\":\"/bin/sh\"", "\"commnd\":\"/bin/sh\""),
        good.replace("raw_exec", ""),
    ];
    for body in bodies {
        let begin: String = body.chars().take(200).collect();
        assert_ne!(body, good);
        for path in ["/v1/jobs", "/v1/job/x"] {
            let length = body.len();
            let (status, answer) = kept.send(&format!(
                "PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            ));
            assert!(matches!(status, 400 | 500), "{status} {answer} for {begin}");
            assert!(
                !answer.is_empty() && answer.len() < 4000,
                "{answer} for {begin}"
            );
        }
    }
    for path in [
        "/v1/jobs/parse",
        "/v1/validate/job",
        "/v1/client/allocation/x/signal",
    ] {
        for body in ["", "[", "{\"JobHCL\":7}", "{\"Job\":7}", &deep(200_000)] {
            let length = body.len();
            let (status, answer) = kept.send(&format!(
                "PUT {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            ));
            assert!((400..=500).contains(&status), "{path}: {status} {answer}");
        }
    }
    kept.no_job_but_the_kept();
}

#[test]
fn bad_requests_are_answered_cheaply() {
    let kept = Kept::new();
    let head = |first: &str, more: &str| {
        kept.send(&format!(
            "{first} HTTP/1.1\r\nConnection: close\r\n{more}\r\n"
        ))
        .0
    };
    let here = "Host: localhost\r\n";
    assert_eq!(head("GET /v1/jobs", here), 200);
    for host in [
        "",
        "Host: evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: a\r\nHost: localhost\r\n",
    ] {
        assert!(matches!(head("GET /v1/jobs", host), 400 | 403), "{host}");
    }
    let foreign = "Host: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n";
    for (method, path) in [
        ("PUT", "/v1/jobs"),
        ("DELETE", "/v1/job/keeper"),
        ("PUT", "/v1/system/gc"),
    ] {
        assert_eq!(head(&format!("{method} {path}"), foreign), 403);
    }
    for nothing in [
        "/",
        "/v1",
        "/v1/nothing",
        "/v2/jobs",
        "/v1/jobs/",
        "//v1/jobs",
        "/v1/job/keeper/nothing",
        "/v1/job/nobody",
    ] {
        let request = format!("GET {nothing} HTTP/1.1\r\nConnection: close\r\n{here}\r\n");
        let (status, words) = kept.send(&request);
        assert_eq!(status, 404, "{nothing}: {words}");
        assert!(!words.is_empty() && words.len() < 300, "{nothing}: {words}");
    }
    for (method, path) in [
        ("DELETE", "/v1/jobs"),
        ("PUT", "/v1/nodes"),
        ("GET", "/v1/system/gc"),
        ("HEAD", "/v1/jobs"),
        ("TRACE", "/v1/jobs"),
        ("BREW", "/v1/jobs"),
    ] {
        assert_eq!(
            head(&format!("{method} {path}"), here),
            405,
            "{method} {path}"
        );
    }
    for bad in [
        "index=x",
        "index=-1",
        "wait=soon",
        "per_page=x",
        "stale=perhaps",
        "index=99999999999999999999999",
    ] {
        assert_eq!(head(&format!("GET /v1/jobs?{bad}"), here), 400, "{bad}");
    }
    let long = format!("{here}X-Long: {}\r\n", "x".repeat(200_000));
    let many = format!("{here}{}", "X-Many: 1\r\n".repeat(5_000));
    for more in [&long, &many] {
        let request = format!("GET /v1/jobs HTTP/1.1\r\n{more}\r\n");
        // The connection may end before all of it is sent.
        let answer = exchange(&kept.agent.addr, request.as_bytes());
        assert!(answer.is_err() || answer.is_ok_and(|(status, _)| status == 431));
    }
    let fifty = 50 * 1024 * 1024;
    let large = format!("{here}Content-Length: {fifty}\r\n");
    assert_eq!(head("PUT /v1/jobs", &large), 413);
    let mut body =
        b"PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    body.extend_from_slice(format!("{fifty:x}\r\n").as_bytes());
    body.resize(body.len() + fifty, b' ');
    let answer = exchange(&kept.agent.addr, &body);
    assert!(answer.is_err() || answer.is_ok_and(|(status, _)| status == 413));
    for garbage in [
        "\r\n\r\n",
        "hello\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}",
        "GET /v1/jobs HTTP/9.9\r\n\r\n",
    ] {
        let answer = answer_to_all(&kept.agent.addr, garbage.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(
            answer.is_empty() || status.starts_with('4'),
            "{garbage:?}: {answer}"
        );
    }
    kept.no_job_but_the_kept();
}

/// What a server says to this and no more, until it closes the connection.
fn answer_to_all(addr: &str, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(bytes).unwrap();
    // It may be closed already.
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // Closed or reset: both are the end.
    let ended = stream.read_to_end(&mut answer);
    let is_end = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
    assert!(ended.as_ref().err().is_none_or(is_end), "{ended:?}");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn task_output_cannot_mislead_readers() {
    let kept = Kept::new();
    let secret = kept.world.file("secret", "not for you");
    let script = format!(
        "cd $NOMAD_ALLOC_DIR
         ln -s {0} data/link; ln -s / data/root; ln -s ../../../../lock data/up; ln -s loop data/loop
         ln -s ../../t/secrets data/secrets; echo s3cret > $NOMAD_SECRETS_DIR/token
         mkfifo data/pipe logs/t.stderr.7 logs/u.stdout.0
         rm logs/t.stderr.0; mkfifo logs/t.stderr.0
         ln -s {0} logs/t.stdout.3
         echo plain > data/plain; echo ready; while :; do sleep 1000; done",
        secret.display()
    );
    let id = run_job(&kept.agent, "hostile", &script);
    let follow = format!("/v1/client/fs/cat/{id}?path=alloc/data/plain");
    // The last thing that it does before it says so.
    let until = Instant::now() + TIMEOUT;
    let get = |path: &str| support::request(&kept.agent.addr, "GET", path, None).unwrap();
    while get(&follow) != (200, "plain\n".to_owned()) {
        assert!(Instant::now() < until, "the task does not get ready");
        std::thread::yield_now();
    }
    let traps = [
        "alloc/data/link",
        "alloc/data/root/etc/passwd",
        "alloc/data/up",
        "alloc/data/loop",
        "alloc/data/pipe",
        "alloc/data/secrets/token",
        "t/secrets/token",
        "../../lock",
        "/../../lock",
        "%2e%2e/%2e%2e/lock",
        "alloc/%2e%2e/%2e%2e/%2e%2e/lock",
        "..%2f..%2flock",
        "alloc/data/nothing",
        "alloc/data",
        "alloc%00",
        "",
    ];
    for verb in ["cat", "stat", "ls", "readat"] {
        for trap in traps {
            let (status, body) = get(&format!("/v1/client/fs/{verb}/{id}?offset=0&path={trap}"));
            // What a pipe or a directory is may be told, what is behind a trap not.
            let harmless = trap == "alloc/data" || trap == "alloc/data/pipe" || trap.is_empty();
            let succeeded = harmless && matches!(verb, "stat" | "ls");
            assert!(
                succeeded || matches!(status, 400 | 404 | 500),
                "{verb} {trap}: {status} {body}"
            );
            assert!(
                !body.contains("not for you")
                    && !body.contains("s3cret")
                    && !body.contains("root:"),
                "{verb} {trap}: {body}"
            );
        }
    }
    for path in [
        "/v1/client/fs/cat/../../jobs",
        "/v1/client/fs/cat/%2e%2e",
        "/v1/client/fs/ls/..%2f..",
        "/v1/client/fs/logs/%2e%2e?task=t&type=stdout",
    ] {
        let (status, body) = get(path);
        assert!(matches!(status, 400 | 404), "{path}: {status} {body}");
    }
    for (task, stream) in [
        ("t", "stdout"),
        ("t", "stderr"),
        ("..%2ft", "stdout"),
        ("u", "stdout"),
        ("t", "stdout.0"),
    ] {
        for plain in ["true", "false"] {
            let query = format!("task={task}&type={stream}&plain={plain}");
            let (_, body) = get(&format!("/v1/client/fs/logs/{id}?{query}"));
            // In frames it would be base64.
            let leaked = ["not for you", "bm90IGZvciB5b3"].map(|text| body.contains(text));
            assert_eq!(leaked, [false, false], "{query}: {body}");
        }
    }
    // The shim writes the line when it gets to it.
    let log = format!("/v1/client/fs/logs/{id}?task=t&type=stdout&plain=true");
    while get(&log) != (200, "ready\n".to_owned()) {
        assert!(Instant::now() < until, "{:?}", get(&log));
        std::thread::yield_now();
    }
    kept.goes_on();
}
