//! How servers decide what runs where: a small scheduler, plain and slow.
//!
//! Each copy of a group has one allocation that shall run. One that is lost, or failed, or ended though its job never
//! ends, is replaced by one of the same name that names it as the previous one. A job's new version is taken in place,
//! or by other allocations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::cluster::PlacedAlloc;
use drover_core::ids::{AllocId, DeploymentId, EvalId, NodeId};
use drover_core::model::alloc::{ClientStatus, DesiredStatus};
use drover_core::model::drain::Eligibility;
use drover_core::model::group::TaskGroup;
use drover_core::model::job::{Job, JobType};
use drover_core::model::network::NetworkMode;
use drover_core::store::record::AssignedPort;
use drover_core::time::Timestamp;

use super::{Known, NodeStatus, Servers};

/// The first of the ids of allocations: nothing of a node's own has one like it.
const FIRST: u128 = 0xc000_0000_0000_4000_8000_0000_0000_0000;

/// How often a copy that failed is replaced.
const MOST_REPLACEMENTS: u32 = 3;

/// A job, as servers know it.
#[derive(Clone, Debug)]
pub struct ClusterJob {
    job: Arc<Job>,
    /// Whether its present version is taken in place by what runs.
    in_place: bool,
    stopped: bool,
    failures: BTreeMap<Arc<str>, u32>,
}

/// Where a copy may run.
struct Site {
    node: NodeId,
    live: usize,
    ports: BTreeSet<u16>,
}

impl Servers {
    /// A job is handed in at the servers. What runs of it takes it in place, or is replaced.
    pub fn register(&mut self, job: &Job, in_place: bool) {
        // Also that of a version that they forgot is not used again.
        let next = self.next_versions.entry(job.id.clone()).or_default();
        let job = Job {
            version: *next,
            ..job.clone()
        };
        *next += 1;
        let id = job.id.clone();
        let mut disks = job.task_groups.iter().filter_map(|it| it.ephemeral_disk);
        self.migrates |= disks.any(|it| it.migrate);
        let job = ClusterJob {
            job: Arc::new(job),
            in_place,
            stopped: false,
            failures: BTreeMap::new(),
        };
        self.jobs.insert(id, job);
        self.evaluates = true;
    }

