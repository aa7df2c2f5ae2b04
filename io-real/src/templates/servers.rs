//! What templates ask of the servers of the cluster: variables and services.
//!
//! Each question of a rendering is asked by itself, with the token of the task's default identity: servers decide what
//! it may read. They answer as soon as they know more, and are asked again. An answer stays until there is another
//! one, however long servers are out of reach or refuse it. All ends with the rendering.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drover_core::ids::TaskKey;
use drover_core::model::identity::DEFAULT;
use drover_core::model::secret::Secret;
use drover_template::{Answer, Need};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::known::{Known, News};
use super::source::Asked;
use crate::cluster::{Answered as ServersAnswer, NO_SERVERS, ServeTasks, Unanswered};
use crate::facts;

/// So much is asked for one task at most.
const MAX_QUESTIONS: usize = 64;
/// A question is asked no oftener than this.
const PACE: Duration = Duration::from_millis(250);
/// Nor than this, if there was nothing new.
const IDLE: Duration = Duration::from_secs(1);
/// The first and the longest pause after a failure.
const AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));

/// What servers answered to a rendering.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answered {
    answers: BTreeMap<Need, Answer>,
    /// Why the last time there was no answer.
    failures: BTreeMap<Need, Unanswered>,
}

impl Answered {
    pub(super) fn answer(&self, need: &Need) -> Option<Answer> {
        self.answers.get(need).cloned()
    }

    pub(super) fn answers_all(&self, asked: &Asked) -> bool {
        asked.keys().all(|need| self.answers.contains_key(need))
    }

    pub(super) fn unanswered(&self, asked: &Asked) -> Vec<String> {
        let unanswered = asked.keys().filter(|need| !self.answers.contains_key(need));
        let words = unanswered.map(|need| match self.failures.get(need) {
            Some(why) => format!("{need} ({why})"),
            None => need.to_string(),
        });
        words.collect()
    }

    pub(super) fn refused(&self) -> Option<String> {
        let mut failures = self.failures.iter();
        failures.find_map(|(need, why)| match why {
            Unanswered::Refused(_) => Some(format!("{need}: {why}")),
            Unanswered::Failed(_) => None,
        })
    }
}

/// The questions of one rendering.
pub(super) struct Questions {
    asker: Arc<Asker>,
    asked: BTreeMap<Need, AbortHandle>,
}

/// Whoever asks them.
struct Asker {
    servers: Option<Arc<dyn ServeTasks>>,
    task: TaskKey,
    namespace: Arc<str>,
    /// The token of the task's default identity, once servers gave it.
    token: Mutex<Option<Secret>>,
    known: watch::Sender<Option<Known>>,
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.asked.values().for_each(AbortHandle::abort);
    }
}

impl Questions {
    /// Of the templates of this task, whose job is in this namespace.
    pub(super) fn new(
        servers: Option<Arc<dyn ServeTasks>>,
        task: TaskKey,
        namespace: Arc<str>,
    ) -> Questions {
        let known = Some(Known::Servers(Answered::default()));
        Questions {
            asker: Arc::new(Asker {
                servers,
                task,
                namespace,
                token: Mutex::default(),
                known: watch::Sender::new(known),
            }),
            asked: BTreeMap::new(),
        }
    }

    /// From now on.
    pub(super) fn listen(&self) -> News {
        self.asker.known.subscribe()
    }

    /// These are asked from now on, and no others.
    pub(super) fn begin(&mut self, wanted: &Asked) {
        self.asked.retain(|need, asking| {
            let stays = wanted.contains_key(need);
            if !stays {
                asking.abort();
            }
            stays
        });
        self.asker.edit(|answered| {
            answered.answers.retain(|need, _| wanted.contains_key(need));
            answered
                .failures
                .retain(|need, _| wanted.contains_key(need));
        });
        for need in wanted.keys() {
            if self.asked.contains_key(need) {
                continue;
            }
            if self.asked.len() >= MAX_QUESTIONS {
                let why = format!("templates of a task ask servers at most {MAX_QUESTIONS} things");
                self.asker.unanswered(need, Unanswered::Failed(why));
                continue;
            }
            let (asker, one) = (self.asker.clone(), need.clone());
            let asking = tokio::spawn(async move { asker.keep_asking(&one).await });
            self.asked.insert(need.clone(), asking.abort_handle());
        }
    }
}

impl Asker {
    /// Asks one thing, until that is aborted.
    async fn keep_asking(&self, need: &Need) {
        let (mut index, mut pause) = (0, AGAIN.0);
        loop {
            match self.ask(need, index).await {
                Ok(from_servers) => {
                    // Servers that were restored may go back in time.
                    let is_new = from_servers.index != index;
                    (index, pause) = (from_servers.index, AGAIN.0);
                    self.edit(|answered| {
                        answered.answers.insert(need.clone(), from_servers.answer);
                        answered.failures.remove(need);
                    });
                    sleep(if is_new { PACE } else { IDLE }).await;
                }
                Err(why) => {
                    if let Unanswered::Refused(_) = why {
                        // It may be good no more.
                        *self.token.lock().await = None;
                    }
                    self.unanswered(need, why);
                    sleep(jittered(pause)).await;
                    pause = (pause * 2).min(AGAIN.1);
                }
            }
        }
    }

    async fn ask(&self, need: &Need, after: u64) -> Result<ServersAnswer, Unanswered> {
        let servers = self.servers.as_ref();
        let servers = servers.ok_or_else(|| Unanswered::Failed(NO_SERVERS.to_owned()))?;
        let token = self.token(&**servers).await?;
        servers.answer(&token, &self.namespace, need, after).await
    }

    async fn token(&self, servers: &dyn ServeTasks) -> Result<Secret, Unanswered> {
        let mut held = self.token.lock().await;
        if let Some(token) = &*held {
            return Ok(token.clone());
        }
        let names = [DEFAULT.to_owned()];
        let signed = servers.sign(&self.task, &names).await;
        let mut signed = signed.map_err(|failure| Unanswered::Failed(failure.message))?;
        let token = signed.remove(DEFAULT).ok_or_else(|| {
            Unanswered::Failed("servers signed no identity for the task".to_owned())
        })?;
        *held = Some(token.clone());
        Ok(token)
    }

    fn unanswered(&self, need: &Need, why: Unanswered) {
        self.edit(|answered| drop(answered.failures.insert(need.clone(), why)));
    }

    /// Whoever listens hears of it if that changes anything.
    fn edit(&self, change: impl FnOnce(&mut Answered)) {
        self.known.send_if_modified(|known| {
            let Some(Known::Servers(answered)) = known else {
                return false;
            };
            let before = answered.clone();
            change(answered);
            *answered != before
        });
    }
}

/// The pause, and up to half of it more, so that tasks do not ask together.
fn jittered(pause: Duration) -> Duration {
    let half = pause.as_millis() / 2;
    let more = u64::try_from(facts::random() % half.max(1)).unwrap_or(0);
    pause + Duration::from_millis(more)
}
