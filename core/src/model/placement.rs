//! Why a copy of a group is not placed: what it lacks on this node, and the words for it.
//!
//! Evaluations keep the reason as it is, and everybody who reports it makes the words here: people read
//! them whole ([`fmt::Display`]), and Nomad's API tells what excludes a node ([`Lack::Filter`], a condition
//! that it does not fulfil) from what there is too little of ([`Lack::Dimension`]).

use core::fmt;

use serde::{Deserialize, Serialize};

use super::volume::VolumeLack;
use crate::text::quote;

/// Nomad's words for what a node lacks in volumes.
const MISSING_VOLUMES: &str = "missing compatible host volumes";

/// Why a copy of a group is not placed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementFailure {
    /// The job has no such group.
    NoSuchGroup,
    /// The job is for other data centers: these.
    Datacenters(Vec<String>),
    /// The node takes no new allocations.
    Ineligible,
    /// The node is drained, and takes no new allocations.
    Draining,
    /// The driver of a task.
    Driver {
        /// Its name.
        driver: String,
        /// The task.
        task: String,
        /// Whether the node has it, though it does not work now.
        detected: bool,
    },
    /// A constraint that the node does not fulfil: `${attr.kernel.name} = windows`.
    Constraint(String),
    /// A port that is asked for by number.
    PortTaken {
        /// Its name in the group.
        label: String,
        /// Its number.
        value: i64,
    },
    /// A port that is asked for by number and that the node does not give away.
    PortReserved {
        /// Its name in the group.
        label: String,
        /// Its number.
        value: u16,
        /// The network of the host.
        network: String,
    },
    /// A port of any number.
    NoPortLeft,
    /// A network of this mode, which the node does not offer.
    NetworkMode(String),
    /// An address behind the node's bridge.
    NoAddressLeft,
    /// The network of the host that a port is to be reached through.
    HostNetwork {
        /// Its name.
        network: String,
        /// The port's name in the group.
        label: String,
    },
    /// A volume of the host.
    HostVolume(VolumeLack),
    /// Devices.
    Devices {
        /// How many.
        count: u64,
        /// Of what.
        device: String,
        /// For which task.
        task: String,
        /// Why they cannot be given.
        why: DeviceLack,
    },
    /// A counted resource.
    Shortage(Shortage),
    /// As an agent saved it that knew words only (`io-real/src/store/codec.rs` reads those).
    Words(String),
}

/// Why devices cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceLack {
    /// The node has none of that name.
    Missing,
    /// None fulfils what the job demands of them.
    Constraints,
    /// Others hold them, or they do not work.
    Taken,
}

/// Counted resources, by the names that Nomad has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    /// In MHz.
    Cpu,
    /// In MB.
    Memory,
    /// In MB.
    Disk,
    /// Whole ones.
    Cores,
}

/// A counted resource of which a node has too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Shortage {
    /// Which.
    pub dimension: Dimension,
    /// How much is asked for.
    pub needs: u64,
    /// How much nobody holds.
    pub free: u64,
    /// How much the node has for allocations.
    pub of: u64,
}

/// What a node lacks, as Nomad's API tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The node takes no new allocations, so that it is not considered at all: why not.
    NotReady(String),
    /// The job is for these data centers, so that the node is not considered at all.
    Datacenters(Vec<String>),
    /// A condition that the node does not fulfil, as commands put it between quotes.
    Filter(String),
    /// Something of which too little is left.
    Dimension(String),
}

impl PlacementFailure {
    /// What the node lacks.
    pub fn lack(&self) -> Lack {
        match self {
            PlacementFailure::Datacenters(names) => Lack::Datacenters(names.clone()),
            PlacementFailure::Ineligible | PlacementFailure::Draining => {
                Lack::NotReady(self.to_string())
            }
            PlacementFailure::Driver {
                driver,
                task,
                detected: true,
            } => Lack::Filter(format!("driver {driver} of task {task} does not work now")),
            PlacementFailure::Driver {
                driver,
                task,
                detected: false,
            } => Lack::Filter(format!("missing driver {driver} of task {task}")),
            PlacementFailure::Constraint(constraint) => Lack::Filter(constraint.clone()),
            PlacementFailure::PortTaken { .. }
            | PlacementFailure::PortReserved { .. }
            | PlacementFailure::NoPortLeft
            | PlacementFailure::NoAddressLeft => Lack::Dimension(format!("network: {self}")),
            PlacementFailure::Devices {
                count,
                device,
                task,
                why: DeviceLack::Taken,
            } => Lack::Dimension(format!(
                "devices: {count} of {device} for task {task}: not enough are free and healthy"
            )),
            PlacementFailure::Devices {
                device, task, why, ..
            } => Lack::Filter(format!("missing device {device} for task {task}: {why}")),
            PlacementFailure::HostVolume(_) => Lack::Filter(MISSING_VOLUMES.to_owned()),
            PlacementFailure::Shortage(short) => Lack::Dimension(short.to_string()),
            PlacementFailure::NoSuchGroup
            | PlacementFailure::HostNetwork { .. }
            | PlacementFailure::NetworkMode(_)
            | PlacementFailure::Words(_) => Lack::Filter(self.to_string()),
        }
    }
}

