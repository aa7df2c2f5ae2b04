//! A node with its jobs and allocations, of which snapshots are made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::*;
use crate::claims::resources::{Amounts, Capacity};
use crate::config::Preemption;
use crate::ids::{GroupName, JobKey, Slot};
use crate::model::alloc::{ClientStatus, DeploymentHealth};
use crate::model::eval::Deployment;
use crate::model::group::{Network, Port, TaskGroup};
use crate::model::job::JobType;
use crate::model::node::{DriverInfo, Node};
use crate::model::task::Task;
use crate::store::node::NodeRecord;
use crate::store::record::AssignedPort;
use crate::time::{Now, Timestamp};

/// A node with its jobs and allocations.
#[derive(Default)]
pub(super) struct World {
    pub(super) node: Node,
    node_record: NodeRecord,
    jobs: BTreeMap<JobKey, Arc<JobRecord>>,
    pub(super) deployments: BTreeMap<DeploymentId, Arc<Deployment>>,
    pub(super) allocs: BTreeMap<AllocId, AllocRecord>,
    disks: BTreeMap<Slot, Arc<Disk>>,
    pub(super) allocs_of: BTreeMap<JobKey, BTreeSet<AllocId>>,
    replaced_at: BTreeMap<JobKey, BTreeMap<AllocId, Instant>>,
    progress: BTreeMap<JobKey, BTreeMap<GroupName, Progress>>,
    pub(super) capacity: Capacity,
    pub(super) preempting: bool,
    pub(super) unknown: bool,
}

impl World {
    pub(super) fn new() -> World {
        let works = DriverInfo {
            detected: true,
            healthy: true,
            ..DriverInfo::default()
        };
        let node = Node {
            datacenter: "dc1".to_owned(),
            drivers: [("mock".to_owned(), works)].into(),
            dynamic_ports: (20000, 20001),
            ..Node::default()
        };
        World {
            node,
            preempting: true,
            ..World::default()
        }
    }

    /// A service of one group `g` with these ports by number.
    pub(super) fn job(&mut self, id: &str, priority: i64, count: i64, ports: &[i64]) -> JobKey {
        let port = |value: &i64| Port {
            label: format!("p{value}"),
            value: *value,
            ..Port::default()
        };
        let network = Network {
            reserved_ports: ports.iter().map(port).collect(),
            ..Network::default()
        };
        let task = Task {
            name: "t".to_owned(),
            driver: "mock".to_owned(),
            ..Task::default()
        };
        let group = TaskGroup {
            name: "g".to_owned(),
            count: Some(count),
            networks: vec![network],
            tasks: vec![task],
            ..TaskGroup::default()
        };
        let job = Job {
            id: id.to_owned(),
            job_type: JobType::Service,
            priority,
            datacenters: vec!["*".to_owned()],
            task_groups: vec![group],
            ..Job::default()
        };
        let key = job.key();
        let record = JobRecord {
            job: Arc::new(job),
            ..JobRecord::default()
        };
        self.jobs.insert(key.clone(), Arc::new(record));
        key
    }

    /// Changes the latest version of a job.
    pub(super) fn change(&mut self, key: &JobKey, change: impl FnOnce(&mut JobRecord)) {
        if let Some(known) = self.jobs.get_mut(key) {
            change(Arc::make_mut(known));
        }
    }

    /// A job gets another version.
    pub(super) fn next_version(&mut self, key: &JobKey, change: impl FnOnce(&mut Job)) {
        self.change(key, |record| {
            record.versions.push(record.job.clone());
            let job = Arc::make_mut(&mut record.job);
            job.version = 1;
            change(job);
        });
    }

