//! What plugins measure of their devices, before it is validated. What is not reported is not zero:
//! each value is there or not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::float::Float;
use crate::time::Timestamp;

/// What a plugin measured of a group of equal devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedStats {
    /// Who made them.
    pub vendor: String,
    /// What they are, such as `gpu`.
    pub kind: String,
    /// Their model.
    pub name: String,
    /// What was measured of each, by its id.
    pub instances: BTreeMap<String, ReportedInstance>,
}

/// What a plugin measured of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedInstance {
    /// The one value that says most.
    pub summary: Option<ReportedValue>,
    /// All values.
    pub stats: Option<ReportedObject>,
    /// When it was measured.
    pub time: Option<Timestamp>,
}

/// Values by name, in groups of any depth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedObject {
    /// Groups of further values.
    pub nested: BTreeMap<String, ReportedObject>,
    /// Values.
    pub attributes: BTreeMap<String, ReportedValue>,
}

/// One measured value; with a denominator it is so much *of* so much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedValue {
    /// A number with a fraction.
    pub float_numerator: Option<Float>,
    /// What it is a part of.
    pub float_denominator: Option<Float>,
    /// A whole number.
    pub int_numerator: Option<i64>,
    /// What it is a part of.
    pub int_denominator: Option<i64>,
    /// A text.
    pub string: Option<String>,
    /// Yes or no.
    pub bool: Option<bool>,
    /// The unit of a number; empty for none.
    pub unit: String,
    /// What the value says, for people.
    pub description: String,
}
