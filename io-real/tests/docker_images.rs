//! Images that mean harm, and what becomes of those that nobody uses, with a real engine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    unreachable_pub,
    reason = "a test may panic"
)]

#[path = "common/docker_world.rs"]
#[macro_use]
mod docker_world;
#[path = "common/registry.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod registry;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use docker_world::engine::IMAGE;
use docker_world::{World, command, sh, text, with};
use drover_core::effect::TaskConfig;
use drover_core::model::value::Value;
use registry::{Does, Registry};

fn of(config: TaskConfig, image: &str) -> TaskConfig {
    with(config, "image", text(image))
}

#[test]
fn volumes_of_an_image_hide_nothing_of_the_task() {
    let mut world = world!();
    let line = "VOLUME /local /alloc /secrets /etc /data";
    world.engine.image_with("volumes:1", line);
    fs::write(world.alloc_dir().join("web/local/text"), "ours").unwrap();
    let script = "cat /local/text; echo out > /alloc/data/x; echo x > /data/y; cat /etc/passwd";
    assert_eq!(world.run(1, of(sh(script), "volumes:1")).code, Some(0));
    let output = world.log("stdout");
    assert!(output.starts_with("oursroot:x:0:0"), "{output}");
    let shared = world.alloc_dir().join("alloc/data/x");
    assert_eq!(fs::read_to_string(shared).unwrap(), "out\n");
    assert_eq!(world.destroy(1), Ok(None));
    // What the engine made for it goes with it.
    assert_eq!(world.engine.says(&["volume", "ls", "-q"]), "");
}

#[test]
fn entrypoint_of_an_image_runs_only_where_the_job_names_none() {
    let mut world = world!();
    let line = "ENTRYPOINT [\"/bin/echo\", \"theirs\"]";
    world.engine.image_with("tricky:1", line);
    let config = of(command(&["/bin/true"]), "tricky:1");
    assert_eq!(world.run(1, config).code, Some(0));
    assert_eq!(world.log("stdout"), "theirs /bin/true\n");
    assert_eq!(world.destroy(1), Ok(None));
    let own = Value::List(vec![text("/bin/echo"), text("ours")]);
    let config = with(of(command(&["x"]), "tricky:1"), "entrypoint", own);
    assert_eq!(world.run(2, config).code, Some(0));
    assert_eq!(world.log("stdout"), "theirs /bin/true\nours x\n");
    assert_eq!(world.destroy(2), Ok(None));
}

