//! Tokens of the cluster whose node this is: servers are asked whose they are, and their answers are cached for a while.
//!
//! While no server answers, their last answer counts, until the token expires: who looks after a node needs it most
//! when the cluster is in trouble.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use drover_core::ids::AccessorId;
use drover_core::model::acl::{AclToken, SecretDigest, TokenType};
use drover_core::model::secret::Secret;
use drover_core::store::acl::AclTokenRecord;
use drover_core::time::Timestamp;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::token::Given;
use crate::http::errors::ApiError;
use crate::times;

/// How many tokens are kept.
const MOST_KEPT: usize = 1_000;
/// How many are asked for at once, of those that are known and of others: whoever invents tokens keeps servers from
/// nothing, and nobody else from asking.
const AT_ONCE: usize = 8;
/// How long nobody asks again after no server answered.
const SILENCE: Duration = Duration::from_secs(3);

/// Who knows the tokens of a cluster.
pub trait TokenServers: fmt::Debug + Send + Sync {
    /// Whose a secret is.
    fn token<'a>(&'a self, secret: &'a Secret) -> BoxFuture<'a, Result<ServersToken, Unresolved>>;
}

/// A token of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ServersToken {
    /// Its public name.
    pub accessor: AccessorId,
    /// What people call it.
    pub name: String,
    /// What it is good for.
    pub token_type: TokenType,
    /// From when it is good for nothing.
    pub expires: Option<Timestamp>,
    /// Its policies, those of its roles among them.
    pub policies: Vec<ServersPolicy>,
    /// When it was made.
    pub create_time: Timestamp,
    /// The cluster's index of its making and of its last change.
    pub indexes: (u64, u64),
}

/// A policy of a cluster.
#[derive(Clone, Debug)]
pub struct ServersPolicy {
    /// Its name.
    pub name: Arc<str>,
    /// The cluster's index of its last change.
    pub index: u64,
    /// Its text.
    pub rules: Arc<str>,
}

/// Why nobody says whose a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// It is no token.
    Unknown,
    /// No server answers, and why.
    Unreachable(String),
}

/// The tokens of a cluster, as far as somebody showed them here.
#[derive(Debug)]
pub(crate) struct Servers {
    servers: Arc<dyn TokenServers>,
    /// How long what they say counts.
    lasts: Duration,
    turns_of_known: Semaphore,
    turns_of_others: Semaphore,
    kept: Mutex<BTreeMap<SecretDigest, Kept>>,
    /// Until when nobody asks, because no server answered.
    silent_until: Mutex<Option<Instant>>,
}

/// What servers answered, and when they were asked.
#[derive(Clone, Debug)]
struct Kept {
    /// None of what is a token no more.
    answer: Option<Arc<TokenAnswer>>,
    at: Instant,
}

/// A token, as those of the node itself are.
#[derive(Debug)]
pub(super) struct TokenAnswer {
    pub(super) record: Arc<AclTokenRecord>,
    pub(super) policies: Vec<ServersPolicy>,
}

impl Servers {
    pub(crate) fn new(servers: Arc<dyn TokenServers>, lasts: Duration) -> Servers {
        Servers {
            servers,
            lasts,
            turns_of_known: Semaphore::new(AT_ONCE),
            turns_of_others: Semaphore::new(AT_ONCE),
            kept: Mutex::default(),
            silent_until: Mutex::default(),
        }
    }

    /// How long what they say counts.
    pub(super) fn lasts(&self) -> Duration {
        self.lasts
    }

