//! Which services are healthy, for the tasks that wait for them (`wait_for`).
//!
//! A service is healthy when one of its instances is registered and each check of that instance passes or warns; one
//! without checks is when it is registered.

use std::collections::{BTreeMap, BTreeSet};

use super::services::of_alloc;
use super::{Agent, View};
use crate::alloc::runner::AllocRunner;
use crate::checks::CheckRunner;
use crate::ids::{AllocId, TaskKey};
use crate::model::check::CheckStatus;
use crate::model::task::Task;
use crate::task::hooks::wait_for::WaitFor;
use crate::text::quote;

/// What there is of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instances {
    /// How many are registered.
    pub registered: usize,
    /// How many of them are healthy.
    pub healthy: usize,
}

impl View<'_> {
    /// What there is of the service of this name in a namespace.
    pub fn instances(self, namespace: &str, service: &str) -> Instances {
        let of_namespace = |alloc: &&AllocRunner| *alloc.record().job.namespace == *namespace;
        let mut found = Instances::default();
        for alloc in self.allocs().filter(of_namespace).filter(has_services) {
            for instance in of_alloc(&self.agent.config, alloc) {
                if instance.name != service {
                    continue;
                }
                found.registered += 1;
                let of_it = |check: &&CheckRunner| {
                    check.service() == service && check.spec().owner == instance.task
                };
                let well = |status| match status {
                    CheckStatus::Success | CheckStatus::Warning => true,
                    CheckStatus::Pending | CheckStatus::Failure => false,
                };
                let checks = alloc.checks().iter().filter(of_it);
                found.healthy += usize::from(checks.map(|one| one.status()).all(well));
            }
        }
        found
    }
}

fn has_services(alloc: &&AllocRunner) -> bool {
    let group = alloc.job().group(alloc.record().group.as_str());
    group.is_some_and(|group| {
        let of_tasks = |task: &Task| !task.services.is_empty();
        !group.services.is_empty() || group.tasks.iter().any(of_tasks)
    })
}

impl Agent {
    /// Lets go on whose services are healthy, after these allocations changed. Returns whom that concerns.
    pub(super) fn grant_services(&mut self, changed: &BTreeSet<AllocId>) -> BTreeSet<AllocId> {
        if self.shared.service_waits.is_empty() {
            return BTreeSet::new();
        }
        let is_new = self.shared.service_waits.take_new();
        let mut offered = changed.iter().filter_map(|id| self.allocs.get(id));
        if !is_new && !offered.any(|alloc| has_services(&alloc)) {
            return BTreeSet::new();
        }
        let allocs = &self.allocs;
        self.shared.service_waits.retain(|task| {
            let alloc = allocs.get(&task.alloc);
            let task = alloc.and_then(|alloc| alloc.task(&task.task));
            task.is_some_and(|task| task.prestart_hook() == Some(WaitFor::NAME))
        });
        let granted = self.whose_services_are_healthy();
        for task in &granted {
            self.shared.service_waits.grant(task);
        }
        granted.into_iter().map(|task| task.alloc).collect()
    }

    /// Many may wait for one service: it is looked up once.
    fn whose_services_are_healthy(&self) -> Vec<TaskKey> {
        let mut known: BTreeMap<(&str, &str), bool> = BTreeMap::new();
        let mut granted = Vec::new();
        for (task, services) in self.shared.service_waits.iter() {
            let Some(alloc) = self.allocs.get(&task.alloc) else {
                continue;
            };
            let namespace = &*alloc.record().job.namespace;
            let mut all = true;
            for name in services {
                let is_healthy = || self.view().instances(namespace, name).healthy > 0;
                all &= *known.entry((namespace, name)).or_insert_with(is_healthy);
            }
            if all {
                granted.push(task.clone());
            }
        }
        granted
    }

    /// What a task waits for, and what there is of it, in words; none if it waits for no service.
    pub(super) fn awaited_services(&self, task: &TaskKey) -> Option<String> {
        let alloc = self.allocs.get(&task.alloc)?;
        let namespace = &alloc.record().job.namespace;
        let words = self.shared.service_waits.of(task).iter().map(|name| {
            let there = self.view().instances(namespace, name);
            let what = match (there.registered, there.healthy) {
                (0, _) => "nobody registers it".to_owned(),
                (_, 1..) => "it is healthy".to_owned(),
                (1, 0) => "it is registered and not healthy".to_owned(),
                (many, 0) => format!("{many} are registered and none is healthy"),
            };
            format!("{} ({what})", quote(name))
        });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("services to be healthy: {}", words.join(", ")))
    }
}
