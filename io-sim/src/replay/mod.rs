//! Recordings of real agents, played again.
//!
//! The core does the same when it is told the same. So a recording of what an agent was told tells
//! all that it did, and every state that it was in: [`Player`] plays it step by step and compares
//! what the agent of today does with what the recorded one did.
//!
//! Words for people are made from it: a [`timeline`](story), the chain of inputs that touched
//! something ([`why`]), what a step changed ([`diff`]), and a small [`debugger`].

mod damage;
pub mod debugger;
pub mod diff;
pub mod entity;
mod player;
mod reading;
mod recording;
pub mod story;
mod unpack;
pub mod why;

pub use damage::Damage;
pub use player::{Difference, Played, Player, Verdict, verify};
pub use recording::{Event, Recording, Segment, Unreadable};
