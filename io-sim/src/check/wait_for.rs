//! Tasks that wait for services: see `drover_core::task::hooks::wait_for`.

use drover_core::agent::Agent;
use drover_core::alloc::runner::AllocRunner;
use drover_core::model::check::CheckStatus;
use drover_core::model::value::Value;
use drover_core::task::hooks::wait_for::WaitFor;

use super::history::lives;
use super::{Checker, Property, Verdict, policy};
use crate::world::World;

impl Checker {
    /// A task waits for services only while one of them is not healthy.
    pub(super) fn no_wait_for_healthy_services(&mut self, world: &World, agent: &Agent) -> Verdict {
        for alloc in agent.view().allocs() {
            for task in alloc.tasks() {
                if task.prestart_hook() != Some(WaitFor::NAME) {
                    continue;
                }
                let awaited = &task.spec().task().wait_for;
                let namespace = &*alloc.record().job.namespace;
                let healthy = |service| is_healthy(world, agent, namespace, service);
                let all = (awaited.iter()).all(|one| healthy(one.service.as_str()));
                self.holds(Property::NoWaitForHealthyServices, !all, || {
                    format!("{} waits for {awaited:?}", alloc.record().name)
                })?;
            }
        }
        Ok(())
    }
}

/// Whether a task of an allocation waits for services; others of it may wait for that one.
pub(super) fn awaits_services(alloc: &AllocRunner) -> bool {
    let mut tasks = alloc.tasks().iter();
    tasks.any(|task| task.prestart_hook() == Some(WaitFor::NAME))
}

/// Whether a program lives in an allocation of this namespace that has this service, and each of its checks passes.
fn is_healthy(world: &World, agent: &Agent, namespace: &str, service: &str) -> bool {
    let consul = agent.view().runs_consul_services();
    let is_it = |block: &Value| policy::service_here(block, consul) == Some(service);
    let has_it = |blocks: &[Value]| blocks.iter().any(is_it);
    let offers = |alloc: &AllocRunner| {
        let group = alloc.job().group(alloc.record().group.as_str());
        let offers = group.is_some_and(|group| {
            let main = group.tasks.first();
            has_it(&group.services) || main.is_some_and(|task| has_it(&task.services))
        });
        let passes = |status| status == CheckStatus::Success;
        offers && alloc.checks().iter().all(|check| passes(check.status()))
    };
    let mut allocs = agent.view().allocs();
    allocs.any(|alloc| {
        let main = alloc.tasks().first().map(|task| &task.spec().key);
        let here = *alloc.record().job.namespace == *namespace;
        here && offers(alloc) && main.is_some_and(|main| lives(world, main))
    })
}
