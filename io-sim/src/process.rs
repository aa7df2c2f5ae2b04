//! Processes: they outlive the agent.

use std::sync::Arc;

use drover_core::driver::config::MockConfig;
use drover_core::ids::TaskKey;
use drover_core::model::alloc::ExitResult;
use serde::Serialize;

/// What the world knows of one launch id.
#[derive(Clone, Debug, Serialize)]
pub struct Process {
    /// Which task's.
    pub key: TaskKey,
    /// What people read in traces.
    #[serde(skip)]
    pub name: Arc<str>,
    /// How it behaves.
    pub config: Arc<MockConfig>,
    /// How often a start was asked for.
    pub claims: u32,
    /// How often it was started.
    pub starts: u32,
    /// Whether it lives.
    pub alive: bool,
    /// It never will start: somebody looked for it or destroyed it before it did.
    pub tombstone: bool,
    /// How it ended, once it did and if anybody can know.
    pub exit: Option<ExitResult>,
    /// How its engine said that it ended, while it lived.
    pub told: Option<ExitResult>,
    /// Whether it lived when the machine went down.
    pub rebooted: bool,
    /// Whether the world gave anybody reason to say that the exit is unknown.
    pub unknowable: bool,
    /// Whether the agent that lives now is told of its end.
    pub watched: bool,
    /// Whether the world destroyed it.
    pub destroyed: bool,
    /// Whether the agent said that it is not needed any more.
    pub forgotten: bool,
    /// Whether the polite signal arrived.
    pub stopping: bool,
}

impl Process {
    /// A launch of `key` of which nothing is known yet.
    pub(crate) fn new(key: TaskKey, name: Arc<str>) -> Process {
        Process {
            key,
            name,
            config: Arc::default(),
            claims: 0,
            starts: 0,
            alive: false,
            tombstone: false,
            exit: None,
            told: None,
            rebooted: false,
            unknowable: false,
            watched: false,
            destroyed: false,
            forgotten: false,
            stopping: false,
        }
    }

    /// The end that it had, and the one that its engine only said it had.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &ExitResult> {
        self.exit.iter().chain(&self.told)
    }
}
