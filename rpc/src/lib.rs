//! The wire between a node and Nomad's servers: connections, calls in both directions, messages.
//!
//! This crate knows how to talk to servers, and nothing of what a node does: when it registers, what it does
//! with allocations, what it answers. Its user provides a way to connect ([`client::Connector`]), answers to
//! inbound calls ([`connection::Handler`]), and makes calls ([`client::Client::call`]).
//!
//! ```text
//!   client         calls to the cluster: current connection, fail-over, retries
//!     servers        which server to use: list, order, back-off; no I/O
//!     connection     one connection: many calls in both directions
//!       driver         the task that owns the yamux session
//!       outbound       calls to the server
//!       inbound        calls of the server, answered by the handler
//!       streaming      streaming calls of the server
//!       reader         objects from a stream, however their bytes are split
//!       limits         what a connection may cost
//!   types          messages as declared types, with their methods
//!   msgpack        their encoding, and where an object ends
//!   tls            a connector that encrypts what another one connects
//!   preamble       the bytes that begin a connection and its streams
//!   error          why a call failed, at which server, and what to do
//! ```
//!
//! **Protocol.** A connection begins with one byte, followed by yamux. Both sides open streams; each stream
//! begins with a byte for its type, and carries calls or one streaming call ([`preamble`]). A message is one
//! msgpack object, without a length in front of it.
//!
//! **TLS** is a [`client::Connector`] around another one ([`tls::Tls`]), so what is above it does not know of it, but
//! for the reasons of its failures ([`error::Error::Tls`]).
//!
//! **No server is trusted.** Everything that a server can choose is bounded: bytes and depth of a message,
//! the memory that decoding it takes ([`msgpack::decode`]), streams, calls at once, the time for each step
//! ([`connection::Limits`]), the number of servers and the length of their addresses. What exceeds a limit
//! fails its call or stream; a violation of yamux fails its connection, and the client fails over. Nothing
//! panics.
//!
//! **Tests.** Messages and connections are compared with recorded ones (`tests/recorded`). The client is tested
//! over a simulated network, against a model of Go's yamux that knows its timers, and against a real
//! server where there is one. Time is tokio's, so it can be simulated; only yamux reads the machine's clock, to
//! size receive windows.
//!
//! **Dependencies.** yamux is a library: this one works with Go's implementation, and its one gap is filled in
//! `connection/driver.rs`. The msgpack dialect is our own code, because no library writes it (see [`msgpack`]).

#![forbid(unsafe_code)]

pub mod client;
pub mod connection;
pub mod error;
pub mod msgpack;
pub mod preamble;
pub mod servers;
pub mod tls;
pub mod types;
