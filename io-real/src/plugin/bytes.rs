//! Messages of plugins from bytes, without a plugin: the same code that reads what comes over a
//! connection, for whoever wants to throw bytes at it.

use drover_core::device::reported::ReportedGroup;
use drover_core::device::reported_stats::ReportedStats;
use drover_core::driver::reported::ReportedUsage;
use drover_core::driver::spec::Spec;
use drover_core::input::DriverFingerprint;
use prost::Message;

use super::error::PluginError;
use super::proto::{device, driver, hclspec};
use super::{driver_reported, reported, spec};

/// What a plugin of devices says of them.
///
/// # Errors
/// It is no such message.
pub fn devices(bytes: &[u8]) -> Result<Vec<ReportedGroup>, PluginError> {
    let message: device::FingerprintResponse = read(bytes)?;
    Ok(message
        .device_group
        .into_iter()
        .map(reported::group)
        .collect())
}

/// What a plugin of devices measures.
///
/// # Errors
/// It is no such message.
pub fn device_stats(bytes: &[u8]) -> Result<Vec<ReportedStats>, PluginError> {
    let message: device::StatsResponse = read(bytes)?;
    Ok(message.groups.into_iter().map(reported::stats).collect())
}

/// How a driver says that it is.
///
/// # Errors
/// It is no such message.
pub fn driver_health(bytes: &[u8]) -> Result<DriverFingerprint, PluginError> {
    read(bytes).map(driver_reported::driver)
}

/// What a driver measures of a task.
///
/// # Errors
/// It is no such message.
pub fn task_stats(bytes: &[u8]) -> Result<ReportedUsage, PluginError> {
    let message: driver::TaskStatsResponse = read(bytes)?;
    Ok(driver_reported::usage(message.stats.unwrap_or_default()))
}

/// What may stand in a configuration.
///
/// # Errors
/// It is no such message, or the schema has no sense.
pub fn schema(bytes: &[u8]) -> Result<Spec, PluginError> {
    let message: hclspec::Spec = read(bytes)?;
    spec::read(&message)
}

fn read<T: Message + Default>(bytes: &[u8]) -> Result<T, PluginError> {
    T::decode(bytes).map_err(|error| PluginError::Invalid(error.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn attribute() -> super::super::proto::structs::Attribute {
        use super::super::proto::structs::attribute::Value;
        super::super::proto::structs::Attribute {
            value: Some(Value::FloatVal(f64::NAN)),
            unit: "MHz".to_owned(),
        }
    }

    #[test]
    fn arbitrary_bytes_are_safe() {
        let group = device::DeviceGroup {
            vendor: "v".to_owned(),
            devices: vec![device::DetectedDevice::default()],
            attributes: [("clock".to_owned(), attribute())].into(),
            ..Default::default()
        };
        let groups = device::FingerprintResponse {
            device_group: vec![group],
        };
        let health = driver::FingerprintResponse {
            attributes: [("clock".to_owned(), attribute())].into(),
            health: 99,
            ..Default::default()
        };
        let mut random = crate::plugin::fuzz::Random::new(5);
        let mut read = [0; 5];
        for _ in 0..10_000 {
            let one = random.mutated(&groups.encode_to_vec());
            let other = random.mutated(&health.encode_to_vec());
            read[0] += u32::from(devices(&one).is_ok());
            read[1] += u32::from(driver_health(&other).is_ok());
            read[2] += u32::from(device_stats(&one).is_ok());
            read[3] += u32::from(task_stats(&other).is_ok());
            read[4] += u32::from(schema(&one).is_ok());
        }
        assert!(read[0] > 100 && read[1] > 100, "{read:?}");
        let reported = devices(&groups.encode_to_vec()).unwrap();
        let clock = &reported[0].attributes["clock"];
        assert!(!clock.float.unwrap().is_finite());
    }
}
