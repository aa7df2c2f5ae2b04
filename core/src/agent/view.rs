//! Read-only questions, for the API and for the checks of the simulator.

use crate::model::job::JobStatus;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::plugins::{self, Listened};
use super::services::{self, Registration};
use super::shown::{ShownAlloc, ShownKey};
use super::{Agent, ImageView, Machine, PeriodicView};
use crate::alloc::runner::{AllocRunner, Phase};
use crate::claims::resources::Capacity;
use crate::claims::{Holder, Ungranted};
use crate::config::Preemption;
use crate::cron::zone::ZoneOffsets;
use crate::cx::Counters;
use crate::ids::{AccessorId, AllocId, DeploymentId, EvalId, JobKey, Slot};
use crate::input::ShutdownMode;
use crate::model::acl::SecretDigest;
use crate::model::eval::{Deployment, Evaluation};
use crate::model::group::TaskGroup;
use crate::model::job::Job;
use crate::model::node::Node;
use crate::model::placement::PlacementFailure;
use crate::model::scheduler::SchedulerRecord;
use crate::model::submission::Submission;
use crate::model::variable::{Variable, VariableKey};
use crate::op::Op;
use crate::operations::{Operation, Operations};
use crate::scheduler::DryRun;
use crate::scheduler::gc_snapshot::job_status;
use crate::server::Server;
use crate::store::acl::{AclPolicyRecord, AclTokenRecord};
use crate::store::collected::CollectedAlloc;
use crate::store::disk::Disk;
use crate::store::namespace::NamespaceRecord;
use crate::store::node::NodeRecord;
use crate::store::record::{AllocRecord, JobRecord};
use crate::store::volume::VolumeRecord;
use crate::time::{Instant, Now, Timestamp};

/// The agent, to look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(super) agent: &'a Agent,
}

/// An allocation, to look at: its record, its job's version and its tasks.
pub type AllocView<'a> = &'a AllocRunner;

impl<'a> View<'a> {
    pub(super) fn of(agent: &'a Agent) -> View<'a> {
        View { agent }
    }

    /// The state's index: rises with each change that people can see.
    pub fn index(self) -> u64 {
        self.agent.shared.index
    }

    /// How jobs are taken in and placed, and since when; index 0 if it is as the configuration says.
    pub fn scheduler_config(self) -> SchedulerRecord {
        self.agent.scheduler_config()
    }

    /// Whose jobs may preempt jobs of lower priority.
    pub fn preemption(self) -> Preemption {
        self.agent.config.preemption
    }

    /// This node.
    pub fn node(self) -> &'a Node {
        &self.agent.config.node
    }

