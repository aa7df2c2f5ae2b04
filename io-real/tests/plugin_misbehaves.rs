//! Plugins that misbehave, with real processes: each mistake is a clear error, costs nobody else
//! anything, and leaves no process behind.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "common/plugins.rs"]
mod plugins;

use drover_core::model::value::Value;
use drover_io_real::plugin::{Exit, HandshakeError, LaunchSpec, Limits, Plugin, PluginError};
use plugins::{Plugins, configure, lives, map, soon};
use std::time::{Duration, Instant};

/// Waits no longer than tests have to.
fn impatient(plugins: &Plugins, mischief: &str) -> LaunchSpec {
    LaunchSpec {
        start_timeout: Duration::from_millis(500),
        limits: Limits {
            call: Duration::from_millis(500),
            per_second: 100,
            ..Limits::default()
        },
        ..plugins.spec(mischief)
    }
}

async fn launch(plugins: &Plugins, mischief: &str) -> Result<Plugin, PluginError> {
    let spec = impatient(plugins, mischief);
    soon(Plugin::launch(&plugins.program(), &spec)).await
}

async fn configured(plugins: &Plugins, mischief: &str) -> Plugin {
    let plugin = plugins.launch(mischief).await.unwrap();
    let config = map([
        ("dir", Value::from("/dev")),
        ("files", Value::List(vec![Value::from("null")])),
        ("poll_ms", Value::Int(5)),
    ]);
    configure(&plugin, config).await.unwrap();
    plugin
}

#[tokio::test]
async fn bad_plugin_start_has_named_error() {
    use HandshakeError as H;
    use PluginError as E;
    let plugins = Plugins::example("device_plugin");
    let good = configured(&plugins, "").await;
    type Wanted = fn(&E) -> bool;
    let table: [(&str, Wanted); 9] = [
        (
            "crash",
            |e| matches!(e, E::ExitedEarly { exit: Exit::Code(2), reported } if reported.contains("told to")),
        ),
        ("silent", |e| matches!(e, E::StartTimeout(_))),
        ("garbage", |e| matches!(e, E::Handshake(H::Garbage(_)))),
        ("endless", |e| matches!(e, E::Handshake(H::TooLong))),
        ("version", |e| matches!(e, E::Handshake(H::Protocol(_)))),
        ("netrpc", |e| matches!(e, E::Handshake(H::Transport(_)))),
        ("foreign", |e| matches!(e, E::Stranger(_))),
        ("hang:Check", |e| {
            matches!(e, E::Timeout { call: "Check", .. })
        }),
        ("die:Check", |e| matches!(e, E::Lost(_))),
    ];
    for (mischief, is_wanted) in table {
        match launch(&plugins, mischief).await {
            Ok(_) => panic!("{mischief} was not noticed"),
            Err(error) => assert!(is_wanted(&error), "{mischief}: {error:?}"),
        }
    }
    // Not one of them is left, and the one that does nothing wrong does not notice.
    assert_eq!(plugins.processes(), [good.remember().process.pid]);
    assert!(good.check().await.is_ok());
    good.stop(true).await;
}

#[tokio::test]
async fn hanging_call_times_out_and_others_go_on() {
    let plugins = Plugins::example("device_plugin");
    for call in [
        "PluginInfo",
        "ConfigSchema",
        "SetConfig",
        "Fingerprint",
        "Reserve",
        "Stats",
    ] {
        let plugin = launch(&plugins, &format!("hang:{call}")).await.unwrap();
        let every = Duration::from_millis(5);
        let error = match call {
            "PluginInfo" => plugin.info().await.map(drop),
            "ConfigSchema" => plugin.config_schema().await.map(drop),
            "SetConfig" => plugin.configure(&Value::Null, "v0.1.0", None).await,
            "Fingerprint" => plugin.devices().await.map(drop),
            "Reserve" => plugin.reserve(Vec::new()).await.map(drop),
            _ => plugin.device_stats(every).await.map(drop),
        };
        match error {
            Err(PluginError::Timeout { call: hung, .. }) => assert_eq!(hung, call),
            other => panic!("{call}: {other:?}"),
        }
        assert!(plugin.check().await.is_ok());
        assert_eq!(soon(plugin.stop(true)).await, Exit::Code(0));
    }
}

