//! How fast a task reads and writes the disk, whatever its driver: the block `io` of its configuration, which is
//! Drover's own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Fields;
use crate::driver::schema::{Field, Kind, Rule};
use crate::model::value::Value;

/// Bytes in a second. With less than 64 KiB a task cannot even be ended soon: what it asked the disk for is waited for.
pub const BYTES: (i64, i64) = (64 << 10, 1 << 50);

/// Requests in a second. The upper end is what version 1 of control groups can say.
pub const REQUESTS: (i64, i64) = (16, 1 << 30);

/// What the block may hold.
pub const IO: &[Field] = &[
    Field::optional("read_bps", Kind::Number).with(Rule::Range(BYTES.0, BYTES.1)),
    Field::optional("write_bps", Kind::Number).with(Rule::Range(BYTES.0, BYTES.1)),
    Field::optional("read_iops", Kind::Number).with(Rule::Range(REQUESTS.0, REQUESTS.1)),
    Field::optional("write_iops", Kind::Number).with(Rule::Range(REQUESTS.0, REQUESTS.1)),
];

/// How much may be read and written in a second; what is not said has no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IoLimits {
    /// Bytes read.
    pub read_bps: Option<u64>,
    /// Bytes written.
    pub write_bps: Option<u64>,
    /// Requests to read.
    pub read_iops: Option<u64>,
    /// Requests to write.
    pub write_iops: Option<u64>,
}

impl IoLimits {
    /// What a valid configuration says.
    pub fn of(config: &BTreeMap<String, Value>) -> IoLimits {
        let block = Fields(config).block("io");
        let number = |name| block.and_then(|block| block.some_number(name));
        IoLimits {
            read_bps: number("read_bps"),
            write_bps: number("write_bps"),
            read_iops: number("read_iops"),
            write_iops: number("write_iops"),
        }
    }

    /// The lower of each two.
    #[must_use]
    pub fn within(self, most: IoLimits) -> IoLimits {
        let lower = |own: Option<u64>, most: Option<u64>| own.into_iter().chain(most).min();
        IoLimits {
            read_bps: lower(self.read_bps, most.read_bps),
            write_bps: lower(self.write_bps, most.write_bps),
            read_iops: lower(self.read_iops, most.read_iops),
            write_iops: lower(self.write_iops, most.write_iops),
        }
    }

    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == IoLimits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::IoLimits;

    #[test]
    fn limits_of_a_task_are_the_lower_ones() {
        let task = IoLimits {
            read_bps: Some(5),
            write_bps: Some(9),
            ..IoLimits::default()
        };
        let most = IoLimits {
            write_bps: Some(7),
            read_iops: Some(3),
            ..IoLimits::default()
        };
        let both = IoLimits {
            read_bps: Some(5),
            write_bps: Some(7),
            read_iops: Some(3),
            write_iops: None,
        };
        assert_eq!(task.within(most), both);
        assert_eq!(most.within(task), both);
        assert!(IoLimits::default().within(IoLimits::default()).is_none());
    }
}
