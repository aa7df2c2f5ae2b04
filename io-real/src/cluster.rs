//! Calls to the servers of a cluster. They are made by whoever knows the protocol, which is not here.

use std::collections::BTreeMap;
use std::pin::Pin;

use drover_core::effect::ServerEffect;
use drover_core::ids::TaskKey;
use drover_core::model::secret::Secret;
use drover_core::op::Failure;

use crate::driver::Inbox;

/// Whoever reaches servers.
pub trait CallServers: Send + Sync {
    /// Begins what is asked, without blocking. To each call one answer follows.
    fn carry_out(&self, effect: ServerEffect, inbox: &Inbox);
}

/// An answer that may take as long as servers do. It can be dropped.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send + 'a>>;

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
}
