//! What is known of the machine and kept up to date: probes, drivers, devices. Each is a stream of
//! reports that nobody outside is trusted to go on with; what they report is checked first
//! ([`crate::fingerprint`], [`crate::driver`], [`crate::device`]).

pub mod device;
pub mod driver;
pub mod fingerprint;
pub mod stream;
pub mod volumes;
pub mod zones;

use crate::model::node::NodeEvent;

/// What news led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// What people should know.
    pub events: Vec<NodeEvent>,
    /// Whether what the node has is different now.
    pub node: bool,
}
