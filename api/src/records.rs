//! What allocations are shown by: shared, immutable records, which the core hands out as they were at one moment.

use std::sync::Arc;

use drover_core::agent::{ShownAlloc, View};
use drover_core::alloc::runner::RESCHEDULED;
use drover_core::ids::{AllocId, EvalId, NodeId, TaskName};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, DriverNetwork, TaskState};
use drover_core::model::eval::DeploymentStatus;
use drover_core::model::job::Job;
use drover_core::model::node::Node;
use drover_core::store::collected::CollectedAlloc;
use drover_core::store::record::{AllocRecord, TaskRecord};

use crate::reschedule::RescheduleTracker;

/// Why an allocation is not wanted any more whose roll-out came to nothing.
const NOT_NEEDED: &str = "alloc not needed due to job update";

/// The node, as far as its allocations show it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeNames {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: String,
    /// Its node pool.
    pub pool: String,
    /// Its datacenter.
    pub datacenter: String,
}

impl NodeNames {
    /// Those of a node.
    pub fn of(node: &Node) -> NodeNames {
        NodeNames {
            id: node.id,
            name: node.name.clone(),
            pool: node.pool.clone(),
            datacenter: node.datacenter.clone(),
        }
    }
}

/// Whether the node placed an allocation itself; none where there are no servers that could have.
fn is_local(view: View<'_>, record: &AllocRecord) -> Option<bool> {
    let may_be_theirs = record.of_servers || view.server().is_some();
    may_be_theirs.then_some(!record.of_servers)
}

#[derive(Clone, Debug)]
enum Records {
    Here(Arc<AllocRecord>, Vec<(TaskName, Arc<TaskRecord>)>),
    Collected(Arc<CollectedAlloc>),
}

/// An allocation as it was at one moment.
#[derive(Clone, Debug)]
pub struct AllocRecords {
    /// Where it is.
    pub node: Arc<NodeNames>,
    /// The version of its job.
    pub job: Arc<Job>,
    /// What is done or awaited before its tasks have their turn.
    pub waits_for: Option<String>,
    /// Whose places it took.
    pub preempted: Vec<AllocId>,
    /// The failed allocations that it replaces.
    pub rescheduled: Option<RescheduleTracker>,
    /// The evaluation that waits until it is replaced, if it failed.
    pub follow_up: Option<EvalId>,
    /// Whether it was a canary of a roll-out that came to nothing.
    pub is_vain_canary: bool,
    /// The status of its job, where the job is shown with it.
    pub job_status: &'static str,
    /// Whether the node placed it itself, where servers could have.
    pub is_local: Option<bool>,
    records: Records,
}

impl AllocRecords {
    /// What is known of an allocation now.
    pub fn of(view: View<'_>, node: &Arc<NodeNames>, alloc: ShownAlloc<'_>) -> AllocRecords {
        let record = alloc.record();
        let was_preempted = |id: &&AllocId| {
            let other = view.shown_alloc(**id);
            other.is_some_and(|other| other.record().preempted_by == Some(record.id))
        };
        let preempted = record.preempts.iter().filter(was_preempted);
        let rollout = record.deployment.and_then(|id| view.deployment(id));
        let came_to_nothing = rollout.is_none_or(|rollout| match rollout.status {
            DeploymentStatus::Failed | DeploymentStatus::Cancelled => true,
            DeploymentStatus::Running | DeploymentStatus::Paused | DeploymentStatus::Successful => {
                false
            }
        });
        AllocRecords {
            is_vain_canary: record.canary && came_to_nothing,
            node: node.clone(),
            job: alloc.job().clone(),
            waits_for: alloc.waits_for(view),
            preempted: preempted.copied().collect(),
            rescheduled: RescheduleTracker::of(view, node.id, alloc),
            follow_up: view.follow_up(record),
            job_status: "",
            is_local: is_local(view, record),
            records: match alloc {
                ShownAlloc::Here(alloc) => Records::Here(
                    alloc.record().clone(),
                    (alloc.tasks().iter())
                        .map(|task| (task.spec().key.task.clone(), task.record().clone()))
                        .collect(),
                ),
                ShownAlloc::Collected(record, _) => Records::Collected(record.clone()),
            },
        }
    }

    /// The same with what a whole allocation shows of its job.
    pub fn with_job(view: View<'_>, node: &Arc<NodeNames>, alloc: ShownAlloc<'_>) -> AllocRecords {
        AllocRecords {
            job_status: view.job_status(&alloc.record().job).as_str(),
            ..AllocRecords::of(view, node, alloc)
        }
    }

    /// Whether this is made of the very same records, so that it is shown alike.
    pub fn is_same(&self, other: &AllocRecords) -> bool {
        let records = match (&self.records, &other.records) {
            (Records::Here(alloc, tasks), Records::Here(others, others_tasks)) => {
                let pairs = tasks.iter().zip(others_tasks);
                Arc::ptr_eq(alloc, others)
                    && tasks.len() == others_tasks.len()
                    && pairs
                        .into_iter()
                        .all(|(one, other)| Arc::ptr_eq(&one.1, &other.1))
            }
            (Records::Collected(record), Records::Collected(other)) => Arc::ptr_eq(record, other),
            (Records::Here(..), Records::Collected(_))
            | (Records::Collected(_), Records::Here(..)) => false,
        };
        records
            && Arc::ptr_eq(&self.job, &other.job)
            && self.waits_for == other.waits_for
            && self.preempted == other.preempted
            && self.rescheduled == other.rescheduled
            && self.follow_up == other.follow_up
            && self.is_vain_canary == other.is_vain_canary
            && self.job_status == other.job_status
            && self.is_local == other.is_local
            && self.node == other.node
    }

    /// Its record.
    pub fn alloc(&self) -> &AllocRecord {
        match &self.records {
            Records::Here(alloc, _) => alloc,
            Records::Collected(record) => &record.alloc,
        }
    }

    /// What is wanted of it, and why. One that failed is not wanted any more, as Nomad has it, when it was replaced,
    /// or when it was a canary of a roll-out that came to nothing.
    pub fn desired(&self) -> (DesiredStatus, &str) {
        let alloc = self.alloc();
        let failed = alloc.status == ClientStatus::Failed;
        match alloc.desired {
            DesiredStatus::Run if failed && alloc.next.is_some() => {
                (DesiredStatus::Stop, RESCHEDULED)
            }
            DesiredStatus::Run if failed && self.is_vain_canary => {
                (DesiredStatus::Stop, NOT_NEEDED)
            }
            desired => (desired, &alloc.desired_description),
        }
    }

    /// What is said of its status.
    pub fn description(&self) -> &str {
        let waits_for = self.waits_for.as_deref();
        waits_for.unwrap_or(&self.alloc().status_description)
    }

    /// Whether only its record is left.
    pub fn is_collected(&self) -> bool {
        matches!(self.records, Records::Collected(_))
    }

    /// The states of its tasks, and what drivers know of their networks.
    pub fn tasks(&self) -> impl Iterator<Item = (&TaskName, &TaskState, Option<&DriverNetwork>)> {
        let (here, collected) = match &self.records {
            Records::Here(_, tasks) => (Some(tasks), None),
            Records::Collected(record) => (None, Some(&record.tasks)),
        };
        let here = here.into_iter().flatten().map(|(name, task)| {
            let launch = task.launch.as_ref();
            let network = launch.and_then(|launch| launch.network.as_ref());
            (name, &task.state, network)
        });
        let collected = collected.into_iter().flatten();
        here.chain(collected.map(|(name, state)| (name, state, None)))
    }
}
