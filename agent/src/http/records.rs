//! What answers are made of: shared, immutable records, which the core hands out as they were at one moment.
//! Filters, pages and JSON are made of them elsewhere, so that a large question delays no input.

use std::sync::Arc;

use drover_core::agent::{ShownAlloc, ShownKey, View};
use drover_core::alloc::runner::RESCHEDULED;
use drover_core::ids::{AllocId, NodeId, TaskName};
use drover_core::model::alloc::{ClientStatus, DesiredStatus, DriverNetwork, TaskState};
use drover_core::model::eval::{DeploymentStatus, EvalStatus, Evaluation};
use drover_core::model::job::Job;
use drover_core::model::node::Node;
use drover_core::model::version::VersionTag;
use drover_core::store::collected::CollectedAlloc;
use drover_core::store::record::{AllocRecord, JobRecord, TaskRecord};

use super::Api;
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, EvaluationDto, JobSummary, full_job, summary};
use super::errors::ApiError;
use super::filter::{Picked, Row, Unpicked, pick_below};
use super::params::Params;

/// Why an allocation is not wanted any more whose roll-out came to nothing.
const NOT_NEEDED: &str = "alloc not needed due to job update";

/// How many records the core hands out at a time.
const PIECE: usize = 256;

/// The node, as far as its allocations show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeNames {
    pub(crate) id: NodeId,
    pub(crate) name: String,
    pub(crate) pool: String,
    pub(crate) datacenter: String,
}

impl NodeNames {
    pub(crate) fn of(node: &Node) -> NodeNames {
        NodeNames {
            id: node.id,
            name: node.name.clone(),
            pool: node.pool.clone(),
            datacenter: node.datacenter.clone(),
        }
    }
}

#[derive(Clone, Debug)]
enum Records {
    Here(Arc<AllocRecord>, Vec<(TaskName, Arc<TaskRecord>)>),
    Collected(Arc<CollectedAlloc>),
}

/// An allocation as it was at one moment.
#[derive(Clone, Debug)]
pub(crate) struct AllocRecords {
    pub(crate) node: Arc<NodeNames>,
    pub(crate) job: Arc<Job>,
    /// What is done or awaited before its tasks have their turn.
    pub(crate) waits_for: Option<String>,
    /// Whose places it took.
    pub(crate) preempted: Vec<AllocId>,
    /// Whether it was a canary of a roll-out that came to nothing.
    pub(crate) is_vain_canary: bool,
    /// The status of its job, where the job is shown with it.
    pub(crate) job_status: &'static str,
    records: Records,
}

