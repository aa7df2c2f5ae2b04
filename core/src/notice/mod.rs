//! Which changes are told to operators at once, wherever they asked to be told: a task failed for good, a
//! roll-out ended, the disk fills up.
//!
//! Most of them are read off the records that a commit changes ([`Watch`]), so that an agent that
//! starts again finds in its store what it may not have told yet. What no record says (checks, how full the disk
//! is) the core itself tells, as a [`Notification`](crate::effect::Notification), if the configuration wants
//! notices at all.
//!
//! **A notice has no secrets.** Its words are made here, of fixed sentences, numbers, and names that stand in the job file;
//! nothing is taken from the messages of drivers, hooks, templates, artifacts or checks, because these may quote
//! what a variable of a task says. Whoever wants to know more asks the agent.
//!
//! **To add one:** an [`Event`](crate::model::notice::Event); what of a record says so, as a `Fact` of `facts.rs`; if no
//! record does, a `Notification::Notice` where it is decided, if [`Config::notices`](crate::config::Config::notices)
//! says so; a line in `docs/notify.md`.

mod facts;
#[cfg(test)]
mod tests;
mod watch;

pub use watch::Watch;