#[tokio::test]
async fn unresponsive_plugin_is_killed() {
    let plugins = Plugins::example("device_plugin");
    let plugin = launch(&plugins, "hang:Shutdown").await.unwrap();
    let pid = plugin.remember().process.pid;
    assert_eq!(soon(plugin.stop(true)).await, Exit::Signal(9));
    assert!(!lives(pid));
    assert_eq!(plugins.sockets(), 0);
}

#[tokio::test]
async fn flooding_plugin_is_stopped() {
    let plugins = Plugins::example("device_plugin");
    let spec = impatient(&plugins, "flood");
    let plugin = Plugin::launch(&plugins.program(), &spec).await.unwrap();
    let mut devices = plugin.devices().await.unwrap();
    let begin = Instant::now();
    let mut taken = 0;
    let error = loop {
        match soon(devices.next()).await {
            Ok(groups) => taken += u32::from(groups.is_some()),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PluginError::Flood(100)), "{error:?}");
    let seconds = u32::try_from(begin.elapsed().as_secs()).unwrap() + 1;
    assert!(taken <= 100 * seconds, "{taken} messages");
    assert!(plugin.check().await.is_ok());
    plugin.stop(true).await;
}

#[tokio::test]
async fn plugin_death_fails_pending_calls() {
    let plugins = Plugins::example("device_plugin");
    let good = configured(&plugins, "").await;
    let plugin = configured(&plugins, "die:Reserve").await;
    let mut devices = plugin.devices().await.unwrap();
    soon(devices.next()).await.unwrap().unwrap();
    let error = soon(plugin.reserve(vec!["null".to_owned()])).await;
    assert!(error.unwrap_err().is_lost());
    let broken = loop {
        if let Err(error) = soon(devices.next()).await {
            break error;
        }
    };
    assert!(broken.is_lost(), "{broken:?}");
    let lost = soon(plugin.lost()).await.to_string();
    assert!(lost.contains("exit code 3"), "{lost}");
    assert!(!plugin.is_alive());
    assert!(soon(plugin.info()).await.unwrap_err().is_lost());

    // What it said just before may be lost with it.
    let breaking = configured(&plugins, "break").await;
    let mut devices = breaking.devices().await.unwrap();
    let broken = loop {
        if let Err(error) = soon(devices.next()).await {
            break error;
        }
    };
    assert!(broken.is_lost(), "{broken:?}");

    let closing = configured(&plugins, "close").await;
    let mut devices = closing.devices().await.unwrap();
    soon(devices.next()).await.unwrap().unwrap();
    assert_eq!(soon(devices.next()).await.unwrap(), None);
    assert!(good.reserve(vec!["null".to_owned()]).await.is_ok());
    closing.stop(true).await;
    good.stop(true).await;
}

#[tokio::test]
async fn plugin_log_lines_are_forwarded() {
    let plugins = Plugins::example("device_plugin");
    let plugin = configured(&plugins, "duplicate").await;
    let mut devices = plugin.devices().await.unwrap();
    let groups = soon(devices.next()).await.unwrap().unwrap();
    let ids: Vec<_> = groups[0].devices.iter().map(|device| &device.id).collect();
    assert_eq!(ids, ["null", "null"]);
    plugin.stop(true).await;
    let other = plugins.launch("api").await.unwrap();
    let error = other.info().await.unwrap_err();
    assert!(matches!(error, PluginError::Invalid(_)), "{error:?}");
    other.stop(true).await;
    let refusing = plugins.launch("refuse:Stats").await.unwrap();
    let error = refusing.device_stats(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.to_string(), "Stats: told to refuse");
    refusing.stop(true).await;
}
