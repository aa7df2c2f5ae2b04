//! Allocations that the servers of the cluster placed here: made, updated, stopped and removed as they say.
//!
//! They are allocations as all others: they claim what they hold ([`crate::claims`]), so that a port is free when
//! nobody's process has it, whatever servers think. But they are of no job of this node: its scheduler neither counts
//! nor ends them, and their slots are their own, since servers may place two of one name. Garbage collection removes those
//! that ended, once servers know that; then only what was reported is remembered, until servers drop them, so that
//! nothing is run again that ended.
//!
//! A group's sticky disk moves to the allocation that replaces the one that has it, if both are on this node. If that
//! one is on another node, its end is awaited, and its disk fetched if it migrates (`disks.rs` beside this file).
//!
//! Their jobs are kept by allocation ([`crate::store::Key::Placed`]), with the version that each one runs: servers
//! have the job, its versions and its history, and a job of the same name may be one of this node's own. What could
//! not be started (its job cannot be read, or has no such group) is reported as failed, and only that is remembered:
//! the next agent pulls it again.
//!
//! Where the configuration names no cluster any more, they run on as they are, and people may stop them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{Agent, cx};
use crate::alloc::runner::{AllocRunner, Update};
use crate::cluster::{AllocReport, PlacedAlloc};
use crate::cx::Cx;
use crate::ids::{AllocId, Slot};
use crate::model::alloc::{ClientStatus, DeploymentHealth};
use crate::model::device::AssignedDevices;
use crate::model::job::Job;
use crate::model::secret::Secret;
use crate::model::value::Value;
use crate::scheduler::network;
use crate::server::{News, Server};
use crate::store::record::AllocRecord;
use crate::store::server::PlacedRecord;
use crate::store::{Key, Record, Saved};
use crate::task::runner::TaskRunner;
use crate::text::parse_duration;
use crate::time::{Now, Span};

/// Why an allocation ends that servers do not have any more.
const DROPPED: &str = "the servers do not have the allocation any more";

/// Why an allocation ends whose node was out of reach for too long.
const OUT_OF_CONTACT: &str = "the node is out of contact with its servers";

impl Agent {
    /// Carries out what servers said of allocations. Returns those that changed.
    pub(super) fn follow_servers(&mut self, now: Now, news: News) -> BTreeSet<AllocId> {
        let mut touched = BTreeSet::new();
        let mut all = news.placed;
        // What is replaced comes before its replacement, which gets what that has or was to get.
        all.sort_by_key(|placed| placed.create_time);
        in_order(&mut all);
        for placed in all {
            // What comes while the agent ends is for the next one.
            if self.shutdown.is_none() {
                self.follow_placed(now, &placed, news.tokens.get(&placed.id));
                touched.insert(placed.id);
            }
        }
        for (id, modify_index, why) in news.unreadable {
            if self.shutdown.is_none() {
                self.follow_unreadable(now, (id, modify_index), why);
                touched.insert(id);
            }
        }
        for id in news.dropped {
            self.drop_placed(now, id);
            touched.insert(id);
        }
        touched.extend(news.deregistered);
        touched.extend(news.changed);
        touched
    }

    fn follow_placed(&mut self, now: Now, placed: &PlacedAlloc, token: Option<&Secret>) {
        match self.allocs.get(&placed.id) {
            Some(known) if known.record().of_servers => self.update_placed(now, placed),
            // Servers know no allocation of this node's own.
            Some(_) => self.shared.counters.stale += 1,
            // It ended, here or before: it is not run again.
            None if self.servers_know_end(placed.id) => {}
            None if placed.client_status.is_terminal() => {
                // What servers gave up before it came never ran.
                if placed.client_status == ClientStatus::Lost {
                    self.pass_over(placed, token);
                }
            }
            None => {
                if let Err(why) = self.make_placed(now, placed, token) {
                    self.pass_over(placed, token);
                    self.refuse_placed(now, placed.id, why);
                }
            }
        }
    }

