//! Policies that every agent has from the start, so that a token is made with one command. Whoever makes a policy of
//! the same name replaces the ready one.
//!
//! `read` sees everything but what tasks write and what is secret: neither logs and files of tasks nor the contents
//! of variables. `deploy` runs jobs of all namespaces, with exec, logs and files of their tasks, and mounts host
//! volumes; it reads and writes no variables, and changes neither the node nor the agent.

/// A policy that is there without being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// Its rules.
    pub rules: &'static str,
}

/// All of them, by name.
pub const READY: [Ready; 2] = [
    Ready {
        name: "deploy",
        description: "Runs jobs in all namespaces, and sees the node",
        rules: include_str!("ready/deploy.hcl"),
    },
    Ready {
        name: "read",
        description: "Sees everything but logs, files and variables",
        rules: include_str!("ready/read.hcl"),
    },
];

/// The ready policy of this name.
pub fn named(name: &str) -> Option<&'static Ready> {
    READY.iter().find(|ready| ready.name == name)
}
