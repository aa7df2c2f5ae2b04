//! Jobs: how many allocations of each are where, how many jobs are in which state, and how many wait for a placement.

use drover_core::agent::View;
use drover_core::model::dispatch::children_of;
use drover_core::model::job::Job;
use drover_core::model::job::JobStatus;
use drover_core::model::periodic::launch_of;

use super::Metrics;
use super::labels::{Labels, Map};
use crate::http::dto::{GroupSummary, group_summaries};

/// What is known of all jobs.
#[derive(Default)]
pub(super) struct Jobs {
    /// The labels of each group and what there is of it.
    pub(super) groups: Vec<(Map, GroupSummary)>,
    /// Pending, running, dead.
    pub(super) statuses: [u64; 3],
    /// How many wait for a placement.
    pub(super) blocked: u64,
}

impl Jobs {
    /// Those of this state; of what was dispatched only if it is `with_dispatched`.
    pub(super) fn see(view: View<'_>, with_dispatched: bool) -> Jobs {
        let mut seen = Jobs::default();
        for record in view.jobs() {
            let key = record.job.key();
            seen.statuses[match view.job_status(&key) {
                JobStatus::Pending => 0,
                JobStatus::Running => 1,
                JobStatus::Dead => 2,
            }] += 1;
            seen.blocked += u64::from(!view.blocked(&key).is_empty());
            if record.job.dispatched && !with_dispatched {
                continue;
            }
            let (groups, _) = group_summaries(view, record);
            for (group, counts) in groups {
                seen.groups.push((labels(&record.job, group), counts));
            }
        }
        seen
    }

    /// Writes them; `host_name` as in all gauges, `node` for what is about all jobs.
    pub(super) fn write(&self, metrics: &mut Metrics, node: &Labels, host_name: Option<&str>) {
        for (map, counts) in &self.groups {
            let labels = Labels::new(map.clone(), host_name);
            for (name, count) in [
                ("nomad.nomad.job_summary.queued", counts.queued),
                ("nomad.nomad.job_summary.complete", counts.complete),
                ("nomad.nomad.job_summary.failed", counts.failed),
                ("nomad.nomad.job_summary.running", counts.running),
                ("nomad.nomad.job_summary.starting", counts.starting),
                ("nomad.nomad.job_summary.lost", counts.lost),
                ("nomad.nomad.job_summary.unknown", counts.unknown),
            ] {
                metrics.gauge(name, &labels, count as f64);
            }
        }
        let [pending, running, dead] = self.statuses;
        for (name, count) in [
            ("nomad.nomad.job_status.pending", pending),
            ("nomad.nomad.job_status.running", running),
            ("nomad.nomad.job_status.dead", dead),
            ("nomad.nomad.blocked_evals.total_blocked", self.blocked),
        ] {
            metrics.gauge(name, node, count as f64);
        }
    }
}

fn labels(job: &Job, group: String) -> Map {
    let mut labels: Map = [
        ("job", job.id.clone()),
        ("task_group", group),
        ("namespace", job.namespace.clone()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into();
    if job.parent_id.is_empty() {
        return labels;
    }
    labels.insert("parent_id".into(), job.parent_id.clone());
    label_dispatch(&mut labels, job);
    if let Some(time) = launch_of(&job.parent_id, &job.id) {
        labels.insert("periodic_id".into(), time.to_string());
    }
    labels
}

/// Names the parent and the dispatch of a job that was dispatched.
pub(super) fn label_dispatch(labels: &mut Map, job: &Job) {
    if job.dispatched
        && let Some(dispatch) = job.id.strip_prefix(&children_of(&job.parent_id))
    {
        labels.insert("parent_id".into(), job.parent_id.clone());
        labels.insert("dispatch_id".into(), dispatch.to_owned());
    }
}