    fn refuse_placed(&mut self, now: Now, id: AllocId, why: String) {
        let mut cx = cx(&self.config, &mut self.shared, now);
        if let Some(server) = &mut self.server {
            server.refuse(&mut cx, id, why);
        }
    }

    /// What servers say of an allocation cannot be read. One that is here goes on as it is.
    fn follow_unreadable(&mut self, now: Now, (id, modify_index): (AllocId, u64), why: String) {
        let has_ended = self.servers_know_end(id);
        let mut cx = cx(&self.config, &mut self.shared, now);
        match (self.allocs.get_mut(&id), &mut self.server) {
            // Servers know no allocation of this node's own.
            (Some(alloc), _) if !alloc.record().of_servers => cx.count_stale(),
            (Some(alloc), _) => {
                let record = alloc.record();
                if !record.is_terminal() {
                    // Which roll-out wants it nobody can say.
                    let unjudged = record.deployment.filter(|_| record.health.is_none());
                    alloc.cannot_take(&mut cx, unjudged, &why);
                }
                let job = alloc.job().clone();
                remember(&mut cx, id, &job, modify_index);
            }
            (None, Some(server)) if !has_ended => server.refuse(&mut cx, id, why),
            (None, Some(_) | None) => {}
        }
    }

    /// Makes an allocation that servers placed. `token` is what opens the disk of the one that it replaces on another
    /// node.
    ///
    /// # Errors
    /// It cannot be run.
    fn make_placed(
        &mut self,
        now: Now,
        placed: &PlacedAlloc,
        token: Option<&Secret>,
    ) -> Result<(), String> {
        let job = wanted_job(placed)?.clone();
        let group = job.group(placed.group.as_str());
        let group = group.ok_or_else(|| no_group(placed))?;
        let holders = self.allocs.values().filter(|alloc| !alloc.is_gone());
        let held = holders
            .filter_map(|alloc| alloc.record().address())
            .collect();
        let network = network::assign(&self.config.node, placed.id, group, &held)
            .map_err(|why| why.to_string())?;
        let devices = self.with_plugins(&placed.devices);
        let disk = self.disk_of_placed(placed, group, token);
        let mut cx = cx(&self.config, &mut self.shared, now);
        let index = cx.next_index();
        let record = AllocRecord {
            id: placed.id,
            of_servers: true,
            name: placed.name.clone(),
            index: placed.index(),
            canary: placed.canary,
            job: job.key(),
            job_version: job.version,
            group: placed.group.clone(),
            eval: placed.eval,
            deployment: placed.deployment,
            previous: placed.previous,
            preempts: placed.preempts.clone(),
            desired: placed.desired,
            desired_description: placed.desired_description.clone(),
            skip_shutdown_delay: placed.no_shutdown_delay,
            status_description: "No tasks have started".into(),
            ports: placed.ports.clone(),
            network,
            devices,
            cores: placed.cores.clone(),
            create_time: now.wall,
            modify_time: now.wall,
            create_index: index,
            modify_index: index,
            ..AllocRecord::default()
        };
        let silence = silence_of(&job, &record);
        remember(&mut cx, placed.id, &job, placed.modify_index);
        cx.save_disk(record.slot(), disk);
        let runner = AllocRunner::new(&mut cx, record, job);
        self.allocs.insert(placed.id, runner);
        if let Some(server) = &mut self.server {
            server.stops_after(placed.id, silence);
        }
        Ok(())
    }

    /// The devices, with the plugins that have them here.
    fn with_plugins(&self, devices: &[AssignedDevices]) -> Vec<AssignedDevices> {
        let plugin_of = |one: &AssignedDevices| {
            let mut plugins = self.machine.devices().plugins();
            let found = plugins.find(|(_, plugin)| plugin.groups().contains_key(&one.group));
            found.map(|(name, _)| name.to_string()).unwrap_or_default()
        };
        let with_plugin = |one: &AssignedDevices| AssignedDevices {
            plugin: plugin_of(one),
            ..one.clone()
        };
        devices.iter().map(with_plugin).collect()
    }

