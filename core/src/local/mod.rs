//! The cluster's side of a node when there is no cluster.

pub mod constraint;
pub mod regexp;
pub mod version;
