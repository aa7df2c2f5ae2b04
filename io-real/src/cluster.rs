//! Calls to the servers of a cluster. They are made by whoever knows the protocol, which is not here.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use drover_core::effect::ServerEffect;
use drover_core::ids::{AllocId, TaskKey};
use drover_core::model::remote::Remote;
use drover_core::model::secret::Secret;
use drover_core::op::Failure;
use drover_template::{Answer, Need};

use crate::driver::Inbox;

/// Whoever reaches servers.
pub trait CallServers: Send + Sync {
    /// Begins what is asked, without blocking. To each call one answer follows.
    fn carry_out(&self, effect: ServerEffect, inbox: &Inbox);
}

/// An answer that may take as long as servers do. It can be dropped.
pub type Answering<'a, T, E = Failure> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// What servers answer to a question of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// The servers' index of it.
    pub index: u64,
}

/// Why there is no answer, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The task may not know it, unless that is changed at the servers.
    Refused(String),
    /// Something else: they cannot be reached, for one.
    Failed(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Refused(why) => write!(f, "the servers refuse it: {why}"),
            Unanswered::Failed(why) => f.write_str(why),
        }
    }
}

/// Why nothing can be asked for a task that servers placed.
pub(crate) const NO_SERVERS: &str =
    "the servers that placed the task are not this agent's any more";

/// Where an allocation was that servers placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the node that answers here: `http://HOST:PORT`, or `https`.
    At(String),
    /// Nobody can be asked for its disk, for this reason.
    Nowhere(&'static str),
}

/// What servers know of allocations that they placed, on whatever node.
pub trait KnowAllocs: Send + Sync {
    /// Whether an allocation still runs; as soon as servers know more than they did at the index `after`, or in a
    /// minute. By index 0 that is asked of a server that is not behind, and answered at once.
    ///
    /// # Errors
    /// Servers do not answer.
    fn runs(&self, alloc: AllocId, after: u64) -> Answering<'_, Remote>;

    /// Where an allocation was.
    ///
    /// # Errors
    /// Servers do not answer.
    fn place_of(&self, alloc: AllocId) -> Answering<'_, Place>;
}

/// What servers do for the tasks that they placed on this node.
pub trait ServeTasks: Send + Sync {
    /// Signs these identities of a task: a token for each name.
    ///
    /// # Errors
    /// One of them was not signed; whether another try may help.
    fn sign<'a>(
        &'a self,
        task: &'a TaskKey,
        names: &'a [String],
    ) -> Answering<'a, BTreeMap<String, Secret>>;

    /// Answers what a template asks in a namespace, with a token of its task; as soon as servers know more than they
    /// did at the index `after`, or in some minutes.
    ///
    /// # Errors
    /// Servers refuse it, or do not answer.
    fn answer<'a>(
        &'a self,
        token: &'a Secret,
        namespace: &'a str,
        need: &'a Need,
        after: u64,
    ) -> Answering<'a, Answered, Unanswered>;
}