    fn update_placed(&mut self, now: Now, placed: &PlacedAlloc) {
        let Some(alloc) = self.allocs.get_mut(&placed.id) else {
            return;
        };
        let mut cx = cx(&self.config, &mut self.shared, now);
        if placed.desired.is_terminal() {
            alloc.update(
                &mut cx,
                Update::StopByServers {
                    desired: placed.desired,
                    why: &placed.desired_description,
                    no_shutdown_delay: placed.no_shutdown_delay,
                },
            );
        } else if !alloc.record().is_terminal() {
            let is_same =
                |job| alloc.job() == job && alloc.record().deployment == placed.deployment;
            match wanted_job(placed) {
                Ok(job) if is_same(job) => {}
                Ok(job) => alloc.update(&mut cx, Update::Version(job.clone(), placed.deployment)),
                Err(why) => alloc.cannot_take(&mut cx, placed.deployment, &why),
            }
            if alloc.record().canary != placed.canary {
                alloc.edit(&mut cx, |record| record.canary = placed.canary);
            }
        }
        let job = alloc.job().clone();
        remember(&mut cx, placed.id, &job, placed.modify_index);
        let is_given_up = matches!(
            placed.client_status,
            ClientStatus::Unknown | ClientStatus::Lost
        );
        let silence = silence_of(&job, alloc.record());
        if let Some(server) = &mut self.server {
            server.stops_after(placed.id, silence);
            // They lost sight of it, and it is here.
            if is_given_up {
                server.doubt(&mut cx, placed.id);
            }
        }
    }

    /// Servers do not have an allocation any more. Where another is to get its disk, it ends, and is removed when it is
    /// dropped again, with the next heartbeat.
    fn drop_placed(&mut self, now: Now, id: AllocId) {
        let is_awaited = self.awaits_disk_of(id);
        // One of this node's own is none that servers could drop.
        let alloc = self.allocs.get_mut(&id);
        let Some(alloc) = alloc.filter(|alloc| alloc.record().of_servers) else {
            return self.forget_placed(now, id);
        };
        let mut cx = cx(&self.config, &mut self.shared, now);
        match is_awaited {
            true => alloc.update(&mut cx, Update::Stop(DROPPED)),
            false => {
                alloc.destroy(&mut cx);
                self.disks_lose(now, id);
            }
        }
    }

    /// An allocation of servers is being removed: nobody gets its disk any more.
    pub(in crate::agent) fn disks_lose(&mut self, now: Now, id: AllocId) {
        let disks = self.shared.disks.iter();
        let of_it = disks.filter(|(slot, disk)| slot.alloc.is_some() && disk.sources.contains(&id));
        let slots: Vec<Slot> = of_it.map(|(slot, _)| slot.clone()).collect();
        let mut cx = cx(&self.config, &mut self.shared, now);
        for slot in slots {
            cx.edit_disk(&slot, |disk| disk.lose(id));
        }
    }

    /// Whether an allocation that lives is to get what lies on the disk of this one.
    fn awaits_disk_of(&self, id: AllocId) -> bool {
        let takes = |alloc: &AllocRunner| {
            let disk = self.shared.disks.get(&alloc.record().slot());
            disk.is_some_and(|disk| disk.sources_of(alloc.record().id).contains(&id))
        };
        let mut living = self.allocs.values().filter(|it| !it.record().finished);
        living.any(takes)
    }

    /// Whether servers know that an allocation of theirs ended, and all that became of it.
    pub(in crate::agent) fn servers_know_end(&self, id: AllocId) -> bool {
        let index = self
            .allocs
            .get(&id)
            .map(|alloc| alloc.record().modify_index);
        let server = self.server.as_ref();
        server.is_some_and(|server| server.knows_end(id, index))
    }

    /// The allocations of servers that ended and are kept because servers do not know that yet.
    pub(in crate::agent) fn unreported(&self) -> BTreeSet<AllocId> {
        let records = self.allocs.values().map(|alloc| alloc.record());
        let ended = records.filter(|record| record.of_servers && record.finished);
        // Servers may be named again.
        let is_unknown = |record: &&Arc<AllocRecord>| {
            let server = self.server.as_ref();
            server.is_none_or(|server| !server.knows_end(record.id, Some(record.modify_index)))
        };
        ended.filter(is_unknown).map(|record| record.id).collect()
    }

