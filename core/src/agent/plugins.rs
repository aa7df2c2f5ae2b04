//! Whom the agent listens to, drivers and plugins of devices, as people ask for them.
//!
//! `/v1/agent/plugins` and `drover plugin status` put this together with what is known of processes
//! (`io-real/src/plugins/status.rs`). A plugin is *hung* when it was asked and did not answer.

use std::collections::{BTreeMap, BTreeSet};

use super::View;
use crate::alloc::runner::AllocRunner;
use crate::fingerprint::PluginKind;
use crate::managers::device::Plugin;
use crate::managers::driver::Driver;
use crate::managers::stream::{Phase, SILENT, Stream};
use crate::model::alloc::TaskLife;
use crate::time::Instant;

/// How somebody is doing who is listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Asked for the first time, and nothing was heard yet.
    Starting,
    /// It speaks.
    Running,
    /// It was asked and said nothing; asked again then, or being asked again if none.
    Silent(Option<Instant>),
    /// It ended or failed; asked again then, or being asked again if none.
    Resting(Option<Instant>),
    /// It said that there is nothing for it on this machine.
    Disabled,
}

/// A driver or a plugin of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listened<'a> {
    /// What it is for.
    pub kind: PluginKind,
    /// Its name.
    pub name: &'a str,
    /// How it is doing.
    pub condition: Condition,
    /// Whether the machine has what it needs and it works.
    pub healthy: bool,
    /// What it says of its health, or why it does not work; empty if there is nothing to say.
    pub message: &'a str,
    /// How many devices it has.
    pub devices: usize,
    /// How many tasks that are not over need it.
    pub tasks: usize,
}

