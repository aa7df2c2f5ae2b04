//! Host volumes: directories of the node that outlive allocations, and how jobs ask for them.
//!
//! A group asks for a volume of the node ([`VolumeRequest`]), and each of its tasks says where it wants to
//! see it ([`VolumeMount`]). Which volumes the node has says its agent's configuration, and whoever makes some while
//! the agent runs ([`VolumeSpec`]).

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::job::Constraint;
use super::value::Value;
use crate::text::quote;

/// The type of volume that this agent has.
pub const HOST: &str = "host";

/// A volume that the node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct HostVolume {
    /// Unique on the node; jobs ask for it by this name.
    pub name: String,
    /// The directory on the host.
    pub path: String,
    /// Whether nobody may write to it.
    pub read_only: bool,
    /// Of a volume that was made while the agent ran; empty for those of the configuration.
    pub id: String,
}

/// A volume that a group asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeRequest {
    /// Unique in its group; mounts name it so.
    pub name: String,
    /// `host`; `csi` is refused.
    #[serde(rename = "Type")]
    pub kind: String,
    /// The name of the node's volume; see [`VolumeRequest::source_for`].
    pub source: String,
    /// Whether its tasks only read.
    pub read_only: bool,
    /// Who may use it at once; any number of allocations unless given.
    pub access_mode: String,
    /// `file-system` unless given.
    pub attachment_mode: String,
    /// For volumes of storage plugins.
    pub mount_options: Option<Value>,
    /// Whether each copy of the group has a volume of its own.
    pub per_alloc: bool,
    /// Whether replacements get the same volume; on one node they do anyway.
    pub sticky: bool,
}

impl VolumeRequest {
    /// The name of the node's volume for the copy of this index: `data[2]` where each copy has its own.
    pub fn source_for(&self, index: u32) -> Cow<'_, str> {
        match self.per_alloc {
            true => Cow::Owned(format!("{}[{index}]", self.source)),
            false => Cow::Borrowed(&self.source),
        }
    }

    /// Whether a volume of the node is what is asked for.
    ///
    /// # Errors
    /// Why it is not.
    pub fn accepts(&self, source: &str, found: Option<&HostVolume>) -> Result<(), VolumeLack> {
        match found {
            None => Err(VolumeLack::Missing {
                source: source.to_owned(),
            }),
            Some(volume) if volume.read_only && !self.read_only => Err(VolumeLack::ReadOnly {
                source: source.to_owned(),
            }),
            Some(_) => Ok(()),
        }
    }
}

/// Why a volume that is asked for cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeLack {
    /// The node has none of that name.
    Missing {
        /// The name.
        source: String,
    },
    /// The node's may only be read, and the group wants to write.
    ReadOnly {
        /// Its name.
        source: String,
    },
}

impl core::fmt::Display for VolumeLack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            VolumeLack::Missing { source } => {
                write!(f, "the node has no host volume {}", quote(source))
            }
            VolumeLack::ReadOnly { source } => write!(
                f,
                "the node's host volume {} is read-only, and the group does not say read_only = true",
                quote(source)
            ),
        }
    }
}

/// Where a task wants to see a volume of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeMount {
    /// The name in the group.
    pub volume: String,
    /// The path in the task.
    pub destination: String,
    /// Whether this task only reads.
    pub read_only: bool,
    /// `private` unless given, `host-to-task` or `bidirectional`.
    pub propagation_mode: String,
    /// Empty, `z` or `Z`.
    #[serde(rename = "SELinuxLabel")]
    pub selinux_label: String,
}

/// What a volume is to be that is made or registered while the agent runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeSpec {
    /// Unique on the node; jobs ask for it by this name.
    pub name: String,
    /// Whose it is, for people: all jobs of the node may ask for it.
    pub namespace: String,
    /// The directory of a volume that is registered; none if one is to be made.
    pub registered: Option<String>,
    /// The directory that is to be made.
    pub directory: Directory,
    /// What that was read from.
    pub parameters: BTreeMap<String, String>,
    /// How it may be used; in any way if nothing is said.
    pub capabilities: Vec<VolumeCapability>,
    /// What has to be true of the node.
    pub constraints: Vec<Constraint>,
    /// The least and the most bytes that are asked for; kept, a directory has no size.
    pub capacity: (i64, i64),
}

/// A way to use a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VolumeCapability {
    /// `file-system`.
    pub attachment_mode: String,
    /// One of [`ACCESS_MODES`].
    pub access_mode: String,
}

/// Who may use a volume at once, as jobs and volumes say it.
pub const ACCESS_MODES: [&str; 4] = [
    READER_ONLY,
    "single-node-writer",
    "single-node-single-writer",
    "single-node-multi-writer",
];

/// The access mode of those who only read.
pub const READER_ONLY: &str = "single-node-reader-only";

