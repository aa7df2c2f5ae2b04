//! The classes of properties: what any agent of a node owes its users.
//!
//! A crash is at any point between two effects; "in the end" means within a stated time after the last trouble.
//!
//! | class | what holds |
//! |---|---|
//! | P1 | nothing saved or acknowledged as terminal starts again, whatever crashes |
//! | P2 | what Drover made belongs to a known task, or is removed |
//! | P3 | in the end what runs is what is desired, by the newest version and never by an older one |
//! | P4 | a restored agent finds, restarts or gives up each task; none ever runs twice at once |
//! | P5 | what is not proved to be ours is not touched |
//! | P6 | after a crash the store holds the last acknowledged state, whole |
//! | P7 | what a task needs exists before each of its starts |
//! | P8 | no two live allocations share an address or a port of the host |
//! | P11 | whatever waits has a deadline or a named thing that it waits for |
//! | P12 | a stall delays nothing else; the core answers at once |
//! | P13 | a stop ends in a force kill, and a replacement waits until no process lives |
//! | P14 | what was acquired is released exactly once, and not before its user is gone |
//! | P15 | what is kept is bounded by what runs and by the configured limits |
//! | P17 | only terminal things are collected, and no more than needed |
//! | P19 | a port is assigned again only when nothing can hold it |
//! | P21 | a reported exit is true, reported once, and "unknown" where it cannot be known |
//! | P22 | a node and the servers of its cluster agree again after any silence, and say no more than they need to |
//! | P23 | an agent that shuts down leaves what its mode promises |
//! | P24 | the order of a group's life; hooks neither skipped nor run twice |
//! | P25 | the restart budget is never exceeded, nor new because the agent is |
//! | P26 | doing again what a crash left open changes nothing |
//! | P27 | reported state only goes forward, and in the end is the truth |
//! | P28 | no secret is readable by others |
//! | P29 | each template change is applied to a task once, by its change mode |
//! | P30 | the same inputs lead to the same effects |
//!
//! P9 (storage plugins), P10 (versions of the agent), P16 (logs), P18 (attribution) and P20 (which processors the kernel
//! lets a task have) are about parts that the simulated world does not have: tests with the real ones stand for them.

/// What an agent owes its users. The module's table says which is which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// No resurrection.
    P1,
    /// No orphan.
    P2,
    /// The wanted runs.
    P3,
    /// Restoring is total, and nothing runs twice.
    P4,
    /// Only ours is touched.
    P5,
    /// The store survives.
    P6,
    /// Needs are there first.
    P7,
    /// Addresses are unique.
    P8,
    /// Nothing is stuck.
    P11,
    /// Nothing hinders another.
    P12,
    /// Stops escalate.
    P13,
    /// Acquired is released.
    P14,
    /// Memory is bounded.
    P15,
    /// The ended are kept.
    P17,
    /// Ports are held.
    P19,
    /// Exits are reported truly.
    P21,
    /// Node and servers agree.
    P22,
    /// Ends of agents.
    P23,
    /// Order of life.
    P24,
    /// Restart budget.
    P25,
    /// Again is once.
    P26,
    /// Reports go forward.
    P27,
    /// Secrets are kept.
    P28,
    /// Changes are applied once.
    P29,
    /// Determinism.
    P30,
}
