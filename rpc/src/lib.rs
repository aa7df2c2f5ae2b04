//! The wire between a node and Nomad's servers: the messages.
//!
//! ```text
//!   types          messages as declared types, with their methods
//!   msgpack        their encoding, and where an object ends
//! ```
//!
//! **No server is trusted.** Bytes and depth of a message are bounded, and so is the memory that decoding it takes
//! ([`msgpack::decode`]).
//!
//! **Tests.** Messages are compared with recorded ones (`tests/recorded`).
//!
//! **Dependencies.** The msgpack dialect is our own code, because no library writes it (see [`msgpack`]).

#![forbid(unsafe_code)]

pub mod msgpack;
pub mod types;
