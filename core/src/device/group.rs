//! Groups of devices, as they are known once a plugin's report was validated.
//!
//! What cannot be true is refused whole, because nobody can say which part of it to believe:
//! missing names, two devices or two groups of one name, attributes with no value or two, and more
//! of anything than a machine has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::attribute::Attribute;
use super::said::{SaidDevice, SaidGroup};
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
pub fn groups_of(said: &[SaidGroup]) -> Result<BTreeMap<GroupId, Group>, String> {
    let count: usize = said.iter().map(|group| group.devices.len()).sum();
    if said.len() > MAX_GROUPS || count > MAX_DEVICES {
        return Err(format!(
            "announces {} groups and {count} devices; {MAX_GROUPS} and {MAX_DEVICES} are the most",
            said.len()
        ));
    }
    let mut groups = BTreeMap::new();
    for said in said {
        let id = group_id(said)?;
        let group =
            group(said).map_err(|why| format!("group {}: {why}", quote(&id.to_string())))?;
        if groups.contains_key(&id) {
            return Err(format!("group {} is there twice", quote(&id.to_string())));
        }
        groups.insert(id, group);
    }
    Ok(groups)
}

fn group_id(said: &SaidGroup) -> Result<GroupId, String> {
    let id = GroupId {
        vendor: named("the vendor of a group", &said.vendor)?,
        kind: named("the type of a group", &said.kind)?,
        name: named("the name of a group", &said.name)?,
    };
    // A slash would move the border between the parts of the name that jobs ask for.
    if id.vendor.contains('/') || id.kind.contains('/') {
        return Err(format!("group {} has a slash", quote(&id.to_string())));
    }
    Ok(id)
}

fn group(said: &SaidGroup) -> Result<Group, String> {
    let mut devices = BTreeMap::new();
    for device in &said.devices {
        let id = named("the id of a device", &device.id)?;
        let known = self::device(device).map_err(|why| format!("device {}: {why}", quote(&id)))?;
        if devices.insert(id, known).is_some() {
            return Err(format!("device {} is there twice", quote(&device.id)));
        }
    }
    if said.attributes.len() > MAX_ATTRIBUTES {
        return Err(format!("has more than {MAX_ATTRIBUTES} attributes"));
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in &said.attributes {
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

fn device(said: &SaidDevice) -> Result<Device, String> {
    let bus = said.pci_bus_id.as_deref().filter(|bus| !bus.is_empty());
    Ok(Device {
        healthy: said.healthy,
        description: bounded(&said.description)?,
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

    fn said(ids: &[&str]) -> SaidGroup {
        let device = |id: &&str| SaidDevice {
            id: (*id).to_owned(),
            healthy: true,
            ..SaidDevice::default()
        };
        SaidGroup {
            vendor: "acme".to_owned(),
            kind: "fpga".to_owned(),
            name: "one".to_owned(),
            devices: ids.iter().map(device).collect(),
            attributes: BTreeMap::new(),
        }
    }

    #[test]
    fn what_cannot_be_so_is_refused_and_says_where() {
        let nameless = SaidGroup {
            vendor: String::new(),
            ..said(&["a"])
        };
        let slashed = SaidGroup {
            vendor: "a/b".to_owned(),
            ..said(&["a"])
        };
        let long = "x".repeat(MAX_NAME + 1);
        for (said, expected) in [
            (vec![said(&["a", "a"])], "device \"a\" is there twice"),
            (
                vec![said(&["a"]), said(&["b"])],
                "\"acme/fpga/one\" is there twice",
            ),
            (vec![said(&[""])], "the id of a device is empty"),
            (vec![nameless], "the vendor of a group is empty"),
            (vec![slashed], "has a slash"),
            (vec![said(&[&long])], "more than 256 bytes"),
            (vec![said(&["a\nb"])], "control character"),
            (vec![said(&vec!["a"; MAX_DEVICES + 1])], "are the most"),
        ] {
            let why = groups_of(&said).err().unwrap_or_default();
            assert!(why.contains(expected), "{why} has not {expected}");
        }
        assert_eq!(
            groups_of(&[said(&["a", "b"])]).map(|known| known.len()),
            Ok(1)
        );
    }
}