    /// What people decided about this node.
    pub fn node_record(self) -> &'a NodeRecord {
        &self.agent.node_life.record
    }

    /// The operator's keys of this node, as its configuration gives them.
    pub fn configured_meta(self) -> &'a BTreeMap<String, String> {
        &self.agent.node_life.configured_meta
    }

    /// The node's life in a cluster, if it is in one.
    pub fn server(self) -> Option<&'a Server> {
        self.agent.server.as_ref()
    }

    /// What is known of the machine.
    pub fn machine(self) -> &'a Machine {
        &self.agent.machine
    }

    /// What this node has of counted resources for allocations.
    pub fn capacity(self) -> Capacity {
        self.agent.capacity()
    }

    /// Every driver and every plugin of devices, those of the agent itself included.
    pub fn listened(self) -> Vec<Listened<'a>> {
        plugins::listened(self)
    }

    /// Whether enough is known of the machine for anything to be placed.
    pub fn is_fingerprinted(self) -> bool {
        !self.agent.shared.fingerprint_pending
    }

    /// How the agent was told to end, once it was.
    pub fn shutdown(self) -> Option<ShutdownMode> {
        self.agent.shutdown
    }

    /// Whether the agent said [`crate::effect::Effect::Stopped`]: it does nothing any more.
    pub fn stopped(self) -> bool {
        self.agent.stopped
    }

    /// What is counted.
    pub fn counters(self) -> Counters {
        self.agent.shared.counters
    }

    /// What was asked of the outside and is not answered.
    pub fn operations(self) -> &'a Operations {
        &self.agent.shared.operations
    }

    /// Whether the request of this operation waits for the store.
    pub fn holds_back(self, op: Op) -> bool {
        self.agent.shared.ledger.holds(op)
    }

    /// When an allocation, or a task of it, wants to be called back, or an answer that either awaits is due.
    pub fn next_timer(self, alloc: &AllocRunner) -> Option<Instant> {
        let timer = alloc.deadline().map(|(at, _)| at);
        let of_it = |one: &&Operation| one.owner.alloc() == Some(alloc.record().id);
        let operations = self.operations().iter().map(|(_, one)| one).filter(of_it);
        timer
            .into_iter()
            .chain(operations.filter_map(Operation::until))
            .min()
    }

    /// Why nothing can be saved at present, if so.
    pub fn store_error(self) -> Option<&'a str> {
        self.agent.shared.ledger.last_error()
    }

    /// Every job, by name.
    pub fn jobs(self) -> impl Iterator<Item = &'a Arc<JobRecord>> {
        self.agent.local.jobs.values()
    }

    /// One job.
    pub fn job(self, key: &JobKey) -> Option<&'a Arc<JobRecord>> {
        self.agent.local.jobs.get(key)
    }

    /// The jobs that were made of this one, by name.
    pub fn children_of(self, key: &JobKey) -> impl Iterator<Item = &'a Arc<JobRecord>> + use<'a> {
        self.agent.children_by_name(key)
    }

    /// What a version of a job was made from, if somebody handed that in.
    pub fn submission(self, key: &JobKey, version: u64) -> Option<&'a Arc<Submission>> {
        let submissions = &self.agent.local.submissions;
        submissions.get(&(key.clone(), version))
    }

    /// What all versions of jobs were made from that are kept.
    pub fn submissions(self) -> &'a BTreeMap<(JobKey, u64), Arc<Submission>> {
        &self.agent.local.submissions
    }

    /// Where a job is in its life; one that is not there is dead.
    pub fn job_status(self, key: &JobKey) -> JobStatus {
        let Some(record) = self.job(key) else {
            return JobStatus::Dead;
        };
        let waits = self.agent.local.re_evaluate_at.contains_key(key)
            || self.agent.local.awaits_placement(key);
        let allocs = self.allocs_of(key).map(|alloc| &**alloc.record());
        job_status(record, allocs, waits)
    }

    /// The disks of the slots of a job that have a record, but for what servers placed.
    pub fn disks_of(self, key: &JobKey) -> impl Iterator<Item = (&'a Slot, &'a Disk)> + use<'a> {
        let first = Slot {
            job: key.clone(),
            ..Slot::default()
        };
        let key = key.clone();
        let disks = self.agent.shared.disks.range(first..);
        let of_job = disks.take_while(move |(slot, _)| slot.job == key);
        let of_job = of_job.filter(|(slot, _)| slot.alloc.is_none());
        of_job.map(|(slot, disk)| (slot, &**disk))
    }

    /// The disks of all slots that have a record.
    pub fn disks(self) -> &'a BTreeMap<Slot, Arc<Disk>> {
        &self.agent.shared.disks
    }

    /// The disk of an allocation's slot, if that has a record.
    pub fn disk_of(self, alloc: &AllocRecord) -> Option<&'a Disk> {
        self.agent
            .shared
            .disks
            .get(&alloc.slot())
            .map(|disk| &**disk)
    }

    /// What registering a job would do now: the plan that the scheduler would make for it.
    pub fn dry_run(self, now: Now, job: &Job) -> DryRun {
        self.agent.dry_run(now, job)
    }

    /// What is known of the launches of a periodic job.
    pub fn periodic(self, key: &JobKey) -> Option<PeriodicView<'a>> {
        self.agent.launches_of(key)
    }

    /// What is known of the images of a job whose tags are followed.
    pub fn images(self, key: &JobKey) -> Vec<ImageView<'a>> {
        self.agent.images_of(key)
    }

    /// A job as it would be if it was registered now: with the digests that its images have.
    pub fn with_known_digests(self, job: &Arc<Job>) -> Arc<Job> {
        self.agent.with_known_digests(job)
    }

    /// When a periodic job would be launched next if it was registered now, in the local time of its zone as it
    /// is known here or else given.
    pub fn next_launch(self, now: Now, job: &Job, zone: Option<&ZoneOffsets>) -> Option<Timestamp> {
        self.agent.next_launch(now, job, zone)
    }

    /// Whether this node has the drivers of a group and fulfils its conditions.
    ///
    /// # Errors
    /// The first thing that is missing.
    pub fn admits(self, job: &Job, group: &TaskGroup) -> Result<(), String> {
        self.agent.check_admission(job, group)
    }

    /// Of what too little is left now for all copies of a group that does not run here yet.
    ///
    /// # Errors
    /// There is too little of something.
    pub fn shortage(self, job: &Job, group: &TaskGroup) -> Result<(), PlacementFailure> {
        self.agent.shortage(job, group)
    }

    /// The allocations that use a volume, or may still write to it.
    pub fn users_of_volume(self, volume: &VolumeRecord) -> Vec<AllocId> {
        self.agent.users_of_volume(volume)
    }

    /// Which groups of a job have placement failures, and why.
    pub fn blocked(self, key: &JobKey) -> &'a [(String, PlacementFailure)] {
        self.agent
            .local
            .blocked
            .get(key)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Every allocation, by id.
    pub fn allocs(self) -> impl Iterator<Item = AllocView<'a>> + Clone {
        self.agent.allocs.values()
    }

    /// The allocations of a job, by id.
    pub fn allocs_of(self, key: &JobKey) -> impl Iterator<Item = AllocView<'a>> + Clone + use<'a> {
        let ids = self.agent.local.allocs.get(key).into_iter().flatten();
        ids.filter_map(move |id| self.agent.allocs.get(id))
    }

    /// One allocation.
    pub fn alloc(self, id: AllocId) -> Option<AllocView<'a>> {
        self.agent.allocs.get(&id)
    }

    /// What stays of allocations whose directories are gone, by id.
    pub fn collected(self) -> impl Iterator<Item = &'a Arc<CollectedAlloc>> + Clone {
        self.agent.collected.iter()
    }

    /// What stays of one.
    pub fn collected_alloc(self, id: AllocId) -> Option<&'a Arc<CollectedAlloc>> {
        self.agent.collected.get(id)
    }

    /// Every allocation that people can still ask about, those first whose directories are there.
    pub fn shown_allocs(self) -> impl Iterator<Item = ShownAlloc<'a>> {
        let collected = self.agent.collected.iter();
        let collected = collected.filter_map(move |record| self.shown_record(record));
        self.allocs().map(ShownAlloc::Here).chain(collected)
    }

    /// The same, from behind one of them on, for whoever reads them in pieces.
    pub fn shown_allocs_after(
        self,
        after: Option<ShownKey>,
    ) -> impl Iterator<Item = (ShownKey, ShownAlloc<'a>)> {
        let id = after.map(|key| key.id);
        let is_behind = after.is_some_and(|key| key.collected);
        let here = self.agent.allocs.range((behind(id), Bound::Unbounded));
        let here = here.take_while(move |_| !is_behind).map(|(id, alloc)| {
            let collected = false;
            (ShownKey { collected, id: *id }, ShownAlloc::Here(alloc))
        });
        let collected = self.agent.collected.after(id.filter(|_| is_behind));
        let collected = collected.filter_map(move |record| {
            let (id, collected) = (record.alloc.id, true);
            Some((ShownKey { collected, id }, self.shown_record(record)?))
        });
        here.chain(collected)
    }

    /// Those of one job.
    pub fn shown_allocs_of(
        self,
        key: &JobKey,
    ) -> impl Iterator<Item = ShownAlloc<'a>> + Clone + use<'a> {
        let collected = self.agent.collected.of_job(key);
        let collected = collected.filter_map(move |record| self.shown_record(record));
        self.allocs_of(key).map(ShownAlloc::Here).chain(collected)
    }

    /// One of them.
    pub fn shown_alloc(self, id: AllocId) -> Option<ShownAlloc<'a>> {
        let collected = || self.shown_record(self.agent.collected.get(id)?);
        self.alloc(id).map(ShownAlloc::Here).or_else(collected)
    }

    fn shown_record(self, record: &'a Arc<CollectedAlloc>) -> Option<ShownAlloc<'a>> {
        let job = self.job(&record.alloc.job)?;
        let job = job.version(record.alloc.job_version)?;
        Some(ShownAlloc::Collected(record, job))
    }

    /// What an allocation claims and others still hold before its tasks have their turn.
    pub fn ungranted(self, alloc: AllocView<'a>) -> Vec<Ungranted> {
        match alloc.awaits_any_claim() {
            true => self.agent.ungranted(alloc.record().id),
            false => Vec::new(),
        }
    }

    /// What is done or awaited before the tasks of an allocation have their turn, in words: of what others
    /// hold, who holds it.
    pub fn waits_for(self, alloc: AllocView<'a>) -> Option<String> {
        // Most that are shown run, or ran.
        let Phase::Prerun(_) = alloc.phase() else {
            return None;
        };
        let mut holders: BTreeMap<Holder, Vec<String>> = BTreeMap::new();
        for one in self.ungranted(alloc) {
            let claims = holders.entry(one.holder).or_default();
            claims.push(one.claim.to_string());
        }
        let words = match alloc.waits_for(self.disk_of(alloc.record())) {
            Some(words) => words,
            None if !alloc.awaits_claims() => return None,
            None if holders.is_empty() => {
                return Some("Waiting for the first fingerprints of this node".to_owned());
            }
            None => {
                let many = if holders.len() == 1 { "" } else { "s" };
                let names: Vec<String> = holders.keys().map(Holder::to_string).collect();
                format!("Waiting for allocation{many} {} to end", names.join(", "))
            }
        };
        let of_holder = |(holder, claims): (&Holder, &Vec<String>)| {
            format!("{holder} holds {}", claims.join(", "))
        };
        let held: Vec<String> = holders.iter().map(of_holder).collect();
        Some(match held.is_empty() {
            true => words,
            false => format!("{words}: {}", held.join("; ")),
        })
    }

    /// Whether an allocation is to be garbage-collected, and others go first.
    pub fn awaits_cleaning(self, alloc: AllocId) -> bool {
        self.agent.shared.destroys.awaits(alloc)
    }

    /// Every variable, by name.
    pub fn variables(self) -> &'a Arc<BTreeMap<VariableKey, Arc<Variable>>> {
        &self.agent.local.variables
    }

    /// All namespaces, by name: `default`, those of the configuration, and those that somebody made.
    pub fn namespaces(self) -> BTreeMap<Arc<str>, Arc<NamespaceRecord>> {
        self.agent.namespaces()
    }

    /// Policies of the API, by name.
    pub fn acl_policies(self) -> &'a BTreeMap<Arc<str>, Arc<AclPolicyRecord>> {
        self.agent.acl.policies()
    }

    /// Tokens of the API.
    pub fn acl_tokens(self) -> &'a BTreeMap<AccessorId, Arc<AclTokenRecord>> {
        self.agent.acl.tokens()
    }

    /// Whose secret this is. It may have expired a moment ago.
    pub fn acl_token_of(self, digest: &SecretDigest) -> Option<&'a Arc<AclTokenRecord>> {
        self.agent.acl.token_of(digest)
    }

    /// The state's index when the first token was made, if it was.
    pub fn acl_bootstrapped(self) -> Option<u64> {
        self.agent.acl.bootstrapped()
    }

    /// Whether there is this namespace.
    pub fn has_namespace(self, name: &str) -> bool {
        self.agent.has_namespace(name)
    }

    /// Whether there is a job's namespace, and lets it use what it uses.
    ///
    /// # Errors
    /// Why not.
    pub fn check_home(self, job: &Job) -> Result<(), String> {
        self.agent.check_home(job)
    }

    /// Whether services whose provider is Consul are run as the node's own.
    pub fn runs_consul_services(self) -> bool {
        self.agent.config.consul_services
    }

    /// Every instance of a service that is registered now.
    pub fn services(self) -> Vec<Registration> {
        services::services(self)
    }

    /// Those of one allocation.
    pub fn services_of(self, id: AllocId) -> Vec<Registration> {
        let of_alloc = |alloc| services::of_alloc(&self.agent.config, alloc);
        self.alloc(id).map(of_alloc).unwrap_or_default()
    }

    /// Every evaluation that is kept, by id.
    pub fn evals(self) -> impl Iterator<Item = &'a Arc<Evaluation>> {
        self.agent.local.evals.values()
    }

    /// One evaluation.
    pub fn eval(self, id: EvalId) -> Option<&'a Arc<Evaluation>> {
        self.agent.local.evals.get(&id)
    }

    /// The evaluation that waits until a failed allocation is replaced, or plans that.
    pub fn follow_up(self, failed: &AllocRecord) -> Option<EvalId> {
        self.agent.local.follow_up(&failed.job, failed.id)
    }

    /// Every roll-out that is kept, by id.
    pub fn deployments(self) -> impl Iterator<Item = &'a Arc<Deployment>> {
        self.agent.local.deployments.values()
    }

    /// One roll-out.
    pub fn deployment(self, id: DeploymentId) -> Option<&'a Arc<Deployment>> {
        self.agent.local.deployments.get(&id)
    }
}

/// The beginning of a range that leaves out `id` and all before it.
pub(super) fn behind(id: Option<AllocId>) -> Bound<AllocId> {
    id.map_or(Bound::Unbounded, Bound::Excluded)
}
