//! The way to the agent's core, for everything that people and programs ask of it.
//!
//! One task owns the core. Whoever wants something of it knocks: the owner takes one [`Knock`] at
//! a time between its other inputs, so that no lock is ever held and nobody sees half a step.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use drover_core::agent::View;
use drover_core::effect::Reply;
use drover_core::input::{LocalInput, OperatorInput, TaskKey};
use drover_core::model::event::TaskEvent;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

/// How many knocks may wait before the next one waits outside.
const WAITING: usize = 256;
/// How many task events a slow listener may be behind before it misses some.
const EVENTS: usize = 1024;

/// The agent has ended, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the agent is shutting down")
    }
}

impl core::error::Error for Gone {}

/// A question, with the way of its answer inside.
pub type Question = Box<dyn for<'a> FnOnce(View<'a>) + Send>;

/// One thing that is wanted of the core. Dropping it unanswered tells the other side
/// [`Gone`].
pub enum Knock {
    /// Run this on the owner's task.
    Ask(Question),
    /// Hand this to the core, and its reply back.
    Local(LocalInput, oneshot::Sender<Reply>),
    /// Hand this to the core, and its reply back.
    Operator(OperatorInput, oneshot::Sender<Reply>),
}

impl fmt::Debug for Knock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Knock::Ask(_) => f.write_str("Ask"),
            Knock::Local(input, _) => f.debug_tuple("Local").field(input).finish(),
            Knock::Operator(input, _) => f.debug_tuple("Operator").field(input).finish(),
        }
    }
}

/// The way to the agent's core. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    knocks: mpsc::Sender<Knock>,
    index: watch::Receiver<u64>,
    events: broadcast::Sender<(TaskKey, TaskEvent)>,
    alloc_root: Arc<OwnedFd>,
}

/// The owner's side of the door.
#[derive(Debug)]
pub struct DoorKeeper {
    /// What is wanted, in order. To be drained for as long as the agent lives.
    pub knocks: mpsc::Receiver<Knock>,
    /// To be set whenever the core tells a new index, after the step that led to it.
    pub index: watch::Sender<u64>,
    /// To be sent each task event that the core tells. Nobody listening is no error.
    pub events: broadcast::Sender<(TaskKey, TaskEvent)>,
}

impl Door {
    /// A door to a core whose allocations live below the directory `alloc_root`.
    pub fn new(alloc_root: OwnedFd) -> (Door, DoorKeeper) {
        let (knocks, knocked) = mpsc::channel(WAITING);
        let (set_index, index) = watch::channel(0);
        let (events, _) = broadcast::channel(EVENTS);
        let door = Door {
            knocks,
            index,
            events: events.clone(),
            alloc_root: Arc::new(alloc_root),
        };
        let keeper = DoorKeeper {
            knocks: knocked,
            index: set_index,
            events,
        };
        (door, keeper)
    }

    /// Looks at the core. The question must be quick: the core waits for it.
    ///
    /// # Errors
    /// The agent has ended.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let question: Question = Box::new(move |view| {
            // Nobody may be left to hear it.
            let _ = answer.send(question(view));
        });
        self.knock(Knock::Ask(question)).await?;
        answered.await.map_err(|_| Gone)
    }

    /// Asks the scheduling side of this node for something.
    ///
    /// # Errors
    /// The agent has ended.
    pub async fn local(&self, input: LocalInput) -> Result<Reply, Gone> {
        let (reply, replied) = oneshot::channel();
        self.knock(Knock::Local(input, reply)).await?;
        replied.await.map_err(|_| Gone)
    }

    /// Asks something of an allocation.
    ///
    /// # Errors
    /// The agent has ended.
    pub async fn operator(&self, input: OperatorInput) -> Result<Reply, Gone> {
        let (reply, replied) = oneshot::channel();
        self.knock(Knock::Operator(input, reply)).await?;
        replied.await.map_err(|_| Gone)
    }

    async fn knock(&self, knock: Knock) -> Result<(), Gone> {
        self.knocks.send(knock).await.map_err(|_| Gone)
    }

    /// The state's index, to wait for changes.
    pub fn index(&self) -> watch::Receiver<u64> {
        self.index.clone()
    }

    /// Task events as they happen.
    pub fn events(&self) -> broadcast::Receiver<(TaskKey, TaskEvent)> {
        self.events.subscribe()
    }

    /// The directory in which each allocation has one of its id's name.
    pub fn alloc_root(&self) -> Arc<OwnedFd> {
        self.alloc_root.clone()
    }
}
