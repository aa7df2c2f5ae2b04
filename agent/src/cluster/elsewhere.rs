//! Allocations of other nodes, as servers know them: whether one is over, and which node has what it left.

use std::time::Duration;

use drover_core::ids::AllocId;
use drover_core::model::remote::Remote;
use drover_core::op::Failure;
use drover_core::time::Span;
use drover_io_real::cluster::{Answering, KnowAllocs, Place};
use drover_io_real::http_client::authority_of;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::types::allocation::Allocation;
use drover_rpc::types::node::Node;
use drover_rpc::types::query::{AllocGetAlloc, NodeGetNode, OneAllocation};

use super::Cluster;
use super::calls::{USUAL, blocking};

/// How long servers may wait with an answer that says nothing new.
const WAIT: Span = Span::secs(50);

/// What is no news, and may be wrong: a server that is behind does not know what others know.
const BEHIND: &str = "the server that answered is behind the others";

/// How many questions wait for news at servers at once. Further ones are answered at once, and asked again.
pub(super) const AT_ONCE: usize = 64;

impl KnowAllocs for Cluster {
    fn runs(&self, alloc: AllocId, after: u64) -> Answering<'_, Remote> {
        Box::pin(async move {
            let turn = self.0.elsewhere.try_acquire().ok();
            let (newer_than, wait, within) = match (after, &turn) {
                (0, _) | (_, None) => (0, Span::ZERO, USUAL),
                (_, Some(_)) => (after, WAIT, blocking(WAIT)),
            };
            let asked = self.one_alloc(alloc, (newer_than, wait), within).await;
            asked_of(asked, newer_than)
        })
    }

    fn place_of(&self, alloc: AllocId) -> Answering<'_, Place> {
        Box::pin(async move {
            let found = self.one_alloc(alloc, (0, Span::ZERO), USUAL).await;
            let found = found.map_err(|error| failure(&error))?;
            let Some(alloc) = found.alloc else {
                return Ok(Place::Nowhere("the servers know nothing of it any more"));
            };
            if alloc.node_id == self.0.node.id.to_string() {
                return Ok(Place::Nowhere("it was on this node, which removed it"));
            }
            let node = self.one_node(alloc.node_id).await;
            let node = node.map_err(|error| failure(&error))?;
            Ok(node.map_or(NO_NODE, |node| place(&node)))
        })
    }
}

impl Cluster {
    async fn one_alloc(
        &self,
        alloc: AllocId,
        (newer_than, wait): (u64, Span),
        within: Duration,
    ) -> Result<OneAllocation, Error> {
        let request = AllocGetAlloc {
            alloc_id: alloc.to_string(),
            // From a server that is not behind, unless it is to wait for news.
            allow_stale: newer_than > 0,
            // Of what is on other nodes, servers tell a node by its secret.
            auth_token: self.0.node.secret.clone(),
            max_query_time: wait.0,
            min_query_index: newer_than,
            region: self.region(),
            ..AllocGetAlloc::default()
        };
        self.0.client.call_and_follow(&request, within).await
    }

    async fn one_node(&self, node_id: String) -> Result<Option<Box<Node>>, Error> {
        let request = NodeGetNode {
            node_id,
            auth_token: self.0.node.secret.clone(),
            secret_id: self.0.node.secret.clone(),
            region: self.region(),
            ..NodeGetNode::default()
        };
        let reply = self.0.client.call(&request, USUAL).await?;
        Ok(reply.node)
    }
}

const NO_NODE: Place = Place::Nowhere("the servers know nothing of its node any more");

/// What servers say of an allocation. Where they know none, or refuse to tell, nobody is waited for, as in Nomad.
fn asked_of(answer: Result<OneAllocation, Error>, newer_than: u64) -> Result<Remote, Failure> {
    match answer {
        Ok(reply) if reply.index < newer_than => Err(Failure::recoverable(BEHIND)),
        Ok(OneAllocation { alloc: None, .. }) => Ok(Remote::Unknown),
        Ok(OneAllocation {
            alloc: Some(alloc), ..
        }) if is_over(&alloc) => Ok(Remote::Ended),
        Ok(reply) => Ok(Remote::Runs { index: reply.index }),
        Err(error) if error.server_error_kind() == Some(ServerErrorKind::PermissionDenied) => {
            Ok(Remote::Unknown)
        }
        Err(error) => Err(failure(&error)),
    }
}

