//! What a node reports, as servers take it: what became of allocations, and its own events.

use drover_core::cluster::AllocReport;
use drover_core::model::alloc::TaskState;
use drover_core::model::event::{EventType, TaskEvent};
use drover_core::model::node::NodeEvent;
use drover_core::text::parse_duration;
use drover_core::time::Timestamp;
use drover_rpc::msgpack::Time;
use drover_rpc::types::allocation::{DeploymentStatus, NetworkStatus};
use drover_rpc::types::network::Dns;
use drover_rpc::types::{node, update};

/// The interface of an allocation with an address of its own.
const INTERFACE: &str = "eth0";

/// What became of an allocation of this node.
pub(super) fn of(report: &AllocReport, node: &str) -> update::AllocUpdate {
    let tasks = report.tasks.iter();
    update::AllocUpdate {
        client_description: report.description.to_string(),
        client_status: report.status.as_str().to_owned(),
        deployment_status: report.health.map(|health| DeploymentStatus {
            healthy: Some(health.healthy),
            timestamp: time(Some(health.timestamp)),
            ..DeploymentStatus::default()
        }),
        id: report.id.to_string(),
        network_status: network(report),
        node_id: node.to_owned(),
        task_states: tasks
            .map(|(name, state)| (name.to_string(), task(state)))
            .collect(),
    }
}

/// Its own network, if that has an address: behind the bridge, or where plugins said.
fn network(report: &AllocReport) -> Option<NetworkStatus> {
    if let Some(found) = &report.found {
        let text = |address: Option<String>| address.unwrap_or_default();
        return Some(NetworkStatus {
            address: text(found.address.map(|it| it.to_string())),
            address_ipv6: text(found.address_ipv6.map(|it| it.to_string())),
            dns: found.dns.as_ref().map(|dns| Dns {
                options: dns.options.clone(),
                searches: dns.searches.clone(),
                servers: dns.servers.clone(),
            }),
            interface_name: found.interface.clone(),
        });
    }
    report.address.map(|address| NetworkStatus {
        address: address.to_string(),
        interface_name: INTERFACE.to_owned(),
        ..NetworkStatus::default()
    })
}

fn task(state: &TaskState) -> update::TaskState {
    update::TaskState {
        events: state.events.iter().map(|it| task_event(it)).collect(),
        failed: state.failed,
        finished_at: time(state.finished_at),
        last_restart: time(state.last_restart),
        restarts: state.restarts,
        started_at: time(state.started_at),
        state: state.state.as_str().to_owned(),
        ..update::TaskState::default()
    }
}

/// What servers show of an event is in its details, and once more in the fields of versions before those.
fn task_event(event: &TaskEvent) -> update::TaskEvent {
    let text = |name: &str| event.details.get(name).cloned().unwrap_or_default();
    let number = |name: &str| text(name).parse().unwrap_or_default();
    let timeout = parse_duration(&text("kill_timeout"));
    // Of one that a task was sent there is the name, of one that ended it the number.
    let sent = match event.kind {
        EventType::Signaling => text("signal"),
        _ => String::new(),
    };
    update::TaskEvent {
        disk_limit: number("disk_limit"),
        download_error: text("download_error"),
        driver_error: text("driver_error"),
        driver_message: text("driver_message"),
        exit_code: exit_code(event),
        failed_sibling: text("failed_sibling"),
        kill_error: text("kill_error"),
        kill_reason: text("kill_reason"),
        kill_timeout: timeout.map_or(0, |timeout| timeout.0),
        message: text("message"),
        restart_reason: text("restart_reason"),
        setup_error: text("setup_error"),
        signal: number("signal"),
        start_delay: number("start_delay"),
        task_signal: sent,
        validation_error: text("validation_error"),
        details: event.details.clone(),
        display_message: event.display_message.clone(),
        fails_task: event.fails_task,
        time: event.time.0,
        r#type: event.kind.as_str().to_owned(),
        ..update::TaskEvent::default()
    }
}

/// What nobody knows is no success.
fn exit_code(event: &TaskEvent) -> i64 {
    let code = event.details.get("exit_code");
    code.map_or(0, |code| code.parse().unwrap_or(-1))
}

/// An event of the node.
pub(super) fn event(event: &NodeEvent) -> node::NodeEvent {
    node::NodeEvent {
        details: event.details.clone(),
        message: event.message.clone(),
        subsystem: event.subsystem.clone(),
        timestamp: time(Some(event.time)),
        ..node::NodeEvent::default()
    }
}

fn time(at: Option<Timestamp>) -> Time {
    at.map_or(Time::ZERO, |at| Time::from_unix_nanos(at.0))
}
