//! What is remembered: the schema, and how a restored agent gets it back.
//!
//! A [`Record`] is what the store holds under a [`Key`]. The core keeps the same record behind an
//! `Arc` in its own state, so remembering costs one pointer, and an unchanged record is seen
//! without encoding it. The store itself (outside) encodes and writes; see [`crate::ledger`] for when.
//!
//! On disk a key is text (`task/<alloc>\0<name>`) and a value is JSON with named fields, so that
//! the version before this one and the one after it read it: unknown fields are ignored, missing
//! ones have defaults.
//!
//! **A record that cannot be read.** The core is told under which names something stands that could
//! not be read (`Saved::unreadable`).
//!
//! - A *task* without its record is quarantined: it is dead, and its allocation ends and starts
//!   nothing more, not even poststop tasks, because nobody knows what ran already. An allocation
//!   that had ended keeps its status. The launch is named in the allocation's record too, which is
//!   written in the same batch (`AllocRecord::launches`), so what may still run is ended by name.
//!   The allocation is over, and replaced by its policy, only when the launch surely is gone or
//!   resisted five attempts.
//! - An *allocation* without its record, or without its job's, is not restored. What it ran is
//!   ended as launches that nobody knows are.

pub mod freshness;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{
    AccessorId, AllocId, DeploymentId, EvalId, JobKey, NodeId, Slot, TaskName, VolumeId,
};
use crate::model::eval::{Deployment, Evaluation};
use crate::model::job::Job;
use crate::model::submission::Submission;
use crate::model::variable::{Variable, VariableKey};
use crate::store::acl::{AclBootstrapRecord, AclPolicyRecord, AclTokenRecord};
use crate::store::collected::CollectedAlloc;
use crate::store::disk::Disk;
use crate::store::namespace::NamespaceRecord;
use crate::store::node::NodeRecord;
use crate::store::periodic::PeriodicRecord;
use crate::store::record::{AllocRecord, JobRecord, TaskRecord};
use crate::store::server::{AnnouncedRecord, PlacedRecord, ReportedRecord, ServerRecord};
use crate::store::volume::VolumeRecord;

pub mod acl;
pub mod collected;
pub mod copies;
pub mod disk;
mod earlier;
pub mod image;
pub mod namespace;
pub mod node;
pub mod periodic;
pub mod record;
pub mod server;
pub mod volume;

/// The layout of the records that this version writes.
pub const SCHEMA: u32 = 1;

/// The number of one commit, rising by one from 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CommitId(pub u64);

/// Under which name something is remembered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Key {
    /// What concerns the node as a whole.
    Meta,
    /// A job with its versions.
    Job(JobKey),
    /// An evaluation.
    Eval(EvalId),
    /// A roll-out.
    Deployment(DeploymentId),
    /// An allocation.
    Alloc(AllocId),
    /// A task of an allocation.
    Task(AllocId, TaskName),
    /// A variable.
    Variable(VariableKey),
    /// What stays of an allocation whose directory is gone.
    Collected(AllocId),
    /// The disk of a slot.
    Disk(Slot),
    /// What a version of a job was made from.
    Submission(JobKey, u64),
    /// The launches of a periodic job.
    Periodic(JobKey),
    /// What people decided about the node.
    Node,
    /// A host volume that was made or registered.
    Volume(VolumeId),
    /// A namespace that somebody made or described.
    Namespace(Arc<str>),
    /// A policy of the API.
    AclPolicy(Arc<str>),
    /// A token of the API.
    AclToken(AccessorId),
    /// That there was a first token.
    AclBootstrap,
    /// The node's life in a cluster.
    Server,
    /// An allocation that servers placed here.
    Placed(AllocId),
    /// What servers acknowledged last of an allocation.
    Reported(AllocId),
    /// The services of an allocation that servers may have.
    Announced(AllocId),
}

