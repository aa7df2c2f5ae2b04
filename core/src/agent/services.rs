//! Services: who is registered now. Nothing of it is kept: it follows from what runs.
//!
//! A service of a task is there while the task runs and nobody ends it. One of a group is there from the
//! first start of a main task until the last of them is dead or somebody ends it, also while it waits to
//! be started again: its name does not come and go with each restart. A task that an agent finds running again is
//! there from the beginning, so that nobody who reads services sees it come and go.
//!
//! So no registration outlives its task's last end, whatever dies. Each change of who is registered comes with
//! a new index, which a property of the simulator checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::View;
use crate::alloc::runner::AllocRunner;
use crate::checks::endpoint::endpoint;
use crate::config::Config;
use crate::cx::Rng;
use crate::fnv::fnv1a;
use crate::ids::{AllocId, JobKey, NodeId, TaskName};
use crate::interpolate::{Names, interpolate};
use crate::model::alloc::DriverNetwork;
use crate::model::service::{Service, is_name};
use crate::model::task::Stage;
use crate::model::value::Value;
use crate::store::record::AllocRecord;
use crate::task::runner::{Phase, TaskRunner};

/// One instance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its name in the world.
    pub id: String,
    /// The service's name.
    pub name: String,
    /// The job, and its namespace.
    pub job: JobKey,
    /// The node.
    pub node: NodeId,
    /// The node's data centre.
    pub datacenter: String,
    /// The allocation.
    pub alloc: AllocId,
    /// The task; none for a service of the group.
    pub task: Option<TaskName>,
    /// Its tags.
    pub tags: Vec<String>,
    /// Where it listens.
    pub address: String,
    /// The port there.
    pub port: u16,
    /// The state's index when the allocation was made.
    pub create_index: u64,
    /// The state's index when the allocation last changed.
    pub modify_index: u64,
}

/// Every instance, in the order of allocations.
pub(super) fn services(view: View<'_>) -> Vec<Registration> {
    let config = &view.agent.config;
    let allocs = view.allocs();
    allocs.flat_map(|alloc| of_alloc(config, alloc)).collect()
}

/// The instances of one allocation.
pub(super) fn of_alloc(config: &Config, alloc: &AllocRunner) -> Vec<Registration> {
    if alloc.is_ending() || alloc.record().is_terminal() {
        return Vec::new();
    }
    let of_tasks = alloc.tasks().iter().filter(|task| serves(task));
    let of_tasks = of_tasks.flat_map(|task| of_task(config, alloc, task));
    of_group(config, alloc)
        .into_iter()
        .chain(of_tasks)
        .collect()
}

/// So many instances: the same ones for the same key, as far as they are there, and others for others.
pub fn choose(mut from: Vec<Registration>, count: usize, key: &str) -> Vec<Registration> {
    let weight = |one: &Registration| {
        let hash = fnv1a(key.as_bytes().iter().chain(&[0]).chain(one.id.as_bytes()));
        // Mixed, because what is nearly the same is nearly the same by the hash.
        Rng::new(hash).next_u64()
    };
    from.sort_by_cached_key(weight);
    from.truncate(count);
    from
}

/// Whether a task runs, and is meant to go on.
fn serves(task: &TaskRunner) -> bool {
    let runs = matches!(task.phase(), Phase::Running | Phase::Recovering(_));
    runs && task.runs() && !task.is_ending()
}

/// Whether a task began, and runs or is to be started again.
fn serves_group(task: &TaskRunner) -> bool {
    let goes_on = match task.phase() {
        Phase::Waiting
        | Phase::Preparing(_)
        | Phase::Starting(_)
        | Phase::Recovering(_)
        | Phase::Running
        | Phase::Cleaning(_)
        | Phase::Pausing(_) => true,
        Phase::Delaying(_) | Phase::Deregistering(_) | Phase::Stopping { .. } | Phase::Dead(_) => {
            false
        }
    };
    goes_on && task.state().started_at.is_some() && !task.is_ending()
}

/// The services of these blocks that this node runs.
fn services_of<'a>(config: &Config, blocks: &'a [Value]) -> impl Iterator<Item = Service<'a>> {
    let consul = config.consul_services;
    let here = move |block: &'a Value| Service::run_here(block, consul);
    blocks.iter().filter_map(here)
}

/// The services of the group, once for all its tasks.
fn of_group(config: &Config, alloc: &AllocRunner) -> Vec<Registration> {
    let record = alloc.record();
    let Some(group) = alloc.job().group(record.group.as_str()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for service in services_of(config, &group.services) {
        let mut tasks = alloc.tasks().iter().filter(|task| match service.task {
            "" => task.spec().stage() == Stage::Main,
            name => task.spec().key.task.as_str() == name,
        });
        if let Some(task) = tasks.find(|task| serves_group(task)) {
            let env = || task.environment_of_group(config, record);
            found.extend(registered(config, record, &service, None, None, env));
        }
    }
    found
}

fn of_task(config: &Config, alloc: &AllocRunner, task: &TaskRunner) -> Vec<Registration> {
    let record = alloc.record();
    let services = services_of(config, &task.spec().task().services);
    let env = || task.environment_of_services(config, record);
    let owner = Some(&task.spec().key.task);
    services
        .filter_map(|service| registered(config, record, &service, owner, task.network(), env))
        .collect()
}

/// The instance; none if its port or its name turns out to be none.
fn registered(
    config: &Config,
    alloc: &Arc<AllocRecord>,
    service: &Service<'_>,
    task: Option<&TaskName>,
    network: Option<&DriverNetwork>,
    env: impl Fn() -> BTreeMap<String, String>,
) -> Option<Registration> {
    // Few services refer to anything, and an environment is large.
    let env = service.has_references().then(env).unwrap_or_default();
    let node = &config.node;
    let names = Names { env: &env, node };
    let text = |text: &str| interpolate(text, &names);
    let (mode, port) = (service.address_mode, service.port);
    let (host, port) = endpoint(alloc, &node.address, port, mode, network)?;
    let name = Some(text(service.name)).filter(|name| is_name(name))?;
    let address = match service.address {
        "" => host.into_owned(),
        given => text(given),
    };
    let owner = match task {
        Some(task) => task.to_string(),
        None => format!("group-{}", alloc.group),
    };
    let tags = match &service.canary_tags {
        tags if alloc.canary && !tags.is_empty() => tags,
        _ => &service.tags,
    };
    Some(Registration {
        id: format!("_nomad-task-{}-{owner}-{name}-{}", alloc.id, service.port),
        task: task.cloned(),
        name,
        job: alloc.job.clone(),
        node: node.id,
        datacenter: node.datacenter.clone(),
        alloc: alloc.id,
        tags: tags.iter().map(|tag| text(tag)).collect(),
        address,
        port,
        create_index: alloc.create_index,
        modify_index: alloc.modify_index,
    })
}