pub(super) fn listened(view: View<'_>) -> Vec<Listened<'_>> {
    let needed = needed(view);
    let tasks = |kind, name: &str| needed.get(&(kind, name)).copied().unwrap_or(0);
    let machine = view.machine();
    let drivers = machine.drivers().drivers().map(|(name, it)| Listened {
        tasks: tasks(PluginKind::Driver, name),
        ..driver(name, it)
    });
    let devices = machine.devices().plugins().map(|(name, it)| Listened {
        tasks: tasks(PluginKind::Device, name),
        ..devices(name, it)
    });
    drivers.chain(devices).collect()
}

fn driver<'a>(name: &'a str, driver: &'a Driver) -> Listened<'a> {
    let info = driver.info();
    let message = info.map_or("", |info| &info.description);
    Listened {
        kind: PluginKind::Driver,
        name,
        condition: condition(driver.stream(), info.map(|_| message)),
        healthy: info.is_some_and(|info| info.healthy),
        message,
        devices: 0,
        tasks: 0,
    }
}

fn devices<'a>(name: &'a str, plugin: &'a Plugin) -> Listened<'a> {
    let condition = match plugin.is_disabled() {
        true => Condition::Disabled,
        false => condition(plugin.stream(), plugin.last_error()),
    };
    let of_groups = plugin.groups().values().map(|group| group.devices.len());
    Listened {
        kind: PluginKind::Device,
        name,
        condition,
        healthy: condition == Condition::Running && plugin.last_error().is_none(),
        message: plugin.last_error().unwrap_or_default(),
        devices: of_groups.sum(),
        tasks: 0,
    }
}

/// `reported` is what is known of it, if it was asked before.
fn condition(stream: &Stream, reported: Option<&str>) -> Condition {
    let until = match stream.phase() {
        Phase::Open => return Condition::Running,
        Phase::Opening => None,
        Phase::Resting(until) => Some(until),
    };
    match reported {
        None => Condition::Starting,
        Some(reported) if reported.ends_with(SILENT) => Condition::Silent(until),
        Some(_) => Condition::Resting(until),
    }
}

/// How many tasks need each driver and each plugin of devices.
fn needed<'a>(view: View<'a>) -> BTreeMap<(PluginKind, &'a str), usize> {
    let mut needed: BTreeMap<(PluginKind, &'a str), usize> = BTreeMap::new();
    for alloc in view.allocs() {
        for task in alloc.tasks() {
            if task.state().state == TaskLife::Dead {
                continue;
            }
            let name: &'a str = &task.spec().driver;
            *needed.entry((PluginKind::Driver, name)).or_default() += 1;
            for plugin in plugins_of(alloc, task.spec().key.task.as_str()) {
                *needed.entry((PluginKind::Device, plugin)).or_default() += 1;
            }
        }
    }
    needed
}

/// Whose devices a task holds, each once.
fn plugins_of<'a>(alloc: &'a AllocRunner, task: &str) -> BTreeSet<&'a str> {
    let held = alloc.record().devices.iter();
    let of_task = held.filter(|held| held.task == task);
    of_task.map(|held| held.plugin.as_str()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::agent::Input;
    use crate::config::{Config, ProbeConfig};
    use crate::device::reported::ReportedGroup;
    use crate::effect::{Effect, NodeEffect, Notification};
    use crate::fingerprint::{Fingerprint, Plugin};
    use crate::input::{DeviceReport, DriverFingerprint, DriverHealth, DriverReport, NodeInput};
    use crate::model::node::Node;
    use crate::op::Op;
    use crate::store::Saved;
    use crate::time::{Now, Span, Timestamp};

    fn at(at: Instant) -> Now {
        Now {
            at,
            wall: Timestamp(0),
        }
    }

    fn agent() -> Agent {
        let mut config = Config::new(1, Node::default(), "/alloc");
        config.drivers = vec!["exec".into()];
        config.device_plugins = vec!["gpus".into()];
        let mut agent = Agent::restore(config, Saved::default(), at(Instant(0)));
        agent.handle_timeout(at(Instant(0)));
        agent
    }

    /// The numbers of the newest streams of the driver and of the plugin of devices.
    fn opened(agent: &mut Agent) -> (Option<Op>, Option<Op>) {
        let (mut driver, mut devices) = (None, None);
        while let Some(effect) = agent.poll_effect() {
            if let Effect::Node(NodeEffect::WatchDriver { op, .. }) = effect {
                driver = Some(op);
            }
            if let Effect::Node(NodeEffect::WatchDevices { op, .. }) = effect {
                devices = Some(op);
            }
        }
        (driver, devices)
    }

    fn conditions(agent: &Agent) -> [Condition; 2] {
        let all = agent.view().listened();
        let [driver, devices] = all.as_slice() else {
            panic!("{all:?}");
        };
        [driver.condition, devices.condition]
    }

    #[test]
    fn silent_plugin_stays_silent_while_retried() {
        let mut agent = agent();
        opened(&mut agent);
        assert_eq!(conditions(&agent), [Condition::Starting; 2]);
        for _ in 0..5 {
            // Among what is due is a commit, too.
            let (due, _) = agent.poll_timeout().unwrap();
            if conditions(&agent) == [Condition::Starting; 2] {
                agent.handle_timeout(at(due));
            }
        }
        let [
            Condition::Silent(Some(again)),
            Condition::Silent(Some(later)),
        ] = conditions(&agent)
        else {
            panic!("{:?}", conditions(&agent));
        };
        let now = at(again.max(later));
        agent.handle_timeout(now);
        assert_eq!(conditions(&agent), [Condition::Silent(None); 2]);
        let (Some(driver), Some(devices)) = opened(&mut agent) else {
            panic!("both are asked again");
        };
        agent.handle(
            now,
            Input::Node(NodeInput::Driver {
                op: driver,
                driver: "exec".to_owned(),
                report: DriverReport::Fingerprint(DriverFingerprint::default()),
            }),
        );
        agent.handle(
            now,
            Input::Node(NodeInput::Devices {
                op: devices,
                plugin: "gpus".to_owned(),
                report: DeviceReport::Devices(Vec::new()),
            }),
        );
        assert_eq!(conditions(&agent), [Condition::Running; 2]);
    }

    #[test]
    fn ended_plugin_keeps_reason_and_disabled_is_not_retried() {
        let mut agent = agent();
        let (Some(driver), Some(devices)) = opened(&mut agent) else {
            panic!("both are asked");
        };
        let now = at(Instant(1));
        agent.handle(
            now,
            Input::Node(NodeInput::Driver {
                op: driver,
                driver: "exec".to_owned(),
                report: DriverReport::Ended("it crashed".to_owned()),
            }),
        );
        agent.handle(
            now,
            Input::Node(NodeInput::Devices {
                op: devices,
                plugin: "gpus".to_owned(),
                report: DeviceReport::Disabled("there are none".to_owned()),
            }),
        );
        let [rests, disabled] = conditions(&agent);
        assert!(matches!(rests, Condition::Resting(Some(_))), "{rests:?}");
        assert_eq!(disabled, Condition::Disabled);
        let messages: Vec<&str> = agent
            .view()
            .listened()
            .iter()
            .map(|it| it.message)
            .collect();
        assert_eq!(
            messages,
            ["failed to fingerprint driver: it crashed", "there are none"]
        );
    }

    fn report_devices(agent: &mut Agent, now: Instant, op: Op, groups: Vec<ReportedGroup>) {
        let devices = NodeInput::Devices {
            op,
            plugin: "gpus".to_owned(),
            report: DeviceReport::Devices(groups),
        };
        agent.handle(at(now), Input::Node(devices));
    }

    #[test]
    fn plugin_is_healthy_while_reports_are_valid() {
        let mut agent = agent();
        let (_, Some(devices)) = opened(&mut agent) else {
            panic!("it is asked");
        };
        let healthy = |agent: &Agent| agent.view().listened()[1].healthy;
        assert!(!healthy(&agent), "it said nothing yet");
        report_devices(&mut agent, Instant(1), devices, Vec::new());
        assert!(healthy(&agent));
        let nameless = ReportedGroup::default();
        report_devices(&mut agent, Instant(2), devices, vec![nameless]);
        assert!(!healthy(&agent), "it says what cannot be");
    }

    #[test]
    fn crashing_plugin_is_retried_with_doubling_backoff() {
        let mut agent = agent();
        let mut now = Instant(0);
        let mut pauses = Vec::new();
        for _ in 0..4 {
            let (Some(driver), _) = opened(&mut agent) else {
                panic!("it is asked");
            };
            let ended = NodeInput::Driver {
                op: driver,
                driver: "exec".to_owned(),
                report: DriverReport::Ended("it crashed".to_owned()),
            };
            agent.handle(at(now), Input::Node(ended));
            let [Condition::Resting(Some(again)), _] = conditions(&agent) else {
                panic!("{:?}", conditions(&agent));
            };
            pauses.push((again - now).0);
            now = again;
            agent.handle_timeout(at(now));
        }
        let five = Span::secs(5).0;
        assert!((five..=five + five / 4).contains(&pauses[0]), "{pauses:?}");
        // To each comes up to a quarter by chance.
        for pair in pauses.windows(2) {
            let times = pair[1] as f64 / pair[0] as f64;
            assert!((1.6..=2.5).contains(&times), "{pauses:?}");
        }
    }

    /// Answers each probe that is asked with the plugin of its name.
    fn find_plugins(agent: &mut Agent, now: Instant) {
        let mut asked = Vec::new();
        while let Some(effect) = agent.poll_effect() {
            if let Effect::Node(NodeEffect::Probe { op, probe }) = effect {
                asked.push((op, probe.to_string()));
            }
        }
        for (op, probe) in asked {
            let kind = match probe.as_str() {
                "gpus" => PluginKind::Device,
                _ => PluginKind::Driver,
            };
            let plugin = Plugin {
                kind,
                name: probe.clone(),
                version: "1".to_owned(),
            };
            let result = Ok(Fingerprint {
                plugins: vec![plugin],
                ..Fingerprint::default()
            });
            let probed = NodeInput::Probed { op, probe, result };
            agent.handle(at(now), Input::Node(probed));
        }
    }

    #[test]
    fn probed_plugin_is_watched_once() {
        let mut config = Config::new(1, Node::default(), "/alloc");
        config.drivers = vec!["exec".into()];
        config.probes = ["podman", "exec", "gpus"]
            .map(|name| ProbeConfig {
                name: name.into(),
                every: Some(Span::secs(60)),
                essential: false,
            })
            .into();
        let mut agent = Agent::restore(config, Saved::default(), at(Instant(0)));
        for second in [0, 60] {
            let now = Instant(0) + Span::secs(second);
            agent.handle_timeout(at(now));
            find_plugins(&mut agent, now);
            let (_, gpus) = opened(&mut agent);
            assert_eq!(gpus.is_some(), second == 0, "asked in the same step");
            let view = agent.view();
            let names: Vec<&str> = view.listened().iter().map(|it| it.name).collect();
            assert_eq!(names, ["exec", "podman", "gpus"], "after {second} seconds");
            let notified: Vec<&str> = (view.machine().events())
                .filter(|event| event.subsystem == "Plugin")
                .map(|event| event.message.as_str())
                .collect();
            assert_eq!(
                notified,
                ["The plugin name \"exec\", found by the probe \"exec\", is taken"]
            );
        }
    }

    #[test]
    fn driver_health_change_raises_index_once() {
        let mut agent = agent();
        let (Some(op), _) = opened(&mut agent) else {
            panic!("it is asked");
        };
        for (health, report) in [
            (DriverHealth::Unhealthy, true),
            (DriverHealth::Healthy, true),
            (DriverHealth::Healthy, false),
        ] {
            let reported = DriverFingerprint {
                health,
                ..DriverFingerprint::default()
            };
            let reported = NodeInput::Driver {
                op,
                driver: "exec".to_owned(),
                report: DriverReport::Fingerprint(reported),
            };
            agent.handle(at(Instant(1)), Input::Node(reported));
            let mut notified = false;
            while let Some(effect) = agent.poll_effect() {
                notified |= matches!(effect, Effect::Notify(Notification::Index(_)));
            }
            assert_eq!(notified, report, "{health:?}");
        }
    }
}
