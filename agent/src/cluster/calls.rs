//! One call, from the core's form to its answer.

use std::sync::Arc;
use std::time::Duration;

use drover_core::cluster::{
    AllocIndexes, AllocReport, Answer, Call, CallError, CallErrorKind, ClientNode, Credentials,
    NodeReply, PulledAllocs, ServiceInstance,
};
use drover_core::ids::AllocId;
use drover_core::model::drain::Eligibility;
use drover_core::model::node::NodeEvent;
use drover_core::time::Span;
use drover_rpc::error::{Error, ServerErrorKind};
use drover_rpc::msgpack::{Secret, Time};
use drover_rpc::types::Request;
use drover_rpc::types::query::{AllocGetAllocs, Allocations, NodeGetClientAllocs};
use drover_rpc::types::registration::{
    NodeEmitEvents, NodeRegister, NodeUpdateReply, NodeUpdateStatus,
};
use drover_rpc::types::service::{ServiceRegistrationDeleteById, ServiceRegistrationUpsert};
use drover_rpc::types::update::NodeUpdateAlloc;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::{Cluster, node, placed, report, service};
use crate::times;

/// How long a call may take that does not wait for something to happen. The core gives up at its own deadlines; this
/// is for what it gave up.
pub(super) const USUAL: Duration = Duration::from_secs(30);

/// How long a heartbeat may take: less than the core waits for it, so that the next one, a second or two later, goes to
/// another server, before the node counts as lost.
const BEAT: Duration = Duration::from_millis(6500);

/// How many services are removed at once.
const AT_ONCE: usize = 16;

/// How long servers may be late with an answer that they wait with, beside a sixteenth of the time.
const LATE: Duration = Duration::from_secs(10);

impl Cluster {
    pub(super) async fn call(
        &self,
        credentials: Credentials,
        call: Call,
    ) -> Result<Answer, CallError> {
        let (token, called) = (self.token(credentials), call.kind());
        let made = match call {
            Call::Register(node) => self.register(token, &node).await,
            Call::Heartbeat { renew_identity } => self.heartbeat(token, renew_identity).await,
            Call::EmitEvents(events) => self.emit(token, &events).await,
            Call::WatchAllocs { index, max_wait } => self.watch(token, index, max_wait).await,
            Call::PullAllocs {
                ids,
                newer_than,
                max_wait,
            } => self.pull(token, &ids, newer_than, max_wait).await,
            Call::ReportAllocs(reports) => self.report(token, &reports).await,
            Call::RegisterServices(services) => self.register_services(token, &services).await,
            Call::RemoveServices(services) => self.remove_services(token, &services).await,
        };
        made.map_err(|error| {
            self.0.reported.refused(called, &error);
            CallError {
                kind: kind(&error),
                message: error.to_string(),
            }
        })
    }

    pub(super) fn token(&self, credentials: Credentials) -> Secret {
        let node = &self.0.node;
        match credentials {
            Credentials::None => Secret::default(),
            Credentials::NodeSecret => node.secret.clone(),
            Credentials::Identity(identity) => identity.expose().into(),
        }
    }

    pub(super) fn region(&self) -> String {
        self.0.node.region.clone()
    }

    fn id(&self) -> String {
        self.0.node.id.to_string()
    }

    /// A node that has nothing to prove who it is by is introduced. An introduction that is over is refused also by
    /// servers that take nodes without one.
    async fn register(&self, auth_token: Secret, node: &ClientNode) -> Result<Answer, Error> {
        let introduction = match auth_token.is_empty() {
            true => self.0.node.introduction.token().await,
            false => Secret::default(),
        };
        if introduction.is_empty() {
            return self.register_by(auth_token, node).await;
        }
        match self.register_by(introduction, node).await {
            Err(why) if kind(&why) == CallErrorKind::PermissionDenied => {
                self.register_by(auth_token, node).await
            }
            other => other,
        }
    }

    async fn register_by(&self, auth_token: Secret, node: &ClientNode) -> Result<Answer, Error> {
        let secret = self.0.node.secret.clone();
        let mut node = node::of(node, secret, self.0.node.tls);
        let now = Time::from_unix_nanos(times::now().0);
        self.0.drivers.date(&mut node.drivers, now);
        let request = NodeRegister {
            auth_token,
            node: Some(Box::new(node)),
            region: self.region(),
            ..NodeRegister::default()
        };
        let reply = self.0.client.call(&request, USUAL).await?;
        Ok(Answer::Registered(node_reply(reply)))
    }

