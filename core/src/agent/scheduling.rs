//! Jobs come and go: registering, stopping, and carrying out what the comparison of the wanted
//! with the running asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::cx::Cx;
use crate::effect::{Effect, Refusal, Reply};
use crate::ids::{AllocId, JobKey};
use crate::input::{LocalInput, RequestId};
use crate::local::reconcile::{self, Placement};
use crate::local::{KEPT_EVALS, constraint, ports};
use crate::model::alloc::DesiredStatus;
use crate::model::eval::{Deployment, DeploymentStatus, Evaluation, Trigger};
use crate::model::group::TaskGroup;
use crate::model::job::{Job, JobType};
use crate::store::record::{AllocRecord, JobRecord, KEPT_VERSIONS};
use crate::store::{Key, Record};
use crate::time::Now;

/// An allocation shall end, and its record says why.
pub(super) fn stop_alloc(cx: &mut Cx<'_>, alloc: &mut AllocRunner, why: &str) {
    if alloc.record().desired == DesiredStatus::Run {
        alloc.edit(cx, |record| {
            record.desired = DesiredStatus::Stop;
            record.desired_description = why.into();
        });
    }
    alloc.stop(cx);
}

impl Agent {
    pub(super) fn on_local(&mut self, now: Now, request: RequestId, input: LocalInput) {
        let reply = match input {
            _ if self.shutdown.is_some() => {
                Reply::Refused(Refusal::Conflict("the agent is shutting down".to_owned()))
            }
            LocalInput::Register { job, expect_index } => self.register(now, &job, expect_index),
            LocalInput::Deregister { job, purge } => self.deregister(now, &job, purge),
            LocalInput::Evaluate { job } => match self.local.jobs.contains_key(&job) {
                false => Reply::Refused(Refusal::NotFound("job not found".to_owned())),
                true => {
                    let eval = self.evaluate(now, &job, Trigger::JobRegister);
                    Reply::Stopping {
                        eval: Some(eval.id),
                        index: eval.create_index,
                    }
                }
            },
            LocalInput::Collect => {
                self.collect_all = true;
                self.collect_due = true;
                Reply::Done {
                    index: self.shared.index,
                }
            }
        };
        self.shared.ledger.after_save(Effect::Reply(request, reply));
    }

    fn register(&mut self, now: Now, job: &Arc<Job>, expect: Option<u64>) -> Reply {
        let key = job.key();
        let known = self.local.jobs.get(&key).cloned();
        if let Some(refusal) = wrong_index(known.as_deref(), expect) {
            return Reply::Refused(refusal);
        }
        let unchanged = known
            .as_ref()
            .is_some_and(|known| same_job(&known.job, job));
        let record = match known {
            Some(known) if unchanged => known,
            known => self.new_version(now, job, known.as_deref()),
        };
        let (job_index, deployment) = (record.job.job_modify_index, record.deployment);
        self.local.jobs.insert(key.clone(), record);
        let eval = self.evaluate(now, &key, Trigger::JobRegister);
        Reply::Registered {
            eval: eval.id,
            index: eval.create_index,
            job_index,
            deployment,
        }
    }

    fn new_version(
        &mut self,
        now: Now,
        job: &Arc<Job>,
        known: Option<&JobRecord>,
    ) -> Arc<JobRecord> {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        let mut job = Job::clone(job);
        job.submit_time = now.wall;
        (job.stop, job.stable) = (false, false);
        (job.modify_index, job.job_modify_index, job.create_index) = (index, index, index);
        let mut versions = Vec::new();
        if let Some(known) = known {
            job.version = known.job.version + 1;
            job.create_index = known.job.create_index;
            versions.clone_from(&known.versions);
            versions.push(known.job.clone());
        }
        let key = job.key();
        let deployment = new_deployment(&mut cx, &key, &job);
        let deployment_id = deployment.as_ref().map(|deployment| deployment.id);
        if let Some(deployment) = deployment {
            self.save_deployment(deployment);
        }
        if let Some(old) = known.and_then(|known| known.deployment) {
            let words = "Cancelled due to newer version of job";
            self.end_deployment(old, DeploymentStatus::Cancelled, words);
        }
        let record = Arc::new(JobRecord {
            job: Arc::new(job),
            versions: self.versions_in_use(&key, versions),
            purge: false,
            deployment: deployment_id,
            done: BTreeSet::new(),
        });
        self.shared
            .ledger
            .put(Key::Job(key), Record::Job(record.clone()));
        record
    }

