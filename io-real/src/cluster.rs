//! Calls to the servers of a cluster. They are made by whoever knows the protocol, which is not here.

use drover_core::effect::ServerEffect;

use crate::driver::Inbox;

/// Whoever reaches servers.
pub trait CallServers: Send + Sync {
    /// Begins what is asked, without blocking. To each call one answer follows.
    fn carry_out(&self, effect: ServerEffect, inbox: &Inbox);
}
