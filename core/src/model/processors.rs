//! The processors of a machine.

use serde::{Deserialize, Serialize};

/// The processors of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Processors {
    /// MHz of all cores together.
    pub total_compute: u64,
    /// MHz of those that tasks may use.
    pub usable_compute: u64,
    /// Each core.
    pub cores: Vec<Core>,
}

/// One core that programs run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Core {
    /// Its number.
    pub id: u32,
    /// The socket that it is in.
    pub socket: u32,
    /// The NUMA node that it belongs to.
    pub node: u32,
    /// Whether it is one of the slower, thriftier cores of a machine with two sorts.
    pub efficiency: bool,
    /// MHz that it always reaches, or 0 if unknown.
    pub base_mhz: u64,
    /// MHz that it reaches at best, or 0 if unknown.
    pub max_mhz: u64,
    /// MHz that it seems to have where the machine tells neither of the two, else 0.
    pub guess_mhz: u64,
    /// Whether tasks may not use it: it is reserved, or not given to the agent.
    pub disabled: bool,
}
