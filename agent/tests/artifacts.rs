//! Artifacts, as a user sees them: the whole program, with a web server that does what each test
//! wants of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use support::{Agent, Does, Program, Server, TIMEOUT, World, free_addr, is_gone};

const TAR_GZ: &[u8] = include_bytes!("archives/a.tar.gz");
const TAR_XZ: &[u8] = include_bytes!("archives/a.tar.xz");
const TAR_ZST: &[u8] = include_bytes!("archives/a.tar.zst");
const ZIP: &[u8] = include_bytes!("archives/a.zip");
const GZ: &[u8] = include_bytes!("archives/words.gz");
/// The sum of the first of them.
const SUM: &str = "34ac01ae5a63f3b93b473b3bc3bbdd7877c9f0cb2f918e7073138cbb0936efa5";

/// A batch job of one task that needs these artifacts, and is not tried again.
fn job(script: &str, artifacts: &str) -> String {
    format!(
        r#"
job "fetch" {{
  type = "batch"
  group "g" {{
    restart {{
      attempts = 0
      mode     = "fail"
    }}
    reschedule {{
      attempts  = 0
      unlimited = false
    }}
    task "t" {{
      driver = "raw_exec"
      config {{
        command = "/bin/sh"
        args    = ["-c", {}]
      }}
      {artifacts}
    }}
  }}
}}
"#,
        json!(script)
    )
}

fn artifact(source: &str, rest: &str) -> String {
    format!("artifact {{\n source = {}\n {rest}\n }}\n", json!(source))
}

