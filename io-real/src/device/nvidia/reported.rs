//! What is known of GPUs, in the form in which devices are announced and measured. Names and units
//! are Nomad's; what a GPU does not report is left out.

use std::collections::BTreeMap;

use drover_core::device::reported::{ReportedAttribute, ReportedDevice, ReportedGroup};
use drover_core::device::reported_stats::{
    ReportedInstance, ReportedObject, ReportedStats, ReportedValue,
};
use drover_core::time::Timestamp;

use super::gpu::{Facts, Gpu, Part, Used};

/// Who makes them.
const VENDOR: &str = "nvidia";
/// What they are.
const KIND: &str = "gpu";

/// GPUs of one model are a group; the first one's attributes count.
pub(super) fn groups(gpus: &[Gpu]) -> Vec<ReportedGroup> {
    let mut groups: BTreeMap<&str, ReportedGroup> = BTreeMap::new();
    for gpu in gpus {
        let group = groups.entry(&gpu.name).or_insert_with(|| ReportedGroup {
            vendor: VENDOR.to_owned(),
            kind: KIND.to_owned(),
            name: gpu.name.clone(),
            devices: Vec::new(),
            attributes: attributes(&gpu.facts),
        });
        group.devices.push(ReportedDevice {
            id: gpu.id.clone(),
            healthy: gpu.trouble.is_none(),
            description: gpu.trouble.clone().unwrap_or_default(),
            pci_bus_id: gpu.pci_bus_id.clone(),
        });
    }
    groups.into_values().collect()
}

fn attributes(facts: &Facts) -> BTreeMap<String, ReportedAttribute> {
    let number = |value: Option<i64>, unit: &str| {
        value.map(|value| ReportedAttribute {
            int: Some(value),
            unit: unit.to_owned(),
            ..ReportedAttribute::default()
        })
    };
    let text = |value: Option<&str>| {
        value.map(|value| ReportedAttribute {
            string: Some(value.to_owned()),
            ..ReportedAttribute::default()
        })
    };
    let state = |on: Option<bool>| text(on.map(|on| if on { "Enabled" } else { "Disabled" }));
    let all = [
        ("memory", number(facts.memory, "MiB")),
        ("power", number(facts.power, "W")),
        ("bar1", number(facts.bar1, "MiB")),
        ("driver_version", text(facts.driver_version.as_deref())),
        ("cores_clock", number(facts.cores_clock, "MHz")),
        ("memory_clock", number(facts.memory_clock, "MHz")),
        ("pci_bandwidth", number(facts.pci_bandwidth, "MB/s")),
        ("display_state", state(facts.display)),
        ("persistence_mode", state(facts.persistence)),
    ];
    let known = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}

/// What was measured of GPUs, each with its id and model.
pub(super) fn stats<'a>(
    measured: impl IntoIterator<Item = (&'a str, &'a str, &'a ReportedInstance)>,
) -> Vec<ReportedStats> {
    let mut groups: BTreeMap<&str, ReportedStats> = BTreeMap::new();
    for (id, name, instance) in measured {
        let group = groups.entry(name).or_insert_with(|| ReportedStats {
            vendor: VENDOR.to_owned(),
            kind: KIND.to_owned(),
            name: name.to_owned(),
            instances: BTreeMap::new(),
        });
        group.instances.insert(id.to_owned(), instance.clone());
    }
    groups.into_values().collect()
}

/// What was measured of one GPU.
pub(super) fn instance(used: &Used, at: Timestamp) -> ReportedInstance {
    let whole = |used: Option<i64>| Part { used, total: None };
    let all = [
        ("Power usage", used.power, "W", "power draw, of its limit"),
        (
            "GPU utilization",
            whole(used.cores),
            "%",
            "part of the time in which its cores worked",
        ),
        (
            "Memory utilization",
            whole(used.memory_busy),
            "%",
            "part of the time in which its memory was read or written",
        ),
        (
            "Encoder utilization",
            whole(used.encoder),
            "%",
            "use of its encoders",
        ),
        (
            "Decoder utilization",
            whole(used.decoder),
            "%",
            "use of its decoders",
        ),
        (
            "Temperature",
            whole(used.temperature),
            "C",
            "temperature of the GPU",
        ),
        ("Memory state", used.memory, "MiB", "memory in use, of all"),
        (
            "BAR1 buffer state",
            used.bar1,
            "MiB",
            "mapped memory in use, of all",
        ),
        (
            "ECC L1 errors",
            whole(used.ecc_l1),
            "#",
            "errors in the first cache that could not be corrected",
        ),
        (
            "ECC L2 errors",
            whole(used.ecc_l2),
            "#",
            "errors in the second cache that could not be corrected",
        ),
        (
            "ECC memory errors",
            whole(used.ecc_memory),
            "#",
            "errors in memory that could not be corrected",
        ),
    ];
    let values = all
        .into_iter()
        .filter_map(|(name, part, unit, description)| {
            Some((name.to_owned(), value(part, unit, description)?))
        });
    let attributes: BTreeMap<String, ReportedValue> = values.collect();
    ReportedInstance {
        summary: attributes.get("Memory state").cloned(),
        stats: Some(ReportedObject {
            nested: BTreeMap::new(),
            attributes,
        }),
        time: Some(at),
    }
}

/// A value, if it is known how much is used: all that there is says nothing alone.
fn value(part: Part, unit: &str, description: &str) -> Option<ReportedValue> {
    Some(ReportedValue {
        int_numerator: Some(part.used?),
        int_denominator: part.total,
        unit: unit.to_owned(),
        description: description.to_owned(),
        ..ReportedValue::default()
    })
}