impl AllocRecords {
    pub(crate) fn of(view: View<'_>, node: &Arc<NodeNames>, alloc: ShownAlloc<'_>) -> AllocRecords {
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
            job_status: "",
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
    pub(crate) fn with_job(
        view: View<'_>,
        node: &Arc<NodeNames>,
        alloc: ShownAlloc<'_>,
    ) -> AllocRecords {
        AllocRecords {
            job_status: view.job_status(&alloc.record().job),
            ..AllocRecords::of(view, node, alloc)
        }
    }

    /// Whether this is made of the very same records, so that it is shown alike.
    pub(super) fn is_same(&self, other: &AllocRecords) -> bool {
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
            && self.is_vain_canary == other.is_vain_canary
            && self.job_status == other.job_status
            && self.node == other.node
    }

    pub(crate) fn alloc(&self) -> &AllocRecord {
        match &self.records {
            Records::Here(alloc, _) => alloc,
            Records::Collected(record) => &record.alloc,
        }
    }

    /// What is wanted of it, and why. One that failed is not wanted any more, as Nomad has it, when it was replaced,
    /// or when it was a canary of a roll-out that came to nothing.
    pub(crate) fn desired(&self) -> (DesiredStatus, &str) {
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

    pub(crate) fn is_collected(&self) -> bool {
        matches!(self.records, Records::Collected(_))
    }

    /// The states of its tasks, and what drivers know of their networks.
    pub(crate) fn tasks(
        &self,
    ) -> impl Iterator<Item = (&TaskName, &TaskState, Option<&DriverNetwork>)> {
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

/// Filters see whole allocations. What is asked for most is looked up without making one.
impl Row for AllocRecords {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        let alloc = self.alloc();
        let Some(name) = path.first() else {
            return pick_below(&Alloc::of(self), path, 0);
        };
        match name.as_str() {
            "ID" => pick_below(&alloc.id.to_string(), path, 1),
            "Name" => pick_below(&*alloc.name, path, 1),
            "Namespace" => pick_below(&*alloc.job.namespace, path, 1),
            "JobID" => pick_below(&*alloc.job.id, path, 1),
            "JobVersion" => pick_below(&alloc.job_version, path, 1),
            "TaskGroup" => pick_below(alloc.group.as_str(), path, 1),
            "NodeName" => pick_below(&self.node.name, path, 1),
            "ClientStatus" => pick_below(alloc.status.as_str(), path, 1),
            "DesiredStatus" => pick_below(self.desired().0.as_str(), path, 1),
            "CreateIndex" => pick_below(&alloc.create_index, path, 1),
            "ModifyIndex" => pick_below(&alloc.modify_index, path, 1),
            "Job" => pick_job(&self.job, self.job_status, None, path, 1),
            _ => {
                let whole = Alloc::of(self);
                // Its fields are known, though they come from several objects.
                match pick_below(&whole, path.get(..1).unwrap_or_default(), 0) {
                    Err(Unpicked::Missing) => Err(Unpicked::no_field(0, name)),
                    Ok(_) | Err(_) => pick_below(&whole, path, 0),
                }
            }
        }
    }
}

/// A job as it was at one moment.
#[derive(Clone, Debug)]
pub(super) struct JobRecords {
    pub(super) record: Arc<JobRecord>,
    pub(super) status: &'static str,
    pub(super) summary: JobSummary,
}

impl JobRecords {
    pub(super) fn of(view: View<'_>, record: &Arc<JobRecord>) -> JobRecords {
        JobRecords {
            record: record.clone(),
            status: view.job_status(&record.job.key()),
            summary: summary(view, record),
        }
    }
}

/// Filters see whole jobs.
impl Row for JobRecords {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        let tag = self.record.tags.get(&self.record.job.version);
        pick_job(&self.record.job, self.status, tag, path, 0)
    }
}

/// Fields of a job that are not of what was submitted.
const DERIVED: [&str; 5] = [
    "Status",
    "VersionTag",
    "ConsulNamespace",
    "VaultNamespace",
    "NomadTokenID",
];

fn pick_job(
    job: &Job,
    status: &str,
    tag: Option<&Arc<VersionTag>>,
    path: &[String],
    at: usize,
) -> Result<Picked, Unpicked> {
    match path.get(at) {
        Some(name) if DERIVED.contains(&name.as_str()) => {
            pick_below(&full_job(job, status, tag), path, at)
        }
        _ => pick_below(job, path, at),
    }
}

/// An evaluation as it was at one moment.
#[derive(Clone, Debug)]
pub(crate) struct EvalRecords {
    pub(crate) node: Arc<NodeNames>,
    pub(crate) eval: Arc<Evaluation>,
    pub(crate) job: Option<Arc<Job>>,
    /// The groups of the job that wait to be placed.
    pub(crate) blocked: Vec<String>,
    /// Why it is where it is.
    pub(crate) description: &'static str,
}

impl EvalRecords {
    pub(crate) fn of(view: View<'_>, node: &Arc<NodeNames>, eval: &Arc<Evaluation>) -> EvalRecords {
        let blocked = view.blocked(&eval.job).iter();
        EvalRecords {
            node: node.clone(),
            eval: eval.clone(),
            job: view.job(&eval.job).map(|record| record.job.clone()),
            blocked: blocked.map(|(group, _)| group.clone()).collect(),
            description: description(view, eval),
        }
    }
}

/// Filters see evaluations as lists show them.
impl Row for EvalRecords {
    fn pick(&self, path: &[String]) -> Result<Picked, Unpicked> {
        pick_below(&EvaluationDto::of(self), path, 0)
    }
}

/// Why an evaluation is where it is, if that is not plain.
fn description(view: View<'_>, eval: &Evaluation) -> &'static str {
    match eval.status {
        EvalStatus::Complete => "",
        EvalStatus::Pending if view.is_fingerprinted() => {
            "waits for what probes, drivers and plugins of this node report first"
        }
        EvalStatus::Pending => "waits for the first fingerprints of this node",
        EvalStatus::Blocked => "created to place remaining allocations",
        EvalStatus::Canceled => "the job was stopped, or a newer evaluation waits instead",
    }
}

/// The allocations that are wanted, in pieces: between two of them the core does other things. Each is as it
/// was at the index or later.
///
/// # Errors
/// The agent ends, or too many wait already.
pub(super) async fn allocs(
    api: &Api,
    params: &Params,
    wanted: impl Fn(&AllocRecord) -> bool + Clone + Send + 'static,
) -> Result<Indexed<Vec<AllocRecords>>, ApiError> {
    let piece = |after: Option<ShownKey>| {
        let wanted = wanted.clone();
        move |view: View<'_>| {
            let node = Arc::new(NodeNames::of(view.node()));
            let mut last = None;
            let mut found = Vec::new();
            let piece = view.shown_allocs_after(after).take(PIECE);
            for (nth, (key, alloc)) in piece.enumerate() {
                // Nothing follows on fewer than were to be looked at.
                last = (nth + 1 == PIECE).then_some(key);
                if wanted(alloc.record()) {
                    found.push(AllocRecords::of(view, &node, alloc));
                }
            }
            Indexed::whole(view, (found, last))
        }
    };
    let first = blocking_query(api, params, piece(None)).await?;
    let (mut found, mut last) = first.value;
    while last.is_some() {
        let (more, end) = api.agent_handle.ask(piece(last)).await?.value;
        found.extend(more);
        last = end;
    }
    // One whose directory was removed meanwhile was seen twice.
    found.sort_by_cached_key(|one| (one.alloc().create_index, one.alloc().id, one.is_collected()));
    found.dedup_by_key(|one| one.alloc().id);
    Ok(Indexed {
        index: first.index,
        value: found,
    })
}
