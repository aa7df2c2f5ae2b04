//! Names that stay the same when something else is taken out of a scenario: `web.g[0]~2/main#1` is
//! the first launch of the task `main` of the second allocation at place 0 of the group `g`.

use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::effect::{Effect, HookEffect, Notification, StoreEffect};
use drover_core::ids::{AllocId, LaunchId, TaskKey};
use drover_core::store::Record;

/// What everything is called.
#[derive(Clone, Debug, Default)]
pub struct Names {
    allocs: BTreeMap<AllocId, Arc<str>>,
    places: BTreeMap<String, u32>,
    tasks: BTreeMap<TaskKey, Task>,
    launches: BTreeMap<LaunchId, Arc<str>>,
}

#[derive(Clone, Debug)]
struct Task {
    name: Arc<str>,
    launches: u32,
}

impl Names {
    /// Names the allocations that an effect speaks of, if they have no name yet.
    pub(crate) fn learn(&mut self, agent: &Agent, effect: &Effect) {
        match effect {
            Effect::Driver(_, key, _) | Effect::Notify(Notification::Event(key, _)) => {
                self.know(agent, key.alloc);
            }
            Effect::Hook(HookEffect::Run { alloc, .. }) => self.know(agent, *alloc),
            Effect::Store(StoreEffect::Commit(_, batch)) => {
                for record in batch.values() {
                    if let Some(Record::Alloc(alloc)) = record {
                        self.name(alloc.id, &alloc.name);
                    }
                }
            }
            Effect::Check(_)
            | Effect::Hook(HookEffect::Cancel { .. })
            | Effect::Node(_)
            | Effect::Server(_)
            | Effect::Forget(..)
            | Effect::Reply(..)
            | Effect::Notify(Notification::Index(_) | Notification::Notice(_))
            | Effect::Stopped => {}
        }
    }

    /// Names the allocations that an agent has.
    pub(crate) fn learn_all(&mut self, agent: &Agent) {
        for alloc in agent.view().allocs() {
            self.name(alloc.record().id, &alloc.record().name);
        }
    }

    fn know(&mut self, agent: &Agent, id: AllocId) {
        if !self.allocs.contains_key(&id)
            && let Some(alloc) = agent.view().alloc(id)
        {
            self.name(id, &alloc.record().name);
        }
    }

    fn name(&mut self, id: AllocId, place: &str) {
        if self.allocs.contains_key(&id) {
            return;
        }
        let times = self.places.entry(place.to_owned()).or_default();
        *times += 1;
        let name = if *times == 1 {
            Arc::from(place)
        } else {
            Arc::from(format!("{place}~{times}"))
        };
        self.allocs.insert(id, name);
    }

    /// What an allocation is called.
    pub fn alloc(&self, id: AllocId) -> Arc<str> {
        let name = self.allocs.get(&id).cloned();
        name.unwrap_or_else(|| Arc::from(id.short()))
    }

    /// What a task is called.
    pub fn task(&self, key: &TaskKey) -> Arc<str> {
        match self.tasks.get(key) {
            Some(task) => Arc::clone(&task.name),
            None => Arc::from(format!("{}/{}", self.alloc(key.alloc), key.task)),
        }
    }

    /// What a launch of this task is called; from now on, if it has no name yet.
    pub(crate) fn launch(&mut self, key: &TaskKey, launch: LaunchId) -> Arc<str> {
        if let Some(name) = self.launches.get(&launch) {
            return Arc::clone(name);
        }
        let name = self.task(key);
        let task = self
            .tasks
            .entry(key.clone())
            .or_insert(Task { name, launches: 0 });
        task.launches += 1;
        let name: Arc<str> = Arc::from(format!("{}#{}", task.name, task.launches));
        self.launches.insert(launch, Arc::clone(&name));
        name
    }

    /// Every id that has a name, as text.
    pub(crate) fn all(&self) -> impl Iterator<Item = (String, &str)> {
        let allocs = self
            .allocs
            .iter()
            .map(|(id, name)| (id.to_string(), &**name));
        let launches = self
            .launches
            .iter()
            .map(|(id, name)| (id.to_string(), &**name));
        allocs.chain(launches)
    }

    /// What a launch is called that may have no name.
    pub fn known_launch(&self, launch: LaunchId) -> Arc<str> {
        let name = self.launches.get(&launch).cloned();
        name.unwrap_or_else(|| Arc::from(launch.short()))
    }
}