    /// Finds whose a secret is.
    ///
    /// # Errors
    /// It is no token, or one that expired; or nobody says it.
    pub(super) async fn find(&self, given: &Given) -> Result<Arc<TokenAnswer>, ApiError> {
        // Other texts are no tokens of people.
        if given.text.expose().parse::<AccessorId>().is_err() {
            return Err(unknown());
        }
        if let Some(answer) = self.fresh(given) {
            return current(answer);
        }
        let turns = match self.last_answer(given) {
            Some(_) => &self.turns_of_known,
            None => &self.turns_of_others,
        };
        let _turn = turns.acquire().await;
        // Somebody may have asked meanwhile.
        if let Some(answer) = self.fresh(given) {
            return current(answer);
        }
        if self.is_silent() {
            return self.without_servers(given, "none answered a moment ago");
        }
        let asked = Instant::now();
        match self.servers.token(&given.text).await {
            Ok(token) => current(self.keep(given, token, asked)),
            Err(Unresolved::Unknown) => {
                self.forget(given, asked);
                Err(unknown())
            }
            Err(Unresolved::Unreachable(why)) => {
                *self.silent_until() = Some(Instant::now() + SILENCE);
                self.without_servers(given, &why)
            }
        }
    }

    /// What counts while no server answers.
    fn without_servers(&self, given: &Given, why: &str) -> Result<Arc<TokenAnswer>, ApiError> {
        let words = || format!("the servers of the cluster do not say whose this token is: {why}");
        let failed = || ApiError::new(StatusCode::SERVICE_UNAVAILABLE, words());
        current(self.last_answer(given).ok_or_else(failed)?)
    }

    fn is_silent(&self) -> bool {
        self.silent_until()
            .is_some_and(|until| until > Instant::now())
    }

    fn last_answer(&self, given: &Given) -> Option<Arc<TokenAnswer>> {
        self.kept().get(&given.digest)?.answer.clone()
    }

    fn fresh(&self, given: &Given) -> Option<Arc<TokenAnswer>> {
        let kept = self.kept();
        let kept = kept.get(&given.digest)?;
        let is_fresh = kept.at.elapsed() < self.lasts;
        kept.answer.clone().filter(|_| is_fresh)
    }

    fn keep(&self, given: &Given, token: ServersToken, at: Instant) -> Arc<TokenAnswer> {
        let answer = Arc::new(TokenAnswer::of(given, token));
        let mut kept = self.kept();
        if kept.len() >= MOST_KEPT && !kept.contains_key(&given.digest) {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.at);
            let oldest = oldest.map(|(digest, _)| *digest);
            oldest.and_then(|digest| kept.remove(&digest));
        }
        let known = kept
            .entry(given.digest)
            .or_insert(Kept { answer: None, at });
        // An answer that comes late takes nothing back.
        if known.at <= at {
            *known = Kept {
                answer: Some(answer.clone()),
                at,
            };
        }
        answer
    }

    /// It is a token no more.
    fn forget(&self, given: &Given, at: Instant) {
        if let Some(known) = self.kept().get_mut(&given.digest)
            && known.at <= at
        {
            *known = Kept { answer: None, at };
        }
    }

    fn silent_until(&self) -> MutexGuard<'_, Option<Instant>> {
        let silent = self.silent_until.lock();
        silent.unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<SecretDigest, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenAnswer {
    fn of(given: &Given, token: ServersToken) -> TokenAnswer {
        let (create_index, modify_index) = token.indexes;
        let policies = token.policies.iter().map(|policy| policy.name.clone());
        let record = AclTokenRecord {
            token: AclToken {
                accessor: token.accessor,
                digest: given.digest,
                name: token.name,
                token_type: token.token_type,
                policies: policies.collect(),
                create_time: token.create_time,
                expires: token.expires,
            },
            create_index,
            modify_index,
        };
        TokenAnswer {
            record: Arc::new(record),
            policies: token.policies,
        }
    }
}

fn current(answer: Arc<TokenAnswer>) -> Result<Arc<TokenAnswer>, ApiError> {
    match answer.record.token.is_expired(times::now()) {
        true => Err(unknown()),
        false => Ok(answer),
    }
}

/// Nobody knows this token.
pub(super) fn unknown() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "ACL token not found")
}