/// A world in which somebody without rights may get around.
fn world() -> World {
    let world = World::new();
    fs::set_permissions(world.path("."), fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// What `drover up` shows of the job.
fn up(world: &World, job: &str) -> support::Ended {
    Program::run(world.up(&world.file("job.hcl", job)))
}

/// What processes that fetch left behind.
fn work(world: &World) -> Vec<PathBuf> {
    let dir = fs::read_dir(world.path("data/artifacts/work")).unwrap();
    dir.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_archive_kind_is_unpacked() {
    let (world, server) = (world(), Server::new());
    let mut artifacts = String::new();
    for (name, bytes) in [
        ("a.tar.gz", TAR_GZ),
        ("a.tar.xz", TAR_XZ),
        ("a.tar.zst", TAR_ZST),
        ("a.zip", ZIP),
    ] {
        server.gives(&format!("/{name}"), bytes);
        let place = format!("destination = \"local/{name}\"");
        artifacts += &artifact(&server.url(&format!("/{name}")), &place);
    }
    server.gives("/words.gz", GZ);
    let url = |path: &str| server.url(path);
    artifacts += &artifact(&url("/words.gz"), "");
    artifacts += &artifact(
        &url("/words.gz?archive=false"),
        "destination = \"local/packed\"",
    );
    artifacts += &artifact(&url("/a.zip//bin"), "destination = \"local/part\"");
    artifacts += &artifact(
        &url("/words.gz"),
        "mode = \"file\"\n destination = \"local/named\"",
    );
    artifacts += &artifact(&url("/a.zip//words"), "destination = \"secrets\"");
    let script = "for d in a.tar.gz a.tar.xz a.tar.zst a.zip; do local/$d/hello; cat local/$d/words; \
                  done; local/part/hello; ls -R local/packed; cat local/words local/named secrets/words";
    let out = up(&world, &job(script, &artifacts)).ok();
    assert!(
        out.contains("Downloading Artifacts Client is downloading artifacts"),
        "{out}"
    );
    assert!(out.contains("Downloaded 9 artifacts, 0.0 MiB in "), "{out}");
    assert_eq!(out.matches("| hello from").count(), 5, "{out}");
    assert_eq!(out.matches("| words\n").count(), 7, "{out}");
    assert!(out.contains("| words.gz"), "{out}");
    assert_eq!(work(&world), Vec::<PathBuf>::new());
}

#[test]
fn artifact_example_runs() {
    let (world, server) = (world(), Server::new());
    server.gives("/hello.tar.gz", TAR_GZ);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/artifact.nomad.hcl");
    let mut args = world.up(&example);
    args.extend([
        "-var".to_owned(),
        format!("url={}", server.url("/hello.tar.gz")),
    ]);
    let out = Program::run(args).ok();
    assert!(out.contains("| hello from /"), "{out}");
}

#[test]
fn wrong_checksum_fails_task() {
    let (world, server) = (world(), Server::new());
    server.gives("/a.tar.gz", TAR_GZ);
    server.gives("/a.zip", b"this is no zip archive");
    let wrong = "0".repeat(64);
    let script = "echo it runs";
    for (source, rest, expected) in [
        (
            "/a.tar.gz",
            format!("options {{ checksum = \"sha256:{wrong}\" }}"),
            "checksums do not match",
        ),
        ("/missing", String::new(), "the server answered 404"),
        ("/a.zip", String::new(), "it is no zip archive"),
        (
            "/a.tar.gz//nothing",
            String::new(),
            "there is no \"nothing\" in it",
        ),
        (
            "/a.tar.gz",
            "mode = \"file\"".to_owned(),
            "there is more than one file",
        ),
        (
            "/a.tar.gz",
            "destination = \"${NOMAD_META_out}\"".to_owned(),
            "leads out",
        ),
    ] {
        let artifacts = artifact(&server.url(source), &rest) + "meta { out = \"../../x\" }";
        let out = up(&world, &job(script, &artifacts)).with(1);
        let failed = "Failed Artifact Download failed to download artifact";
        assert!(
            out.contains(failed) && out.contains(expected),
            "{expected}: {out}"
        );
        assert!(!out.contains("it runs"), "{out}");
        assert_eq!(work(&world), Vec::<PathBuf>::new());
    }
}

#[test]
fn stopped_task_does_not_wait_for_stalled_server() {
    let (world, server) = (world(), Server::new());
    let stalls = server.stalls("/never");
    let job = world.file(
        "job.hcl",
        &job("echo it runs", &artifact(&server.url("/never"), "")),
    );
    let program = Program::start(world.up(&job));
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    program.interrupt();
    let out = program.end().ok();
    assert!(out.contains("Killing") && !out.contains("it runs"), "{out}");
    is_gone(stream);
    assert_eq!(work(&world), Vec::<PathBuf>::new());
}

#[test]
fn agent_killed_during_fetch_fetches_again() {
    let (world, server) = (world(), Server::new());
    let stalls = server.stalls("/a.tar.gz");
    let (data, addr) = (world.path("data"), free_addr());
    let agent = Agent::start(&data, &addr);
    let task = json!({
        "Name": "t", "Driver": "raw_exec",
        "Config": { "command": "/bin/sh", "args": ["-c", "local/hello"] },
        "Artifacts": [{ "GetterSource": server.url("/a.tar.gz") }],
        "Resources": { "CPU": 10, "MemoryMB": 20 },
    });
    let job = json!({ "Job": {
        "ID": "fetch", "Type": "batch", "Datacenters": ["*"],
        "TaskGroups": [{ "Name": "g", "Tasks": [task] }],
    }});
    let (status, body) = agent.put("/v1/jobs", &job).unwrap();
    assert_eq!(status, 200, "{body}");
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    agent.kill_9();
    is_gone(stream);
    assert_eq!(work(&world).len(), 1, "what it was about to fetch");
    server.gives("/a.tar.gz", TAR_GZ);
    let agent = Agent::start(&data, &addr);
    agent.wait_for("/v1/allocations", |allocs| {
        let status = allocs[0]["ClientStatus"].as_str();
        (status == Some("complete")).then_some(())
    });
    assert_eq!(work(&world), Vec::<PathBuf>::new());
}

#[test]
fn git_processes_end_with_agent() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no git here");
        return;
    }
    let (world, server) = (world(), Server::new());
    let stalls = server.stalls("/r.git/info/refs");
    let source = format!("git::{}", server.url("/r.git"));
    let job = world.file("job.hcl", &job("echo it runs", &artifact(&source, "")));
    let program = Program::start(world.up(&job));
    let stream = stalls.recv_timeout(TIMEOUT).unwrap();
    program.kill_9();
    is_gone(stream);
}

#[test]
fn same_artifact_is_fetched_once() {
    let (world, server) = (world(), Server::new());
    server.gives("/a.tar.gz", TAR_GZ);
    let sum = format!("options {{ checksum = \"sha256:{SUM}\" }}\n");
    let mut artifacts = String::new();
    for name in ["one", "two", "three"] {
        let rest = format!("{sum} destination = \"local/{name}\"");
        artifacts += &artifact(&server.url("/a.tar.gz"), &rest);
    }
    let script = "local/one/hello; local/two/hello; local/three/hello; echo x >> local/one/words";
    for _ in 0..2 {
        let out = up(&world, &job(script, &artifacts)).ok();
        assert_eq!(out.matches("| hello from").count(), 3, "{out}");
    }
    assert_eq!(server.asked("/a.tar.gz").len(), 1);
}

#[test]
fn credentials_are_not_sent_to_other_server() {
    let (world, one, other) = (world(), Server::new(), Server::new());
    other.gives("/words", b"words\n");
    one.does("/there", Does::SendsOn(other.url("/words")));
    one.does("/here", Does::SendsOn("/words".to_owned()));
    one.gives("/words", b"words\n");
    let headers = "headers { X-Token = \"hunter2\" }";
    let user = one.url("/there").replace("http://", "http://me:hunter2@");
    let artifacts = artifact(&user, headers) + &artifact(&one.url("/here"), headers);
    let out = up(&world, &job("cat local/there", &artifacts)).ok();
    assert!(out.contains("| words"), "{out}");
    assert!(!out.contains("hunter2"), "{out}");
    assert!(one.asked("/there")[0].contains("x-token: hunter2"));
    assert!(one.asked("/there")[0].contains("authorization: basic bwu6ahvudgvymg=="));
    assert!(one.asked("/words")[0].contains("x-token: hunter2"));
    let shown = &other.asked("/words")[0];
    assert!(
        !shown.contains("hunter2") && !shown.contains("authorization"),
        "{shown}"
    );
}

#[test]
fn s3_request_is_signed() {
    let (world, server) = (world(), Server::new());
    server.gives("/bucket/words", b"words\n");
    let options = "options {\n aws_access_key_id = \"me\"\n aws_access_key_secret = \"hunter2\"\n \
                   region = \"eu-west-1\"\n }";
    let source = format!("s3::{}", server.url("/bucket/words"));
    let out = up(&world, &job("cat local/words", &artifact(&source, options))).ok();
    assert!(out.contains("| words"), "{out}");
    let asked = &server.asked("/bucket/words")[0];
    assert!(
        asked.contains("authorization: aws4-hmac-sha256 credential=me/"),
        "{asked}"
    );
    assert!(
        asked.contains("/eu-west-1/s3/aws4_request") && !asked.contains("hunter2"),
        "{asked}"
    );
}

/// Files of the machine are artifacts only where that is allowed, and a link there leads nowhere
/// else, though everybody may read what it leads to.
#[test]
fn local_file_artifact_is_fetched_if_allowed() {
    let world = world();
    fs::create_dir(world.path("files")).unwrap();
    fs::write(world.path("files/words"), "words\n").unwrap();
    fs::write(world.path("secret"), "secret\n").unwrap();
    symlink(world.path("secret"), world.path("files/link")).unwrap();
    let (files, link) = (world.path("files/words"), world.path("files/link"));
    let words = artifact(files.to_str().unwrap(), "");
    let out = up(&world, &job("cat local/words", &words)).with(1);
    assert!(out.contains("filesystem_isolation_extra_paths"), "{out}");
    let allowed = json!(format!("d:r:{}", world.path("files").display()));
    let text = format!(
        "client {{\n artifact {{\n filesystem_isolation_extra_paths = [{allowed}]\n }}\n}}\n"
    );
    let config = world.file("agent.hcl", &text);
    let run = |artifacts: &str| {
        let job = world.file("job.hcl", &job("cat local/words", artifacts));
        let mut args = world.up(&job);
        args.extend(["-config".to_owned(), config.display().to_string()]);
        Program::run(args)
    };
    assert!(run(&words).ok().contains("| words"));
    let node = world.path("secret");
    let out = run(&artifact(node.to_str().unwrap(), "")).with(1);
    assert!(out.contains("filesystem_isolation_extra_paths"), "{out}");
    if fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|lsm| !lsm.contains("landlock")) {
        eprintln!("skipped: this kernel has no landlock");
        return;
    }
    let out = run(&artifact(link.to_str().unwrap(), "")).with(1);
    assert!(out.contains("Permission denied"), "{out}");
}