    async fn heartbeat(&self, auth_token: Secret, renew: bool) -> Result<Answer, Error> {
        let request = NodeUpdateStatus {
            auth_token,
            force_identity_renewal: renew,
            node_id: self.id(),
            region: self.region(),
            status: "ready".to_owned(),
            ..NodeUpdateStatus::default()
        };
        let reply = self.0.client.call_or_leave(&request, BEAT).await?;
        Ok(Answer::Heartbeat(node_reply(reply)))
    }

    async fn emit(&self, auth_token: Secret, events: &[NodeEvent]) -> Result<Answer, Error> {
        let events = events.iter().map(report::event).collect();
        let request = NodeEmitEvents {
            auth_token,
            node_events: [(self.id(), events)].into(),
            region: self.region(),
            ..NodeEmitEvents::default()
        };
        self.0.client.call(&request, USUAL).await?;
        Ok(Answer::EventsKept)
    }

    async fn watch(&self, auth_token: Secret, index: u64, wait: Span) -> Result<Answer, Error> {
        let request = NodeGetClientAllocs {
            // From a server that is not behind, the first time.
            allow_stale: index > 0,
            auth_token,
            max_query_time: wait.0,
            min_query_index: index,
            node_id: self.id(),
            region: self.region(),
            secret_id: self.0.node.secret.clone(),
            ..NodeGetClientAllocs::default()
        };
        let wait = blocking(wait);
        let reply = self.0.client.call_and_follow(&request, wait).await?;
        // What has no id of an allocation is none.
        let allocs = reply.allocs.iter();
        let allocs = allocs.filter_map(|(id, index)| Some((id.parse().ok()?, *index)));
        let tokens = reply.migrate_tokens.iter();
        let tokens = tokens.filter(|(_, token)| !token.is_empty());
        let tokens = tokens.filter_map(|(id, it)| Some((id.parse().ok()?, it.expose().into())));
        Ok(Answer::Indexes(AllocIndexes {
            index: reply.index,
            allocs: allocs.collect(),
            migrate_tokens: tokens.collect(),
        }))
    }

    /// A reply that is too long, or of which something cannot be read, is asked for in halves, until it is known which
    /// allocation makes it so. What came counts also where the rest does not come in time.
    async fn pull(
        &self,
        auth_token: Secret,
        ids: &[AllocId],
        newer_than: u64,
        wait: Span,
    ) -> Result<Answer, Error> {
        let mut pulled = PulledAllocs {
            index: u64::MAX,
            ..PulledAllocs::default()
        };
        let until = Instant::now() + blocking(wait);
        let mut pieces = vec![ids];
        while let Some(ids) = pieces.pop() {
            let piece = self.pull_piece(auth_token.clone(), ids, newer_than, wait);
            let piece = timeout_at(until, piece).await;
            let late = Error::Unavailable {
                method: AllocGetAllocs::METHOD,
                after: blocking(wait),
                last: None,
            };
            match (piece.unwrap_or(Err(late)), ids) {
                (Ok(reply), _) => {
                    pulled.index = pulled.index.min(reply.index);
                    for alloc in &reply.allocs {
                        let placed = placed::of_jobs(alloc, &self.0.jobs);
                        pulled.allocs.extend(placed.map(Arc::new));
                        // Many at once hold up nothing else.
                        yield_now().await;
                    }
                }
                (Err(error @ Error::InvalidReply { .. }), [id]) => {
                    pulled.unreadable.push((*id, error.to_string()));
                }
                (Err(Error::InvalidReply { .. }), [_, ..]) => {
                    let (some, others) = ids.split_at(ids.len() / 2);
                    pieces.extend([some, others]);
                }
                (Err(_), _) if !pulled.allocs.is_empty() || !pulled.unreadable.is_empty() => break,
                (Err(error), _) => return Err(error),
            }
        }
        Ok(Answer::Pulled(pulled))
    }

    async fn pull_piece(
        &self,
        auth_token: Secret,
        ids: &[AllocId],
        newer_than: u64,
        wait: Span,
    ) -> Result<Allocations, Error> {
        let request = AllocGetAllocs {
            alloc_ids: ids.iter().map(ToString::to_string).collect(),
            allow_stale: true,
            auth_token,
            max_query_time: wait.0,
            min_query_index: newer_than,
            region: self.region(),
            ..AllocGetAllocs::default()
        };
        let wait = blocking(wait);
        self.0.client.call_and_stay(&request, wait).await
    }

