//! What the servers say of themselves: who leads, who votes and who is there, for users of the node's own API.

use std::time::Duration;

use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::types::Question;
use drover_rpc::types::status::{
    ServerMember, ServerMembers, StatusLeader, StatusMembers, StatusPeers,
};
use futures::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use super::Cluster;
use crate::http::{Member, Members, StatusError, StatusQuestion, StatusServers};

/// How long each answer may take, with the wait for a turn: somebody waits. Servers that have no leader look for one for
/// 5 s before they say so.
const WITHIN: Duration = Duration::from_secs(8);

/// How many are asked at once. Who asks may need no token, and keeps the node's own calls from nothing.
pub(super) const AT_ONCE: usize = 8;

impl StatusServers for Cluster {
    fn leader(&self, question: StatusQuestion) -> BoxFuture<'_, Result<String, StatusError>> {
        Box::pin(self.status::<StatusLeader>(question))
    }

    fn peers(&self, question: StatusQuestion) -> BoxFuture<'_, Result<Vec<String>, StatusError>> {
        Box::pin(self.status::<StatusPeers>(question))
    }

    fn members(&self, question: StatusQuestion) -> BoxFuture<'_, Result<Members, StatusError>> {
        Box::pin(async move { self.status::<StatusMembers>(question).await.map(members) })
    }
}

impl Cluster {
    async fn status<Q: Question>(&self, question: StatusQuestion) -> Result<Q::Reply, StatusError> {
        let region = question.region.unwrap_or_else(|| self.region());
        let request = Q::of(question.stale, question.token.expose().into(), region);
        let deadline = Instant::now() + WITHIN;
        let Ok(_turn) = timeout_at(deadline, self.0.status.acquire()).await else {
            let words = "too many ask this node who its servers are: try again, or ask a server";
            return Err(StatusError::Failed(words.to_owned()));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let answered = self.0.client.call_for_others(&request, left).await;
        answered.map_err(|error| refused(&error))
    }
}

fn refused(error: &Error) -> StatusError {
    match error.server_error_kind() {
        Some(ServerErrorKind::PermissionDenied) => {
            StatusError::Denied("Permission denied".to_owned())
        }
        Some(ServerErrorKind::TokenNotFound) => {
            StatusError::Denied("ACL token not found".to_owned())
        }
        Some(_) | None => StatusError::Failed(error.to_string()),
    }
}

fn members(all: ServerMembers) -> Members {
    Members {
        server_name: all.server_name,
        server_region: all.server_region,
        server_dc: all.server_dc,
        members: all.members.into_iter().map(member).collect(),
    }
}

fn member(one: ServerMember) -> Member {
    Member {
        addr: one.address().map(|address| address.to_string()),
        name: one.name,
        port: one.port,
        tags: one.tags,
        status: one.status,
        protocol_min: one.protocol_min,
        protocol_max: one.protocol_max,
        protocol_cur: one.protocol_cur,
        delegate_min: one.delegate_min,
        delegate_max: one.delegate_max,
        delegate_cur: one.delegate_cur,
    }
}
