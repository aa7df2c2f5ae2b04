//! What must hold across the nodes of a fleet.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::ids::{AllocId, NodeId};
use drover_core::model::alloc::ClientStatus;
use drover_core::model::job::JobType;

use super::Fleet;
use crate::check::agreement::disagreement;
use crate::check::{Verdict, ensure};
use crate::servers::Alloc;

/// A name of something that runs, and where.
type Copies = BTreeMap<Arc<str>, Vec<(AllocId, NodeId)>>;

impl Fleet {
    /// Checks all nodes.
    pub(super) fn check_nodes(&self) -> Verdict {
        let mut copies = Copies::new();
        for node in &self.nodes {
            let id = node.world.link.node_id;
            for (_, process) in node.world.alive() {
                let alloc = process.key.alloc;
                let Some(known) = self.servers.alloc(alloc) else {
                    continue;
                };
                ensure(known.node == id, "alloc_runs_where_it_was_placed", || {
                    format!("{alloc} runs on {id}, and was placed on {}", known.node)
                })?;
                // One of whose tasks nobody knows what became of failed, whatever becomes of its agent.
                if node.world.disk.unread.iter().any(|key| key.alloc == alloc) {
                    continue;
                }
                let name = known.states().next().map(|it| it.name.clone());
                let of_name = copies.entry(name.unwrap_or_default()).or_default();
                if !of_name.contains(&(alloc, id)) {
                    of_name.push((alloc, id));
                }
            }
        }
        for living in copies.values() {
            self.disk_that_migrates_has_one_writer(living)?;
        }
        self.one_copy_while_servers_know_one(&copies)
    }

    /// No two allocations of one name live on two nodes while servers want both of them, and have given up neither.
    fn one_copy_while_servers_know_one(&self, copies: &Copies) -> Verdict {
        for (name, living) in copies {
            let wanted = living.iter().filter(|(id, _)| self.is_counted_on(*id));
            let nodes: Vec<NodeId> = wanted.map(|(_, node)| *node).collect();
            let on_each = self.is_on_each_node(living);
            let holds = on_each || nodes.len() <= 1;
            ensure(holds, "one_copy_while_servers_know_one", || {
                format!("{name} runs on {nodes:?}")
            })?;
        }
        Ok(())
    }

    fn is_counted_on(&self, id: AllocId) -> bool {
        let alloc = self.servers.alloc(id);
        alloc.and_then(Alloc::now).is_some_and(|it| {
            // What its own node reports of it is no excuse for that node.
            let reported = alloc.is_some_and(|it| it.reported().is_some());
            let given_up = [ClientStatus::Lost, ClientStatus::Unknown].contains(&it.client_status);
            !it.desired.is_terminal() && (reported || !given_up)
        })
    }

    fn is_on_each_node(&self, living: &[(AllocId, NodeId)]) -> bool {
        let mut all = living
            .iter()
            .filter_map(|(id, _)| self.servers.alloc(*id)?.now());
        let is_one = |kind: JobType| matches!(kind, JobType::System | JobType::Sysbatch);
        all.any(|it| it.job.as_ref().is_ok_and(|job| is_one(job.job_type)))
    }

    pub(super) fn reachable_nodes_are_not_lost(&self, before: u64) -> Verdict {
        let losses = self.servers.losses();
        ensure(losses == before, "reachable_nodes_are_not_lost", || {
            format!(
                "{} nodes were lost though all could be reached",
                losses - before
            )
        })
    }

    /// Each node and the servers agree, and what servers were told last is true.
    pub(super) fn all_agree(&self) -> Verdict {
        for node in &self.nodes {
            let wrong = match node.agent() {
                Some(agent) => disagreement(&node.world, &self.servers, agent),
                None => Some("there is no agent".to_owned()),
            };
            ensure(wrong.is_none(), "node_and_servers_agree", || {
                let name = &node.config().node.name;
                format!("{name}: {}", wrong.unwrap_or_default())
            })?;
        }
        Ok(())
    }

    /// Of jobs that never end as many copies live as they ask for, each once.
    pub(super) fn wanted_copies_run(&self) -> Verdict {
        for (name, wanted) in self.servers.wanted_copies() {
            let living = self.nodes.iter().flat_map(|node| node.world.alive());
            let of_name = living.filter(|(_, process)| {
                let alloc = self.servers.alloc(process.key.alloc).and_then(Alloc::now);
                alloc.is_some_and(|it| it.name == name)
            });
            let found = of_name.count();
            ensure(found == wanted, "wanted_copies_run_in_the_fleet", || {
                format!("expected {wanted} processes of {name}, found {found}")
            })?;
        }
        Ok(())
    }
}
