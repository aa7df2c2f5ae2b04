//! The parts of the `drover` program: the command line, the HTTP API, job files, and what joins
//! them to the core.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "tests may fail")
)]

pub mod acl;
pub mod admission;
pub mod agent_handle;
pub mod agent_log;
pub mod capability;
pub mod cli;
mod cluster;
pub use cluster::untrusted as cluster_untrusted;
pub mod config;
pub mod http;
pub mod jobspec;
mod json;
pub mod program;
pub mod runtime;
pub mod signals;
mod sizes;
pub mod times;
mod tls;

#[cfg(test)]
pub(crate) mod testing;
