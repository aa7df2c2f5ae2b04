//! What `drover node status -verbose` shows of a machine: its drivers, devices, events, probes.

use serde_json::Value;

use super::table::table;
use crate::http::dto::{Asked, HostVolumeDto, NodeDto};

/// A title, and what is shown below it.
pub(super) type Section = (&'static str, String);

/// Every section that has something to show.
pub(super) fn sections(node: &NodeDto) -> Vec<Section> {
    let all = [
        ("Drivers", drivers(node)),
        ("Host Volumes", host_volumes(node)),
        ("Devices", devices(node)),
        ("Node Events", events(node)),
        (
            "Device Plugins",
            asked("Plugin", "Devices", &node.device_plugins),
        ),
        ("Fingerprints", asked("Probe", "Facts", &node.probes)),
    ];
    all.into_iter()
        .filter_map(|(title, text)| Some((title, text?)))
        .collect()
}

fn drivers(node: &NodeDto) -> Option<String> {
    let row = |(name, driver): (&String, &crate::http::dto::Driver)| {
        [
            name.clone(),
            driver.detected.to_string(),
            driver.healthy.to_string(),
            driver.health_description.clone(),
        ]
    };
    let rows: Vec<_> = node.drivers.iter().map(row).collect();
    let header = ["Driver", "Detected", "Healthy", "Message"];
    (!rows.is_empty()).then(|| table(header, rows))
}

fn host_volumes(node: &NodeDto) -> Option<String> {
    let row = |volume: &HostVolumeDto| {
        let id = match volume.id.as_str() {
            "" => "<none>",
            id => id,
        };
        [
            volume.name.clone(),
            volume.read_only.to_string(),
            volume.path.clone(),
            id.to_owned(),
        ]
    };
    let rows: Vec<_> = node.host_volumes.values().map(row).collect();
    let header = ["Name", "ReadOnly", "Source", "ID"];
    (!rows.is_empty()).then(|| table(header, rows))
}

fn devices(node: &NodeDto) -> Option<String> {
    let groups = node.node_resources.get("Devices")?.as_array()?;
    let text = |value: &Value, name: &str| {
        let text = value.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let of_group = |group: &Value| -> Vec<[String; 4]> {
        let name = ["Vendor", "Type", "Name"]
            .map(|part| text(group, part))
            .join("/");
        let instances = group.get("Instances").and_then(Value::as_array);
        let row = |instance: &Value| {
            let healthy = instance.get("Healthy").and_then(Value::as_bool);
            [
                name.clone(),
                text(instance, "ID"),
                healthy.unwrap_or(false).to_string(),
                text(instance, "HealthDescription"),
            ]
        };
        instances.into_iter().flatten().map(row).collect()
    };
    let rows: Vec<_> = groups.iter().flat_map(of_group).collect();
    let header = ["Device Group", "ID", "Healthy", "Message"];
    (!rows.is_empty()).then(|| table(header, rows))
}

fn events(node: &NodeDto) -> Option<String> {
    let row = |event: &crate::http::dto::Event| {
        [
            event.timestamp.clone(),
            event.subsystem.clone(),
            event.message.clone(),
        ]
    };
    let rows: Vec<_> = node.events.iter().rev().map(row).collect();
    (!rows.is_empty()).then(|| table(["Time", "Subsystem", "Message"], rows))
}

/// Who was asked, how much is known of it, and why it does not work.
fn asked(who: &'static str, what: &'static str, asked: &[Asked]) -> Option<String> {
    let row = |one: &Asked| {
        let trouble = if one.trouble.is_empty() {
            "ok"
        } else {
            &one.trouble
        };
        [one.name.clone(), one.known.to_string(), trouble.to_owned()]
    };
    (!asked.is_empty()).then(|| table([who, what, "Status"], asked.iter().map(row)))
}