    async fn report(
        &self,
        auth_token: Secret,
        reports: &[Arc<AllocReport>],
    ) -> Result<Answer, Error> {
        let node = self.id();
        let request = NodeUpdateAlloc {
            alloc: reports.iter().map(|it| report::of(it, &node)).collect(),
            auth_token,
            region: self.region(),
            ..NodeUpdateAlloc::default()
        };
        self.0.client.call(&request, USUAL).await?;
        Ok(Answer::ReportsKept)
    }

    async fn register_services(
        &self,
        auth_token: Secret,
        services: &[Arc<ServiceInstance>],
    ) -> Result<Answer, Error> {
        let node = self.id();
        let services = services.iter().map(|it| service::of(it, &node));
        let request = ServiceRegistrationUpsert {
            auth_token,
            region: self.region(),
            services: services.collect(),
            ..ServiceRegistrationUpsert::default()
        };
        self.0.client.call(&request, USUAL).await?;
        Ok(Answer::ServicesRegistered)
    }

    /// Servers take one at a time. The first failure ends it: what was not removed is asked for again.
    async fn remove_services(
        &self,
        auth_token: Secret,
        services: &[Arc<ServiceInstance>],
    ) -> Result<Answer, Error> {
        let remove = |service: &Arc<ServiceInstance>| ServiceRegistrationDeleteById {
            auth_token: auth_token.clone(),
            id: service.id.to_string(),
            namespace: service.job.namespace.to_string(),
            region: self.region(),
            ..ServiceRegistrationDeleteById::default()
        };
        let calls = services.iter().map(remove);
        let calls: Vec<_> = calls.map(|one| self.remove_service(one)).collect();
        let calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        calls.try_collect::<()>().await?;
        Ok(Answer::ServicesRemoved)
    }

    async fn remove_service(&self, request: ServiceRegistrationDeleteById) -> Result<(), Error> {
        let removed = self.0.client.call(&request, USUAL).await;
        match removed {
            Ok(_) => Ok(()),
            Err(error) if error.server_error_kind() == Some(ServerErrorKind::UnknownService) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// How long a call may take with whose answer servers wait.
pub(super) fn blocking(wait: Span) -> Duration {
    let wait = Duration::from_nanos(u64::try_from(wait.0).unwrap_or(0));
    wait + wait / 16 + LATE
}

fn node_reply(reply: NodeUpdateReply) -> NodeReply {
    let eligibility = match reply.scheduling_eligibility.as_str() {
        "eligible" => Some(Eligibility::Eligible),
        "ineligible" => Some(Eligibility::Ineligible),
        // Nothing was said, or nothing that is known.
        _ => None,
    };
    let servers = reply.servers.into_iter();
    let servers = servers.map(|server| server.rpc_advertise_addr);
    NodeReply {
        heartbeat_ttl: Span(reply.heartbeat_ttl),
        servers: servers
            .filter(|it| !it.is_empty())
            .map(Into::into)
            .collect(),
        eligibility,
        identity: (reply.signed_identity)
            .filter(|identity| !identity.is_empty())
            .map(|identity| identity.expose().into()),
        index: reply.index,
    }
}

fn kind(error: &Error) -> CallErrorKind {
    match error.server_error_kind() {
        Some(ServerErrorKind::UnknownNode) => CallErrorKind::UnknownNode,
        Some(
            ServerErrorKind::PermissionDenied
            | ServerErrorKind::TokenNotFound
            | ServerErrorKind::SecretMismatch,
        ) => CallErrorKind::PermissionDenied,
        Some(ServerErrorKind::NoLeader | ServerErrorKind::NotReady) => CallErrorKind::NoLeader,
        Some(
            ServerErrorKind::NoPathToRegion
            | ServerErrorKind::MissingRegion
            | ServerErrorKind::NodeDown
            | ServerErrorKind::UnknownService
            | ServerErrorKind::UnknownMethod
            | ServerErrorKind::UndecodableRequest
            | ServerErrorKind::Coded(_)
            | ServerErrorKind::Other,
        ) => CallErrorKind::Other,
        None if *error == Error::NoServers => CallErrorKind::NoServers,
        None => CallErrorKind::Other,
    }
}