/// What is remembered. Comparing two `Arc`s looks at the pointers first, which makes a duplicate
/// write cheap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Record {
    /// What concerns the node as a whole.
    Meta(Arc<Meta>),
    /// A job with its versions.
    Job(Arc<JobRecord>),
    /// An evaluation.
    Eval(Arc<Evaluation>),
    /// A roll-out.
    Deployment(Arc<Deployment>),
    /// An allocation.
    Alloc(Arc<AllocRecord>),
    /// A task of an allocation.
    Task(Arc<TaskRecord>),
    /// A variable.
    Variable(Arc<Variable>),
    /// What stays of an allocation whose directory is gone.
    Collected(Arc<CollectedAlloc>),
    /// The disk of a slot.
    Disk(Arc<Disk>),
    /// What a version of a job was made from.
    Submission(Arc<Submission>),
    /// The launches of a periodic job.
    Periodic(Arc<PeriodicRecord>),
    /// What people decided about the node.
    Node(Arc<NodeRecord>),
    /// A host volume that was made or registered.
    Volume(Arc<VolumeRecord>),
    /// A namespace that somebody made or described.
    Namespace(Arc<NamespaceRecord>),
    /// A policy of the API.
    AclPolicy(Arc<AclPolicyRecord>),
    /// A token of the API.
    AclToken(Arc<AclTokenRecord>),
    /// That there was a first token.
    AclBootstrap(Arc<AclBootstrapRecord>),
    /// The node's life in a cluster.
    Server(Arc<ServerRecord>),
    /// An allocation that servers placed here.
    Placed(Arc<PlacedRecord>),
    /// What servers acknowledged last of an allocation.
    Reported(Arc<ReportedRecord>),
    /// The services of an allocation that servers may have.
    Announced(Arc<AnnouncedRecord>),
}

/// What concerns the node as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The layout of the records; 1.
    pub schema: u32,
    /// This node's id, kept for its life.
    pub node: NodeId,
    /// The state's index when something was last forgotten: no record that is left may know it.
    pub index: u64,
}

/// One step's changes, written together or not at all; `None` deletes.
pub type Batch = BTreeMap<Key, Option<Record>>;

/// All that a store holds, as a restored agent wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Saved {
    /// What concerns the node as a whole.
    pub meta: Option<Arc<Meta>>,
    /// What people decided about the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Arc<NodeRecord>>,
    /// Jobs.
    #[serde(with = "crate::pairs")]
    pub jobs: BTreeMap<JobKey, Arc<JobRecord>>,
    /// Evaluations.
    pub evals: BTreeMap<EvalId, Arc<Evaluation>>,
    /// Roll-outs.
    pub deployments: BTreeMap<DeploymentId, Arc<Deployment>>,
    /// Allocations.
    pub allocs: BTreeMap<AllocId, Arc<AllocRecord>>,
    /// Tasks of allocations.
    #[serde(with = "crate::pairs")]
    pub tasks: BTreeMap<(AllocId, TaskName), Arc<TaskRecord>>,
    /// Variables.
    #[serde(default, with = "crate::pairs")]
    pub variables: BTreeMap<VariableKey, Arc<Variable>>,
    /// What stays of allocations whose directories are gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub collected: BTreeMap<AllocId, Arc<CollectedAlloc>>,
    /// Disks of slots.
    #[serde(default, with = "crate::pairs")]
    pub disks: BTreeMap<Slot, Arc<Disk>>,
    /// What versions of jobs were made from.
    #[serde(
        default,
        with = "crate::pairs",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub submissions: BTreeMap<(JobKey, u64), Arc<Submission>>,
    /// Launches of periodic jobs.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        with = "crate::pairs"
    )]
    pub periodic: BTreeMap<JobKey, Arc<PeriodicRecord>>,
    /// Host volumes that were made or registered.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<VolumeId, Arc<VolumeRecord>>,
    /// Namespaces that somebody made or described.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub namespaces: BTreeMap<Arc<str>, Arc<NamespaceRecord>>,
    /// Policies of the API.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub acl_policies: BTreeMap<Arc<str>, Arc<AclPolicyRecord>>,
    /// Tokens of the API.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub acl_tokens: BTreeMap<AccessorId, Arc<AclTokenRecord>>,
    /// That there was a first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl_bootstrap: Option<Arc<AclBootstrapRecord>>,
    /// The node's life in a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Arc<ServerRecord>>,
    /// Allocations that servers placed here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub placed: BTreeMap<AllocId, Arc<PlacedRecord>>,
    /// What servers acknowledged last of allocations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reported: BTreeMap<AllocId, Arc<ReportedRecord>>,
    /// The services of allocations that servers may have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub announced: BTreeMap<AllocId, Arc<AnnouncedRecord>>,
    /// Under which names something stands that cannot be read. Why is not said here: an error of
    /// reading may quote what it read, and secrets with it.
    #[serde(default)]
    pub unreadable: BTreeSet<Key>,
}