    /// The versions that allocations still run, and the last few for people.
    fn versions_in_use(&self, key: &JobKey, mut versions: Vec<Arc<Job>>) -> Vec<Arc<Job>> {
        let of_job = self.local.allocs.get(key).into_iter().flatten();
        let used: BTreeSet<u64> = of_job
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| alloc.record().job_version)
            .collect();
        let droppable = versions.len().saturating_sub(KEPT_VERSIONS);
        let mut at = 0;
        versions.retain(|job| {
            at += 1;
            at > droppable || used.contains(&job.version)
        });
        versions
    }

    fn deregister(&mut self, now: Now, key: &JobKey, purge: bool) -> Reply {
        let Some(known) = self.local.jobs.get(key) else {
            return Reply::Stopping {
                eval: None,
                index: self.shared.index,
            };
        };
        let mut record = JobRecord::clone(known);
        let index = cx(&self.config, &mut self.shared, now).next_index();
        let mut job = Job::clone(&record.job);
        job.stop = true;
        job.modify_index = index;
        record.job = Arc::new(job);
        record.purge |= purge;
        if let Some(deployment) = record.deployment {
            let words = "Cancelled because job is stopped";
            self.end_deployment(deployment, DeploymentStatus::Cancelled, words);
        }
        self.save_job(key, record);
        let eval = self.evaluate(now, key, Trigger::JobDeregister);
        Reply::Stopping {
            eval: Some(eval.id),
            index: eval.create_index,
        }
    }

    pub(super) fn save_job(&mut self, key: &JobKey, record: JobRecord) {
        let record = Arc::new(record);
        self.shared
            .ledger
            .put(Key::Job(key.clone()), Record::Job(record.clone()));
        self.local.jobs.insert(key.clone(), record);
    }

    fn save_deployment(&mut self, deployment: Deployment) {
        let deployment = Arc::new(deployment);
        let record = Record::Deployment(deployment.clone());
        self.shared
            .ledger
            .put(Key::Deployment(deployment.id), record);
        self.local.deployments.insert(deployment.id, deployment);
    }

    fn end_deployment(
        &mut self,
        id: crate::ids::DeploymentId,
        status: DeploymentStatus,
        words: &str,
    ) {
        let Some(known) = self.local.deployments.get(&id) else {
            return;
        };
        if known.status != DeploymentStatus::Running {
            return;
        }
        let mut deployment = Deployment::clone(known);
        self.shared.index += 1;
        deployment.status = status;
        words.clone_into(&mut deployment.description);
        deployment.modify_index = self.shared.index;
        self.save_deployment(deployment);
    }

    /// Notes that a job is considered, and why; the consideration itself follows in this step.
    pub(super) fn evaluate(&mut self, now: Now, key: &JobKey, trigger: Trigger) -> Arc<Evaluation> {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        let eval = Arc::new(Evaluation {
            id: cx.eval_id(),
            job: key.clone(),
            trigger,
            time: now.wall,
            deployment: self.local.jobs.get(key).and_then(|job| job.deployment),
            failed_groups: Vec::new(),
            create_index: index,
            modify_index: index,
        });
        cx.remember(Key::Eval(eval.id), Record::Eval(eval.clone()));
        self.local.evals.insert(eval.id, eval.clone());
        self.forget_old_evals(key);
        self.local.dirty.insert(key.clone());
        eval
    }

    fn forget_old_evals(&mut self, key: &JobKey) {
        let of_job = self.local.evals.values().filter(|eval| eval.job == *key);
        let mut ids: Vec<_> = of_job.map(|eval| (eval.create_index, eval.id)).collect();
        ids.sort_unstable();
        let surplus = ids.len().saturating_sub(KEPT_EVALS);
        for (_, id) in ids.into_iter().take(surplus) {
            self.local.evals.remove(&id);
            self.shared.ledger.delete(Key::Eval(id));
        }
    }

    /// Compares what is wanted with what runs, and carries the difference out. Returns the
    /// allocations that changed.
    pub(super) fn reconcile(&mut self, now: Now, key: &JobKey) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        let Some(record) = self.local.jobs.get(key).cloned() else {
            return touched;
        };
        self.look_at_deployment(key);
        let ids = self.local.allocs.get(key).cloned().unwrap_or_default();
        let records: Vec<Arc<AllocRecord>> = ids
            .iter()
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| alloc.record().clone())
            .collect();
        let allocs: Vec<&AllocRecord> = records.iter().map(|record| &**record).collect();
        let plan = reconcile::reconcile(&record, &allocs, now.wall, self.rollout_failed(&record));
        for (id, why) in plan.stop {
            if let Some(alloc) = self.allocs.get_mut(&id) {
                stop_alloc(&mut cx(&self.config, &mut self.shared, now), alloc, why);
                touched.insert(id);
            }
        }
        for id in plan.update {
            if let Some(alloc) = self.allocs.get_mut(&id) {
                let cx = &mut cx(&self.config, &mut self.shared, now);
                alloc.update(cx, record.job.clone(), record.deployment);
                touched.insert(id);
            }
        }
        match plan.look_again {
            Some(at) => {
                let at = now.at + (at - now.wall);
                self.local.look_again.insert(key.clone(), at);
            }
            None => {
                self.local.look_again.remove(key);
            }
        }
        touched.extend(self.place_all(now, key, &record, plan.place));
        touched.extend(self.purge(now, key, &record));
        touched
    }

    fn place_all(
        &mut self,
        now: Now,
        key: &JobKey,
        record: &JobRecord,
        placements: Vec<Placement>,
    ) -> Vec<AllocId> {
        let mut failed: Vec<(String, String)> = Vec::new();
        let mut placed = Vec::new();
        for placement in placements {
            let group = placement.group.clone();
            let renewed = placement.previous.filter(|_| placement.renews);
            match self.place(now, key, record, placement) {
                Ok(id) => {
                    placed.push(id);
                    placed.extend(self.end_renewed(now, renewed));
                }
                Err(why) if failed.iter().any(|(name, _)| name == group.as_str()) => drop(why),
                Err(why) => failed.push((group.as_str().to_owned(), why)),
            }
        }
        self.note_blocked(key, failed);
        placed
    }

    /// The place of this allocation is taken by one of the new version.
    fn end_renewed(&mut self, now: Now, renewed: Option<AllocId>) -> Option<AllocId> {
        let alloc = self.allocs.get_mut(&renewed?)?;
        let cx = &mut cx(&self.config, &mut self.shared, now);
        stop_alloc(cx, alloc, reconcile::UPDATING);
        renewed
    }

    /// Remembers for which groups there was no place, in the latest evaluation too.
    fn note_blocked(&mut self, key: &JobKey, failed: Vec<(String, String)>) {
        let before = self.local.blocked.get(key).cloned().unwrap_or_default();
        if before == failed {
            return;
        }
        let of_job = self.local.evals.values().filter(|eval| eval.job == *key);
        if let Some(latest) = of_job.max_by_key(|eval| eval.create_index) {
            let mut eval = Evaluation::clone(latest);
            eval.failed_groups.clone_from(&failed);
            self.shared.index += 1;
            eval.modify_index = self.shared.index;
            let eval = Arc::new(eval);
            self.shared
                .ledger
                .put(Key::Eval(eval.id), Record::Eval(eval.clone()));
            self.local.evals.insert(eval.id, eval);
        }
        if failed.is_empty() {
            self.local.blocked.remove(key);
        } else {
            self.local.blocked.insert(key.clone(), failed);
        }
    }

    fn place(
        &mut self,
        now: Now,
        key: &JobKey,
        record: &JobRecord,
        placement: Placement,
    ) -> Result<AllocId, String> {
        let job = &record.job;
        let group = job.group(placement.group.as_str()).ok_or("no such group")?;
        self.admits(job, group)?;
        let awaited = self.last_that_ran(placement.previous);
        let held = self.held_ports(awaited);
        let mut cx = cx(&self.config, &mut self.shared, now);
        let ports = ports::assign(&mut cx, group, &held)?;
        let (id, index) = (cx.alloc_id(), cx.next_index());
        let of_job = self.local.evals.values().filter(|eval| eval.job == *key);
        let eval = of_job
            .max_by_key(|eval| eval.create_index)
            .map(|eval| eval.id);
        let alloc = AllocRecord {
            id,
            name: format!("{}.{}[{}]", job.id, group.name, placement.index).into(),
            index: placement.index,
            job: key.clone(),
            job_version: job.version,
            group: placement.group,
            eval: eval.unwrap_or_default(),
            deployment: record.deployment,
            previous: awaited,
            reschedules: placement.reschedules,
            status_description: "No tasks have started".into(),
            ports,
            create_time: now.wall,
            modify_time: now.wall,
            create_index: index,
            modify_index: index,
            ..AllocRecord::default()
        };
        let runner = AllocRunner::new(&mut cx, alloc, job.clone());
        let previous = placement
            .previous
            .and_then(|previous| self.allocs.get_mut(&previous));
        if let Some(previous) = previous {
            previous.edit(&mut cx, |record| record.next = Some(id));
        }
        self.allocs.insert(id, runner);
        self.local.allocs.entry(key.clone()).or_default().insert(id);
        Ok(id)
    }

    /// The allocation whose end a replacement of `previous` awaits. One that never ran may be over
    /// while the one that it was to replace itself still lives.
    fn last_that_ran(&self, previous: Option<AllocId>) -> Option<AllocId> {
        let mut last = previous;
        while let Some(alloc) = last.and_then(|id| self.allocs.get(&id))
            && alloc.never_ran()
            && let Some(before) = alloc.record().previous
            && self
                .allocs
                .get(&before)
                .is_some_and(|alloc| !alloc.record().finished)
        {
            last = Some(before);
        }
        last
    }

    /// Whether this node can run the group.
    fn admits(&self, job: &Job, group: &TaskGroup) -> Result<(), String> {
        let node = &self.config.node;
        if !constraint::datacenter_matches(&job.datacenters, &node.datacenter) {
            return Err(format!(
                "no node in datacenters {}",
                job.datacenters.join(", ")
            ));
        }
        for task in &group.tasks {
            let known = node.drivers.get(&task.driver);
            if !known.is_some_and(|driver| driver.detected && driver.healthy) {
                let why = known.map_or("is not there", |_| "does not work now");
                return Err(format!(
                    "driver \"{}\" of task \"{}\" {why}",
                    task.driver, task.name
                ));
            }
        }
        let of_tasks = group.tasks.iter().flat_map(|task| &task.constraints);
        let constraints = job
            .constraints
            .iter()
            .chain(&group.constraints)
            .chain(of_tasks);
        constraint::check_node(node, constraints)
            .map_err(|why| format!("Constraint \"{why}\" failed"))
    }

    /// Ports that may not be given away: their holders are not gone yet. The allocation that is
    /// replaced does not count, because its replacement awaits its end; what it could not clean
    /// away does.
    fn held_ports(&self, except: Option<AllocId>) -> BTreeSet<u16> {
        self.allocs
            .values()
            .filter(|alloc| {
                let record = alloc.record();
                (!record.finished && Some(record.id) != except) || alloc.has_remains()
            })
            .map(AllocRunner::record)
            .flat_map(|record| record.ports.iter().map(|port| port.value))
            .collect()
    }

    /// An allocation's status or health changed, or it is gone.
    pub(super) fn alloc_changed(&mut self, alloc: &AllocRecord, gone: bool) {
        let key = &alloc.job;
        if gone && let Some(of_job) = self.local.allocs.get_mut(key) {
            of_job.remove(&alloc.id);
            if of_job.is_empty() {
                self.local.allocs.remove(key);
            }
        }
        self.local.dirty.insert(key.clone());
        // A place that was missing may be free now.
        self.local.dirty.extend(self.local.blocked.keys().cloned());
        self.collect_due = true;
    }

    fn rollout_failed(&self, record: &JobRecord) -> bool {
        let rollout = record
            .deployment
            .and_then(|id| self.local.deployments.get(&id));
        rollout.is_some_and(|rollout| rollout.status == DeploymentStatus::Failed)
    }

    /// Whether the roll-out of the latest version is over.
    fn look_at_deployment(&mut self, key: &JobKey) {
        let Some(record) = self.local.jobs.get(key).cloned() else {
            return;
        };
        let Some(id) = record.deployment else { return };
        let running = |d: &Arc<Deployment>| d.status == DeploymentStatus::Running;
        if !self.local.deployments.get(&id).is_some_and(running) {
            return;
        }
        let of_job = self.local.allocs.get(key).into_iter().flatten();
        let allocs: Vec<&AllocRecord> = of_job
            .filter_map(|id| self.allocs.get(id))
            .map(|alloc| &**alloc.record())
            .filter(|alloc| alloc.deployment == Some(id))
            .collect();
        let verdict = |alloc: &AllocRecord| alloc.health.map(|health| health.healthy);
        if allocs.iter().any(|alloc| verdict(alloc) == Some(false)) {
            let words = "Failed due to unhealthy allocations";
            return self.end_deployment(id, DeploymentStatus::Failed, words);
        }
        // Each copy counts once, however often it was replaced; only those of watched groups do.
        let proved = |group: &TaskGroup, index| {
            let here = |alloc: &&AllocRecord| {
                alloc.group.as_str() == group.name
                    && alloc.index == index
                    && !alloc.desired.is_terminal()
            };
            let mut here = allocs.iter().copied().filter(here);
            here.any(|alloc| verdict(alloc) == Some(true))
        };
        let mut watched = record
            .job
            .task_groups
            .iter()
            .filter(|group| group.update.is_some());
        let complete = watched.all(|group| {
            (0..reconcile::copies(&record.job, group)).all(|index| proved(group, index))
        });
        if complete {
            let words = "Deployment completed successfully";
            self.end_deployment(id, DeploymentStatus::Successful, words);
            let mut stable = JobRecord::clone(&record);
            Arc::make_mut(&mut stable.job).stable = true;
            self.save_job(key, stable);
        }
    }

    /// A job that is to be forgotten goes when its last allocation is gone.
    fn purge(&mut self, now: Now, key: &JobKey, record: &JobRecord) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        if !record.purge {
            return touched;
        }
        let ids = self.local.allocs.get(key).cloned().unwrap_or_default();
        for id in &ids {
            if let Some(alloc) = self.allocs.get_mut(id)
                && alloc.record().finished
                && !alloc.record().destroying
            {
                alloc.destroy(&mut cx(&self.config, &mut self.shared, now));
                touched.insert(*id);
            }
        }
        if ids.is_empty() {
            self.forget_job(now, key);
        }
        touched
    }

    fn forget_job(&mut self, now: Now, key: &JobKey) {
        self.local.jobs.remove(key);
        self.local.blocked.remove(key);
        self.local.look_again.remove(key);
        self.shared.ledger.delete(Key::Job(key.clone()));
        let evals = self.local.evals.iter().filter(|(_, eval)| eval.job == *key);
        for id in evals.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.local.evals.remove(&id);
            self.shared.ledger.delete(Key::Eval(id));
        }
        let deployments = self.local.deployments.iter().filter(|(_, d)| d.job == *key);
        for id in deployments.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.local.deployments.remove(&id);
            self.shared.ledger.delete(Key::Deployment(id));
        }
        cx(&self.config, &mut self.shared, now).next_index_of_forgetting();
    }
}

