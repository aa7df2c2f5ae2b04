//! Access control: what a policy says, and what the holder of some policies may do. Nothing here asks anybody:
//! texts go in, answers come out.
//!
//! [`policy`] reads the policy language, [`rights`] puts the policies of a token together, [`crate::capability`] has
//! the words, [`glob`] says which rule is for a name, and [`ready`] has the policies that are there from the start.

mod glob;
pub mod policy;
pub mod ready;
pub mod rights;

pub use crate::capability::{
    Capability, HostVolumeCapability, Level, PoolCapability, VariableCapability,
};
pub use policy::{Policy, PolicyError};
pub use rights::Rights;

#[cfg(test)]
mod tests;
