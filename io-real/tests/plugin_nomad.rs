//! Nomad's own example plugins, if there are any: the path of one of devices is in
//! `FIELD_DEVICE_PLUGIN`, that of a driver in `FIELD_DRIVER_PLUGIN`. A driver that runs its tasks by
//! Nomad's executor wants the control groups `nomad` to be there.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugin_world.rs"]
mod plugin_world;
#[path = "common/plugins.rs"]
mod plugins;

use drover_core::model::value::Value;
use drover_io_real::plugin::{Exit, PluginKind};
use plugin_world::{World, sh};
use plugins::{Plugins, configure, map, soon};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

#[tokio::test]
async fn nomad_device_plugin_runs_unmodified() {
    let Some(program) = std::env::var_os("FIELD_DEVICE_PLUGIN") else {
        eprintln!("skipped: FIELD_DEVICE_PLUGIN names no program");
        return;
    };
    let plugins = Plugins::of("field", Path::new(&program));
    let files = plugins.path().join("files");
    fs::create_dir(&files).unwrap();
    for (name, mode) in [("one", 0o644), ("two", 0o755)] {
        fs::write(files.join(name), "123").unwrap();
        fs::set_permissions(files.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let begin = Instant::now();
    let plugin = plugins.launch("").await.unwrap();
    let launched = begin.elapsed();
    let info = plugin.info().await.unwrap();
    assert_eq!(info.kind, PluginKind::Device);
    eprintln!("{info:?}\n{:?}", plugin.config_schema().await.unwrap());
    let dir = Value::String(files.display().to_string());
    configure(&plugin, map([("dir", dir)])).await.unwrap();
    let mut devices = plugin.devices().await.unwrap();
    let groups = soon(devices.next()).await.unwrap().unwrap();
    eprintln!(
        "launched in {launched:?}, first fingerprint at {:?}",
        begin.elapsed()
    );
    let mut ids = Vec::from_iter(groups.iter().flat_map(|group| &group.devices));
    ids.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(ids.len(), 2, "{groups:?}");
    let given = plugin.reserve(vec![ids[0].id.clone()]).await.unwrap();
    assert!(!given.mounts.is_empty(), "{given:?}");
    assert!(plugin.reserve(vec!["none".to_owned()]).await.is_err());
    let mut stats = plugin
        .device_stats(Duration::from_millis(50))
        .await
        .unwrap();
    let reported = soon(stats.next()).await.unwrap().unwrap();
    assert_eq!(reported[0].instances.len(), 2, "{reported:?}");
    eprintln!("{given:?}\n{:?}", reported[0].instances);
    let status = format!("/proc/{}/status", plugin.remember().process.pid);
    let status = fs::read_to_string(status).unwrap();
    let memory = status.lines().find(|line| line.starts_with("VmRSS"));
    eprintln!("the plugin's memory: {memory:?}");
    assert_eq!(soon(plugin.stop(true)).await, Exit::Code(0));
    assert_eq!(plugins.sockets(), 0);
}

#[tokio::test]
async fn nomad_driver_plugin_runs_unmodified() {
    let Some(program) = std::env::var_os("FIELD_DRIVER_PLUGIN") else {
        eprintln!("skipped: FIELD_DRIVER_PLUGIN names no program");
        return;
    };
    let mut world = World::of(Plugins::of("field", Path::new(&program)));
    let begin = Instant::now();
    let plugin = world.attach("").await;
    eprintln!("{:?}", plugin.config_schema().await.unwrap());
    eprintln!("{:?}", plugin.task_schema().await.unwrap());
    eprintln!("{:?}", plugin.capabilities().await.unwrap());
    let mut health = plugin.driver_health().await.unwrap();
    let reported = soon(health.next()).await.unwrap().unwrap();
    eprintln!("{reported:?} at {:?}", begin.elapsed());
    let unknown = soon(plugin.wait_task("nobody")).await.unwrap_err();
    assert!(unknown.is_unknown_task(), "{unknown:?}");
    let mut task = sh("");
    task.config.clear();
    world.start(1, task).await.unwrap();
    assert_eq!(world.exit(1).await.code, Some(0));
    let reported = async {
        while !world.log("web.stdout.0").contains("Hello, World!") {
            tokio::task::yield_now().await;
        }
    };
    soon(reported).await;
    assert_eq!(world.destroy(1).await, Ok(None));
    plugin.prepare_end().await.unwrap();
    assert_eq!(soon(plugin.stop(false)).await, Exit::Code(0));
}
