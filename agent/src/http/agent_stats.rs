//! What an agent counts of itself, in sections with Nomad's names: the `stats` of `/v1/agent/self`, which `agent-info`
//! shows. What has no counterpart here (Raft, Serf, Go's runtime) is left out.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::thread::available_parallelism;

use drover_core::agent::View;
use drover_core::time::Span;
use drover_io_real::clock;

use super::Settings;

/// A section: its values by their names, all of them text.
pub(super) type Section = BTreeMap<&'static str, String>;

/// All sections.
pub(super) fn sections(
    view: View<'_>,
    settings: &Settings,
    process: Section,
) -> BTreeMap<&'static str, Section> {
    let mut sections = BTreeMap::from([
        ("client", client(view, settings)),
        ("core", core(view)),
        ("runtime", runtime(view, settings, process)),
    ]);
    // A node of a cluster is no server.
    if view.server().is_none() {
        sections.insert("nomad", server(settings));
    }
    sections
}

fn client(view: View<'_>, settings: &Settings) -> Section {
    let mut section = Section::from([
        ("node_id", view.node().id.to_string()),
        // Also those that ended, until they are collected.
        ("num_allocations", view.allocs().count().to_string()),
    ]);
    let Some(server) = view.server() else {
        section.insert("known_servers", settings.http_addr.clone());
        return section;
    };
    let mut servers: Vec<&str> = server.servers().map(|server| &**server).collect();
    if servers.is_empty() {
        let configured = settings.client.node.servers.iter();
        servers = configured.map(String::as_str).collect();
    }
    section.insert("known_servers", servers.join(","));
    let heartbeat = server.heartbeat();
    if let (Some(last), Some(until)) = (heartbeat.last(), heartbeat.counts_until()) {
        let ago: Span = clock::now().at - last;
        section.insert("last_heartbeat", ago.to_string());
        section.insert("heartbeat_ttl", (until - last).to_string());
    }
    if let Some(why) = server.last_error() {
        section.insert("last_error", why.to_owned());
    }
    section
}

fn core(view: View<'_>) -> Section {
    let counters = view.counters();
    Section::from([
        ("steps", counters.steps.to_string()),
        ("stale", counters.stale.to_string()),
        ("overdue", counters.overdue.to_string()),
    ])
}

fn server(settings: &Settings) -> Section {
    let yes = || true.to_string();
    Section::from([
        ("server", yes()),
        ("bootstrap", yes()),
        ("leader", yes()),
        ("leader_addr", settings.http_addr.clone()),
        ("known_regions", 1.to_string()),
    ])
}

fn runtime(view: View<'_>, settings: &Settings, process: Section) -> Section {
    let attributes = &view.node().attributes;
    let arch = attributes.get("cpu.arch").map(String::as_str);
    let mut section = Section::from([
        ("arch", arch.unwrap_or(std::env::consts::ARCH).to_owned()),
        ("kernel.name", std::env::consts::OS.to_owned()),
        ("version", format!("drover {}", settings.version)),
    ]);
    section.extend(process);
    section
}

/// What the kernel says of this process.
pub(super) fn process() -> Section {
    let mut section = Section::new();
    if let Ok(count) = available_parallelism().map(NonZero::get) {
        section.insert("cpu_count", count.to_string());
    }
    if let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        section.insert("threads", threads.count().to_string());
    }
    section
}
