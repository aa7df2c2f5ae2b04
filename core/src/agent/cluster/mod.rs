//! The node as a client of a cluster: what it is in the servers' eyes, and the way of their answers into the agent.
//! What is asked of them and when is decided in [`crate::server`].

mod allocs;
mod disks;
mod node;
mod own_jobs;
mod services;

use std::collections::BTreeSet;

use super::pending::ServersWait;
use super::{Agent, cx};
use crate::ids::AllocId;
use crate::input::ServerInput;
use crate::operations::Purpose;
use crate::store::Saved;
use crate::time::{Instant, Now};

impl Agent {
    /// The node goes on as the client of its cluster, if it has one.
    pub(super) fn restore_server(&mut self, saved: &Saved, now: Now) {
        if self.config.cluster.is_some() {
            self.server = Some(self.restored_server(saved, now));
            self.restore_services(saved, now);
            // What servers have of them is known before anything happens to them.
            let all: Vec<AllocId> = self.allocs.keys().copied().collect();
            all.into_iter().for_each(|id| self.note_placed(now, id));
            self.node_changed = true;
        }
    }

    /// Takes what the servers say. Returns the allocations that changed.
    pub(super) fn on_server(&mut self, now: Now, input: ServerInput) -> BTreeSet<AllocId> {
        let mut cx = cx(&self.config, &mut self.shared, now);
        let Some(server) = &mut self.server else {
            cx.count_stale();
            return BTreeSet::new();
        };
        let news = server.on_input(&mut cx, input);
        self.follow_servers(now, news)
    }

    /// The answer to a call did not come in time.
    pub(super) fn call_is_overdue(&mut self, now: Now, purpose: &Purpose) {
        if let Some(server) = &mut self.server {
            let mut cx = cx(&self.config, &mut self.shared, now);
            server.on_overdue(&mut cx, purpose);
        }
    }

    /// At the end of a step: the servers shall know what the node is now, and what is due is asked of them.
    pub(super) fn call_servers(&mut self, now: Now) {
        if self.server.is_none() || self.keeps_tasks() {
            return;
        }
        let is_known = self.node_changed && self.machine.is_known();
        let node = is_known.then(|| self.client_node()).flatten();
        self.node_changed &= !is_known;
        if let Some(server) = &mut self.server {
            let mut cx = cx(&self.config, &mut self.shared, now);
            if let Some(node) = node {
                server.observe(&cx, node);
            }
            server.handle_timeout(&mut cx);
        }
        self.report_allocs(now);
    }

    /// What the node waits for of the servers, and until when.
    pub(super) fn waits_for_servers(&self) -> Vec<(ServersWait, Option<Instant>)> {
        let Some(server) = &self.server else {
            return Vec::new();
        };
        let until = |wait| (wait, self.until_of_server());
        let registration = !server.registration().is_current();
        let heartbeat = !server.heartbeat().is_ready() || server.heartbeat().is_failing();
        [
            registration.then(|| until(ServersWait::Registration)),
            heartbeat.then(|| until(ServersWait::Heartbeat)),
            (!server.watch().is_at_rest()).then(|| until(ServersWait::Allocations)),
            (!server.reports().is_at_rest()).then(|| until(ServersWait::Reports)),
            (!server.services().is_at_rest()).then(|| until(ServersWait::Services)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// When the next answer of the servers is due, or the next call.
    fn until_of_server(&self) -> Option<Instant> {
        let server = self.server.as_ref()?;
        let operations = &self.shared.operations;
        let answers = server
            .awaited()
            .filter_map(|op| operations.get(op)?.until());
        let next = server.deadline().map(|(at, _)| at);
        answers.chain(next).min()
    }
}
