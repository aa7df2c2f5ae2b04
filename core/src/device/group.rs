//! Groups of devices, as they are known once a plugin's report was validated.
//!
//! What cannot be true is refused whole, because nobody can say which part of it to believe:
//! missing names, two devices or two groups of one name, attributes with no value or two, and more
//! of anything than a machine has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::reported::{ReportedDevice, ReportedGroup};
use crate::model::device::GroupId;
use crate::text::quote;

/// How many groups one plugin may announce.
pub const MAX_GROUPS: usize = 256;
/// How many devices one plugin may announce.
pub const MAX_DEVICES: usize = 4096;
/// How many attributes a group may have.
pub const MAX_ATTRIBUTES: usize = 256;
/// How long a name may be, in bytes.
pub const MAX_NAME: usize = 256;
/// How long any other text may be, in bytes.
pub const MAX_TEXT: usize = 4096;

/// Equal devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// Each of them, by id.
    pub devices: BTreeMap<String, Device>,
    /// What is true of all of them.
    pub attributes: BTreeMap<String, Attribute>,
}

/// One device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Whether it works, so that it may be handed out.
    pub healthy: bool,
    /// Why it is what it is.
    pub description: String,
    /// Where it is plugged in.
    pub pci_bus_id: Option<String>,
}

/// Looks at what a plugin says.
///
/// # Errors
/// The first thing that cannot be so, and where.
pub fn groups_of(reported: &[ReportedGroup]) -> Result<BTreeMap<GroupId, Group>, String> {
    let count: usize = reported.iter().map(|group| group.devices.len()).sum();
    if reported.len() > MAX_GROUPS || count > MAX_DEVICES {
        return Err(format!(
            "announces {} groups and {count} devices; {MAX_GROUPS} and {MAX_DEVICES} are the most",
            reported.len()
        ));
    }
    let mut groups = BTreeMap::new();
    for reported in reported {
        let id = group_id(reported)?;
        let group =
            group(reported).map_err(|why| format!("group {}: {why}", quote(&id.to_string())))?;
        if groups.contains_key(&id) {
            return Err(format!("group {} is there twice", quote(&id.to_string())));
        }
        groups.insert(id, group);
    }
    Ok(groups)
}

fn group_id(reported: &ReportedGroup) -> Result<GroupId, String> {
    let id = GroupId {
        vendor: named("the vendor of a group", &reported.vendor)?,
        kind: named("the type of a group", &reported.kind)?,
        name: named("the name of a group", &reported.name)?,
    };
    // A slash would move the border between the parts of the name that jobs ask for.
    if id.vendor.contains('/') || id.kind.contains('/') {
        return Err(format!("group {} has a slash", quote(&id.to_string())));
    }
    Ok(id)
}

fn group(reported: &ReportedGroup) -> Result<Group, String> {
    let mut devices = BTreeMap::new();
    for device in &reported.devices {
        let id = named("the id of a device", &device.id)?;
        let known = self::device(device).map_err(|why| format!("device {}: {why}", quote(&id)))?;
        if devices.insert(id, known).is_some() {
            return Err(format!("device {} is there twice", quote(&device.id)));
        }
    }
    if reported.attributes.len() > MAX_ATTRIBUTES {
        return Err(format!("has more than {MAX_ATTRIBUTES} attributes"));
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in &reported.attributes {
        let name = named("the name of an attribute", name)?;
        let text = value.string.as_deref().unwrap_or_default();
        bounded(text)
            .and_then(|_| Attribute::of(value))
            .map_err(|why| format!("attribute {} {why}", quote(&name)))
            .map(|value| attributes.insert(name, value))?;
    }
    Ok(Group {
        devices,
        attributes,
    })
}

fn device(reported: &ReportedDevice) -> Result<Device, String> {
    let bus = reported.pci_bus_id.as_deref().filter(|bus| !bus.is_empty());
    Ok(Device {
        healthy: reported.healthy,
        description: bounded(&reported.description)?,
        pci_bus_id: bus.map(|bus| named("the PCI bus id", bus)).transpose()?,
    })
}

fn named(what: &str, name: &str) -> Result<String, String> {
    match name {
        "" => Err(format!("{what} is empty")),
        name if name.len() > MAX_NAME => Err(format!("{what} has more than {MAX_NAME} bytes")),
        name if name.chars().any(char::is_control) => {
            Err(format!("{what} has a control character: {}", quote(name)))
        }
        name => Ok(name.to_owned()),
    }
}

fn bounded(text: &str) -> Result<String, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("has a text of more than {MAX_TEXT} bytes"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(ids: &[&str]) -> ReportedGroup {
        let device = |id: &&str| ReportedDevice {
            id: (*id).to_owned(),
            healthy: true,
            ..ReportedDevice::default()
        };
        ReportedGroup {
            vendor: "acme".to_owned(),
            kind: "fpga".to_owned(),
            name: "one".to_owned(),
            devices: ids.iter().map(device).collect(),
            attributes: BTreeMap::new(),
        }
    }

    #[test]
    fn invalid_report_is_refused_with_position() {
        let nameless = ReportedGroup {
            vendor: String::new(),
            ..reported(&["a"])
        };
        let slashed = ReportedGroup {
            vendor: "a/b".to_owned(),
            ..reported(&["a"])
        };
        let long = "x".repeat(MAX_NAME + 1);
        for (reported, expected) in [
            (vec![reported(&["a", "a"])], "device \"a\" is there twice"),
            (
                vec![reported(&["a"]), reported(&["b"])],
                "\"acme/fpga/one\" is there twice",
            ),
            (vec![reported(&[""])], "the id of a device is empty"),
            (vec![nameless], "the vendor of a group is empty"),
            (vec![slashed], "has a slash"),
            (vec![reported(&[&long])], "more than 256 bytes"),
            (vec![reported(&["a\nb"])], "control character"),
            (vec![reported(&vec!["a"; MAX_DEVICES + 1])], "are the most"),
        ] {
            let why = groups_of(&reported).err().unwrap_or_default();
            assert!(why.contains(expected), "{why} has not {expected}");
        }
        assert_eq!(
            groups_of(&[reported(&["a", "b"])]).map(|known| known.len()),
            Ok(1)
        );
    }
}
