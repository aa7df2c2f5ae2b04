//! Namespaces: nothing is in one that is not there.

use drover_core::model::job::JobStatus;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use drover_core::agent::Agent;
use drover_core::agent::requests::{DeleteNamespace, Request};
use drover_core::alloc::runner::AllocRunner;
use drover_core::config::Config;
use drover_core::effect::Reply;
use drover_core::ids::{RequestId, TaskKey};
use drover_core::model::namespace::DEFAULT;
use drover_core::store::namespace::NamespaceRecord;
use drover_core::store::{Key, Record};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// What is remembered of namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Namespaces {
    /// Those of the configuration.
    configured: Vec<Arc<str>>,
    /// What the disk held when this life of the agent began, until that was looked at.
    saved: Option<BTreeMap<Arc<str>, Arc<NamespaceRecord>>>,
    /// Who brings work into a namespace that is not there, or does not take it.
    homeless: BTreeSet<RequestId>,
}

impl Namespaces {
    pub(super) fn of(config: &Config) -> Namespaces {
        Namespaces {
            configured: config.namespaces.clone().unwrap_or_default(),
            saved: None,
            homeless: BTreeSet::new(),
        }
    }

    /// Somebody is about to ask. An agent that ends refuses everybody.
    pub(super) fn asked(&mut self, agent: &Agent, request: RequestId, asked: &Request) {
        let view = agent.view();
        if view.shutdown().is_some() {
            return;
        }
        let (key, job) = match asked {
            Request::Register(asked) => (asked.job.key(), Some(asked.job.clone())),
            Request::TakeOver(asked) => (asked.job.key(), Some(asked.job.clone())),
            Request::RevertJob(asked) => {
                let known = view.job(&asked.job);
                let wanted = known.and_then(|known| known.version(asked.version));
                (asked.job.clone(), wanted.cloned())
            }
            Request::DispatchJob(asked) => (asked.job.clone(), None),
            Request::ScaleJob(asked) => (asked.job.clone(), None),
            _ => return,
        };
        let all = view.namespaces();
        let takes = |record: &Arc<NamespaceRecord>| match &record.namespace.capabilities {
            None => true,
            Some(may) => {
                let groups = job.iter().flat_map(|job| &job.task_groups);
                let mut drivers = groups.flat_map(|group| &group.tasks).map(|it| &it.driver);
                drivers.all(|driver| !may.disabled_task_drivers.contains(driver))
            }
        };
        if !all.get(&key.namespace).is_some_and(takes) {
            self.homeless.insert(request);
        }
    }

    /// Whether this request brings work for which there is no place.
    pub(super) fn forbids(&self, request: RequestId) -> bool {
        self.homeless.contains(&request)
    }

    /// What an earlier agent left.
    pub(super) fn agent_restored(&mut self, world: &World) {
        let records = world.disk.records().iter();
        let namespace = |(key, record): (&Key, &Record)| match (key, record) {
            (Key::Namespace(name), Record::Namespace(one)) => Some((name.clone(), one.clone())),
            _ => None,
        };
        self.saved = Some(records.filter_map(namespace).collect());
        self.homeless.clear();
    }

    /// Whether there is this namespace, as the disk and the configuration say.
    fn exists(&self, world: &World, name: &str) -> bool {
        let configured = self.configured.iter().any(|one| **one == *name);
        name == DEFAULT || configured || saved_namespace(world, name).is_some()
    }
}

pub(super) fn saved_namespace<'a>(world: &'a World, name: &str) -> Option<&'a NamespaceRecord> {
    match world.disk.records().get(&Key::Namespace(name.into())) {
        Some(Record::Namespace(saved)) => Some(saved),
        _ => None,
    }
}

impl Checker {
    /// A task starts only in a namespace that the disk knows.
    pub(super) fn start_is_in_known_namespace(
        &mut self,
        world: &World,
        alloc: &AllocRunner,
        key: &TaskKey,
    ) -> Verdict {
        let name = &alloc.record().job.namespace;
        if **name == *DEFAULT || alloc.record().of_servers {
            // Servers have namespaces of their own.
            return Ok(());
        }
        let exists = self.namespaces.exists(world, name);
        self.holds(Property::StartIsInKnownNamespace, exists, || {
            format!("{key:?} starts in {name}")
        })
    }

    /// Who brings work for which there is no place is refused.
    pub(super) fn job_without_home_is_refused(
        &mut self,
        request: RequestId,
        reply: &Reply,
    ) -> Verdict {
        if !self.namespaces.homeless.remove(&request) {
            return Ok(());
        }
        let refused = matches!(reply, Reply::Refused(_));
        self.holds(Property::JobWithoutHomeIsRefused, refused, || {
            format!("{request:?} {reply:?}")
        })
    }

    /// When somebody is told that a namespace is deleted, nothing of it lives.
    pub(super) fn deleted_namespace_is_empty(
        &mut self,
        world: &World,
        asked: &Request,
        reply: &Reply,
    ) -> Verdict {
        let (Request::DeleteNamespace(DeleteNamespace { name }), Reply::Done { .. }) =
            (asked, reply)
        else {
            return Ok(());
        };
        if self.namespaces.exists(world, name) {
            // Somebody made it again.
            return Ok(());
        }
        let records = world.disk.records();
        let lives = world.alive().find(|(_, process)| {
            let alloc = records.get(&Key::Alloc(process.key.alloc));
            matches!(alloc, Some(Record::Alloc(alloc)) if alloc.job.namespace == *name)
        });
        self.holds(Property::DeletedNamespaceIsEmpty, lives.is_none(), || {
            format!("{name} {:?}", lives.map(|(_, process)| &process.key))
        })
    }

    /// What an agent finds when it begins.
    pub(super) fn namespaces_survive_agent_restart(&mut self, agent: &Agent) -> Verdict {
        let Some(saved) = self.namespaces.saved.take().filter(|it| !it.is_empty()) else {
            return Ok(());
        };
        let known = agent.view().namespaces();
        let lost = saved
            .iter()
            .find(|(name, one)| known.get(*name) != Some(one));
        self.holds(
            Property::NamespacesSurviveAgentRestart,
            lost.is_none(),
            || format!("{lost:?}"),
        )
    }

    /// At rest each job that is not dead, and each variable, lies in a namespace that is there.
    pub(super) fn content_has_its_namespace(&mut self, world: &World, agent: &Agent) -> Verdict {
        let jobs = agent.view().jobs().map(|record| record.job.key());
        let alive = jobs.filter(|key| agent.view().job_status(key) != JobStatus::Dead);
        let jobs = alive.map(|key| (key.namespace, key.id));
        let variables = world.disk.records().keys().filter_map(|key| match key {
            Key::Variable(key) => Some((key.namespace.clone(), key.path.clone())),
            _ => None,
        });
        for (namespace, what) in jobs.chain(variables) {
            if *namespace == *DEFAULT {
                continue;
            }
            let exists = self.namespaces.exists(world, &namespace);
            self.holds(Property::ContentHasItsNamespace, exists, || {
                format!("{what} is in {namespace}")
            })?;
        }
        Ok(())
    }
}
