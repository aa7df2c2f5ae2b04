//! Calls to the servers of a cluster. They are made by whoever knows the protocol, which is not here.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use drover_core::effect::ServerEffect;
use drover_core::ids::TaskKey;
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
