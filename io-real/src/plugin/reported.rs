//! From a plugin's messages to the core's types. Nothing is evaluated here: what is missing is
//! missing.

use drover_core::device::reported::{ReportedAttribute, ReportedDevice, ReportedGroup};
use drover_core::device::reported_stats::{
    ReportedInstance, ReportedObject, ReportedStats, ReportedValue,
};
use drover_core::input::HookOutput;
use drover_core::model::device::{DeviceNode, Mount};
use drover_core::model::float::Float;
use drover_core::time::Timestamp;

use super::proto::{device, structs};

pub(super) fn group(group: device::DeviceGroup) -> ReportedGroup {
    ReportedGroup {
        vendor: group.vendor,
        kind: group.device_type,
        name: group.device_name,
        devices: group.devices.into_iter().map(detected).collect(),
        attributes: all(group.attributes, attribute),
    }
}

fn detected(device: device::DetectedDevice) -> ReportedDevice {
    let place = device.hw_locality.map(|place| place.pci_bus_id);
    ReportedDevice {
        id: device.id,
        healthy: device.healthy,
        description: device.health_description,
        pci_bus_id: place.filter(|id| !id.is_empty()),
    }
}

pub(super) fn attribute(attribute: structs::Attribute) -> ReportedAttribute {
    use structs::attribute::Value as V;
    let mut reported = ReportedAttribute {
        unit: attribute.unit,
        ..ReportedAttribute::default()
    };
    match attribute.value {
        Some(V::FloatVal(value)) => reported.float = Some(Float::new(value)),
        Some(V::IntVal(value)) => reported.int = Some(value),
        Some(V::StringVal(value)) => reported.string = Some(value),
        Some(V::BoolVal(value)) => reported.bool = Some(value),
        None => {}
    }
    reported
}

pub(super) fn reservation(given: device::ContainerReservation) -> HookOutput {
    let mounts = given.mounts.into_iter().map(|mount| Mount {
        task_path: mount.task_path,
        host_path: mount.host_path,
        read_only: mount.read_only,
        ..Mount::default()
    });
    let devices = given.devices.into_iter().map(|device| DeviceNode {
        task_path: device.task_path,
        host_path: device.host_path,
        permissions: device.permissions,
    });
    HookOutput {
        env: given.envs,
        mounts: mounts.collect(),
        nodes: devices.collect(),
        ..HookOutput::default()
    }
}

pub(super) fn stats(group: device::DeviceGroupStats) -> ReportedStats {
    ReportedStats {
        vendor: group.vendor,
        kind: group.r#type,
        name: group.name,
        instances: all(group.instance_stats, |stats| ReportedInstance {
            summary: stats.summary.map(value),
            stats: stats.stats.map(object),
            time: stats.timestamp.as_ref().map(timestamp),
        }),
    }
}

fn object(object: structs::StatObject) -> ReportedObject {
    ReportedObject {
        nested: all(object.nested, self::object),
        attributes: all(object.attributes, value),
    }
}

fn value(value: structs::StatValue) -> ReportedValue {
    ReportedValue {
        float_numerator: value.float_numerator_val.map(Float::new),
        float_denominator: value.float_denominator_val.map(Float::new),
        int_numerator: value.int_numerator_val,
        int_denominator: value.int_denominator_val,
        string: value.string_val,
        bool: value.bool_val,
        unit: value.unit,
        description: value.desc,
    }
}

/// A moment; the nearest that can be said, if it cannot.
pub(super) fn timestamp(time: &prost_types::Timestamp) -> Timestamp {
    let seconds = time.seconds.saturating_mul(1_000_000_000);
    Timestamp(seconds.saturating_add(i64::from(time.nanos)))
}

fn all<A, B>(
    from: std::collections::BTreeMap<String, A>,
    convert: impl Fn(A) -> B,
) -> std::collections::BTreeMap<String, B> {
    from.into_iter()
        .map(|(name, value)| (name, convert(value)))
        .collect()
}

#[cfg(test)]
#[path = "reported_tests.rs"]
mod tests;
