//! A driver or a plugin of devices, by names of our own.

use std::collections::BTreeMap;

use drover_core::agent::{Condition, Listened, View};
use drover_core::fingerprint::PluginKind;
use drover_core::managers::fingerprint::Probe;
use drover_core::time::{Instant, Now, Timestamp};
use drover_io_real::plugins::{Plugins, Status};
use serde::{Deserialize, Serialize};

use crate::http::Settings;
use crate::times;

/// How a driver or a plugin of devices is doing, as `/v1/agent/plugins` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PluginDto {
    /// Its name; that of its program where it never said another.
    pub name: String,
    /// `driver` or `device`; empty where it never said it.
    pub kind: String,
    /// Its version; that of the agent where it is a part of it.
    pub version: String,
    /// The name of its program; empty where it is a part of the agent.
    pub program: String,
    /// `running`, `starting`, `restarting`, `backing off`, `hung`, `disabled` or `denied`.
    pub state: String,
    /// Whether it works and has what it needs.
    pub healthy: bool,
    /// What it says of its health, or why it does not work.
    pub message: String,
    /// When it is asked again; empty if nothing is waited for.
    pub next_try: String,
    /// Its process; none if there is no such.
    pub pid: Option<i32>,
    /// Since when that runs; empty if it does not.
    pub since: String,
    /// How often this agent started it again.
    pub restarts: u64,
    /// How many tasks that are not over need it.
    pub tasks: usize,
    /// How many devices it has.
    pub devices: usize,
}

/// Everybody whom the agent listens to, and every program that is to be a plugin.
pub(crate) fn plugins(
    view: View<'_>,
    settings: &Settings,
    programs: Vec<Status>,
    now: Now,
) -> Vec<PluginDto> {
    let mut all: BTreeMap<(PluginKind, String), PluginDto> = BTreeMap::new();
    for it in view.listened() {
        all.insert(
            (it.kind, it.name.to_owned()),
            listened(&it, &settings.version, now),
        );
    }
    for (name, why) in settings.client.denied_drivers() {
        all.insert((PluginKind::Driver, name.to_owned()), denied(name, &why));
    }
    let mut nameless = Vec::new();
    for program in programs {
        let named = program.named.as_ref();
        let known = named.map(|named| (named.kind, named.name.clone()));
        match known.and_then(|known| all.get_mut(&known)) {
            // Two programs of one name: the second is told of by its own.
            Some(shape) if shape.program.is_empty() => shape.runs_as(&program),
            _ => nameless.push(unavailable(view, &program, now)),
        }
    }
    all.into_values().chain(nameless).collect()
}

impl PluginDto {
    /// What is known of its program.
    fn runs_as(&mut self, program: &Status) {
        self.program.clone_from(&program.file);
        self.restarts = program.starts.saturating_sub(1);
        self.version = program
            .named
            .as_ref()
            .map_or_else(String::new, |named| named.version.clone());
        if let Some(runs) = program.process {
            self.pid = Some(runs.pid);
            self.since = times::to_seconds(runs.since);
        }
    }
}

fn kind(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Driver => "driver",
        PluginKind::Device => "device",
    }
}

fn listened(it: &Listened<'_>, version: &str, now: Now) -> PluginDto {
    let (state, next) = match it.condition {
        Condition::Starting => ("starting", None),
        Condition::Running => ("running", None),
        Condition::Silent(next) => ("hung", next),
        Condition::Resting(None) => ("restarting", None),
        Condition::Resting(next) => ("backing off", next),
        Condition::Disabled => ("disabled", None),
    };
    PluginDto {
        name: it.name.to_owned(),
        kind: kind(it.kind).to_owned(),
        version: version.to_owned(),
        state: state.to_owned(),
        healthy: it.healthy,
        message: it.message.to_owned(),
        next_try: next.map_or_else(String::new, |at| shown(at, now)),
        tasks: it.tasks,
        devices: it.devices,
        ..PluginDto::default()
    }
}

/// A driver of the agent itself that is not wanted.
fn denied(name: &str, why: &str) -> PluginDto {
    PluginDto {
        name: name.to_owned(),
        kind: kind(PluginKind::Driver).to_owned(),
        state: "denied".to_owned(),
        message: why.to_owned(),
        ..PluginDto::default()
    }
}

/// A program of which nobody is listened to: its plugin was not found yet, or is of no use.
fn unavailable(view: View<'_>, program: &Status, now: Now) -> PluginDto {
    let name = Plugins::probe_of(&program.file);
    let mut probes = view.machine().fingerprints().probes();
    let probe = probes.find(|probe| probe.name() == name);
    let trouble = probe.and_then(Probe::last_error).unwrap_or_default();
    let next = probe.and_then(Probe::asked_again);
    let state = match (&program.denied, trouble, next) {
        (Some(_), _, _) => "denied",
        (None, "", _) => "starting",
        (None, _, None) => "restarting",
        (None, _, Some(_)) => "backing off",
    };
    let message = program.denied.as_deref().unwrap_or(trouble);
    let named = program.named.as_ref();
    let mut shape = PluginDto {
        name: named.map_or(&program.file, |named| &named.name).clone(),
        kind: named.map_or("", |named| kind(named.kind)).to_owned(),
        state: state.to_owned(),
        message: message.to_owned(),
        next_try: next
            .filter(|_| !trouble.is_empty())
            .map_or_else(String::new, |at| shown(at, now)),
        ..PluginDto::default()
    };
    shape.runs_as(program);
    shape
}

/// A moment of the boot clock, by the wall clock.
fn shown(at: Instant, now: Now) -> String {
    times::to_seconds(Timestamp(now.wall.0.saturating_add((at - now.at).0)))
}
