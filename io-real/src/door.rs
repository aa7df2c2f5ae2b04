//! The handle through which API, commands and templates reach the core: questions about its state,
//! and requests.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drover_core::agent::View;
use drover_core::agent::requests::Request;
use drover_core::effect::{Reply, Told};
use drover_core::ids::TaskKey;
use drover_core::input::ShutdownMode;
use drover_core::model::event::TaskEvent;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::timing::{Timer, Timing};

/// How many who knock may wait at a time; the next one waits outside.
const WAITING: usize = 256;

/// How many events a listener may be behind before it misses some.
const BEHIND: usize = 4096;

/// A question that is answered where the core lives.
pub type Question = Box<dyn FnOnce(View<'_>) + Send>;

/// What somebody at the door wants.
pub enum Knock {
    /// Look at the state.
    Ask(Question),
    /// Change something.
    Request(Request, oneshot::Sender<Reply>),
    /// End the agent.
    Shutdown(ShutdownMode),
}

/// The agent has stopped, or is about to: there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl std::fmt::Display for Gone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the agent is stopping")
    }
}

impl std::error::Error for Gone {}

/// How the core does, for whoever watches over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulse {
    /// How many answers wait to be taken in.
    pub answers: usize,
    /// How many requests of people and programs wait.
    pub requests: usize,
    /// How long the core took for what it was told, with beginning its effects.
    pub steps: Timing,
    /// How long the core was held up by questions.
    pub questions: Timing,
}

#[derive(Debug, Default)]
struct Beat {
    answers: AtomicUsize,
    steps: Timer,
    questions: Timer,
}

/// What the core was busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Something that may change its state.
    Step,
    /// A question.
    Question,
}

/// The way to the agent's core. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Door {
    knocks: mpsc::Sender<Knock>,
    index: watch::Receiver<u64>,
    events: broadcast::Sender<(TaskKey, Arc<TaskEvent>)>,
    allocs: Arc<OwnedFd>,
    beat: Arc<Beat>,
}

/// The inner side of a door.
#[derive(Debug)]
pub struct Inside {
    /// Who knocks.
    pub knocks: mpsc::Receiver<Knock>,
    index: watch::Sender<u64>,
    events: broadcast::Sender<(TaskKey, Arc<TaskEvent>)>,
    beat: Arc<Beat>,
}

impl Door {
    /// A door and its inner side. `allocs` is the directory of the allocations' directories.
    pub fn new(allocs: Arc<OwnedFd>) -> (Door, Inside) {
        let (to_inside, knocks) = mpsc::channel(WAITING);
        let (index, index_outside) = watch::channel(0);
        let (events, _) = broadcast::channel(BEHIND);
        let beat = Arc::<Beat>::default();
        let door = Door {
            knocks: to_inside,
            index: index_outside,
            events: events.clone(),
            allocs,
            beat: beat.clone(),
        };
        (
            door,
            Inside {
                knocks,
                index,
                events,
                beat,
            },
        )
    }

    /// Asks something of the state.
    ///
    /// # Errors
    /// The agent has stopped.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let ask = Knock::Ask(Box::new(move |view| {
            // Who asked may have gone away meanwhile.
            let _ = answer.send(question(view));
        }));
        self.knocks.send(ask).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Asks for a change; the answer comes when it is saved.
    ///
    /// # Errors
    /// The agent has stopped.
    pub async fn request(&self, what: impl Into<Request>) -> Result<Reply, Gone> {
        let (answer, answered) = oneshot::channel();
        self.knocks
            .send(Knock::Request(what.into(), answer))
            .await
            .map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Asks the agent to end.
    ///
    /// # Errors
    /// It has stopped already.
    pub async fn shutdown(&self, mode: ShutdownMode) -> Result<(), Gone> {
        self.knocks
            .send(Knock::Shutdown(mode))
            .await
            .map_err(|_| Gone)
    }

    /// The state's index, to wait for changes.
    pub fn index(&self) -> watch::Receiver<u64> {
        self.index.clone()
    }

    /// The story as it happens, from now on.
    pub fn events(&self) -> broadcast::Receiver<(TaskKey, Arc<TaskEvent>)> {
        self.events.subscribe()
    }

    /// How the core does.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            answers: self.beat.answers.load(Ordering::Relaxed),
            requests: WAITING - self.knocks.capacity(),
            steps: self.beat.steps.timing(),
            questions: self.beat.questions.timing(),
        }
    }

    /// The directory of the allocations' directories, as a handle.
    pub fn alloc_root(&self) -> Arc<OwnedFd> {
        self.allocs.clone()
    }
}

impl Inside {
    /// Notes that the core worked for so long.
    pub fn worked(&self, what: Work, time: Duration) {
        match what {
            Work::Step => self.beat.steps.note(time),
            Work::Question => self.beat.questions.note(time),
        }
    }

    /// Notes how many answers wait for the core now.
    pub fn waits(&self, answers: usize) {
        self.beat.answers.store(answers, Ordering::Relaxed);
    }

    /// Passes on what the core tells. Whoever does not listen misses it.
    pub fn tell(&self, told: Told) {
        match told {
            Told::Index(index) => {
                self.index.send_replace(index);
            }
            Told::Event(task, event) => {
                let _ = self.events.send((task, event));
            }
        }
    }
}