    /// The directory and the records of an allocation of servers are removed. What servers know of its end stays, until
    /// they drop it.
    pub(in crate::agent) fn placed_is_removed(&mut self, now: Now, alloc: &AllocRecord) {
        let mut cx = cx(&self.config, &mut self.shared, now);
        cx.save_disk(alloc.slot(), None);
        match &mut self.server {
            Some(server) if server.knows_end(alloc.id, None) => {
                cx.forget(Key::Placed(alloc.id));
                server.keep_end(&mut cx, alloc.id);
            }
            Some(_) | None => self.forget_placed(now, alloc.id),
        }
    }

    /// Nothing of an allocation of servers is left here.
    pub(in crate::agent) fn forget_placed(&mut self, now: Now, id: AllocId) {
        let mut cx = cx(&self.config, &mut self.shared, now);
        cx.forget(Key::Placed(id));
        match &mut self.server {
            Some(server) => server.forget(&mut cx, id),
            None => {
                cx.forget(Key::Reported(id));
                cx.forget(Key::Announced(id));
            }
        }
    }

    /// Something of an allocation of servers may have changed.
    pub(in crate::agent) fn note_placed(&mut self, now: Now, id: AllocId) {
        let alloc = self.allocs.get(&id);
        let alloc = alloc.filter(|alloc| alloc.record().of_servers);
        let index = alloc.map(|alloc| alloc.record().modify_index);
        let has_it = |server: &Server| index.is_none_or(|index| server.has_report(id, index));
        if self.server.as_ref().is_none_or(has_it) {
            return;
        }
        let report = self.report_of(id);
        let mut cx = cx(&self.config, &mut self.shared, now);
        if let (Some(report), Some(server)) = (report, &mut self.server) {
            if report.0.status.is_terminal() {
                server.stops_after(id, None);
            }
            server.note(&mut cx, report);
        }
    }

    /// Tells the servers what became of allocations, if it is time.
    pub(super) fn report_allocs(&mut self, now: Now) {
        let due = self
            .server
            .as_ref()
            .map(|server| server.reports_due(now.at));
        let due = due.unwrap_or_default();
        if due.is_empty() {
            return;
        }
        let reports = due.iter().filter_map(|id| self.report_of(*id)).collect();
        let mut cx = cx(&self.config, &mut self.shared, now);
        if let Some(server) = &mut self.server {
            server.report(&mut cx, reports, &due);
        }
    }

    fn report_of(&self, id: AllocId) -> Option<(Arc<AllocReport>, u64)> {
        let Some(alloc) = self.allocs.get(&id) else {
            return self.server.as_ref()?.refusal(id);
        };
        let record = alloc.record();
        let tasks = alloc.tasks().iter();
        let state = |task: &TaskRunner| (task.spec().key.task.clone(), task.state().clone());
        // What failed before its health was watched is not healthy either.
        let failed = record.deployment.is_some() && record.status == ClientStatus::Failed;
        let unhealthy = failed.then_some(DeploymentHealth {
            healthy: false,
            timestamp: record.modify_time,
        });
        let report = AllocReport {
            id,
            status: record.status,
            description: record.status_description.clone(),
            tasks: tasks.map(state).collect(),
            health: record.health.or(unhealthy),
            address: record.address(),
            found: record.network.as_ref().and_then(|it| it.found.clone()),
        };
        Some((Arc::new(report), record.modify_index))
    }

    /// Stops what is not to run while the servers are out of reach for so long. Returns the allocations.
    pub(in crate::agent) fn stop_out_of_contact(&mut self, now: Now) -> BTreeSet<AllocId> {
        let due = self
            .server
            .as_mut()
            .map(|server| server.out_of_contact(now.at));
        let due = due.unwrap_or_default();
        for id in &due {
            if let Some(alloc) = self.allocs.get_mut(id) {
                let mut cx = cx(&self.config, &mut self.shared, now);
                alloc.update(&mut cx, Update::Stop(OUT_OF_CONTACT));
            }
        }
        due.into_iter().collect()
    }

