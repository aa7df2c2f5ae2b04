//! What a node and the servers of its cluster agree on when all trouble is over: the node, its allocations, what of them
//! runs, and their services.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::PlacedAlloc;
use drover_core::ids::AllocId;
use drover_core::model::alloc::ClientStatus;
use drover_core::task::runner::TaskRunner;

use super::{Checker, Property, Verdict};
use crate::servers::{NodeStatus, Servers};
use crate::world::World;

impl Checker {
    /// When the trouble is over, node and servers agree.
    pub(super) fn node_and_servers_agree(&mut self, world: &World, agent: &Agent) -> Verdict {
        let Some(servers) = &world.link.servers else {
            return Ok(());
        };
        let wrong = disagreement(world, servers, agent);
        let (losses, before) = (servers.losses(), self.cluster.losses);
        self.sometimes(Property::SometimesNodeIsLost, losses > 0);
        self.holds(Property::ReachableNodeIsNotLost, losses == before, || {
            format!("{losses} times, before {before}")
        })?;
        self.holds(Property::NodeAndServersAgree, wrong.is_none(), || {
            wrong.unwrap_or_default()
        })?;
        self.running_services_are_at_servers(world, agent)?;
        let known = servers.node(world.link.node_id).map(|it| &it.node.meta);
        let wanted = self.wanted_meta();
        let holds = known.is_none_or(|known| *known == wanted);
        self.holds(Property::NodeAndServersAgree, holds, || {
            format!("servers know the node with {known:?}, not {wanted:?}")
        })
    }
}

/// What node and servers do not agree on, if there is anything.
pub(crate) fn disagreement(world: &World, servers: &Servers, agent: &Agent) -> Option<String> {
    let (node, view) = (world.link.node_id, agent.view());
    let Some(known) = servers
        .node(node)
        .filter(|it| it.status == NodeStatus::Ready)
    else {
        return Some("the servers do not have the node as ready".to_owned());
    };
    let of_node = view
        .server()
        .and_then(|it| it.registration().acknowledged());
    if of_node != Some(&*known.node) {
        return Some(format!("the servers have the node as {:?}", known.node));
    }
    if view.server().and_then(|it| it.eligibility()) != Some(known.eligibility) {
        return Some(format!(
            "for the servers the node is {:?}",
            known.eligibility
        ));
    }
    let here = |id: AllocId| view.alloc(id).map(AllocRunner::record);
    let placed: BTreeMap<AllocId, &Arc<PlacedAlloc>> =
        servers.allocs_of(node).map(|it| (it.id, it)).collect();
    for (id, placed) in &placed {
        let (name, status) = (world.scene.names.alloc(*id), placed.client_status);
        match here(*id) {
            None if !status.is_terminal() => {
                return Some(format!("{name} is not here, for servers it is {status:?}"));
            }
            Some(it) if it.status != status => {
                return Some(format!("{name} is {:?}, for servers {status:?}", it.status));
            }
            Some(_) if !is_reported_as_it_is(world, servers, agent, *id) => {
                let reported = servers.alloc(*id).and_then(|it| it.reported());
                return Some(format!("{name} is for servers {reported:?}"));
            }
            Some(_) | None => {}
        }
        let version = placed.job.as_ref().ok().map(|job| job.version);
        let other = here(*id).filter(|it| !it.is_terminal() && Some(it.job_version) != version);
        if let Some(other) = other.filter(|_| version.is_some()) {
            let has = other.job_version;
            return Some(format!("{name} has version {has}, for servers {version:?}"));
        }
        if placed.desired.is_terminal() && !status.is_terminal() {
            return Some(format!("{name} is to end and is {status:?}"));
        }
    }
    let own = |id: AllocId| here(id).is_some_and(|it| !it.of_servers);
    let wanted = |id: &AllocId| placed.get(id).is_some_and(|it| !it.desired.is_terminal());
    let mut alive = world.alive();
    let unwanted = alive.find(|(_, it)| !own(it.key.alloc) && !wanted(&it.key.alloc));
    if let Some((_, process)) = unwanted {
        return Some(format!(
            "{} lives, and servers do not want it",
            process.name
        ));
    }
    let mut allocs = view.allocs().map(AllocRunner::record);
    let dropped = allocs.find(|it| it.of_servers && !placed.contains_key(&it.id));
    if let Some(dropped) = dropped {
        let name = world.scene.names.alloc(dropped.id);
        return Some(format!("{name} is here, and servers do not have it"));
    }
    let lives = |id: AllocId| world.alive().any(|(_, it)| it.key.alloc == id);
    let of_node = |id: AllocId| servers.alloc(id).is_some_and(|it| it.node == node);
    let mut services = servers.services().filter(|it| of_node(it.alloc));
    let left = services.find(|it| !lives(it.alloc));
    left.map(|it| format!("servers have {} of what does not run", it.id))
}

/// Whether servers know of an allocation that is here what they shall know: health, and where its tasks are in their
/// lives.
fn is_reported_as_it_is(world: &World, servers: &Servers, agent: &Agent, id: AllocId) -> bool {
    let (Some(alloc), Some(known)) = (agent.view().alloc(id), servers.alloc(id)) else {
        return true;
    };
    let Some(reported) = known.reported() else {
        // As long as nothing happened, servers know that.
        return alloc.record().status == ClientStatus::Pending;
    };
    let is_same = |task: &TaskRunner| {
        let key = &task.spec().key;
        // An agent that cannot read a task's record takes it for dead, and does not report that.
        world.disk.unread.contains(key) || reported.tasks.get(&key.task) == Some(task.state())
    };
    let health = alloc.record().health;
    (health.is_none() || reported.health == health) && alloc.tasks().iter().all(is_same)
}
