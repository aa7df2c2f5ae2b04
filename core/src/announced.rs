//! Which services of this node the servers of its cluster may have, and which they shall have: by allocation, and by
//! the ids that services have in the world.
//!
//! What they may have is remembered ([`AnnouncedRecord`]) before it is sent, and until it is known that they do not have
//! it any more. What they shall have follows from what runs, and nothing of it is saved. Who sends the difference is
//! [`crate::server::services`]. A task that is to end asks here whether its services are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{AllocId, TaskKey};
use crate::model::service_instance::ServiceInstance;
use crate::store::server::{AnnouncedRecord, Announcement};

/// Services by their ids.
pub type Instances = BTreeMap<Arc<str>, Arc<ServiceInstance>>;

/// The services of all allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Announced(BTreeMap<AllocId, Services>);

/// Those of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
struct Services {
    /// Those that servers shall have.
    wanted: Instances,
    /// Those that they may have.
    known: Arc<AnnouncedRecord>,
}

impl Announced {
    /// Servers may have these.
    pub(crate) fn restored(saved: &BTreeMap<AllocId, Arc<AnnouncedRecord>>) -> Announced {
        let services = |known: &Arc<AnnouncedRecord>| Services {
            wanted: Instances::new(),
            known: known.clone(),
        };
        let all = saved.iter().map(|(id, known)| (*id, services(known)));
        Announced(all.collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The allocations with services that servers have or shall have.
    pub(crate) fn allocs(&self) -> impl Iterator<Item = AllocId> {
        self.0.keys().copied()
    }

    /// Servers shall have these of an allocation. Returns whether that is something else than before.
    pub(crate) fn want(&mut self, alloc: AllocId, wanted: Instances) -> bool {
        let before = self.0.get(&alloc).map(|it| &it.wanted);
        if before.map_or(wanted.is_empty(), |before| *before == wanted) {
            return false;
        }
        self.0.entry(alloc).or_default().wanted = wanted;
        self.tidy(alloc);
        true
    }

    /// Changes what servers may have of an allocation, and returns it: it is to be remembered. None if that is the same.
    pub(crate) fn edit(
        &mut self,
        alloc: AllocId,
        change: impl FnOnce(&mut BTreeMap<Arc<str>, Announcement>),
    ) -> Option<Arc<AnnouncedRecord>> {
        let services = self.0.entry(alloc).or_default();
        let mut known = AnnouncedRecord::clone(&services.known);
        change(&mut known.services);
        let changed = known != *services.known;
        let known = Arc::new(known);
        services.known = known.clone();
        self.tidy(alloc);
        changed.then_some(known)
    }

    fn tidy(&mut self, alloc: AllocId) {
        let is_empty = |it: &Services| it.wanted.is_empty() && it.known.services.is_empty();
        if self.0.get(&alloc).is_some_and(is_empty) {
            self.0.remove(&alloc);
        }
    }

    /// Those of an allocation that servers may have, and shall not.
    pub(crate) fn unwanted(&self, alloc: AllocId) -> impl Iterator<Item = &Arc<ServiceInstance>> {
        let services = self.0.get(&alloc).into_iter();
        services.flat_map(|it| {
            let known = it.known.services.iter();
            let unwanted = known.filter(|(id, _)| !it.wanted.contains_key(*id));
            unwanted.map(|(_, one)| &one.instance)
        })
    }

    /// Those of an allocation that servers shall have, and may not have as they are.
    pub(crate) fn missing(&self, alloc: AllocId) -> impl Iterator<Item = &Arc<ServiceInstance>> {
        let services = self.0.get(&alloc).into_iter();
        services.flat_map(|it| {
            let has = |one: &Announcement, wanted: &Arc<ServiceInstance>| {
                one.acknowledged && one.instance == *wanted
            };
            it.wanted.values().filter(move |wanted| {
                let known = it.known.services.get(&wanted.id);
                !known.is_some_and(|known| has(known, wanted))
            })
        })
    }

    /// Whether servers may have a service of this task, or of its group.
    pub(crate) fn may_have(&self, task: &TaskKey) -> bool {
        let known = self.0.get(&task.alloc).into_iter();
        let mut known = known.flat_map(|it| it.known.services.values());
        known.any(|one| concerns(&one.instance, task))
    }

    /// Whether they may have one that they shall not have.
    pub(crate) fn holds_up(&self, task: &TaskKey) -> bool {
        let mut unwanted = self.unwanted(task.alloc);
        unwanted.any(|one| concerns(one, task))
    }
}

fn concerns(service: &ServiceInstance, task: &TaskKey) -> bool {
    service.task.as_ref().is_none_or(|of| *of == task.task)
}
