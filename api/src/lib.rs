//! Shapes of Nomad's HTTP API of which there are thousands in one answer: allocations in lists, with the events of
//! their tasks. The same types read answers and write them.
//!
//! They are a crate of their own for the sake of their JSON: it is compiled for speed, while what answers once in a
//! while is compiled to be small (`profile.release` of the workspace).

mod alloc;
mod event;
mod listed;
mod object;
mod records;
mod reschedule;
mod times;

pub use alloc::{AllocDeployment, AllocStub, DesiredTransition, DriverNetworkDto, TaskStateDto};
pub use event::{OldEvent, TaskEventDto, TaskEventFields};
pub use records::{AllocRecords, NodeNames};
pub use reschedule::{RescheduleEvent, RescheduleTracker};
pub use times::{civil, to_nanos};