#[test]
fn git_repository_is_checked_out() {
    let git = |dir: &Path, args: &[&str]| {
        let mut git = Command::new("git");
        let set = [
            "-c",
            "user.name=n",
            "-c",
            "user.email=n@n",
            "-c",
            "init.defaultBranch=main",
        ];
        git.args(set)
            .args(args)
            .current_dir(dir)
            .stdout(Stdio::null());
        git.status().is_ok_and(|status| status.success())
    };
    let (world, server) = (world(), Server::new());
    let dir = world.path("repository");
    fs::create_dir(&dir).unwrap();
    if !git(&dir, &["init", "-q"]) {
        eprintln!("skipped: there is no git here");
        return;
    }
    for words in ["first", "second"] {
        fs::write(dir.join("words"), format!("the {words}\n")).unwrap();
        assert!(git(&dir, &["add", "words"]) && git(&dir, &["commit", "-q", "-m", words]));
        assert!(git(&dir, &["tag", words]));
    }
    assert!(git(&dir, &["update-server-info"]));
    serve_files(&server, &dir.join(".git"), "/r.git");
    let url = format!("git::{}", server.url("/r.git"));
    let artifacts = artifact(&url, "destination = \"local/new\"")
        + &artifact(&format!("{url}?ref=first"), "destination = \"local/old\"");
    let script = "cat local/new/words local/old/words";
    let out = up(&world, &job(script, &artifacts)).ok();
    assert!(
        out.contains("| the second") && out.contains("| the first"),
        "{out}"
    );
    let out = up(
        &world,
        &job(script, &artifact(&format!("{url}?ref=none"), "")),
    )
    .with(1);
    assert!(
        out.contains("there is no branch, tag or commit none"),
        "{out}"
    );
}

fn serve_files(server: &Server, dir: &Path, below: &str) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let name = format!("{below}/{name}");
        match path.is_dir() {
            true => serve_files(server, &path, &name),
            false => server.gives(&name, &fs::read(&path).unwrap()),
        }
    }
}