/// Whether nobody waits for an allocation any more. One whose node is out of reach may run, and is replaced just for
/// that.
fn is_over(alloc: &Allocation) -> bool {
    matches!(
        alloc.client_status.as_str(),
        "complete" | "failed" | "lost" | "unknown"
    )
}

/// Where a node gives away what its allocations left.
fn place(node: &Node) -> Place {
    let scheme = if node.tls_enabled { "https" } else { "http" };
    let address = format!("{scheme}://{}", node.http_addr);
    match node.status.as_str() {
        "down" => Place::Nowhere("its node is down"),
        "disconnected" => Place::Nowhere("its node is disconnected"),
        _ if authority_of(scheme, &address).is_none() => {
            Place::Nowhere("its node has no address for others")
        }
        _ => Place::At(address),
    }
}

fn failure(error: &Error) -> Failure {
    Failure::recoverable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(status: &str) -> Result<OneAllocation, Error> {
        Ok(OneAllocation {
            alloc: Some(Box::new(Allocation {
                client_status: status.to_owned(),
                ..Allocation::default()
            })),
            index: 7,
            ..OneAllocation::default()
        })
    }

    #[test]
    fn alloc_elsewhere_is_awaited_while_it_may_run() {
        for status in ["pending", "running", ""] {
            let outcome = asked_of(known(status), 0);
            assert_eq!(outcome, Ok(Remote::Runs { index: 7 }));
        }
        for status in ["complete", "failed", "lost", "unknown"] {
            assert_eq!(asked_of(known(status), 7), Ok(Remote::Ended), "{status}");
        }
        let none = Ok(OneAllocation::default());
        assert_eq!(asked_of(none, 0), Ok(Remote::Unknown));
        let failed = asked_of(Err(Error::NoServers), 0);
        assert!(failed.is_err_and(|it| it.recoverable));
    }

    /// Its programs write to the disk until they have ended.
    #[test]
    fn alloc_elsewhere_that_is_to_stop_is_awaited_until_it_has() {
        for (desired, status, expected) in [
            ("stop", "running", Remote::Runs { index: 7 }),
            ("stop", "complete", Remote::Ended),
            ("evict", "running", Remote::Runs { index: 7 }),
        ] {
            let mut reply = known(status).unwrap();
            reply.alloc.as_mut().unwrap().desired_status = desired.to_owned();
            assert_eq!(asked_of(Ok(reply), 0), Ok(expected), "{desired}, {status}");
        }
    }

    #[test]
    fn server_that_is_behind_says_nothing_of_alloc_elsewhere() {
        for reply in [known("complete"), Ok(OneAllocation::default())] {
            let outcome = asked_of(reply, 8);
            assert!(outcome.is_err_and(|it| it.recoverable));
        }
    }

    #[test]
    fn disk_is_asked_for_where_its_node_says_if_it_is_there() {
        let node = |addr: &str, status: &str, tls| Node {
            http_addr: addr.to_owned(),
            status: status.to_owned(),
            tls_enabled: tls,
            ..Node::default()
        };
        let at = |address: &str| Place::At(address.to_owned());
        for (found, expected) in [
            (
                node("10.0.0.1:4646", "ready", false),
                at("http://10.0.0.1:4646"),
            ),
            (
                node("[fd00::1]:1", "ready", true),
                at("https://[fd00::1]:1"),
            ),
            (
                node("10.0.0.1:4646", "down", false),
                Place::Nowhere("its node is down"),
            ),
            (
                node("10.0.0.1:4646", "disconnected", false),
                Place::Nowhere("its node is disconnected"),
            ),
            (
                node("", "ready", false),
                Place::Nowhere("its node has no address for others"),
            ),
        ] {
            assert_eq!(place(&found), expected);
        }
    }
}
