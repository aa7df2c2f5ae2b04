//! The output of tasks whose driver is a plugin: it is written and rotated as that of others,
//! whoever dies.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugin_world.rs"]
mod plugin_world;
#[path = "common/plugins.rs"]
mod plugins;

use std::io::Write as _;

use drover_core::input::Found;
use drover_core::model::task::LogConfig;
use drover_io_real::plugin::Exit;
use plugin_world::{World, sh};
use plugins::{kill, lives, soon};

/// What a task is told through. Somebody may always write as long as this is held, so the task
/// sees no end of what it reads, and does not end by itself.
struct Pipe {
    path: std::path::PathBuf,
    both_ends: std::fs::File,
}

impl Pipe {
    fn new(dir: &tempfile::TempDir) -> Self {
        let path = dir.path().join("in");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
        let mut ends = std::fs::File::options();
        let both_ends = ends.read(true).write(true).open(&path).unwrap();
        Self { path, both_ends }
    }

    /// A task that says its pid, and then each line that it is told.
    fn echo(&self) -> String {
        let path = self.path.display();
        format!("echo $$; while read line < {path}; do echo $line; done")
    }

    fn say(&mut self, text: &str) {
        self.both_ends.write_all(text.as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn plugin_task_logs_rotate() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let mut config = sh("head -c 4500000 /dev/zero | tr '\\0' x; echo; echo end >&2");
    config.logs = LogConfig {
        max_files: 2,
        max_file_size_mb: 1,
        disabled: false,
    };
    world.start(1, config).await.unwrap();
    world.exit(1).await;
    world.destroy(1).await.unwrap();
    let kept = ["web.stderr.0", "web.stdout.3", "web.stdout.4"];
    assert_eq!(world.logs(), kept);
    let sizes = kept.map(|name| world.log(name).len());
    assert!(sizes.iter().all(|size| *size <= 1 << 20), "{sizes:?}");
    assert!(world.log("web.stdout.4").ends_with("x\n"));
    world.driver.detach();
    assert_eq!(soon(plugin.stop(false)).await, Exit::Code(0));
}

#[tokio::test]
async fn disabled_log_collection_starts_no_collector() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let mut config = sh("echo out");
    config.logs.disabled = true;
    world.start(1, config).await.unwrap();
    world.exit(1).await;
    assert_eq!((world.collecting(), world.logs().len()), (0, 0));
    world.destroy(1).await.unwrap();
    world.driver.detach();
    soon(plugin.stop(false)).await;
}

/// What an agent lives in: all that it does ends with this.
fn life() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap()
}

/// The task goes on writing, and the files go on where they were.
#[test]
fn log_collector_survives_crashes() {
    let dir = tempfile::tempdir().unwrap();
    let mut pipe = Pipe::new(&dir);
    let mut world = World::new();
    let agent = life();
    let (plugin, pid, second) = agent.block_on(async {
        let plugin = world.attach("").await;
        world.start(1, sh(&pipe.echo())).await.unwrap();
        let pid = world.pid("web.stdout.0").await;
        let first = world.collector(1);
        kill(first);
        pipe.say("after the first\n");
        let text = format!("{pid}\nafter the first\n");
        world.wrote("web.stdout.0", &text).await;
        let second = world.collector(1);
        assert_ne!(first, second);
        (plugin.remember(), pid, second)
    });
    // The agent dies, and the next one finds who collects.
    drop(agent);
    let agent = life();
    agent.block_on(async {
        world.begin_again();
        let plugin = world.reattach(&plugin).await;
        assert_eq!(world.recover(1).await, Found::Running);
        pipe.say("for the next agent\n");
        let text = format!("{pid}\nafter the first\nfor the next agent\n");
        world.wrote("web.stdout.0", &text).await;
        assert_eq!(world.collector(1), second);
        let exit = world.destroy(1).await.unwrap().unwrap();
        assert_eq!((exit.signal, lives(pid)), (9, false));
        assert_eq!(world.collecting(), 0);
        world.driver.detach();
        soon(plugin.stop(false)).await;
    });
}

/// Who collects is killed while no agent lives: the next agent sees to another.
#[test]
fn agent_restarts_missing_log_collector() {
    let dir = tempfile::tempdir().unwrap();
    let mut pipe = Pipe::new(&dir);
    let mut world = World::new();
    let agent = life();
    let (plugin, pid, first) = agent.block_on(async {
        let plugin = world.attach("").await;
        world.start(1, sh(&pipe.echo())).await.unwrap();
        let pid = world.pid("web.stdout.0").await;
        (plugin.remember(), pid, world.collector(1))
    });
    drop(agent);
    kill(first);
    let agent = life();
    agent.block_on(async {
        world.begin_again();
        let plugin = world.reattach(&plugin).await;
        assert_eq!(world.recover(1).await, Found::Running);
        pipe.say("again\n");
        let text = format!("{pid}\nagain\n");
        world.wrote("web.stdout.0", &text).await;
        assert_ne!(world.collector(1), first);
        world.destroy(1).await.unwrap();
        world.driver.detach();
        soon(plugin.stop(false)).await;
    });
}

/// A start that fails leaves nobody behind.
#[tokio::test]
async fn failed_start_leaves_no_log_collector() {
    let mut world = World::new();
    let plugin = world.attach("").await;
    let mut config = sh("true");
    config
        .config
        .insert("command".to_owned(), "/no/such/program".into());
    world.start(1, config).await.unwrap_err();
    assert_eq!(world.collecting(), 0);
    world.driver.detach();
    soon(plugin.stop(false)).await;
}
