//! What plugins measure, with real processes: received while somebody asks, and whatever a plugin
//! does wrong there costs its own numbers and nothing else.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugin_world.rs"]
mod plugin_world;
#[path = "common/plugins.rs"]
mod plugins;

use drover_core::ids::LaunchId;
use drover_core::model::device::{AssignedDevices, GroupId};
use drover_core::model::processors::Processors;
use drover_core::model::value::Value;
use drover_core::stats::devices::DeviceUsage;
use drover_core::stats::usage::TaskUsage;
use drover_io_real::data_dir::DataDir;
use drover_io_real::dirs::AllocDirs;
use drover_io_real::driver::Inbox;
use drover_io_real::driver::external::Collectors;
use drover_io_real::gate::Gate;
use drover_io_real::plugins::{DevicePlugins, PluginConfig, PluginSettings};
use drover_io_real::sampler::Sampler;
use drover_io_real::shim::ShimHome;
use plugin_world::{World, sh};
use plugins::{Plugins, example, soon};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SLEEP: &str = "echo $$; exec sleep 1000";

/// A plugin of devices that an agent uses, and who looks at them.
struct Files {
    plugins: Plugins,
    used: drover_io_real::plugins::Plugins,
    sampler: Sampler,
    _data: DataDir,
}

impl Files {
    /// One that does this wrong.
    async fn new(mischief: &str) -> Files {
        let plugins = Plugins::script(&format!(
            "#!/bin/sh\nEXAMPLE_PLUGIN_MISCHIEF={mischief} exec {}\n",
            example("device_plugin").display()
        ));
        let files = plugins.path().join("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("a"), "12345").unwrap();
        fs::write(files.join("b"), "").unwrap();
        fs::set_permissions(plugins.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = DataDir::open(&plugins.path().join("data")).unwrap();
        let names = Value::List(["a", "b"].map(Value::from).into());
        let config = PluginConfig {
            file: plugins.name.clone(),
            args: Vec::new(),
            config: [
                ("dir".to_owned(), Value::String(files.display().to_string())),
                ("files".to_owned(), names),
            ]
            .into(),
        };
        let (inbox, _) = tokio::sync::mpsc::unbounded_channel();
        let home = ShimHome::open(data.path()).unwrap();
        let dirs = AllocDirs::new(data.allocs());
        let settings = PluginSettings {
            dir: plugins.path().to_owned(),
            memory: data.own("plugin-state", None).unwrap(),
            handles: data.own("plugin-tasks", None).unwrap(),
            sockets: plugins.path().join("run"),
            collectors: Collectors::open(&home, data.path(), dirs).unwrap(),
            root: data.alloc_root(),
            processors: Processors::default(),
            inbox: Inbox::new(inbox),
            drivers: drover_io_real::allowed::Allowed::default(),
        };
        let used = drover_io_real::plugins::Plugins::new(vec![config], settings).unwrap();
        let found = soon(used.probe("plugin script")).await.unwrap();
        assert_eq!(found.unwrap().plugins[0].name, "example-files");
        let devices = DevicePlugins::new(Vec::new(), used.clone());
        Files {
            plugins,
            used,
            sampler: Sampler::new([], Gate::default()).listening_to(devices),
            _data: data,
        }
    }

    /// What a look at one of the files shows.
    async fn measure(&self) -> DeviceUsage {
        let held = [AssignedDevices {
            task: "t".to_owned(),
            plugin: "example-files".to_owned(),
            group: GroupId {
                vendor: "example".to_owned(),
                kind: "file".to_owned(),
                name: "plain".to_owned(),
            },
            ids: vec!["a".to_owned()],
        }];
        soon(self.sampler.refresh_devices(&held)).await;
        self.sampler.board().devices.of(&held)
    }

    async fn end(self) {
        soon(self.used.end()).await;
        drop(self.plugins);
    }
}

/// The size of the file, as it was measured.
fn size(usage: &DeviceUsage) -> Option<i64> {
    let instance = usage.groups().first()?.instances.get("a")?;
    instance.summary.as_ref()?.int_numerator
}

#[tokio::test]
async fn device_stats_are_measured_while_used() {
    let files = Files::new("").await;
    assert!(files.sampler.board().devices.all().is_empty());
    let usage = files.measure().await;
    assert_eq!(size(&usage), Some(5));
    assert_eq!(usage.groups()[0].instances.len(), 1, "nobody holds b");
    // From now on it tells by itself.
    fs::write(files.plugins.path().join("files/a"), "123456789").unwrap();
    let began = Instant::now();
    while size(&files.measure().await) != Some(9) {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
    files.sampler.refresh_all_devices().await;
    let all = files.sampler.board().devices.all();
    assert_eq!(all.groups()[0].instances.len(), 2);
    files.end().await;
}

#[tokio::test]
async fn invalid_device_stats_are_dropped() {
    for mischief in ["hang:Stats", "die:Stats", "refuse:Stats", "garbage:Stats"] {
        let files = Files::new(mischief).await;
        let began = Instant::now();
        assert!(files.measure().await.is_empty(), "{mischief}");
        assert!(files.measure().await.is_empty(), "{mischief}");
        assert!(began.elapsed() < Duration::from_secs(10), "{mischief}");
        files.end().await;
    }
}

#[tokio::test]
async fn stats_of_ended_plugin_are_not_shown() {
    for mischief in ["flood:Stats", "end:Stats"] {
        let files = Files::new(mischief).await;
        let began = Instant::now();
        files.measure().await;
        // Without a further look nobody asks it again.
        while !files.sampler.board().devices.all().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "{mischief}");
            tokio::task::yield_now().await;
        }
        files.end().await;
    }
}

/// A task of a driver that does this wrong, and what a look at it shows.
async fn task(mischief: &str) -> (World, Option<Arc<TaskUsage>>) {
    let mut world = World::new();
    world.attach(mischief).await;
    world.start(1, sh(SLEEP)).await.unwrap();
    world.pid("web.stdout.0").await;
    let usage = soon(world.driver.usage(LaunchId(1))).await;
    (world, usage)
}

async fn end(world: World) {
    let mut world = world;
    soon(world.destroy(1)).await.unwrap();
    world.driver.detach();
}

#[tokio::test]
async fn plugin_task_stats_are_measured_while_used() {
    let (world, usage) = task("").await;
    let usage = usage.unwrap();
    assert!(usage.usage.memory.rss > Some(0));
    // It measures no more than that.
    assert_eq!(
        (usage.usage.memory.cache, usage.usage.cpu.percent),
        (None, None)
    );
    assert!(usage.at.0 > 0);
    let began = Instant::now();
    loop {
        let next = world.driver.usage(LaunchId(1)).await.unwrap();
        if next.at > usage.at {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
    assert_eq!(world.driver.usage(LaunchId(2)).await, None);
    let driver = world.driver.clone();
    end(world).await;
    assert_eq!(driver.usage(LaunchId(1)).await, None);
}

#[tokio::test]
async fn invalid_driver_stats_are_dropped() {
    for mischief in ["hang:TaskStats", "refuse:TaskStats", "garbage:TaskStats"] {
        let (world, usage) = task(mischief).await;
        assert_eq!(usage, None, "{mischief}");
        end(world).await;
    }
    for mischief in ["flood:TaskStats", "end:TaskStats"] {
        let (world, _) = task(mischief).await;
        let began = Instant::now();
        // While its stream rests nothing is shown.
        while world.driver.usage(LaunchId(1)).await.is_some() {
            assert!(began.elapsed() < Duration::from_secs(30), "{mischief}");
            tokio::task::yield_now().await;
        }
        end(world).await;
    }
}
