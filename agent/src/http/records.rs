//! What answers are made of: shared, immutable records, which the core hands out as they were at one moment.
//! Filters, pages and JSON are made of them elsewhere, so that a large question delays no input.

use std::sync::Arc;

pub(crate) use drover_api::{AllocRecords, NodeNames};
use drover_core::agent::{ShownKey, View};
use drover_core::model::eval::{EvalStatus, Evaluation};
use drover_core::model::job::Job;
use drover_core::model::version::VersionTag;
use drover_core::store::record::{AllocRecord, JobRecord};

use super::Api;
use super::blocking::{Indexed, blocking_query};
use super::dto::{Alloc, EvaluationDto, JobSummary, full_job, summary};
use super::errors::ApiError;
use super::filter::{Picked, Row, Unpicked, pick_below};
use super::list;
use super::params::Params;

/// How many records the core hands out at a time.
const PIECE: usize = 256;

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
            status: view.job_status(&record.job.key()).as_str(),
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
        EvalStatus::Pending if eval.is_waiting() => "created for delayed rescheduling",
        EvalStatus::Pending if view.is_fingerprinted() => {
            "waits for what probes, drivers and plugins of this node report first"
        }
        EvalStatus::Pending => "waits for the first fingerprints of this node",
        EvalStatus::Blocked => "created to place remaining allocations",
        EvalStatus::Canceled if eval.follow_up.is_some() => {
            "the job was stopped, or another evaluation replaced the failed allocation"
        }
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
    let count = found.len();
    let in_order = move || {
        // One whose directory was removed meanwhile was seen twice.
        let key = |one: &AllocRecords| {
            let alloc = one.alloc();
            (alloc.create_index, alloc.id, one.is_collected())
        };
        found.sort_by_cached_key(key);
        found.dedup_by_key(|one| one.alloc().id);
        Ok(found)
    };
    Ok(Indexed {
        index: first.index,
        value: list::elsewhere(count, in_order).await?,
    })
}