    /// An allocation of the first copy that runs and holds these ports.
    pub(super) fn runs(&mut self, id: u128, job: &JobKey, ports: &[u16]) -> AllocId {
        let port = |value: &u16| AssignedPort {
            value: *value,
            ..AssignedPort::default()
        };
        let record = AllocRecord {
            id: AllocId(id),
            job: job.clone(),
            group: GroupName::from("g"),
            status: ClientStatus::Running,
            ports: ports.iter().map(port).collect(),
            create_index: u64::try_from(id).unwrap_or(0),
            ..AllocRecord::default()
        };
        self.allocs.insert(record.id, record);
        let of_job = self.allocs_of.entry(job.clone()).or_default();
        of_job.insert(AllocId(id));
        AllocId(id)
    }

    pub(super) fn alloc(&mut self, id: AllocId) -> &mut AllocRecord {
        self.allocs.entry(id).or_default()
    }

    /// Its state, with what its group asks for.
    fn state<'a>(&self, record: &'a AllocRecord) -> AllocState<'a> {
        let group = self.jobs[&record.job].job.group("g");
        AllocState {
            amounts: group.map_or(Amounts::default(), |group| Amounts::of(group, 0)),
            ..AllocState::running(record)
        }
    }

    /// What each copy of a job asks for of CPU and memory.
    pub(super) fn wants(&mut self, key: &JobKey, cpu: i64, memory: i64) {
        self.change(key, |record| {
            let group = &mut Arc::make_mut(&mut record.job).task_groups[0];
            let resources = &mut group.tasks[0].resources;
            (resources.cpu, resources.memory_mb) = (cpu, memory);
        });
    }

    /// The latest version of a job is rolled out.
    pub(super) fn rolls_out(&mut self, job: &JobKey) -> DeploymentId {
        let rollout = DeploymentId(7);
        let deployment = Deployment {
            id: rollout,
            job: job.clone(),
            job_version: 0,
            status: DeploymentStatus::Running,
            description: String::new(),
            groups: BTreeMap::new(),
            resumed: None,
            modify_time: Timestamp(0),
            create_index: 1,
            modify_index: 1,
        };
        self.deployments.insert(rollout, Arc::new(deployment));
        self.change(job, |record| record.deployment = Some(rollout));
        rollout
    }

    /// The latest version of a job is rolled out, and its first copy is unhealthy.
    pub(super) fn fails_to_roll_out(&mut self, job: &JobKey) -> DeploymentId {
        let rollout = self.rolls_out(job);
        let id = self.runs(1, job, &[]);
        let alloc = self.alloc(id);
        alloc.deployment = Some(rollout);
        alloc.health = Some(DeploymentHealth {
            healthy: false,
            timestamp: Timestamp(0),
        });
        rollout
    }

    pub(super) fn snapshot(&self, due: &[&JobKey]) -> Snapshot<'_> {
        Snapshot {
            now: Now::default(),
            due: due.iter().map(|key| (*key).clone()).collect(),
            jobs: &self.jobs,
            deployments: &self.deployments,
            allocs: self.allocs.values().map(|one| self.state(one)).collect(),
            allocs_of: &self.allocs_of,
            disks: &self.disks,
            replaced_at: &self.replaced_at,
            progress: &self.progress,
            node: &self.node,
            node_record: &self.node_record,
            capacity: self.capacity.clone(),
            offers: Vec::new(),
            awaits_first_reports: self.unknown,
            preemption: Preemption {
                service: self.preempting,
                ..Preemption::default()
            },
            rng: Rng::new(1),
        }
    }

    pub(super) fn plan(&self, due: &[&JobKey]) -> Plan {
        plan(&self.snapshot(due))
    }
}

/// What a plan places.
pub(super) fn placed(plan: &Plan) -> Vec<&NewAlloc> {
    let mut new = Vec::new();
    for action in &plan.actions {
        if let Action::Place(one) = action {
            new.push(&**one);
        }
    }
    new
}

/// What a plan says of the groups that it cannot place.
pub(super) fn failures(plan: &Plan) -> Vec<String> {
    let mut failed = Vec::new();
    for action in &plan.actions {
        if let Action::Considered(_, unplaced, _) = action {
            failed.extend(unplaced.failed.iter().map(|(_, why)| why.to_string()));
        }
    }
    failed
}
