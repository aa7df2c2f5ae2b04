//! Restoring an agent: it goes on where an earlier life of it ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Agent, cx};
use crate::alloc::runner::AllocRunner;
use crate::ids::{AllocId, JobKey};
use crate::store::{Key, Meta, Record, SCHEMA, Saved};
use crate::time::Now;

impl Agent {
    pub(super) fn restore_records(&mut self, saved: &Saved, now: Now) {
        self.local.jobs = saved.jobs.clone();
        for eval in saved.evals.values() {
            self.local.insert_eval(eval.clone());
        }
        self.local.deployments = saved.deployments.clone();
        self.local.variables = Arc::new(saved.variables.clone());
        self.local.namespaces = saved.namespaces.clone();
        self.acl.restore(saved, now);
        self.restore_submissions(saved);
        let mut cx = cx(&self.config, &mut self.shared, now);
        let meta = Meta {
            schema: SCHEMA,
            node: cx.config.node.id,
            index: saved.meta.as_ref().map_or(0, |meta| meta.index),
        };
        cx.remember(Key::Meta, Record::Meta(Arc::new(meta)));
        for record in saved.allocs.values().filter(|it| !it.of_servers) {
            let Some(job) = saved.job_of(record) else {
                continue;
            };
            let runner = AllocRunner::restore(&mut cx, record.clone(), job.clone(), saved);
            self.local
                .allocs
                .entry(record.job.clone())
                .or_default()
                .insert(record.id);
            self.allocs.insert(record.id, runner);
        }
        self.restore_placed(saved, now);
        self.restore_collected(saved);
        self.restore_volumes(saved, now);
        self.restore_disks(saved);
        self.restore_launches(saved, now);
        self.restore_images(now);
        self.restore_node(saved, now);
        self.restore_server(saved, now);
        self.follow_scheduler_config();
        let jobs: Vec<JobKey> = self.local.jobs.keys().cloned().collect();
        jobs.iter().for_each(|key| self.local.mark(key));
        if !(jobs.is_empty() && self.local.purging_evals.is_empty()) {
            self.expect_garbage(now);
        }
        let all: BTreeSet<AllocId> = self.allocs.keys().copied().collect();
        self.settle(now, all);
    }

    /// Volumes are on the node again, and what was being made or removed goes on.
    fn restore_volumes(&mut self, saved: &Saved, now: Now) {
        if saved.volumes.is_empty() {
            return;
        }
        let mut cx = cx(&self.config, &mut self.shared, now);
        self.machine.volumes.restore(&mut cx, &saved.volumes);
        self.config.node.host_volumes = self.machine.volumes.on_node();
    }

    /// Records of allocations whose job's version is not there are nobody's.
    fn restore_collected(&mut self, saved: &Saved) {
        for (id, record) in &saved.collected {
            let job = self.local.jobs.get(&record.alloc.job);
            let version = job.and_then(|job| job.version(record.alloc.job_version));
            if version.is_some() {
                self.collected.insert(record.clone());
            } else if !saved
                .unreadable
                .contains(&Key::Job(record.alloc.job.clone()))
            {
                self.shared.ledger.delete(Key::Collected(*id));
            }
        }
        self.forget_records_over_limit();
    }
}

impl Agent {
    /// What versions were made from that are not there is of no use.
    fn restore_submissions(&mut self, saved: &Saved) {
        for ((job, version), submission) in &saved.submissions {
            let known = self.local.jobs.get(job);
            if known.is_some_and(|known| known.version(*version).is_some()) {
                let key = (job.clone(), *version);
                self.local.submissions.insert(key, submission.clone());
            } else if !saved.unreadable.contains(&Key::Job(job.clone())) {
                let key = Key::Submission(job.clone(), *version);
                self.shared.ledger.delete(key);
            }
        }
    }

    /// Disks of jobs and allocations that are not there are nobody's.
    fn restore_disks(&mut self, saved: &Saved) {
        for slot in saved.disks.keys() {
            let (is_known, owner) = match slot.alloc {
                Some(id) => (self.allocs.contains_key(&id), Key::Alloc(id)),
                None => (
                    self.local.jobs.contains_key(&slot.job),
                    Key::Job(slot.job.clone()),
                ),
            };
            if !is_known && !saved.unreadable.contains(&owner) {
                self.shared.disks.remove(slot);
                self.shared.ledger.delete(Key::Disk(slot.clone()));
            }
        }
    }
}

