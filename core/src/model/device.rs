//! Devices, as jobs ask for them and allocations hold them.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::job::Constraint;

/// The name of a group of equal devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupId {
    /// Who made them.
    pub vendor: String,
    /// What they are, such as `gpu`.
    pub kind: String,
    /// Their model.
    pub name: String,
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.vendor, self.kind, self.name)
    }
}

impl GroupId {
    /// Whether a job that asks for `name` may get these: `type`, `vendor/type` or
    /// `vendor/type/name`.
    pub fn answers_to(&self, name: &str) -> bool {
        let mut parts = name.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(kind), None, _) => self.kind == kind,
            (Some(vendor), Some(kind), None) => self.vendor == vendor && self.kind == kind,
            (Some(vendor), Some(kind), Some(name)) => {
                self.vendor == vendor && self.kind == kind && self.name == name
            }
            (None, _, _) => false,
        }
    }
}

/// What a task asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeviceRequest {
    /// `type`, `vendor/type` or `vendor/type/name`.
    pub name: String,
    /// How many.
    pub count: u64,
    /// What has to be true of them.
    pub constraints: Vec<Constraint>,
    /// What had better be true of them.
    pub affinities: Vec<Preference>,
}

impl Default for DeviceRequest {
    fn default() -> DeviceRequest {
        DeviceRequest {
            name: String::new(),
            count: 1,
            constraints: Vec::new(),
            affinities: Vec::new(),
        }
    }
}

/// What had better be true of devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Preference {
    /// What is looked at, such as `${device.attr.memory}`.
    #[serde(rename = "LTarget")]
    pub target: String,
    /// What it is compared with.
    #[serde(rename = "RTarget")]
    pub value: String,
    /// How; empty is `=`.
    #[serde(rename = "Operand")]
    pub operand: String,
    /// How much it counts, from -100 to 100.
    #[serde(rename = "Weight")]
    pub weight: i64,
}

impl Default for Preference {
    fn default() -> Preference {
        Preference {
            target: String::new(),
            value: String::new(),
            operand: String::new(),
            weight: 50,
        }
    }
}

/// Devices that an allocation holds for one of its tasks, until nothing of it is left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct AssignedDevices {
    /// Whose they are.
    pub task: String,
    /// The plugin that announced them.
    pub plugin: String,
    /// Their group.
    pub group: GroupId,
    /// Which of the group.
    pub ids: Vec<String>,
}

/// What a task needs in order to use its devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Reserved {
    /// Directories and files of the host, shown to the task.
    pub mounts: Vec<Mount>,
    /// Device nodes of the host, given to the task.
    pub nodes: Vec<DeviceNode>,
}

impl Reserved {
    /// Whether there is nothing that it needs.
    pub fn is_nothing(&self) -> bool {
        self.mounts.is_empty() && self.nodes.is_empty()
    }
}

/// A directory or file of the host that a task sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Mount {
    /// Where the task sees it.
    pub task_path: String,
    /// Where it is.
    pub host_path: String,
    /// Whether the task may not write to it.
    pub read_only: bool,
    /// What happens to mounts that are made in it later: the driver's default if empty, else `private`,
    /// `host-to-task` or `bidirectional`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub propagation_mode: String,
    /// Its label for SELinux; the driver's default if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selinux_label: String,
}

/// A device node of the host that a task may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceNode {
    /// Where the task sees it.
    pub task_path: String,
    /// Where it is.
    pub host_path: String,
    /// What the task may do with it: of `r`, `w` and `m`.
    pub permissions: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_request_name_is_parsed() {
        let group = GroupId {
            vendor: "nvidia".to_owned(),
            kind: "gpu".to_owned(),
            name: "a/b".to_owned(),
        };
        for name in ["gpu", "nvidia/gpu", "nvidia/gpu/a/b"] {
            assert!(group.answers_to(name), "{name}");
        }
        for name in ["", "nvidia", "amd/gpu", "nvidia/gpu/a", "gpu/a/b"] {
            assert!(!group.answers_to(name), "{name}");
        }
    }
}
