//! Drover's decisions: a state machine that does no I/O, reads no clock, starts no thread and draws
//! no random number of its own.
//!
//! # The loop
//!
//! Whoever drives the core owns one [`agent::Agent`] and does this for ever:
//!
//! ```text
//! wait for an input, or for the instant of poll_timeout()
//! agent.handle(now, input)          or agent.handle_timeout(now)
//! while let Some(effect) = agent.poll_effect() { carry it out, without blocking }
//! ```
//!
//! Carrying out an effect leads to at most one answer, which is another input. Nobody is trusted to
//! answer: each operation has a number and a deadline, and what comes late is dropped.
//!
//! # The laws
//!
//! 1. One input at a time, in any order. Order is kept within a source, and not across sources.
//! 2. Every input is legal in every state: handled, latched, or declared stale by its fence.
//! 3. Nobody outside is trusted to answer.
//! 4. Remember before acting: effects that must not happen twice or be forgotten leave only when
//!    what led to them is saved ([`ledger`]).
//! 5. Names, not luck: what is made in the world bears an id that was saved first
//!    ([`ids::LaunchId`]), and is found again by it.
//! 6. Same inputs, same effects.
//! 7. A stall stays where it is.
//!
//! # The modules
//!
//! [`agent`] routes; [`alloc`] and [`task`] are the runners; [`local`] is the scheduling side of a
//! node without a cluster, and [`server`] of one that is the client of a cluster, whose words are in [`cluster`];
//! [`checks`] decides about the checks of services; [`hooks`] is the pipeline of steps around a task's life;
//! [`managers`] know the machine, and [`driver`], [`device`] and [`fingerprint`] validate what is reported of it; [`store`]
//! and [`ledger`] remember; [`broadcast`] gives listeners the latest version; [`gc`] selects what is removed;
//! [`host`] decides whose a thing on the host is; [`stats`] adds up what was measured;
//! [`model`] has Nomad's nouns. ARCHITECTURE.md has the map.

#![forbid(unsafe_code)]
#![deny(clippy::wildcard_enum_match_arm)]

pub mod agent;
pub mod alloc;
pub mod announced;
pub mod broadcast;
pub mod checks;
pub mod claims;
pub mod cluster;
pub mod config;
pub mod constraint;
pub mod cron;
pub mod cx;
pub mod device;
pub mod driver;
pub mod effect;
pub mod fingerprint;
pub mod fnv;
pub mod gc;
pub mod hooks;
pub mod host;
pub mod ids;
pub mod input;
pub mod interpolate;
pub mod ledger;
pub mod local;
pub mod managers;
pub mod model;
pub mod notice;
pub mod op;
pub mod operations;
pub mod pairs;
pub mod paths;
pub mod scheduler;
pub mod server;
pub mod service_waits;
pub mod stats;
pub mod store;
pub mod task;
pub mod text;
pub mod time;
pub mod validate;
pub mod work;