    /// The allocations of servers that an earlier life of the agent had.
    pub(in crate::agent) fn restore_placed(&mut self, saved: &Saved, now: Now) {
        let mut cx = cx(&self.config, &mut self.shared, now);
        for record in saved.allocs.values().filter(|record| record.of_servers) {
            // Without its job nothing can be done for it; what runs of it is ended as what nobody knows.
            if let Some(job) = saved.job_of(record) {
                let runner = AllocRunner::restore(&mut cx, record.clone(), job.clone(), saved);
                self.allocs.insert(record.id, runner);
            }
        }
        let is_here = |id: &AllocId| self.allocs.contains_key(id);
        for id in saved.placed.keys().filter(|id| !is_here(id)) {
            cx.forget(Key::Placed(*id));
        }
    }

    /// What the servers know of the allocations that are here.
    pub(super) fn restored_server(&self, saved: &Saved, now: Now) -> Server {
        // Of what could not be run only that it was reported is known: it is pulled again, and is the same.
        let reported = saved.reported.keys().map(|id| (*id, 0));
        let here = |id: &AllocId| self.allocs.contains_key(id);
        let placed = saved.placed.iter().filter(|(id, _)| here(id));
        let placed = placed.map(|(id, it)| (*id, it.modify_index));
        let known: BTreeMap<AllocId, u64> = reported.chain(placed).collect();
        let reported = saved.reported.clone();
        let mut server = Server::new(saved.server.as_ref(), known, reported, now.at);
        for alloc in self.allocs.values().filter(|it| it.record().of_servers) {
            let silence = silence_of(alloc.job(), alloc.record());
            server.stops_after(alloc.record().id, silence);
        }
        server
    }
}

/// Puts what is replaced before its replacement, as far as both are among these; the clocks of servers may differ.
fn in_order(all: &mut Vec<Arc<PlacedAlloc>>) {
    let mut later: BTreeSet<AllocId> = all.iter().map(|placed| placed.id).collect();
    let mut sorted = Vec::with_capacity(all.len());
    loop {
        let comes = |placed: &mut Arc<PlacedAlloc>| {
            let is_first = placed.previous.is_none_or(|id| !later.contains(&id));
            if is_first {
                later.remove(&placed.id);
            }
            is_first
        };
        let before = sorted.len();
        sorted.extend(all.extract_if(.., comes));
        if sorted.len() == before {
            break;
        }
    }
    // Those that are left replace each other in a circle.
    sorted.append(all);
    *all = sorted;
}

/// The job that an allocation is to run.
///
/// # Errors
/// It cannot be read, or has no such group.
fn wanted_job(placed: &PlacedAlloc) -> Result<&Arc<Job>, String> {
    let job = placed.job.as_ref().map_err(Clone::clone)?;
    let has_group = job.group(placed.group.as_str()).is_some();
    has_group.then_some(job).ok_or_else(|| no_group(placed))
}

fn no_group(placed: &PlacedAlloc) -> String {
    format!("the job has no group \"{}\"", placed.group)
}

fn remember(cx: &mut Cx<'_>, id: AllocId, job: &Arc<Job>, modify_index: u64) {
    let job = job.clone();
    let record = PlacedRecord { job, modify_index };
    cx.remember(Key::Placed(id), Record::Placed(Arc::new(record)));
}

/// For how long servers may be out of reach before an allocation is stopped; as long as it takes if none.
fn silence_of(job: &Job, record: &AllocRecord) -> Option<Span> {
    let group = job.group(record.group.as_str())?;
    let within = match &group.disconnect {
        Some(Value::Map(disconnect)) => disconnect.get("StopOnClientAfter"),
        Some(_) | None => None,
    };
    let within = match within {
        Some(Value::Int(nanos)) => Some(Span(*nanos)),
        Some(Value::String(text)) => parse_duration(text).ok(),
        Some(_) | None => None,
    };
    let silence = within.or(group.stop_after_client_disconnect);
    silence.filter(|span| !span.is_zero() && !record.is_terminal())
}
