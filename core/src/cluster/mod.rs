//! What a node and the servers of its cluster say to each other, as values: calls, answers, and why there is none.
//!
//! The node is always the one that calls. Each call has a number and a deadline as every operation; whoever carries
//! it out chooses the server, puts it into the protocol's form, and reports one answer. What a node decides about
//! its calls is in [`crate::server`].

mod alloc;
mod node;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use alloc::{AllocIndexes, AllocReport, PlacedAlloc, PulledAllocs};
pub use node::{ClientDriver, ClientNode, ReservedResources};

use crate::ids::AllocId;
use crate::model::drain::Eligibility;
use crate::model::node::NodeEvent;
use crate::model::secret::Secret;
pub use crate::model::service_instance::ServiceInstance;
use crate::time::Span;

/// By what servers know who calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Credentials {
    /// Nothing: the node is not known yet. An introduction token may take its place.
    None,
    /// The node's own secret, which whoever carries out calls knows.
    NodeSecret,
    /// The identity that servers signed for the node.
    Identity(Secret),
}

/// What a node asks of servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Call {
    /// To know the node as it is now, whole: what is not in it is forgotten.
    Register(Arc<ClientNode>),
    /// To know that the node is alive and ready.
    Heartbeat {
        /// Whether a new identity is wanted, however long the present one is valid.
        renew_identity: bool,
    },
    /// To keep these events of the node.
    EmitEvents(Vec<NodeEvent>),
    /// Which allocations the node has, as soon as servers know more than they did at an index. By index 0 all are
    /// wanted at once, and from a server that is not behind.
    WatchAllocs {
        /// The index.
        index: u64,
        /// After how long servers answer though they know no more.
        max_wait: Span,
    },
    /// Allocations in full.
    PullAllocs {
        /// Which.
        ids: Vec<AllocId>,
        /// Servers that know nothing newer of any of them than this index wait until they do.
        newer_than: u64,
        /// But no longer than this.
        max_wait: Span,
    },
    /// To know what became of allocations.
    ReportAllocs(Vec<Arc<AllocReport>>),
    /// To have these services as they are now; what else they have stays.
    RegisterServices(Vec<Arc<ServiceInstance>>),
    /// To have these services no more. One that they do not have is removed.
    RemoveServices(Vec<Arc<ServiceInstance>>),
}

impl Call {
    /// Which kind of call it is.
    pub fn kind(&self) -> CallKind {
        match self {
            Call::Register(_) => CallKind::Register,
            Call::Heartbeat { .. } => CallKind::Heartbeat,
            Call::EmitEvents(_) => CallKind::EmitEvents,
            Call::WatchAllocs { .. } => CallKind::WatchAllocs,
            Call::PullAllocs { .. } => CallKind::PullAllocs,
            Call::ReportAllocs(_) => CallKind::ReportAllocs,
            Call::RegisterServices(_) => CallKind::RegisterServices,
            Call::RemoveServices(_) => CallKind::RemoveServices,
        }
    }
}

/// The kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CallKind {
    /// [`Call::Register`].
    Register,
    /// [`Call::Heartbeat`].
    Heartbeat,
    /// [`Call::EmitEvents`].
    EmitEvents,
    /// [`Call::WatchAllocs`].
    WatchAllocs,
    /// [`Call::PullAllocs`].
    PullAllocs,
    /// [`Call::ReportAllocs`].
    ReportAllocs,
    /// [`Call::RegisterServices`].
    RegisterServices,
    /// [`Call::RemoveServices`].
    RemoveServices,
}

impl CallKind {
    /// The kind in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            CallKind::Register => "registration",
            CallKind::Heartbeat => "heartbeat",
            CallKind::EmitEvents => "node events",
            CallKind::WatchAllocs => "watch of allocations",
            CallKind::PullAllocs => "pull of allocations",
            CallKind::ReportAllocs => "report of allocations",
            CallKind::RegisterServices => "registration of services",
            CallKind::RemoveServices => "removal of services",
        }
    }
}

/// What servers answer to a call that succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// To a registration.
    Registered(NodeReply),
    /// To a heartbeat.
    Heartbeat(NodeReply),
    /// To events.
    EventsKept,
    /// Which allocations the node has.
    Indexes(AllocIndexes),
    /// Allocations in full.
    Pulled(PulledAllocs),
    /// To a report.
    ReportsKept,
    /// To a registration of services.
    ServicesRegistered,
    /// To a removal of services.
    ServicesRemoved,
}

impl Answer {
    /// To which kind of call it is an answer.
    pub fn answers(&self) -> CallKind {
        match self {
            Answer::Registered(_) => CallKind::Register,
            Answer::Heartbeat(_) => CallKind::Heartbeat,
            Answer::EventsKept => CallKind::EmitEvents,
            Answer::Indexes(_) => CallKind::WatchAllocs,
            Answer::Pulled(_) => CallKind::PullAllocs,
            Answer::ReportsKept => CallKind::ReportAllocs,
            Answer::ServicesRegistered => CallKind::RegisterServices,
            Answer::ServicesRemoved => CallKind::RemoveServices,
        }
    }
}

/// What servers say of a node that registers or beats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeReply {
    /// How long the node counts as alive without another heartbeat.
    pub heartbeat_ttl: Span,
    /// The addresses of all servers that there are. If there is none, the reply is worth nothing.
    pub servers: Vec<Arc<str>>,
    /// Whether the node gets new allocations; as before if none.
    pub eligibility: Option<Eligibility>,
    /// A new identity; the present one stays if none.
    pub identity: Option<Secret>,
    /// The servers' index of the change, if something they know of the node was changed by the call.
    pub index: u64,
}

/// Why a call did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CallError {
    /// Which kind of failure it is: that decides what follows.
    pub kind: CallErrorKind,
    /// What happened, for people.
    pub message: String,
}

/// The kinds of failures that differ in what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CallErrorKind {
    /// No server is known that could be asked.
    NoServers,
    /// The servers have no leader.
    NoLeader,
    /// The servers do not know this node.
    UnknownNode,
    /// The servers do not accept the credentials.
    PermissionDenied,
    /// Anything else: not reached, lost on the way, too late, refused.
    Other,
}

impl CallError {
    /// There was no answer in time.
    pub fn too_late() -> CallError {
        CallError {
            kind: CallErrorKind::Other,
            message: "no server answers".to_owned(),
        }
    }
}