pub(super) fn last_index(saved: &Saved) -> u64 {
    let jobs = saved.jobs.values().map(|job| job.job.modify_index);
    let allocs = saved.allocs.values().map(|alloc| alloc.modify_index);
    let evals = saved.evals.values().map(|eval| eval.modify_index);
    let deployments = saved.deployments.values().map(|d| d.modify_index);
    let variables = saved.variables.values().map(|one| one.meta.modify_index);
    let collected = saved.collected.values().map(|one| one.alloc.modify_index);
    let periodic = saved.periodic.values().map(|one| one.modify_index);
    let node = saved.node.iter().map(|node| node.modify_index);
    let volumes = saved.volumes.values().map(|one| one.modify_index);
    let namespaces = saved.namespaces.values().map(|one| one.modify_index);
    let policies = saved.acl_policies.values().map(|one| one.modify_index);
    let tokens = saved.acl_tokens.values().map(|one| one.modify_index);
    let bootstrap = saved.acl_bootstrap.iter().map(|one| one.index);
    let meta = saved.meta.iter().map(|meta| meta.index);
    jobs.chain(allocs)
        .chain(volumes)
        .chain(namespaces)
        .chain(policies)
        .chain(tokens)
        .chain(bootstrap)
        .chain(periodic)
        .chain(collected)
        .chain(evals)
        .chain(deployments)
        .chain(variables)
        .chain(node)
        .chain(meta)
        .max()
        .unwrap_or(0)
        .max(1)
}

pub(super) fn records(saved: &Saved) -> Vec<(Key, Record)> {
    let meta = saved
        .meta
        .iter()
        .map(|m| (Key::Meta, Record::Meta(m.clone())));
    let jobs = saved
        .jobs
        .iter()
        .map(|(k, job)| (Key::Job(k.clone()), Record::Job(job.clone())));
    let evals = saved
        .evals
        .values()
        .map(|e| (Key::Eval(e.id), Record::Eval(e.clone())));
    let deployments = saved
        .deployments
        .values()
        .map(|d| (Key::Deployment(d.id), Record::Deployment(d.clone())));
    let allocs = saved
        .allocs
        .values()
        .map(|a| (Key::Alloc(a.id), Record::Alloc(a.clone())));
    let tasks = saved
        .tasks
        .iter()
        .map(|((alloc, name), task)| (Key::Task(*alloc, name.clone()), Record::Task(task.clone())));
    let variables = saved
        .variables
        .iter()
        .map(|(k, one)| (Key::Variable(k.clone()), Record::Variable(one.clone())));
    let collected = saved.collected.iter();
    let collected =
        collected.map(|(id, one)| (Key::Collected(*id), Record::Collected(one.clone())));
    let disks = saved.disks.iter();
    let disks = disks.map(|(slot, disk)| (Key::Disk(slot.clone()), Record::Disk(disk.clone())));
    let submissions = saved.submissions.iter().map(|((job, version), one)| {
        let key = Key::Submission(job.clone(), *version);
        (key, Record::Submission(one.clone()))
    });
    let periodic = saved.periodic.iter();
    let periodic =
        periodic.map(|(k, one)| (Key::Periodic(k.clone()), Record::Periodic(one.clone())));
    let node = saved.node.iter();
    let node = node.map(|one| (Key::Node, Record::Node(one.clone())));
    let volumes = saved.volumes.iter();
    let volumes = volumes.map(|(id, one)| (Key::Volume(*id), Record::Volume(one.clone())));
    let namespaces = saved.namespaces.iter();
    let namespaces =
        namespaces.map(|(k, one)| (Key::Namespace(k.clone()), Record::Namespace(one.clone())));
    let policies = saved.acl_policies.iter();
    let policies =
        policies.map(|(k, one)| (Key::AclPolicy(k.clone()), Record::AclPolicy(one.clone())));
    let tokens = saved.acl_tokens.iter();
    let tokens = tokens.map(|(id, one)| (Key::AclToken(*id), Record::AclToken(one.clone())));
    let bootstrap = saved.acl_bootstrap.iter();
    let bootstrap = bootstrap.map(|one| (Key::AclBootstrap, Record::AclBootstrap(one.clone())));
    let server = saved.server.iter();
    let server = server.map(|one| (Key::Server, Record::Server(one.clone())));
    let placed = saved.placed.iter();
    let placed = placed.map(|(id, one)| (Key::Placed(*id), Record::Placed(one.clone())));
    let reported = saved.reported.iter();
    let reported = reported.map(|(id, one)| (Key::Reported(*id), Record::Reported(one.clone())));
    let announced = saved.announced.iter();
    let announced =
        announced.map(|(id, one)| (Key::Announced(*id), Record::Announced(one.clone())));
    meta.chain(node)
        .chain(server)
        .chain(placed)
        .chain(reported)
        .chain(announced)
        .chain(volumes)
        .chain(namespaces)
        .chain(policies)
        .chain(tokens)
        .chain(bootstrap)
        .chain(jobs)
        .chain(periodic)
        .chain(evals)
        .chain(deployments)
        .chain(allocs)
        .chain(tasks)
        .chain(variables)
        .chain(collected)
        .chain(disks)
        .chain(submissions)
        .collect()
}
