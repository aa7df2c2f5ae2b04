//! What nodes in tests answer to servers.

use std::time::Duration;

use drover_rpc::connection::{Answer, Handler, InboundCall, Input, Output};
use drover_rpc::types::InboundRequest;
use drover_rpc::types::inbound::{
    AllocationsGarbageCollectAll, AllocationsSignal, NodeIdentityRenew,
};
use drover_rpc::types::query::Empty;
use drover_rpc::types::registration::WriteReply;
use drover_rpc::types::stream::FileSystemLogs;

/// A node: garbage collection takes 90 s, everything else no time.
pub(crate) struct Node;

/// How long a garbage collection takes: longer than servers wait for an acknowledgement.
pub(crate) const LONG: Duration = Duration::from_secs(90);

impl Handler for Node {
    async fn call(&self, call: InboundCall) -> Answer {
        match call.method.as_str() {
            AllocationsSignal::METHOD => match call.request::<AllocationsSignal>() {
                Ok(request) if request.signal == "SIGNULL" => {
                    Answer::Error("Task not running".into())
                }
                Ok(_) => Answer::reply(&WriteReply::default()),
                Err(answer) => answer,
            },
            AllocationsGarbageCollectAll::METHOD => {
                tokio::time::sleep(LONG).await;
                Answer::reply(&WriteReply::default())
            }
            NodeIdentityRenew::METHOD => Answer::reply(&Empty {}),
            "Node.FailsWithoutWords" => Answer::Error(String::new()),
            "Node.Panics" => panic!("a handler that panics"),
            _ => Answer::UnknownMethod,
        }
    }

    fn has_stream(&self, method: &str) -> bool {
        method == "FileSystem.Logs"
    }

    /// Sends `line` again and again, until the server wants no more; without following, once.
    async fn stream(&self, call: InboundCall, input: &mut Input, output: &mut Output) {
        let request: FileSystemLogs = match call.decode() {
            Ok(request) => request,
            Err(why) => return drop(output.fail(400, why.to_string()).await),
        };
        let sending = async {
            while output.send(b"line\n".to_vec()).await.is_ok() && request.follow {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = sending => {}
            _ = input.end() => {}
        }
    }
}
