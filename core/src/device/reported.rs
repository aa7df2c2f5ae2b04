//! What plugins report of their devices, before it is validated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::float::Float;

/// A group of equal devices, as a plugin announces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedGroup {
    /// Who made them.
    pub vendor: String,
    /// What they are, such as `gpu`.
    pub kind: String,
    /// Their model.
    pub name: String,
    /// Each of them.
    pub devices: Vec<ReportedDevice>,
    /// What is true of all of them.
    pub attributes: BTreeMap<String, ReportedAttribute>,
}

/// One device, as a plugin announces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedDevice {
    /// Its name among all devices of its group.
    pub id: String,
    /// Whether it works.
    pub healthy: bool,
    /// Why it is what it is.
    pub description: String,
    /// Where it is plugged in.
    pub pci_bus_id: Option<String>,
}

/// A fact with its unit, as plugins of devices and drivers say it: one value is to be there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedAttribute {
    /// A number with a fraction.
    pub float: Option<Float>,
    /// A whole number.
    pub int: Option<i64>,
    /// A text.
    pub string: Option<String>,
    /// Yes or no.
    pub bool: Option<bool>,
    /// The unit of a number; empty for none.
    pub unit: String,
}
