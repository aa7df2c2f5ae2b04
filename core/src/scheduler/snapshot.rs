//! What a plan is made from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::by_id;
use crate::claims::resources::{Amounts, Capacity};
use crate::config::Preemption;
use crate::cx::Rng;
use crate::device::choose::Offer;
use crate::ids::{AllocId, DeploymentId, GroupName, JobKey, Slot};
use crate::local::Progress;
use crate::model::eval::Deployment;
use crate::model::node::Node;
use crate::store::disk::Disk;
use crate::store::node::NodeRecord;
use crate::store::record::{AllocRecord, JobRecord};
use crate::time::{Instant, Now};

/// The state of a node at one moment, as far as plans depend on it.
#[derive(Clone, Debug)]
pub struct Snapshot<'a> {
    /// The clocks.
    pub now: Now,
    /// The jobs that a plan is wanted for, the highest priority first.
    pub due: Vec<JobKey>,
    /// All jobs.
    pub jobs: &'a BTreeMap<JobKey, Arc<JobRecord>>,
    /// All roll-outs.
    pub deployments: &'a BTreeMap<DeploymentId, Arc<Deployment>>,
    /// All allocations whose directories are not removed yet, by id.
    pub allocs: Vec<AllocState<'a>>,
    /// Which of them belong to which job.
    pub allocs_of: &'a BTreeMap<JobKey, BTreeSet<AllocId>>,
    /// The disks of slots that have a record.
    pub disks: &'a BTreeMap<Slot, Arc<Disk>>,
    /// When failed allocations are replaced, as the last plan in this life of the agent said: the wall
    /// clock may have been set since, and shall neither delay nor hurry a replacement.
    pub replaced_at: &'a BTreeMap<JobKey, BTreeMap<AllocId, Instant>>,
    /// Until when roll-outs have to make progress, as the last plan in this life of the agent said.
    pub progress: &'a BTreeMap<JobKey, BTreeMap<GroupName, Progress>>,
    /// What is known of the node.
    pub node: &'a Node,
    /// What people decided about it.
    pub node_record: &'a NodeRecord,
    /// What it has of counted resources.
    pub capacity: Capacity,
    /// Devices that may be chosen from.
    pub offers: Vec<Offer<'a>>,
    /// Whether a probe, a driver or a plugin may still report for the first time.
    pub awaits_first_reports: bool,
    /// Which types of jobs may preempt.
    pub preemption: Preemption,
    /// Where ids and ports are drawn from; [`super::Plan::rng`] goes on from there.
    pub rng: Rng,
}

/// An allocation, and what may be alive of it.
#[derive(Clone, Copy, Debug)]
pub struct AllocState<'a> {
    /// Its record.
    pub record: &'a AllocRecord,
    /// What it holds of counted resources.
    pub amounts: Amounts,
    /// Whether its run is over and something of it may be alive nevertheless.
    pub has_remains: bool,
    /// Whether it ends by itself, or has done what it was to do.
    pub is_completing: bool,
}

impl<'a> AllocState<'a> {
    /// Whether nothing of it is alive: what it claims is free.
    pub fn is_gone(&self) -> bool {
        self.record.finished && !self.has_remains
    }

    /// An allocation that runs and goes on running.
    pub fn running(record: &'a AllocRecord) -> AllocState<'a> {
        AllocState {
            record,
            amounts: Amounts::default(),
            has_remains: false,
            is_completing: false,
        }
    }
}

impl<'a> Snapshot<'a> {
    /// The records of a job's allocations.
    pub(super) fn records_of(&self, job: &JobKey) -> Vec<&'a AllocRecord> {
        let Some(of_job) = self.allocs_of.get(job) else {
            return Vec::new();
        };
        let allocs = by_id::find_all(&self.allocs, of_job).into_iter();
        allocs.map(|alloc| alloc.record).collect()
    }

    /// The allocation of this id.
    pub(super) fn alloc(&self, id: AllocId) -> Option<&AllocState<'a>> {
        by_id::find(&self.allocs, id)
    }
}
