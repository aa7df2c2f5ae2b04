//! A node against a model of servers that lose, delay, double and refuse calls, forget the node and change their leader; and
//! what must hold of that, over many seeds. Each fault that this found has a named test.

mod allocs;
mod checks;
mod elsewhere;
mod identities;
mod life;
mod reports;
mod servers;
mod services;
mod silence;
mod templates;
mod world;
