//! What is new: what a commit makes true that was not true before.

use crate::model::job::JobStatus;
use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Fact, Told};
use crate::agent::View;
use crate::ids::{AllocId, DeploymentId, JobKey, TaskName};
use crate::model::alloc::ClientStatus;
use crate::model::eval::{Deployment, DeploymentStatus};
use crate::model::notice::{Event, Notice, Subject};
use crate::scheduler::gc_snapshot::job_status;
use crate::store::record::{AllocRecord, JobRecord};
use crate::store::{Batch, Key, Record, Saved};
use crate::text::quote;

/// What was said before. Its size is that of the records that say something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    allocs: BTreeMap<AllocId, BTreeSet<Fact>>,
    deployments: BTreeSet<DeploymentId>,
    dead: BTreeSet<JobKey>,
}

impl Watch {
    /// From what the store holds; with everything that it says, oldest first: an earlier agent may not have
    /// told all of it.
    pub fn restored(saved: &Saved) -> (Watch, Vec<Notice>) {
        let mut watch = Watch::default();
        let mut all = Vec::new();
        for (id, alloc) in &saved.allocs {
            let first = (*id, TaskName::default());
            let tasks = saved.tasks.range(first..);
            let tasks = tasks.take_while(|((of, _), _)| of == id);
            let tasks = tasks.map(|((_, name), task)| (name, &task.state)).collect();
            watch.alloc(*id, Some(Told { alloc, tasks }), &mut all);
        }
        for deployment in saved.deployments.values() {
            watch.deployment(deployment, &mut all);
        }
        let mut of_jobs: BTreeMap<&JobKey, Vec<&AllocRecord>> = BTreeMap::new();
        for alloc in saved.allocs.values() {
            of_jobs.entry(&alloc.job).or_default().push(alloc);
        }
        for (key, record) in &saved.jobs {
            let allocs = of_jobs.remove(key).unwrap_or_default();
            // Whether something that failed is replaced later is not known yet.
            let failed = |alloc: &&AllocRecord| alloc.status == ClientStatus::Failed;
            let may_go_on = !record.job.stop && allocs.iter().any(failed);
            let status = match may_go_on {
                true => JobStatus::Pending,
                false => job_status(record, allocs.iter().copied(), false),
            };
            watch.job(key, Some(record), status, &allocs, &mut all);
        }
        sort(&mut all);
        (watch, all)
    }

    /// What a commit says that was not said before, in the state that it is of; oldest first.
    pub fn on_commit(&mut self, view: View<'_>, batch: &Batch) -> Vec<Notice> {
        let mut new = Vec::new();
        let (mut allocs, mut jobs) = (BTreeSet::new(), BTreeSet::new());
        for (key, record) in batch {
            match (key, record) {
                (Key::Alloc(id) | Key::Task(id, _), _) => {
                    allocs.insert(*id);
                }
                (Key::Job(key), _) => {
                    jobs.insert(key.clone());
                }
                (Key::Deployment(_), Some(Record::Deployment(deployment))) => {
                    self.deployment(deployment, &mut new);
                }
                (Key::Deployment(id), _) => {
                    self.deployments.remove(id);
                }
                (
                    Key::Meta
                    | Key::Eval(_)
                    | Key::Variable(_)
                    | Key::Collected(_)
                    | Key::Disk(_)
                    | Key::Submission(..)
                    | Key::Periodic(_)
                    | Key::Node
                    | Key::Volume(_)
                    | Key::Namespace(_)
                    | Key::AclPolicy(_)
                    | Key::AclToken(_)
                    | Key::AclBootstrap
                    | Key::Server
                    | Key::Placed(_)
                    | Key::Reported(_)
                    | Key::Announced(_),
                    _,
                ) => {}
            }
        }
        for id in allocs {
            let shown = view.shown_alloc(id);
            let told = shown.map(|shown| Told {
                alloc: shown.record(),
                tasks: shown.tasks(),
            });
            jobs.extend(told.as_ref().map(|told| told.alloc.job.clone()));
            self.alloc(id, told, &mut new);
        }
        for key in jobs {
            let allocs: Vec<&AllocRecord> = view
                .allocs_of(&key)
                .map(|alloc| &**alloc.record())
                .collect();
            let record = view.job(&key);
            let status = view.job_status(&key);
            self.job(
                &key,
                record.map(|record| &**record),
                status,
                &allocs,
                &mut new,
            );
        }
        sort(&mut new);
        new
    }