fn wrong_index(known: Option<&JobRecord>, expect: Option<u64>) -> Option<Refusal> {
    let expect = expect?;
    let actual = known.map(|known| known.job.job_modify_index);
    let why = match actual {
        Some(actual) if actual == expect => return None,
        None if expect == 0 => return None,
        Some(_) if expect == 0 => "job already exists".to_owned(),
        Some(actual) => format!("job exists with conflicting job modify index: {actual}"),
        None => "job does not exist".to_owned(),
    };
    Some(Refusal::Conflict(format!(
        "Enforcing job modify index {expect}: {why}"
    )))
}

/// Whether a submission changes nothing: what this node itself writes does not count.
fn same_job(known: &Job, new: &Job) -> bool {
    let mut new = new.clone();
    new.stop = known.stop;
    new.version = known.version;
    new.stable = known.stable;
    new.status.clone_from(&known.status);
    new.status_description.clone_from(&known.status_description);
    new.submit_time = known.submit_time;
    new.create_index = known.create_index;
    new.modify_index = known.modify_index;
    new.job_modify_index = known.job_modify_index;
    !known.stop && new == *known
}

fn new_deployment(cx: &mut Cx<'_>, key: &JobKey, job: &Job) -> Option<Deployment> {
    let rolls = job
        .task_groups
        .iter()
        .any(|g| g.update.as_ref().is_some_and(|u| u.max_parallel > 0));
    if job.job_type != JobType::Service || !rolls {
        return None;
    }
    let index = cx.next_index();
    Some(Deployment {
        id: cx.deployment_id(),
        job: key.clone(),
        job_version: job.version,
        status: DeploymentStatus::Running,
        description: "Deployment is running".to_owned(),
        create_index: index,
        modify_index: index,
    })
}
