//! What servers ask of the node, over the connection that it opened.

use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Output};

/// Answers servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inbound;

impl Handler for Inbound {
    async fn call(&self, _: InboundCall) -> Answer {
        Answer::UnknownMethod
    }

    fn has_stream(&self, _: &str) -> bool {
        false
    }

    async fn stream(&self, _: InboundCall, _: &mut Input, _: &mut Output) {}
}
