//! Calls to servers that failed are made again in time, and what ends waits until servers know of its services no more.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::cluster::CallKind;
use drover_core::ids::TaskKey;
use drover_core::model::task::Stage;
use drover_core::store::{Batch, Key, Record};
use drover_core::task::runner::{Phase, TaskRunner};
use drover_core::time::{Instant, Span};

use super::super::{Checker, Property, Verdict, policy};
use crate::world::World;

/// The longest pause after a call that always has to be made again, and how late the agent may be called back.
const LONGEST_PAUSE: Span = Span::secs(60 + 62);

/// How long a task runs on for servers that do not answer that its services are gone.
const PATIENCE: Span = Span::secs(5);

impl Checker {
    /// What a node always asks of its servers is asked again in time after it failed.
    pub(in super::super) fn pause_after_failed_call_is_bounded(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        if self.rests(agent) {
            return Ok(());
        }
        let now = world.scene.elapsed;
        let always = [
            CallKind::Heartbeat,
            CallKind::WatchAllocs,
            CallKind::Register,
        ];
        let failed = |kind: &CallKind| self.cluster.failed.get(kind).copied();
        // As long as the node is not known, it registers first.
        let waits = always.iter().filter(|kind| {
            **kind == CallKind::Register
                || failed(&CallKind::Register).is_none() && self.cluster.ready
        });
        let mut late = waits.filter_map(|kind| failed(kind).map(|at| (kind.as_str(), at)));
        let late = late.find(|(_, at)| now.0 - at.0 > LONGEST_PAUSE.0);
        self.holds(
            Property::PauseAfterFailedCallIsBounded,
            late.is_none(),
            || format!("it is {now:?}, and {late:?} is not made again"),
        )
    }

    /// A task that is asked to end for good is known to servers by no service any more, unless they do not answer.
    pub(in super::super) fn stop_waits_for_removed_services(
        &mut self,
        now: Instant,
        (alloc, key): (&AllocRunner, &TaskKey),
        since: Instant,
    ) -> Verdict {
        // Those of the group stay as long as others of it go on.
        let is_its = |task: Option<&_>| task.map_or(alloc.is_ending(), |it| *it == key.task);
        let of_alloc = self.cluster.announced.values();
        let mut of_alloc = of_alloc.filter(|it| it.alloc == key.alloc);
        let known = of_alloc
            .find(|it| is_its(it.task.as_ref()))
            .map(|it| it.id.clone());
        let holds = known.is_none() || now >= since + PATIENCE;
        self.holds(Property::StopWaitsForRemovedServices, holds, || {
            format!("{key:?} is asked to end while servers have {known:?}")
        })
    }

    /// What is forgotten of an allocation of servers, they know how it ended, or want it no more.
    pub(in super::super) fn collected_alloc_is_known_to_servers(
        &mut self,
        world: &World,
        batch: &Batch,
    ) -> Verdict {
        for (key, record) in batch {
            let (Key::Alloc(id), None) = (key, record) else {
                continue;
            };
            let Some(Record::Alloc(saved)) = world.disk.records().get(key) else {
                continue;
            };
            if !saved.of_servers {
                continue;
            }
            let known = self.cluster.ends_known.contains(id);
            let dropped = self.cluster.is_dropped(saved);
            self.holds(
                Property::CollectedAllocIsKnownToServers,
                known || dropped,
                || format!("{} is forgotten, {:?}", saved.name, saved.status),
            )?;
        }
        Ok(())
    }

    /// At rest the servers have the services of each allocation that they want and that runs.
    pub(in super::super) fn running_services_are_at_servers(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        let Some(servers) = &world.link.servers else {
            return Ok(());
        };
        let view = agent.view();
        let consul = view.runs_consul_services();
        for alloc in view.allocs().filter(|it| it.record().of_servers) {
            let record = alloc.record();
            let runs = !alloc.is_ending() && alloc.tasks().iter().any(is_main_and_runs);
            let file = self.files.of(alloc).cloned();
            let Some(file) = file.filter(|_| runs && !record.is_terminal()) else {
                continue;
            };
            let group = policy::group(&file, record.group.as_str());
            let of_group = group.into_iter().flat_map(|it| &it.services);
            let wanted = of_group.filter_map(|it| policy::service_here(it, consul));
            for name in wanted.filter(|name| !name.contains("${")) {
                let mut of_alloc = servers.services().filter(|it| it.alloc == record.id);
                let there = of_alloc.any(|it| it.name == name);
                self.holds(Property::RunningServicesAreAtServers, there, || {
                    format!("{} runs, and servers do not have its {name}", record.name)
                })?;
            }
            for here in view.services_of(record.id) {
                let mut of_alloc = servers.services().filter(|it| it.alloc == record.id);
                let there = of_alloc.any(|it| {
                    let tags = it.tags == here.tags;
                    tags && *it.id == *here.id
                        && (&it.address, it.port) == (&here.address, here.port)
                });
                self.holds(Property::RunningServicesAreAtServers, there, || {
                    format!("servers do not have {here:?}")
                })?;
            }
        }
        Ok(())
    }
}

fn is_main_and_runs(task: &TaskRunner) -> bool {
    task.spec().stage() == Stage::Main && matches!(task.phase(), Phase::Running)
}
