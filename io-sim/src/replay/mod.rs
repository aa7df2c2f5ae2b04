//! Recordings of real agents, played again.
//!
//! The core does the same when it is told the same. So a recording of what an agent was told tells
//! all that it did, and every state that it was in: [`Player`] plays it step by step and compares
//! what the agent of today does with what the recorded one did ([`verify`]).
//!
//! Words for people are made from it, those of the simulator's own stories: a [`timeline`](story), the
//! chain of inputs that touched something ([`why`]), what a step changed ([`diff`]), and a small
//! [`debugger`].

mod damage;
pub mod debugger;
pub mod diff;
pub mod entity;
mod player;
mod recording;
pub mod story;
pub mod why;

pub use damage::Damage;
pub use player::{Difference, Interval, Played, Player, Verdict, outcome, verify};
pub use recording::{Event, Recording, Segment, Unreadable};
