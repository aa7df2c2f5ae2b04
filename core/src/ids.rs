//! Names of things. Each kind of id is its own type, so that one cannot be passed for another.
//!
//! [`LaunchId`] is what separates an old start of a task from a new one: a report about another
//! launch than the current one is stale. [`Run`], the number of the start, is for people and for
//! drivers.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A text that is not a UUID stood where one was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAUuid;

impl fmt::Display for NotAUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UUID must be 36 characters: 8-4-4-4-12 hexadecimal digits")
    }
}

impl core::error::Error for NotAUuid {}

/// These bits as a UUID of this version: 4 if they are random, 8 if they come by a rule of one's own.
pub const fn uuid_of_version(version: u8, bits: u128) -> u128 {
    let version = (version & 0xf) as u128;
    bits & !(0xf << 76) & !(0x3 << 62) | (version << 76) | (0x2 << 62)
}

fn write_uuid(value: u128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut text = [b'-'; 36];
    let places = text.iter_mut().enumerate();
    let places = places.filter(|(at, _)| !matches!(at, 8 | 13 | 18 | 23));
    for (nth, (_, place)) in places.enumerate() {
        // The highest four bits first.
        let digit = (value >> (124 - 4 * nth)) & 0xf;
        *place = b"0123456789abcdef"[digit as usize];
    }
    f.write_str(core::str::from_utf8(&text).map_err(|_| fmt::Error)?)
}

fn parse_uuid(text: &str) -> Result<u128, NotAUuid> {
    if text.len() != 36 {
        return Err(NotAUuid);
    }
    let mut value: u128 = 0;
    for (at, byte) in text.bytes().enumerate() {
        if matches!(at, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return Err(NotAUuid);
            }
            continue;
        }
        let digit = char::from(byte).to_digit(16).ok_or(NotAUuid)?;
        value = (value << 4) | u128::from(digit);
    }
    Ok(value)
}

macro_rules! uuid_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u128);

        impl $name {
            /// The first eight digits, as people quote it.
            pub fn short(self) -> String {
                self.to_string().chars().take(8).collect()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_uuid(self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = NotAUuid;
            fn from_str(text: &str) -> Result<Self, NotAUuid> {
                parse_uuid(text).map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                // By its type a recording knows it for an id, which is never hidden.
                to.serialize_newtype_struct(stringify!($name), &format_args!("{self}"))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

uuid_type!(
    /// An allocation: one copy of a task group on this node.
    AllocId
);
uuid_type!(
    /// One consideration of a job: what should run, what runs, what to change.
    EvalId
);
uuid_type!(
    /// The roll-out of one job version.
    DeploymentId
);
uuid_type!(
    /// A host volume that was made or registered while the agent ran; its directory bears it.
    VolumeId
);
uuid_type!(
    /// A token of the API, as people may know it.
    AccessorId
);
uuid_type!(
    /// This node.
    NodeId
);
uuid_type!(
    /// One start of a task. The core chooses it and saves it before anything is started; the
    /// process, its control group and its record bear it. No launch id is ever started twice.
    LaunchId
);

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name(Arc::from(""))
            }
        }

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                $name(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

name_type!(
    /// A task's name, unique in its group. Cheap to clone.
    TaskName
);
name_type!(
    /// A task group's name, unique in its job. Cheap to clone.
    GroupName
);

/// A job's full name: ids are unique in their namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    /// The namespace, `default` unless the job says otherwise.
    pub namespace: Arc<str>,
    /// The job's id.
    pub id: Arc<str>,
}

impl JobKey {
    /// A job of the default namespace.
    pub fn local(id: &str) -> JobKey {
        JobKey {
            namespace: Arc::from("default"),
            id: Arc::from(id),
        }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.id, self.namespace)
    }
}

/// The place of one copy of a group: its job, its group, and which copy it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Slot {
    /// The job.
    pub job: JobKey,
    /// The group.
    pub group: GroupName,
    /// Which copy, from 0.
    pub index: u32,
    /// 0; or 1 for the place beside that one, where a canary runs and stays.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lane: u8,
    /// The allocation whose own it is, where servers placed that: they may place two of one name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alloc: Option<AllocId>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(crate) fn is_zero(number: &u8) -> bool {
    *number == 0
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}[{}]", self.job.id, self.group, self.index)
    }
}

/// The running number of a task's starts, from 1. People read it; fences use [`LaunchId`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Run(pub u32);

/// The full name of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey {
    /// Its allocation.
    pub alloc: AllocId,
    /// Its name there.
    pub task: TaskName,
}

/// The number under which somebody outside awaits an answer. The core only hands it back.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct RequestId(pub u64);

/// An exec session, as whoever opened it knows it. The core only hands it on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SessionId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_as_uuids() {
        let id = AllocId(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(id.to_string(), "01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.short(), "01234567");
    }

    #[test]
    fn uuid_of_version_has_version_and_variant() {
        let ids = [0, u128::MAX].map(|bits| AllocId(uuid_of_version(4, bits)).to_string());
        let (low, high) = (
            "00000000-0000-4000-8000-000000000000",
            "ffffffff-ffff-4fff-bfff-ffffffffffff",
        );
        assert_eq!(ids, [low, high]);
    }

    #[test]
    fn invalid_uuid_is_refused() {
        for bad in [
            "",
            "0123",
            "01234567x89ab-cdef-0123-456789abcdef",
            "é1234567-89ab-cdef-0123-456789abcde",
        ] {
            assert_eq!(bad.parse::<AllocId>(), Err(NotAUuid), "{bad:?}");
        }
    }
}