    /// A job is stopped.
    pub fn deregister(&mut self, id: &str) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.stopped = true;
            self.evaluates = true;
        }
    }

    /// One allocation of a job is stopped, and replaced.
    pub fn stop_one(&mut self, job: &str, nth: usize) {
        let live = self.allocs.values().filter_map(|it| it.now());
        let of_job = live.filter(|it| it.job.as_ref().is_ok_and(|it| it.id == job) && is_live(it));
        let ids: Vec<AllocId> = of_job.map(|it| it.id).collect();
        let found = nth.checked_rem(ids.len()).and_then(|at| ids.get(at));
        if let Some(id) = found.copied() {
            self.stop(id);
            self.evaluates = true;
        }
    }

    /// The names of the copies of services that shall run, without those that failed too often, and how many tasks of
    /// each run for ever.
    pub fn wanted_copies(&self) -> Vec<(Arc<str>, usize)> {
        let services = self.jobs.values();
        let services = services.filter(|it| !it.stopped && it.job.job_type == JobType::Service);
        let mut wanted = Vec::new();
        for job in services {
            for group in &job.job.task_groups {
                let tasks = group.tasks.iter().filter(|it| it.lifecycle.is_none());
                let tasks = tasks.count();
                for (_, index) in self.wanted(job, group) {
                    let name: Arc<str> = format!("{}.{}[{index}]", job.job.id, group.name).into();
                    if job
                        .failures
                        .get(&name)
                        .is_none_or(|it| *it <= MOST_REPLACEMENTS)
                    {
                        wanted.push((name, tasks));
                    }
                }
            }
        }
        wanted
    }

    /// Whether an allocation that ended is not to be replaced.
    pub(super) fn is_done(&self, placed: &PlacedAlloc) -> bool {
        let job = placed.job.as_ref().ok();
        let job = job.and_then(|job| self.jobs.get(&job.id));
        job.is_none_or(|job| job.stopped || job.has_enough(placed))
    }

    pub(super) fn evaluate(&mut self) {
        let jobs: Vec<String> = self.jobs.keys().cloned().collect();
        for id in jobs {
            if let Some(job) = self.jobs.get(&id).cloned() {
                self.stop_groups_that_are_gone(&job.job);
                for group in &job.job.task_groups {
                    self.evaluate_group(&job, group);
                }
            }
        }
    }

    fn stop_groups_that_are_gone(&mut self, job: &Job) {
        let live = self.allocs.values().filter_map(|it| it.now());
        let gone: Vec<AllocId> = (live.filter(|it| is_of(it, job) && is_live(it)))
            .filter(|it| job.group(it.group.as_str()).is_none())
            .map(|it| it.id)
            .collect();
        for id in gone {
            self.stop(id);
        }
    }

    fn evaluate_group(&mut self, job: &ClusterJob, group: &TaskGroup) {
        let of_group: Vec<Arc<PlacedAlloc>> = (self.allocs.values())
            .filter_map(|it| it.now())
            .filter(|it| it.group.as_str() == group.name && is_of(it, &job.job))
            .cloned()
            .collect();
        let mut copies: BTreeMap<(NodeId, u32), Arc<PlacedAlloc>> = BTreeMap::new();
        let wanted = self.wanted(job, group);
        for alloc in &of_group {
            let holds = !alloc.desired.is_terminal()
                && (!alloc.client_status.is_terminal() || job.has_enough(alloc));
            let copy = (self.site_of(alloc.id, job), alloc.index());
            if holds && wanted.contains(&copy) && !copies.contains_key(&copy) {
                copies.insert(copy, alloc.clone());
            } else if !alloc.desired.is_terminal() && !alloc.client_status.is_terminal() {
                self.stop(alloc.id);
            }
        }
        for copy in wanted {
            match copies.get(&copy) {
                None => self.place_copy(job, group, copy, &of_group),
                Some(alloc) => self.follow_version(job, group, copy, alloc),
            }
        }
    }

    /// The copies that there shall be: of jobs that run on each node one for each, elsewhere by their number.
    fn wanted(&self, job: &ClusterJob, group: &TaskGroup) -> BTreeSet<(NodeId, u32)> {
        if job.stopped {
            return BTreeSet::new();
        }
        if job.is_on_each_node() {
            let nodes = self.nodes.iter().filter(|(_, it)| it.takes(group));
            return nodes.map(|(id, _)| (*id, 0)).collect();
        }
        let count = u32::try_from(group.wanted()).unwrap_or(0);
        (0..count).map(|index| (NodeId(0), index)).collect()
    }

    /// By which node copies are told apart; all the same if they are by their number alone.
    fn site_of(&self, id: AllocId, job: &ClusterJob) -> NodeId {
        let alloc = self.allocs.get(&id).filter(|_| job.is_on_each_node());
        alloc.map_or(NodeId(0), |it| it.node)
    }

    fn follow_version(
        &mut self,
        job: &ClusterJob,
        group: &TaskGroup,
        copy: (NodeId, u32),
        alloc: &Arc<PlacedAlloc>,
    ) {
        let is_over = alloc.client_status.is_terminal();
        if is_over
            || alloc
                .job
                .as_ref()
                .is_ok_and(|it| it.version == job.job.version)
        {
            return;
        }
        if job.in_place && has_same_tasks(alloc, &job.job, group) {
            let new = job.job.clone();
            let deployment = deployment_of(&new, group);
            return self.change(alloc.id, |it| {
                (it.job, it.deployment) = (Ok(new), deployment);
            });
        }
        self.stop(alloc.id);
        let previous = [alloc.clone()];
        self.place_copy(job, group, copy, &previous);
    }

    /// Places a copy, if there is a node for it.
    fn place_copy(
        &mut self,
        job: &ClusterJob,
        group: &TaskGroup,
        (node, index): (NodeId, u32),
        earlier: &[Arc<PlacedAlloc>],
    ) {
        let name: Arc<str> = format!("{}.{}[{index}]", job.job.id, group.name).into();
        let same = earlier.iter().filter(|it| it.name == name);
        let here = same.filter(|it| self.site_of(it.id, job) == node);
        let previous = here.max_by_key(|it| it.id).cloned();
        let failed = previous.as_ref().map(|it| it.client_status) == Some(ClientStatus::Failed);
        let Some(site) = self.site_for(job, group, node) else {
            // It is tried again when a node comes.
            return;
        };
        if failed && !self.may_replace(&job.job.id, &name) {
            return;
        }
        let id = AllocId(FIRST + u128::try_from(self.allocs.len()).unwrap_or(0));
        let ports = self.ports_of(group, &site);
        let placed = PlacedAlloc {
            id,
            modify_index: 0,
            name,
            job: Ok(job.job.clone()),
            group: group.name.as_str().into(),
            eval: EvalId(1),
            deployment: deployment_of(&job.job, group),
            canary: false,
            previous: previous.map(|it| it.id),
            preempts: Vec::new(),
            desired: DesiredStatus::Run,
            desired_description: "".into(),
            no_shutdown_delay: false,
            client_status: ClientStatus::Pending,
            ports,
            cores: Vec::new(),
            devices: Vec::new(),
            create_time: Timestamp(0),
        };
        self.place(site.node, placed);
    }

    fn may_replace(&mut self, job: &str, name: &Arc<str>) -> bool {
        let Some(job) = self.jobs.get_mut(job) else {
            return false;
        };
        let failures = job.failures.entry(name.clone()).or_default();
        *failures += 1;
        *failures <= MOST_REPLACEMENTS
    }

    /// The node that has least to do, of those that take such a group; of jobs that run on each node, that one.
    fn site_for(&self, job: &ClusterJob, group: &TaskGroup, node: NodeId) -> Option<Site> {
        let takes = self.nodes.iter().filter(|(_, it)| it.takes(group));
        let takes = takes.filter(|(id, _)| !job.is_on_each_node() || **id == node);
        let sites = takes.map(|(id, _)| {
            let live = self.allocs_of(*id).filter(|it| is_live(it));
            let live: Vec<&Arc<PlacedAlloc>> = live.collect();
            let ports = live.iter().flat_map(|it| &it.ports);
            Site {
                node: *id,
                live: live.len(),
                ports: ports.map(|port| port.value).collect(),
            }
        });
        let is_free = |site: &Site| {
            let mut asked = static_ports(group);
            asked.all(|port| !site.ports.contains(&port))
        };
        sites
            .filter(is_free)
            .min_by_key(|site| (site.live, site.node))
    }

    fn ports_of(&self, group: &TaskGroup, site: &Site) -> Vec<AssignedPort> {
        let Some(network) = group.networks.first() else {
            return Vec::new();
        };
        let node = self.nodes.get(&site.node).map(|it| &it.node);
        let first = node.map_or(20_000, |it| it.dynamic_ports.0);
        let mut free = (first..).filter(|port| !site.ports.contains(port));
        let mut ports = Vec::new();
        let is_own = network.mode() != NetworkMode::Host;
        let all = network.reserved_ports.iter().chain(&network.dynamic_ports);
        for port in all {
            let value = match u16::try_from(port.value) {
                Ok(value) if value > 0 => value,
                Ok(_) | Err(_) => free.next().unwrap_or(first),
            };
            let to = u16::try_from(port.to).ok().filter(|_| is_own);
            ports.push(AssignedPort {
                label: port.label.clone(),
                value,
                to: to.unwrap_or(0),
                host_ip: node.map(|it| it.address.clone()).unwrap_or_default(),
                host_network: String::new(),
            });
        }
        ports
    }
}