/// The longest name of a volume, in bytes.
const MAX_NAME: usize = 128;
/// The most capabilities, and the most constraints, of a volume.
const MAX_EACH: usize = 32;

impl VolumeSpec {
    /// Whether it can be made at all.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
            return Err(format!(
                "a volume's name has 1 to {MAX_NAME} bytes and no control characters"
            ));
        }
        if let Some(path) = &self.registered
            && (!path.starts_with('/') || path.contains('\0'))
        {
            return Err(format!("host path {} is not absolute", quote(path)));
        }
        if self.capabilities.len() > MAX_EACH || self.constraints.len() > MAX_EACH {
            return Err(format!("a volume has at most {MAX_EACH} of each block"));
        }
        for capability in &self.capabilities {
            if !ACCESS_MODES.contains(&capability.access_mode.as_str()) {
                let modes = ACCESS_MODES.join(", ");
                return Err(format!("access_mode must be one of {modes}"));
            }
            if capability.attachment_mode != "file-system" {
                return Err("attachment_mode must be file-system".to_owned());
            }
        }
        match self.capacity {
            (least, most) if least < 0 || most < 0 || (most > 0 && least > most) => {
                Err("capacity_max must not be less than capacity_min".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Whether nobody may write to it, because all it is for is reading.
    pub fn is_read_only(&self) -> bool {
        let mut modes = self.capabilities.iter();
        !self.capabilities.is_empty() && modes.all(|it| it.access_mode == READER_ONLY)
    }
}

/// A directory that is made for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Directory {
    /// Its permissions.
    pub mode: u32,
    /// Its owner; the agent's own if none.
    pub uid: Option<u32>,
    /// Its group.
    pub gid: Option<u32>,
}

impl Default for Directory {
    /// As Nomad's plugin `mkdir` makes it.
    fn default() -> Directory {
        Directory {
            mode: 0o700,
            uid: None,
            gid: None,
        }
    }
}

impl Directory {
    /// What the parameters of the plugin `mkdir` say: `mode`, in octal digits, `uid` and `gid`.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn of(parameters: &BTreeMap<String, String>) -> Result<Directory, String> {
        let mut directory = Directory::default();
        for (name, value) in parameters {
            let bad = |what: &str| format!("parameter {name}: {} is no {what}", quote(value));
            let number = || match value.parse::<i64>() {
                // As Nomad has it: nobody else's.
                Ok(-1) => Ok(None),
                Ok(number) => u32::try_from(number).map(Some).map_err(|_| bad("id")),
                Err(_) => Err(bad("id")),
            };
            match name.as_str() {
                "mode" => {
                    let mode = u32::from_str_radix(value, 8).ok();
                    let mode = mode.filter(|mode| *mode <= 0o1777);
                    directory.mode = mode.ok_or_else(|| bad("mode such as 0755"))?;
                }
                "uid" => directory.uid = number()?,
                "gid" => directory.gid = number()?,
                _ => {
                    let name = quote(name);
                    return Err(format!(
                        "unknown parameter {name}: plugin mkdir has mode, uid and gid"
                    ));
                }
            }
        }
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Directory, String> {
        let pairs = pairs.iter();
        Directory::of(
            &pairs
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn parameters_of_directory_are_read() {
        assert_eq!(of(&[]), Ok(Directory::default()));
        let given = of(&[("mode", "0755"), ("uid", "1000"), ("gid", "-1")]);
        let expected = Directory {
            mode: 0o755,
            uid: Some(1000),
            gid: None,
        };
        assert_eq!(given, Ok(expected));
    }

    #[test]
    fn invalid_parameter_is_refused_by_name() {
        for (name, value) in [
            ("mode", "0999"),
            ("mode", "4755"),
            ("mode", "u+s"),
            ("uid", "root"),
            ("gid", "-2"),
            ("owner", "1"),
        ] {
            let why = of(&[(name, value)]).err().unwrap_or_default();
            assert!(why.contains(name), "{why}");
        }
    }

    #[test]
    fn volume_for_readers_alone_is_read_only() {
        let capability = |mode: &str| VolumeCapability {
            attachment_mode: "file-system".to_owned(),
            access_mode: mode.to_owned(),
        };
        let spec = |modes: &[&str]| VolumeSpec {
            name: "data".to_owned(),
            capabilities: modes.iter().map(|mode| capability(mode)).collect(),
            ..VolumeSpec::default()
        };
        assert!(!spec(&[]).is_read_only());
        assert!(spec(&[READER_ONLY]).is_read_only());
        assert!(!spec(&[READER_ONLY, "single-node-writer"]).is_read_only());
        assert!(spec(&["any"]).check().is_err());
        assert_eq!(spec(&["single-node-writer"]).check(), Ok(()));
    }
}
