//! What templates ask of the agent's own state: variables and services. The state is asked when the
//! first template needs it, and again whenever its index rises; no rendering waits for the core.
//!
//! The questions go through [`crate::agent_handle`], as those of API clients do, 250 ms apart at least. A
//! round notes what it asked and what was answered; only other answers wake it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drover_core::agent::{Registration, choose};
use drover_core::model::variable::{Reads, Variable, VariableKey};
use drover_template::{Answer, Instance, Need, Service, Variable as Found, VariableMeta};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::known::{Known, News};
use super::source::Asked;
use crate::agent_handle::{AgentHandle, AgentStopped};

/// The core is asked no oftener than this.
const PACE: Duration = Duration::from_millis(250);

/// The state as far as templates may ask for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    variables: Arc<BTreeMap<VariableKey, Arc<Variable>>>,
    /// None while no template asked for them: they are worked out each time.
    services: Option<Arc<[Registration]>>,
}

impl State {
    /// The answer to a need, for a task that may read these variables.
    pub(super) fn answer(&self, need: &Need, reads: &Reads) -> Option<Answer> {
        match need {
            Need::Variable(named) => Some(match reads.find(named) {
                Ok(key) => self.variable(&key),
                Err(why) => Answer::Refused(why),
            }),
            Need::Variables(prefix) => Some(match reads.below(prefix) {
                Ok(keys) => self.variables(&keys),
                Err(why) => Answer::Refused(why),
            }),
            Need::Service(name) => {
                let found = self.instances(name, reads)?;
                Some(Answer::Instances(found.iter().map(instance).collect()))
            }
            Need::ServiceChoice { name, count, key } => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                let found = choose(self.instances(name, reads)?, count, key);
                Some(Answer::Instances(found.iter().map(instance).collect()))
            }
            Need::Services => Some(Answer::Services(self.names(reads)?)),
            Need::Env(_) | Need::File(_) | Need::Time => None,
        }
    }

    /// Whether it has an answer to each of these.
    pub(super) fn answers_all(&self, asked: &Asked) -> bool {
        self.services.is_some() || !asked.keys().any(is_of_services)
    }

    /// The instances of a service in the namespace of the task.
    fn instances(&self, name: &str, reads: &Reads) -> Option<Vec<Registration>> {
        let all = self.services.as_ref()?.iter();
        let of = |one: &&Registration| one.name == name && one.job.namespace == reads.namespace;
        Some(all.filter(of).cloned().collect())
    }

    fn names(&self, reads: &Reads) -> Option<Vec<Service>> {
        let mut tags: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let all = self.services.as_ref()?.iter();
        for one in all.filter(|one| one.job.namespace == reads.namespace) {
            let tags = tags.entry(&one.name).or_default();
            tags.extend(one.tags.iter().map(String::as_str));
        }
        let service = |(name, tags): (&str, BTreeSet<&str>)| Service {
            name: name.to_owned(),
            tags: tags.into_iter().map(str::to_owned).collect(),
        };
        Some(tags.into_iter().map(service).collect())
    }

    fn variable(&self, key: &VariableKey) -> Answer {
        let variable = self.variables.get(key).map(|variable| Found {
            meta: meta(key, variable),
            items: variable.items.get().clone(),
        });
        variable.map_or(Answer::Absent, Answer::Variable)
    }

    fn variables(&self, keys: &[VariableKey]) -> Answer {
        let there = keys.iter().filter_map(|key| {
            let variable = self.variables.get(key)?;
            Some(meta(key, variable))
        });
        Answer::Variables(there.collect())
    }
}

fn is_of_services(need: &Need) -> bool {
    matches!(
        need,
        Need::Service(_) | Need::ServiceChoice { .. } | Need::Services
    )
}

fn instance(one: &Registration) -> Instance {
    Instance {
        id: one.id.clone(),
        name: one.name.clone(),
        node: one.node.to_string(),
        address: one.address.clone(),
        port: i64::from(one.port),
        datacenter: one.datacenter.clone(),
        tags: one.tags.clone(),
        job_id: one.job.id.to_string(),
        alloc_id: one.alloc.to_string(),
    }
}

fn meta(key: &VariableKey, variable: &Variable) -> VariableMeta {
    VariableMeta {
        namespace: key.namespace.to_string(),
        path: key.path.to_string(),
        create_index: variable.meta.create_index,
        modify_index: variable.meta.modify_index,
        create_time: variable.meta.create_time.0,
        modify_time: variable.meta.modify_time.0,
    }
}

/// The way from the state to whoever renders. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    agent_handle: AgentHandle,
    started: Arc<AtomicBool>,
    /// Whether somebody asked for services, and whoever is to hear of that.
    services: Arc<AtomicBool>,
    nudge: Arc<Notify>,
    known: Arc<watch::Sender<Option<Known>>>,
}

impl Feed {
    pub(super) fn new(agent_handle: AgentHandle) -> Feed {
        Feed {
            agent_handle,
            started: Arc::default(),
            services: Arc::default(),
            nudge: Arc::default(),
            known: Arc::new(watch::Sender::new(None)),
        }
    }

    /// From now on.
    pub(super) fn listen(&self) -> News {
        self.known.subscribe()
    }

    /// Sees to it that the state is asked for these from now on.
    pub(super) fn begin(&self, asked: &Asked) {
        if asked.is_empty() {
            return;
        }
        if asked.keys().any(is_of_services) && !self.services.swap(true, Ordering::Relaxed) {
            self.nudge.notify_one();
        }
        if !self.started.swap(true, Ordering::Relaxed) {
            let feed = self.clone();
            tokio::spawn(async move {
                // It ends with the agent.
                let _: Result<(), AgentStopped> = feed.pass_on().await;
            });
        }
    }

    async fn pass_on(&self) -> Result<(), AgentStopped> {
        let mut changes = self.agent_handle.index();
        loop {
            // Noted before looking: a change in between leads to another look.
            changes.borrow_and_update();
            let services = self.services.load(Ordering::Relaxed);
            let read_watched = self.agent_handle.ask(move |view| {
                Known::State(State {
                    variables: view.variables().clone(),
                    services: services.then(|| view.services().into()),
                })
            });
            let now = Some(read_watched.await?);
            self.known.send_if_modified(|known| {
                let is_new = *known != now;
                *known = now;
                is_new
            });
            sleep(PACE).await;
            tokio::select! {
                changed = changes.changed() => changed.map_err(|_| AgentStopped)?,
                () = self.nudge.notified() => {}
            }
        }
    }
}