impl ClusterJob {
    fn is_on_each_node(&self) -> bool {
        match self.job.job_type {
            JobType::System | JobType::Sysbatch => true,
            JobType::Service | JobType::Batch => false,
        }
    }

    /// Whether an allocation that ended is the end of what is wanted of it.
    fn has_enough(&self, placed: &PlacedAlloc) -> bool {
        let ends = match self.job.job_type {
            JobType::Batch | JobType::Sysbatch => true,
            JobType::Service | JobType::System => false,
        };
        ends && placed.client_status == ClientStatus::Complete && !placed.desired.is_terminal()
    }
}

impl Known {
    /// Whether the node takes a group's copies.
    fn takes(&self, group: &TaskGroup) -> bool {
        let has = |driver: &str| {
            let driver = self.node.drivers.get(driver);
            driver.is_some_and(|it| it.detected && it.healthy)
        };
        let mode = group.networks.first().map(|it| it.mode());
        let has_mode = mode.is_none_or(|mode| {
            mode == NetworkMode::Host || self.node.network_modes.contains(&mode.to_string())
        });
        self.status == NodeStatus::Ready
            && self.eligibility == Eligibility::Eligible
            && has_mode
            && group.tasks.iter().all(|task| has(&task.driver))
    }
}

fn is_of(placed: &PlacedAlloc, job: &Job) -> bool {
    placed.job.as_ref().is_ok_and(|it| it.id == job.id)
}

/// Whether what runs has the tasks of its group's present version: others are never taken in place.
fn has_same_tasks(placed: &PlacedAlloc, job: &Job, group: &TaskGroup) -> bool {
    let Ok(runs) = &placed.job else {
        return false;
    };
    let tasks = |group: &TaskGroup| -> Vec<_> {
        let tasks = group.tasks.iter();
        let told = tasks.map(|task| (task.name.clone(), task.env.clone(), task.meta.clone()));
        told.collect()
    };
    let present = runs.group(placed.group.as_str());
    let same = |present: &TaskGroup| {
        (tasks(present), &present.meta, &runs.meta) == (tasks(group), &group.meta, &job.meta)
    };
    present.is_some_and(same)
}

pub(super) fn is_live(placed: &PlacedAlloc) -> bool {
    !placed.desired.is_terminal() && !placed.client_status.is_terminal()
}

fn static_ports(group: &TaskGroup) -> impl Iterator<Item = u16> {
    let networks = group.networks.iter();
    let ports = networks.flat_map(|it| &it.reserved_ports);
    ports.filter_map(|port| u16::try_from(port.value).ok())
}

/// The roll-out that an allocation counts for: one for each version that is rolled out.
fn deployment_of(job: &Job, group: &TaskGroup) -> Option<DeploymentId> {
    let rolls = group.update.as_ref().or(job.update.as_ref());
    let is_service = job.job_type == JobType::Service;
    rolls
        .filter(|_| is_service)
        .map(|_| DeploymentId(u128::from(job.version) + 1))
}
