//! Why a call failed: what happened, at which server, and what to do about it.

use std::fmt;
use std::time::Duration;

use drover_tls::TlsError;

use crate::msgpack::Malformed;

/// How many bytes of a server's error text are kept.
const MAX_TEXT: usize = 4096;

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No connection could be made; the request was not sent.
    Unreachable {
        /// The server's address.
        server: String,
        /// The reason, in words.
        reason: String,
    },
    /// There is no TLS with the server: one of both does not take the other's certificate, or does not speak it.
    Tls {
        /// The server's address.
        server: String,
        /// The reason.
        reason: TlsError,
    },
    /// The connection, or the call's stream, was closed before the reply.
    ConnectionLost {
        /// The server's address.
        server: String,
        /// The method that was called.
        method: &'static str,
        /// Whether the request was sent, and so may have been carried out.
        sent: bool,
        /// The reason, in words.
        reason: String,
    },
    /// No reply before the deadline.
    DeadlineExceeded {
        /// The server's address.
        server: String,
        /// The method that was called.
        method: &'static str,
        /// The time that the caller allowed.
        after: Duration,
        /// Whether the server acknowledged the call's stream, which it does at once, or the call was
        /// still waiting to be sent. If not, the connection is probably dead.
        acknowledged: bool,
    },
    /// No server could be reached before the deadline.
    Unavailable {
        /// The method that was called.
        method: &'static str,
        /// The time that the caller allowed.
        after: Duration,
        /// The last failure.
        last: Option<Box<Error>>,
    },
    /// The server replied with an error.
    Server {
        /// The server's address.
        server: String,
        /// The method that was called.
        method: &'static str,
        /// The error.
        error: ServerError,
    },
    /// The server sent something that is not a reply to this call.
    InvalidReply {
        /// The server's address.
        server: String,
        /// The method that was called.
        method: &'static str,
        /// What is wrong with it.
        reason: Malformed,
    },
    /// The request cannot be encoded.
    InvalidRequest {
        /// The method that was called.
        method: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No server is known.
    NoServers,
}

impl Error {
    /// The kind of the server's error, if the server replied with one.
    pub fn server_error_kind(&self) -> Option<ServerErrorKind> {
        match self {
            Error::Server { error, .. } => Some(error.kind),
            Error::Unreachable { .. }
            | Error::Tls { .. }
            | Error::ConnectionLost { .. }
            | Error::DeadlineExceeded { .. }
            | Error::Unavailable { .. }
            | Error::InvalidReply { .. }
            | Error::InvalidRequest { .. }
            | Error::NoServers => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreachable { server, reason } => write!(
                f,
                "server {server} cannot be reached: {reason}; check its address and that it is \
                 running"
            ),
            Error::Tls { server, reason } => {
                write!(f, "no TLS with server {server}: {reason}")
            }
            Error::ConnectionLost {
                server,
                method,
                sent,
                reason,
            } => {
                write!(
                    f,
                    "the connection to server {server} was lost during {method}: {reason}; "
                )?;
                f.write_str(match sent {
                    true => "the server may or may not have carried out the call",
                    false => "the call was not sent, try again",
                })
            }
            Error::DeadlineExceeded {
                server,
                method,
                after,
                acknowledged,
            } => {
                write!(
                    f,
                    "server {server} did not reply to {method} within {after:?}; "
                )?;
                f.write_str(match acknowledged {
                    true => "the connection works, the server may be overloaded",
                    false => "it did not acknowledge the call either, check the network",
                })
            }
            Error::Unavailable {
                method,
                after,
                last,
            } => {
                write!(
                    f,
                    "no server could be reached for {method} within {after:?}"
                )?;
                match last {
                    Some(last) => write!(f, "; last failure: {last}"),
                    None => Ok(()),
                }
            }
            Error::Server {
                server,
                method,
                error,
            } => {
                write!(f, "server {server} refused {method}: {}", error.text)?;
                match error.kind.advice() {
                    Some(advice) => write!(f, "; {advice}"),
                    None => Ok(()),
                }
            }
            Error::InvalidReply {
                server,
                method,
                reason,
            } => write!(
                f,
                "server {server} sent an invalid reply to {method}: {reason}; check that the \
                 address is that of a server's RPC port"
            ),
            Error::InvalidRequest { method, reason } => {
                write!(f, "{method} cannot be sent: {reason}")
            }
            Error::NoServers => f.write_str("no server is known; name one, as host:4647"),
        }
    }
}