impl Saved {
    /// The job of an allocation, in the version that it runs: the node's own, or the one that servers placed with it.
    pub fn job_of(&self, alloc: &AllocRecord) -> Option<&Arc<Job>> {
        if alloc.of_servers {
            return self.placed.get(&alloc.id).map(|placed| &placed.job);
        }
        self.jobs.get(&alloc.job)?.version(alloc.job_version)
    }

    /// Sorts what a store holds. A record that stands under a key of another kind is ignored, as
    /// a damaged one is.
    pub fn from_records(records: impl IntoIterator<Item = (Key, Record)>) -> Saved {
        let mut saved = Saved::default();
        for (key, record) in records {
            match record {
                Record::Meta(meta) => saved.meta = Some(meta),
                Record::Node(node) => saved.node = Some(node),
                Record::Server(server) => saved.server = Some(server),
                Record::Placed(placed) => {
                    if let Key::Placed(id) = key {
                        saved.placed.insert(id, placed);
                    }
                }
                Record::Reported(reported) => {
                    if let Key::Reported(id) = key {
                        saved.reported.insert(id, reported);
                    }
                }
                Record::Announced(announced) => {
                    if let Key::Announced(id) = key {
                        saved.announced.insert(id, announced);
                    }
                }
                Record::Volume(volume) => {
                    saved.volumes.insert(volume.id, volume);
                }
                Record::Namespace(namespace) => {
                    if let Key::Namespace(name) = key {
                        saved.namespaces.insert(name, namespace);
                    }
                }
                Record::AclPolicy(policy) => {
                    if let Key::AclPolicy(name) = key {
                        saved.acl_policies.insert(name, policy);
                    }
                }
                Record::AclToken(token) => {
                    saved.acl_tokens.insert(token.token.accessor, token);
                }
                Record::AclBootstrap(bootstrap) => saved.acl_bootstrap = Some(bootstrap),
                Record::Job(job) => {
                    if let Key::Job(key) = key {
                        saved.jobs.insert(key, job);
                    }
                }
                Record::Eval(eval) => {
                    saved.evals.insert(eval.id, eval);
                }
                Record::Deployment(deployment) => {
                    saved.deployments.insert(deployment.id, deployment);
                }
                Record::Alloc(alloc) => {
                    saved.allocs.insert(alloc.id, alloc);
                }
                Record::Task(task) => {
                    if let Key::Task(alloc, name) = key {
                        saved.tasks.insert((alloc, name), task);
                    }
                }
                Record::Variable(variable) => {
                    if let Key::Variable(key) = key {
                        saved.variables.insert(key, variable);
                    }
                }
                Record::Collected(alloc) => {
                    saved.collected.insert(alloc.alloc.id, alloc);
                }
                Record::Disk(disk) => {
                    if let Key::Disk(slot) = key {
                        saved.disks.insert(slot, disk);
                    }
                }
                Record::Submission(submission) => {
                    if let Key::Submission(job, version) = key {
                        saved.submissions.insert((job, version), submission);
                    }
                }
                Record::Periodic(launches) => {
                    if let Key::Periodic(key) = key {
                        saved.periodic.insert(key, launches);
                    }
                }
            }
        }
        saved
    }
}