#[test]
fn labels_of_an_image_do_not_make_it_anothers() {
    let mut world = world!();
    let line = "LABEL drover.token=guessed drover.launch=00000000-0000-0000-0000-000000000009 \
                drover.cores=shared com.hashicorp.nomad.alloc_id=theirs";
    world.engine.image_with("labelled:1", line);
    let config = of(command(&["/bin/sleep", "1000"]), "labelled:1");
    world.start(1, config).unwrap();
    let container = world.engine.containers()[0].clone();
    let labels = world.engine.says(&[
        "inspect",
        "-f",
        "{{index .Config.Labels \"drover.token\"}} {{index .Config.Labels \"com.hashicorp.nomad.alloc_id\"}} \
         {{index .Config.Labels \"drover.cores\"}}",
        &container,
    ]);
    assert!(!labels.contains("guessed"), "{labels}");
    assert!(!labels.contains("theirs"), "{labels}");
    assert!(labels.ends_with(" own"), "{labels}");
    world.begin();
    assert_eq!(world.recover(1), drover_core::input::Found::Running);
    world.end(1);
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn engine_reserved_labels_are_ignored() {
    let mut world = world!();
    let line = "LABEL com.docker.compose.project=theirs containerd.io/log=theirs nerdctl/log-uri=theirs \
                com.docker.said=theirs drover.said=theirs maker=kept";
    world.engine.image_with("labelled:2", line);
    let config = of(command(&["/bin/sleep", "1000"]), "labelled:2");
    let output =
        std::collections::BTreeMap::from([("com.docker.said".to_owned(), text("by the job"))]);
    world
        .start(1, with(config, "labels", Value::Map(output)))
        .unwrap();
    let container = world.engine.containers()[0].clone();
    let show = ["inspect", "-f", "{{json .Config.Labels}}", &container];
    let labels = world.engine.says(&show);
    assert!(!labels.contains("theirs"), "{labels}");
    let labels: serde_json::Value = serde_json::from_str(&labels).unwrap();
    let kept = (&labels["maker"], &labels["com.docker.said"]);
    assert_eq!(kept, (&"kept".into(), &"by the job".into()));
    world.end(1);
}

#[test]
fn image_that_is_too_large_is_not_used() {
    let mut world = world!();
    world.settings.image_max_size = Some(1000);
    world.begin();
    let failure = world.start(1, command(&["/bin/true"])).unwrap_err();
    assert!(failure.message.contains("image_max_size_mb"), "{failure:?}");
    assert!(!failure.recoverable, "it is as large the next time");
    assert_eq!(world.destroy(1), Ok(None));
    assert_eq!(world.engine.containers(), [""; 0]);
    // What comes from elsewhere is not fetched either.
    let registry = Registry::start();
    registry.put("web", "1", &world.engine.layer(), &["WHO=web"]);
    let image = registry.image("web:1");
    let failure = world
        .start(2, of(command(&["/bin/true"]), &image))
        .unwrap_err();
    assert!(failure.message.contains("image_max_size_mb"), "{failure:?}");
    assert_eq!(world.destroy(2), Ok(None));
}

#[test]
fn names_that_are_none_are_refused_by_the_engine() {
    let mut world = world!();
    for (launch, name) in (1..).zip([
        "../../etc/passwd",
        "UPPER CASE",
        "a:b:c",
        "x@sha256:0",
        "busybox:1 --privileged",
        "http://user:pass@127.0.0.1:1/x",
        "-v/:/host",
    ]) {
        let failure = world.start(launch, of(command(&["/bin/true"]), name));
        assert!(failure.is_err(), "{name}");
        assert_eq!(world.destroy(launch), Ok(None));
    }
    assert_eq!(world.engine.containers(), [""; 0]);
}

#[test]
fn memory_that_is_shared_counts_as_the_tasks() {
    let mut world = world!();
    let mut config = sh("dd if=/dev/zero of=/dev/shm/x bs=1M count=200; exit 9");
    config.memory_limit = 20 << 20;
    let config = with(config, "shm_size", Value::Int(1 << 30));
    let result = world.run(1, config);
    assert_ne!(result.code, Some(0), "{result:?}");
    let output = world.log("stderr");
    assert!(!output.contains("200+0 records out"), "{output}");
    assert_eq!(world.destroy(1), Ok(None));
}

#[test]
fn fetched_image_goes_some_time_after_its_last_task() {
    let mut world = world!();
    world.settings.image_delay = Duration::from_millis(1);
    world.begin();
    let registry = Registry::start();
    registry.put("web", "1", &world.engine.layer(), &["WHO=web"]);
    let image = registry.image("web:1");
    let is_there = |world: &World| {
        let found = world.engine.docker(&["image", "inspect", &image]);
        found.status.success()
    };
    // Two use it: it stays until the last of them is forgotten.
    for launch in [1, 2] {
        let config = of(command(&["/bin/sleep", "1000"]), &image);
        world.start(launch, config).unwrap();
    }
    world.end(1);
    world.forget(1);
    world.turns(1000);
    assert!(is_there(&world));
    world.end(2);
    world.forget(2);
    world.until(|world| !is_there(world));
    // What was there before is other people's.
    assert_eq!(world.run(3, command(&["/bin/true"])).code, Some(0));
    assert_eq!(world.destroy(3), Ok(None));
    world.forget(3);
    world.turns(1000);
    assert!(
        world
            .engine
            .docker(&["image", "inspect", IMAGE])
            .status
            .success()
    );
}

/// Fills the disk of an engine until images have so many bytes left there. What is to be removed again.
fn fill(world: &World, leave: u64) -> PathBuf {
    let disk = rustix::fs::statvfs(world.engine.data()).unwrap();
    let kept = disk.f_blocks * disk.f_frsize / 50;
    let free = disk.f_bavail * disk.f_frsize;
    let filler = world.engine.data().join("filler");
    let bytes = free - kept - leave;
    fs::write(&filler, vec![0; usize::try_from(bytes).unwrap()]).unwrap();
    filler
}

/// An engine with a small disk of its own.
fn small_world() -> Option<World> {
    Some(World::new(docker_world::engine::Engine::start_on(
        128 << 20,
    )?))
}

#[test]
fn download_that_fills_the_engines_disk_is_given_up_and_leaves_nothing() {
    let Some(mut world) = small_world() else {
        return;
    };
    let registry = Registry::start();
    registry.put("web", "1", &world.engine.layer(), &["WHO=web"]);
    let image = registry.image("web:1");
    let config = || of(command(&["/bin/true"]), &image);
    let filler = fill(&world, 0);
    // It has not come to an end when the agent looks.
    registry.does(Does::Hold);
    let failure = world.start(1, config()).unwrap_err();
    assert!(failure.message.contains("is almost full"), "{failure:?}");
    assert!(failure.recoverable, "there may be room the next time");
    registry.does(Does::Serve);
    assert_eq!(world.destroy(1), Ok(None));
    let found = world.engine.docker(&["image", "inspect", &image]);
    assert!(!found.status.success(), "the engine has it");
    assert_eq!(world.remembered("pull-"), [""; 0]);
    fs::remove_file(filler).unwrap();
    assert_eq!(world.run(2, config()).code, Some(0));
    assert_eq!(world.destroy(2), Ok(None));
}

#[test]
fn archive_larger_than_free_disk_of_engine_is_not_loaded() {
    let Some(mut world) = small_world() else {
        return;
    };
    let archive = world.alloc_dir().join("web/local/image.tar");
    world.engine.image_with("app:1", "LABEL who=app");
    world
        .engine
        .says(&["save", "-o", &archive.to_string_lossy(), "app:1"]);
    world.engine.says(&["rmi", "app:1"]);
    let config = || {
        let config = of(command(&["/bin/true"]), "app:1");
        with(config, "load", text("image.tar"))
    };
    let filler = fill(&world, 256 << 10);
    let failure = world.start(1, config()).unwrap_err();
    assert!(
        failure.message.contains("is free on the engine's disk"),
        "{failure:?}"
    );
    assert!(failure.recoverable, "there may be room the next time");
    assert_eq!(world.destroy(1), Ok(None));
    let found = world.engine.docker(&["image", "inspect", "app:1"]);
    assert!(!found.status.success(), "the engine has it");
    fs::remove_file(filler).unwrap();
    assert_eq!(world.run(2, config()).code, Some(0));
    assert_eq!(world.destroy(2), Ok(None));
}

#[test]
fn links_of_an_image_at_our_directories_lead_nowhere() {
    let mut world = world!();
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let place = outside.to_string_lossy().into_owned();
    let script = "for it in /alloc /local /secrets; do echo mine > $it/canary-$N; done";
    for (launch, (link, target)) in (1..).zip([
        ("local", place.clone()),
        ("local", "/etc".to_owned()),
        ("alloc", "../../..".to_owned()),
        ("alloc", format!("../../../../../../../../../..{place}")),
        ("secrets", format!("/proc/1/root{place}")),
        ("etc/hosts", "/secrets/hosts".to_owned()),
    ]) {
        let image = linked(&world, dir.path(), (link, &target));
        let mut config = of(sh(script), &image);
        config.env.insert("N".to_owned(), launch.to_string());
        // Some of that no engine can make a container of.
        if let Ok(()) = world.start(launch, config) {
            assert_eq!(world.exited().code, Some(0), "{link} to {target}");
            for ours in ["alloc", "web/local", "web/secrets"] {
                let canary = world.alloc_dir().join(format!("{ours}/canary-{launch}"));
                assert!(canary.exists(), "{link} to {target}: not in {ours}");
            }
        } else {
            assert_ne!(link, "local", "{target}");
        }
        assert_eq!(world.destroy(launch), Ok(None));
        let found: Vec<_> = fs::read_dir(&outside).unwrap().collect();
        assert!(found.is_empty(), "{link} to {target}: {found:?}");
        assert!(
            !Path::new(&format!("/etc/canary-{launch}")).exists(),
            "{link} to {target}"
        );
    }
    assert_eq!(world.engine.containers(), [""; 0]);
}

/// The usual image, with a link in it.
fn linked(world: &World, dir: &Path, (link, target): (&str, &str)) -> String {
    let (root, tar) = (dir.join("root"), dir.join("image.tar"));
    let _ = fs::remove_dir_all(&root);
    let at = root.join(link);
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    symlink(target, at).unwrap();
    fs::write(&tar, world.engine.layer()).unwrap();
    let mut command = Command::new("tar");
    command
        .arg("-C")
        .arg(&root)
        .arg("-rf")
        .arg(&tar)
        .arg(format!("./{link}"));
    assert!(command.status().unwrap().success());
    world
        .engine
        .says(&["import", &tar.to_string_lossy(), "linked:1"]);
    "linked:1".to_owned()
}
