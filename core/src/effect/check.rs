//! What is asked of services, to see whether they work.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::AllocId;
use crate::model::check::HttpRequest;
use crate::op::Op;
use crate::time::Span;

/// What whoever asks services is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CheckEffect {
    /// Ask this. Answer with [`crate::input::CheckInput`].
    Run {
        /// The operation.
        op: Op,
        /// Whose service.
        alloc: AllocId,
        /// Which of the allocation's checks, in the order of the job file.
        check: usize,
        /// What to ask.
        probe: Arc<Probe>,
    },
    /// The answer is no longer wanted.
    Cancel {
        /// The operation.
        op: Op,
    },
}

impl CheckEffect {
    /// The operation that this is about.
    pub fn op(&self) -> Op {
        match self {
            CheckEffect::Run { op, .. } | CheckEffect::Cancel { op } => *op,
        }
    }
}

/// A question to a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// An address or a name.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// How long all of it may take.
    pub timeout: Span,
    /// How it is asked.
    pub how: ProbeKind,
}

/// How a service is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProbeKind {
    /// By this request. Redirections are not followed.
    Http(HttpRequest),
    /// By connecting, and no more.
    Tcp,
    /// By `grpc.health.v1.Health/Check` for this service, without TLS.
    Grpc(String),
}
