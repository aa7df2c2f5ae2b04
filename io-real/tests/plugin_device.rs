//! The life of a plugin of devices, with real processes.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugins.rs"]
mod plugins;

use drover_core::device::reported::ReportedGroup;
use drover_core::driver::spec::{Strictness, decode};
use drover_core::model::value::Value;
use drover_io_real::plugin::{Exit, Limits, Plugin, PluginError, PluginKind, Reattach};
use plugins::{Plugins, configure, lives, map, soon};
use std::fs;
use std::time::Duration;

/// Three files are devices, of which two are there.
fn config(plugins: &Plugins) -> Value {
    let dir = plugins.path().join("files");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("a"), "12345").unwrap();
    fs::write(dir.join("b"), "").unwrap();
    map([
        ("dir", Value::String(dir.display().to_string())),
        (
            "files",
            Value::List(["a", "b", "c"].map(Value::from).into()),
        ),
        ("poll_ms", Value::Int(10)),
    ])
}

fn health(groups: &[ReportedGroup]) -> Vec<(&str, bool)> {
    let devices = groups.iter().flat_map(|group| &group.devices);
    devices
        .map(|device| (device.id.as_str(), device.healthy))
        .collect()
}

#[tokio::test]
async fn device_plugin_lifecycle_works() {
    let plugins = Plugins::example("device_plugin");
    let plugin = plugins.launch("").await.unwrap();
    let info = plugin.info().await.unwrap();
    assert_eq!(
        (info.kind, info.name.as_str(), info.version.text.as_str()),
        (PluginKind::Device, "example-files", "v0.1.0")
    );
    configure(&plugin, config(&plugins)).await.unwrap();
    let mut devices = plugin.devices().await.unwrap();
    let groups = soon(devices.next()).await.unwrap().unwrap();
    assert_eq!(groups[0].kind, "file");
    assert_eq!(groups[0].attributes["size"].int, Some(1));
    assert_eq!(health(&groups), [("a", true), ("b", true), ("c", false)]);
    // What is the same is not told again; what changes is.
    fs::remove_file(plugins.path().join("files/b")).unwrap();
    let groups = soon(devices.next()).await.unwrap().unwrap();
    assert_eq!(health(&groups), [("a", true), ("b", false), ("c", false)]);

    let given = plugin.reserve(vec!["a".to_owned()]).await.unwrap();
    assert_eq!(given.env["EXAMPLE_FILES"], "a");
    assert_eq!(given.mounts[0].task_path, "/dev/files/a");
    assert!(given.mounts[0].read_only);
    let refused = plugin.reserve(vec!["z".to_owned()]).await.unwrap_err();
    assert_eq!(refused.to_string(), r#"Reserve: unknown device "z""#);

    let mut stats = plugin.device_stats(Duration::from_millis(5)).await.unwrap();
    for _ in 0..2 {
        let reported = soon(stats.next()).await.unwrap().unwrap();
        let summary = reported[0].instances["a"].summary.as_ref().unwrap();
        assert_eq!(summary.int_numerator, Some(5));
        assert_eq!((summary.float_numerator, summary.bool), (None, None));
    }

    let pid = plugin.remember().process.pid;
    assert_eq!(plugins.sockets(), 1);
    assert_eq!(soon(plugin.stop(true)).await, Exit::Code(0));
    assert!(!lives(pid));
    assert_eq!(plugins.sockets(), 0);
    assert!(soon(devices.next()).await.is_err());
}

#[tokio::test]
async fn plugin_config_is_validated_by_schema() {
    let plugins = Plugins::example("device_plugin");
    let plugin = plugins.launch("").await.unwrap();
    let schema = plugin.config_schema().await.unwrap().unwrap();
    let problems = |config: Value| {
        let Value::Map(config) = config else {
            panic!("no map")
        };
        let problems = decode(&schema, &config, Strictness::Resolved).unwrap_err();
        Vec::from_iter(problems.iter().map(ToString::to_string))
    };
    assert_eq!(problems(map([])), ["dir: must be given"]);
    let config = map([("dir", Value::from("/x")), ("file", Value::Null)]);
    assert_eq!(
        problems(config),
        [r#"file: unknown option "file" (did you mean "files"?)"#]
    );
    plugin.stop(true).await;
}

#[test]
fn plugin_survives_agent_and_is_reattached() {
    let plugins = Plugins::example("device_plugin");
    let life = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = life();
    let remembered = first.block_on(async {
        let plugin = plugins.launch("").await.unwrap();
        configure(&plugin, config(&plugins)).await.unwrap();
        plugin.remember()
    });
    drop(first);
    // What is remembered may lie on a disk.
    let text = serde_json::to_string(&remembered).unwrap();
    let remembered: Reattach = serde_json::from_str(&text).unwrap();
    assert!(lives(remembered.process.pid));
    life().block_on(async {
        let plugin = Plugin::reattach(&remembered, Limits::default()).await;
        let plugin = plugin.unwrap();
        // It is the same one, with its configuration.
        let mut devices = plugin.devices().await.unwrap();
        let groups = soon(devices.next()).await.unwrap().unwrap();
        assert_eq!(groups[0].devices.len(), 3);
        drop(plugin);
        assert!(remembered.end().await.unwrap());
        assert!(!remembered.end().await.unwrap());
        let gone = Plugin::reattach(&remembered, Limits::default()).await;
        assert!(gone.unwrap_err().is_lost());
    });
}

#[test]
fn plugin_may_print_without_agent() {
    let plugins = Plugins::example("device_plugin");
    let life = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = life();
    let plugin = first.block_on(plugins.launch("chatty")).unwrap();
    let remembered = plugin.remember();
    drop(plugin);
    drop(first);
    let pid = remembered.process.pid;
    let printed = || {
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = printed();
    while printed() < before + 1000 {
        assert!(lives(pid));
        std::thread::yield_now();
    }
    life().block_on(async {
        let plugin = Plugin::reattach(&remembered, Limits::default()).await;
        let plugin = plugin.unwrap();
        // It is read on: more than a pipe can hold is printed.
        let before = printed();
        let reading = async {
            while printed() < before + 100_000 {
                assert!(lives(pid));
                tokio::task::yield_now().await;
            }
        };
        soon(reading).await;
        plugin.kill(true).await;
    });
}

#[tokio::test]
async fn foreign_process_is_not_reattached() {
    let plugins = Plugins::example("device_plugin");
    let plugin = plugins.launch("").await.unwrap();
    let real = plugin.remember();
    let me = i32::try_from(std::process::id()).unwrap();
    let strangers: [fn(&mut Reattach, i32); 4] = [
        |reattach, _| reattach.process.start_time += 1,
        |reattach, _| reattach.process.boot_id.push('0'),
        // This process may have begun in the same hundredth of a second as the plugin.
        |reattach, me| (reattach.process.pid, reattach.process.start_time) = (me, 1),
        |reattach, _| reattach.process.pid = 1,
    ];
    for make_foreign in strangers {
        let mut foreign = real.clone();
        make_foreign(&mut foreign, me);
        let taken = Plugin::reattach(&foreign, Limits::default()).await;
        assert!(taken.unwrap_err().is_lost(), "{foreign:?}");
        assert!(!foreign.end().await.unwrap(), "{foreign:?}");
    }
    assert!(plugin.check().await.is_ok());
    // The right process, but another listens at its socket.
    let path = plugins.path().join("other");
    let _listener = tokio::net::UnixListener::bind(&path).unwrap();
    let mut moved = real.clone();
    moved.address = drover_io_real::plugin::Address::Unix(path);
    let taken = Plugin::reattach(&moved, Limits::default()).await;
    assert!(matches!(taken.unwrap_err(), PluginError::Stranger(_)));
    plugin.stop(true).await;
}

#[tokio::test]
async fn plugin_inherits_nothing_from_agent() {
    // A descriptor that a careless library left open for every program.
    let careless = fs::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&careless, rustix::io::FdFlags::empty()).unwrap();
    let plugins = Plugins::script(concat!(
        "#!/bin/sh\n",
        "[ -z \"$CARGO_MANIFEST_DIR\" ] && [ \"$PLUGIN_PROTOCOL_VERSIONS\" = 2 ] &&\n",
        "echo \"$(ls -l /proc/$$/fd | grep -c /dev/null) $(id -u)\"\n",
    ));
    let error = plugins.launch("").await.unwrap_err();
    let uid = rustix::process::getuid().as_raw();
    // Its standard input, and nothing else.
    let reported = format!("its first line is no handshake but \"1 {uid}\": is it a plugin?");
    assert_eq!(error.to_string(), reported);
}
