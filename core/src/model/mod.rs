//! Nomad's nouns: plain data in the shapes of its JSON, without behaviour but for a job's
//! defaults and the check whether it can be run.

pub mod alloc;
pub mod artifact;
pub mod canonical;
pub mod device;
pub mod dispatch;
pub mod eval;
pub mod event;
pub mod float;
pub mod group;
pub mod identity;
pub mod job;
pub(crate) mod names;
pub mod node;
pub mod placement;
pub mod policy;
pub mod processors;
pub mod remote;
pub mod service;
pub mod task;
pub mod template;
pub mod value;
pub mod variable;
