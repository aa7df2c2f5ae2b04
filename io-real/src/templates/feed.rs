//! What templates ask of the agent's own state: variables. It is asked for when the first template
//! does, and again whenever the state's index rises; nobody who renders waits for the core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drover_core::model::variable::{Reads, Variable, VariableKey};
use drover_template::{Answer, Need, Variable as Found, VariableMeta};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::door::{Door, Gone};

/// The core is asked no oftener than this.
const PACE: Duration = Duration::from_millis(50);

/// The state as far as templates may ask for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Known {
    variables: Arc<BTreeMap<VariableKey, Arc<Variable>>>,
}

impl Known {
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
            Need::Service(_) | Need::ServiceChoice { .. } | Need::Services => {
                let why = "this agent knows no services";
                Some(Answer::Refused(why.to_owned()))
            }
            Need::Env(_) | Need::File(_) | Need::Time => None,
        }
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

/// What is known, once anything is, and whatever else will be.
pub(super) type News = watch::Receiver<Option<Known>>;

/// The way from the state to whoever renders. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    door: Door,
    begun: Arc<AtomicBool>,
    known: Arc<watch::Sender<Option<Known>>>,
}

impl Feed {
    pub(super) fn new(door: Door) -> Feed {
        Feed {
            door,
            begun: Arc::default(),
            known: Arc::new(watch::Sender::new(None)),
        }
    }

    /// From now on.
    pub(super) fn listen(&self) -> News {
        self.known.subscribe()
    }

    /// Sees to it that the state is asked from now on.
    pub(super) fn begin(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            let feed = self.clone();
            tokio::spawn(async move {
                // It ends with the agent.
                let _: Result<(), Gone> = feed.pass_on().await;
            });
        }
    }

    async fn pass_on(&self) -> Result<(), Gone> {
        let mut changes = self.door.index();
        loop {
            // Noted before looking: a change in between leads to another look.
            changes.borrow_and_update();
            let look = self.door.ask(|view| Known {
                variables: view.variables().clone(),
            });
            let now = Some(look.await?);
            self.known.send_if_modified(|known| {
                let is_new = *known != now;
                *known = now;
                is_new
            });
            sleep(PACE).await;
            changes.changed().await.map_err(|_| Gone)?;
        }
    }
}
