//! What events say of the node: that it is registered, or is another one than before, and what people decided about
//! it.

use drover_core::agent::View;
use drover_core::model::node::{Node, NodeEvent};
use drover_core::store::node::NodeRecord;

use super::changes::Change;
use crate::config::client::ClientConfig;
use crate::http::dto::NodeDto;

/// What was last told of the node, and what is needed to show it.
#[derive(Debug)]
pub(super) struct NodeWatch {
    nomad_version: String,
    client: ClientConfig,
    known: Option<Known>,
}

/// The node, as far as somebody is told that it changed.
#[derive(Debug)]
struct Known {
    node: Node,
    decided: NodeRecord,
    /// What happened to it last.
    event: Option<NodeEvent>,
}

impl NodeWatch {
    pub(super) fn new(nomad_version: &str, client: &ClientConfig) -> NodeWatch {
        NodeWatch {
            nomad_version: nomad_version.to_owned(),
            client: client.clone(),
            known: None,
        }
    }

    /// What changed of the node, if anything did.
    pub(super) fn change(&mut self, view: View<'_>) -> Option<Change> {
        let now = Known {
            node: view.node().clone(),
            decided: view.node_record().clone(),
            event: view.machine().events().last().cloned(),
        };
        let kind = match &self.known {
            None => "NodeRegistration",
            Some(before) => before.became(&now)?,
        };
        self.known = Some(now);
        let node = NodeDto::of(view, &self.nomad_version, &self.client);
        let node = Box::new(node);
        Some(Change::Node { node, kind })
    }
}

impl Known {
    /// What Nomad calls the change to what it is now. Where several things changed at once, what people decided goes
    /// before what follows from it.
    fn became(&self, now: &Known) -> Option<&'static str> {
        let (before, after) = (&self.decided, &now.decided);
        if before.drain != after.drain || before.last_drain != after.last_drain {
            return Some("NodeDrain");
        }
        if before.eligibility != after.eligibility {
            return Some("NodeEligibility");
        }
        if self.node != now.node {
            return Some("NodeRegistration");
        }
        (self.event != now.event).then_some("NodeStreamEvent")
    }
}
