//! Nomad's nouns: plain data in the shapes of its JSON, without behaviour but for a job's
//! defaults and the check whether it can be run.
//!
//! What has come to an end is said with these words, each with one meaning:
//!
//! | word | of | meaning |
//! |---|---|---|
//! | exited | a process | it ended; its status is known, or nobody can know it |
//! | dead | a task | it ended and is not started again by itself ([`alloc::TaskLife::Dead`]) |
//! | dead | a job | it is stopped, or all of its work is done; nothing of it runs |
//! | complete, failed, lost | an allocation | its client status at its end, as the servers know it ([`alloc::ClientStatus`]) |
//! | terminal | an allocation | desired to stop or evict, or complete, failed or lost: it starts nothing new |
//! | terminal | a task | dead, or successful for good: only clean-up is left |
//! | finished | a task | dead, and nobody waits for what is left of its launch |
//! | finished | an allocation | its tasks are finished and its last hooks ran; its directory and records are left |
//! | gone | an allocation | finished, no process of it lives, and its network is removed: its claims are free |
//! | destroyed | a launch | its driver removed what was left of it |
//! | destroyed | an allocation | its directory is removed |
//! | collected | an allocation | destroyed as garbage; a short record of it is kept |
//! | forgotten | a record | removed from the store |

pub mod acl;
pub mod alloc;
pub mod artifact;
pub mod authority;
pub mod canonical;
pub mod check;
pub mod device;
pub mod dispatch;
pub mod drain;
pub mod eval;
pub mod event;
pub mod float;
pub mod group;
pub mod identity;
pub mod image;
pub mod job;
pub(crate) mod names;
pub mod namespace;
pub mod network;
pub mod node;
pub mod notice;
pub mod periodic;
pub mod placement;
pub mod policy;
pub mod processors;
pub mod remote;
pub mod scaling;
pub mod scheduler;
pub mod secret;
pub mod service;
pub mod service_instance;
pub mod submission;
pub mod task;
pub mod template;
pub mod value;
pub mod variable;
pub mod version;
pub mod volume;
