//! TLS as a node, its servers and its commands use it: certificates and keys from files, whom a side believes, and
//! why a handshake failed, in words that help.
//!
//! The protocol itself is rustls with ring. This crate decides what rustls leaves open, in one place for all who
//! speak it: the wire to servers, the agent's API, and commands that ask it.
//!
//! | | |
//! |---|---|
//! | [`files`] | authorities, and a certificate with its key, from files in PEM |
//! | [`protocol`] | versions and cipher suites, by the names that Nomad's settings have |
//! | [`client`] | the side that connects: whom it believes; a handshake with a deadline |
//! | [`server`] | the side that listens: whether it wants certificates |
//! | [`error`] | why there is no connection |
//! | [`current`] | settings that are exchanged while they are used |
//!
//! **Certificates of Nomad.** One authority signs for a whole cluster; a name gives the role and the region of its
//! holder: `server.global.nomad`, `client.global.nomad`, `cli.global.nomad`. So a node asks for the name of a server
//! whatever the address is, and a certificate of a client cannot stand in for a server's.
//!
//! **Keys** are in memory and in no message: neither error nor `Debug` shows one.

#![forbid(unsafe_code)]

pub mod client;
pub mod current;
pub mod error;
pub mod files;
pub mod protocol;
pub mod server;

pub use current::Current;
pub use error::{SettingsError, TlsError};
pub use files::{Authorities, Identity};
pub use protocol::Protocol;