impl fmt::Display for PlacementFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementFailure::NoSuchGroup => f.write_str("no such group"),
            PlacementFailure::Datacenters(names) => {
                write!(f, "no node in datacenters {}", names.join(", "))
            }
            PlacementFailure::Ineligible => f.write_str(
                "the node is ineligible: it takes no new allocations until \
                 \"node eligibility -enable -self\"",
            ),
            PlacementFailure::Draining => f.write_str(
                "the node is drained: it takes no new allocations until that is called off with \
                 \"node drain -disable -self\", or is complete and followed by \
                 \"node eligibility -enable -self\"",
            ),
            PlacementFailure::Driver {
                driver,
                task,
                detected,
            } => {
                let fault = match detected {
                    true => "does not work now",
                    false => "is not there",
                };
                write!(f, "driver \"{driver}\" of task \"{task}\" {fault}")
            }
            PlacementFailure::Constraint(constraint) => {
                write!(f, "Constraint \"{constraint}\" failed")
            }
            PlacementFailure::PortTaken { label, value } => {
                write!(f, "reserved port collision {label}={value}")
            }
            PlacementFailure::PortReserved {
                label,
                value,
                network,
            } => write!(
                f,
                "reserved port collision {label}={value}: reserved_ports of the agent's configuration keeps it \
                 in the host network {} for others",
                quote(network)
            ),
            PlacementFailure::NetworkMode(mode) => write!(
                f,
                "missing network mode {}: \"node status -self -verbose\" says what this node offers, and why \
                 not more",
                quote(mode)
            ),
            PlacementFailure::NoAddressLeft => f.write_str(
                "no address is left behind the bridge: bridge_network_subnet of the agent's configuration says \
                 how many there are",
            ),
            PlacementFailure::NoPortLeft => {
                f.write_str("dynamic port selection failed: none is left")
            }
            PlacementFailure::HostNetwork { network, label } => {
                let (network, label) = (quote(network), quote(label));
                write!(
                    f,
                    "missing host network {network} for port {label}: the client block of the agent's \
                     configuration says with host_network {network} {{ … }} which interface or cidr it is"
                )
            }
            PlacementFailure::HostVolume(lack) => write!(f, "{MISSING_VOLUMES}: {lack}"),
            PlacementFailure::Devices {
                count,
                device,
                task,
                why,
            } => write!(
                f,
                "cannot assign {count} of device \"{device}\" for task \"{task}\": {why}"
            ),
            PlacementFailure::Shortage(short) => short.fmt(f),
            PlacementFailure::Words(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for DeviceLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeviceLack::Missing => "there is none",
            DeviceLack::Constraints => "none fulfils its constraints",
            DeviceLack::Taken => "not enough are free and healthy",
        })
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, unit) = match self.dimension {
            Dimension::Cpu => ("cpu", " MHz"),
            Dimension::Memory => ("memory", " MB"),
            Dimension::Disk => ("disk", " MB"),
            Dimension::Cores => ("cores", ""),
        };
        let Shortage {
            needs, free, of, ..
        } = self;
        write!(f, "{name}: needs {needs}{unit}, {free} of {of} are free")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constraint_failure_is_reported_verbatim() {
        let constraint = "${attr.kernel.name} = windows".to_owned();
        let failure = PlacementFailure::Constraint(constraint.clone());
        assert_eq!(failure.lack(), Lack::Filter(constraint.clone()));
        let words = format!("Constraint \"{constraint}\" failed");
        assert_eq!(failure.to_string(), words);
    }

    #[test]
    fn port_collision_exhausts_dimension() {
        let failure = PlacementFailure::PortTaken {
            label: "http".to_owned(),
            value: 8080,
        };
        let words = "network: reserved port collision http=8080".to_owned();
        assert_eq!(failure.lack(), Lack::Dimension(words));
    }

    #[test]
    fn shortage_reports_needed_and_free() {
        let short = Shortage {
            dimension: Dimension::Cpu,
            needs: 4000,
            free: 1200,
            of: 5000,
        };
        let words = "cpu: needs 4000 MHz, 1200 of 5000 are free";
        assert_eq!(short.to_string(), words);
        let lack = PlacementFailure::Shortage(short).lack();
        assert_eq!(lack, Lack::Dimension(words.to_owned()));
    }
}