    fn alloc(&mut self, id: AllocId, told: Option<Told<'_>>, new: &mut Vec<Notice>) {
        let before = self.allocs.remove(&id).unwrap_or_default();
        let facts = told.map(|told| told.facts()).unwrap_or_default();
        if facts.is_empty() {
            return;
        }
        let mut now = BTreeSet::new();
        for (fact, notice) in facts {
            if !before.contains(&fact) {
                new.push(notice);
            }
            now.insert(fact);
        }
        self.allocs.insert(id, now);
    }

    fn deployment(&mut self, deployment: &Deployment, new: &mut Vec<Notice>) {
        let (event, reason) = match deployment.status {
            DeploymentStatus::Successful => (Event::Deployed, "every allocation is healthy"),
            DeploymentStatus::Failed => (
                Event::DeploymentFailed,
                "an allocation did not become healthy, or an operator failed the deployment",
            ),
            DeploymentStatus::Running | DeploymentStatus::Paused | DeploymentStatus::Cancelled => {
                return;
            }
        };
        if !self.deployments.insert(deployment.id) {
            return;
        }
        let (job, version) = (&deployment.job, deployment.job_version);
        new.push(Notice {
            id: format!("{event}/{}", deployment.id),
            event,
            time: deployment.modify_time,
            subject: Subject {
                job: Some(job.clone()),
                version: Some(version),
                deployment: Some(deployment.id),
                ..Subject::default()
            },
            exit: None,
            reason: reason.to_owned(),
            text: format!(
                "Version {version} of job {} {}: {reason}",
                quote(&job.id),
                event.happened()
            ),
        });
    }

    fn job(
        &mut self,
        key: &JobKey,
        record: Option<&JobRecord>,
        status: JobStatus,
        allocs: &[&AllocRecord],
        new: &mut Vec<Notice>,
    ) {
        let Some(record) = record else {
            self.dead.remove(key);
            return;
        };
        if status != JobStatus::Dead {
            self.dead.remove(key);
            return;
        }
        if !self.dead.insert(key.clone()) {
            return;
        }
        new.push(dead(key, record, allocs));
    }
}

fn sort(notices: &mut [Notice]) {
    notices.sort_by(|one, other| (one.time, &one.id).cmp(&(other.time, &other.id)));
}

fn dead(key: &JobKey, record: &JobRecord, allocs: &[&AllocRecord]) -> Notice {
    let event = Event::JobDead;
    let version = record.job.version;
    let last = allocs.iter().max_by_key(|alloc| alloc.create_index);
    let failed = last.is_some_and(|alloc| alloc.status == ClientStatus::Failed);
    let reason = match (record.job.stop, failed) {
        (true, _) => "it was stopped",
        (false, true) => "its last allocation failed",
        (false, false) => "all of it is complete",
    };
    let run = last.map_or(0, |alloc| alloc.create_index);
    let end = allocs.iter().map(|alloc| alloc.modify_time).max();
    Notice {
        // Each time that it runs again it has new allocations.
        id: format!("{event}/{}/{}/{version}/{run}", key.namespace, key.id),
        event,
        time: end.unwrap_or(record.job.submit_time),
        subject: Subject {
            job: Some(key.clone()),
            version: Some(version),
            ..Subject::default()
        },
        exit: None,
        reason: reason.to_owned(),
        text: format!("Job {} {}: {reason}", quote(&key.id), event.happened()),
    }
}