impl std::error::Error for Error {}

/// An error that a server replied with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// Its text, cut if it is long.
    pub text: String,
    /// What it means for a node.
    pub kind: ServerErrorKind,
}

/// What a server's error means for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerErrorKind {
    /// The node is not known: register it.
    UnknownNode,
    /// The token is not accepted, or belongs to another node: register again.
    PermissionDenied,
    /// There is no such token.
    TokenNotFound,
    /// The node's id is registered with another secret.
    SecretMismatch,
    /// There is no leader at the moment: try again.
    NoLeader,
    /// The server has just started and cannot serve yet: try again.
    NotReady,
    /// The server does not know the region.
    NoPathToRegion,
    /// The request names no region.
    MissingRegion,
    /// The node counts as down or disconnected: send a heartbeat first.
    NodeDown,
    /// The service registration does not exist (any more).
    UnknownService,
    /// The server does not have this method: it is of another version.
    UnknownMethod,
    /// The server could not decode the request.
    UndecodableRequest,
    /// An error with an HTTP status code.
    Coded(u16),
    /// Anything else.
    Other,
}

impl ServerError {
    /// Classifies an error text. Servers that forward a call put a prefix in front of its error, so the
    /// known texts are searched for, not compared.
    pub fn new(text: &str) -> ServerError {
        let mut end = text.len().min(MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        ServerError {
            text: text[..end].to_owned(),
            kind: ServerErrorKind::of(text),
        }
    }
}

/// Known texts; the first one that is found decides.
const TEXTS: &[(&str, ServerErrorKind)] = &[
    ("rpc: can't find", ServerErrorKind::UnknownMethod),
    ("msgpack decode error", ServerErrorKind::UndecodableRequest),
    ("Permission denied", ServerErrorKind::PermissionDenied),
    ("ACL token not found", ServerErrorKind::TokenNotFound),
    ("No cluster leader", ServerErrorKind::NoLeader),
    ("since server is not leader", ServerErrorKind::NoLeader),
    (
        "Not ready to serve consistent reads",
        ServerErrorKind::NotReady,
    ),
    (
        "keyring has not been initialized",
        ServerErrorKind::NotReady,
    ),
    ("No path to region", ServerErrorKind::NoPathToRegion),
    (
        "missing region for target RPC",
        ServerErrorKind::MissingRegion,
    ),
    (
        "node secret ID does not match",
        ServerErrorKind::SecretMismatch,
    ),
    (
        "is not allowed to update allocs while in status",
        ServerErrorKind::NodeDown,
    ),
    (
        "service registration not found",
        ServerErrorKind::UnknownService,
    ),
    ("node not found", ServerErrorKind::UnknownNode),
];

impl ServerErrorKind {
    fn of(text: &str) -> ServerErrorKind {
        if let Some((_, kind)) = TEXTS.iter().find(|(part, _)| text.contains(part)) {
            return *kind;
        }
        let code = text
            .split_once("RPC Error:: ")
            .and_then(|(_, rest)| rest.split_once(','));
        match code.and_then(|(code, _)| code.parse().ok()) {
            Some(code) => ServerErrorKind::Coded(code),
            None => ServerErrorKind::Other,
        }
    }

    /// Whether the same call may succeed a little later.
    pub fn is_temporary(self) -> bool {
        matches!(self, ServerErrorKind::NoLeader | ServerErrorKind::NotReady)
    }

    fn advice(self) -> Option<&'static str> {
        match self {
            ServerErrorKind::UnknownNode => Some("the node must be registered again"),
            ServerErrorKind::PermissionDenied | ServerErrorKind::TokenNotFound => {
                Some("the node must be registered again, or needs an introduction token")
            }
            ServerErrorKind::SecretMismatch => {
                Some("another node has this id: give each node a data directory of its own")
            }
            ServerErrorKind::NoLeader => Some("an election may be going on; try again"),
            ServerErrorKind::NotReady => Some("the server has just started; try again"),
            ServerErrorKind::NoPathToRegion => Some("check the region in the node's settings"),
            ServerErrorKind::MissingRegion => Some("name the region in the node's settings"),
            ServerErrorKind::NodeDown => Some("the node must send a heartbeat first"),
            ServerErrorKind::UnknownMethod => Some("the server is of a version without it"),
            ServerErrorKind::UnknownService
            | ServerErrorKind::UndecodableRequest
            | ServerErrorKind::Coded(_)
            | ServerErrorKind::Other => None,
        }
    }
}
