//! Nomad's JSON: names and shapes that its programs read. The same types read the answers of
//! an agent on the command line's side, after its `null`s were dropped.

mod acl;
mod alloc;
mod audit;
mod check;
mod diff;
mod drain;
mod eval;
mod explain;
mod job;
mod machine;
mod metric;
mod namespace;
mod node;
mod periodic;
mod plan;
mod plugin;
mod resources;
mod scale;
mod service;
mod stats;
mod variable;
mod version;
mod volume;
mod whole_job;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use acl::{AclPolicyDto, AclPolicyStub, AclTokenDto, AclTokenStub, NO_ROLES};
pub(crate) use alloc::how_far;
pub use alloc::{Alloc, NetworkStatus};
pub use audit::AuditDto;
pub(super) use audit::audited;
pub use check::CheckDto;
pub use diff::{DiffType, FieldDiff, GroupDiff, JobDiff, ObjectDiff, TaskDiff};
pub use drover_api::{
    AllocDeployment, AllocStub, DesiredTransition, DriverNetworkDto, OldEvent, TaskEventDto,
    TaskEventFields, TaskStateDto,
};
pub use eval::{DeploymentDto, DeploymentGroup, EvalStub, EvaluationDto};
pub use explain::{
    AllocExplanationDto, JobExplanationDto, RestartsLeftDto, TaskExplanationDto, WaitingDto,
};
pub use job::{
    Children, Dispatched, GroupSummary, Handover, JobStub, JobSummary, Registered, Stopped,
    TakeoverAlloc, Validated, full_job, group_summaries, register_answer, summary,
};
pub use machine::{Asked, Event};
pub use metric::AllocMetric;
pub use namespace::{CapabilitiesDto, NamespaceDto};
pub use node::{Driver, HostVolumeDto, NodeDto};
pub use periodic::{Forced, PeriodicLaunches};
pub use plan::{DesiredUpdates, PlanAnnotations, Planned};
pub use plugin::PluginDto;
pub(super) use plugin::plugins;
pub use resources::{
    AllocatedResources, AssignedPort, CpuResources, DeviceResource, MemoryResources, NetworkPort,
    NetworkResource, OldResources, SharedResources, TaskResources,
};
pub(super) use scale::policy_id;
pub use scale::{PolicyDto, ScaleStatus, ScalingEventDto};
pub use service::ServiceInstance;
pub use stats::{
    AllocStats, CpuStats, DeviceGroupStats, DeviceStats, DiskStats, HostCpu, HostMemoryStats,
    HostStats, MemoryStats, ResourceUsage, StatObject, StatValue, TaskStats,
};
pub use variable::{VariableDto, VariableStub};
pub use version::{SubmissionDto, Tagged, Versions};
pub use volume::{VolumeDto, VolumeStub};

/// Of everything that can be said of something, in base64.
fn hash(of: &impl Serialize) -> String {
    let text = serde_json::to_vec(of).unwrap_or_default();
    BASE64_STANDARD.encode(Sha256::digest(&text))
}
