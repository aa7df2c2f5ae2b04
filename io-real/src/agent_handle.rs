//! The handle through which API, commands and templates reach the core: questions about its state,
//! and requests.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drover_core::agent::View;
use drover_core::agent::requests::{self, Request, SessionCommand};
use drover_core::effect::{Notification, Refusal, Reply};
use drover_core::ids::{AllocId, TaskKey, TaskName};
use drover_core::input::ShutdownMode;
use drover_core::model::event::TaskEvent;
use drover_core::model::notice::Notice;
use drover_core::store::Batch;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::session::{SessionClient, Sessions};
use crate::timing::{Timer, Timing};

/// How many requests may be queued; the next sender waits.
const WAITING: usize = 256;

/// How many events a listener may be behind before it misses some.
const BEHIND: usize = 4096;

/// A question that is answered where the core lives.
pub type Question = Box<dyn FnOnce(View<'_>) + Send>;

/// What a client asks of the agent.
pub enum Message {
    /// Look at the state.
    Ask(Question),
    /// Change something.
    Request(Request, oneshot::Sender<Reply>),
    /// End the agent.
    Shutdown(ShutdownMode),
}

/// The agent has stopped, or is about to: there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentStopped;

impl std::fmt::Display for AgentStopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the agent is stopping")
    }
}

impl std::error::Error for AgentStopped {}

/// How the core does, for whoever watches over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreMetrics {
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
struct Counters {
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

/// A handle to the agent's core. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    messages: mpsc::Sender<Message>,
    index: watch::Receiver<u64>,
    events: broadcast::Sender<(TaskKey, Arc<TaskEvent>)>,
    allocs: Arc<OwnedFd>,
    counters: Arc<Counters>,
    sessions: Sessions,
    /// Why nobody opens sessions, if nobody may.
    no_sessions: Option<Arc<str>>,
}

/// Who hears of commits, on the thread of the core, so it must be quick.
pub type CommitListener = Box<dyn FnMut(View<'_>, &Batch) + Send>;

/// Who hears of what operators are told and no commit says, on the thread of the core.
pub type NoticeListener = Box<dyn FnMut(Arc<Notice>) + Send>;

/// The agent's end of its handles.
pub struct RequestInbox {
    /// The queued requests.
    pub messages: mpsc::Receiver<Message>,
    index: watch::Sender<u64>,
    events: broadcast::Sender<(TaskKey, Arc<TaskEvent>)>,
    commits: Vec<CommitListener>,
    notices: Option<NoticeListener>,
    counters: Arc<Counters>,
}

impl std::fmt::Debug for RequestInbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestInbox")
    }
}

impl AgentHandle {
    /// A handle and the agent's end of it. `allocs` is the directory of the allocations' directories.
    pub fn new(allocs: Arc<OwnedFd>) -> (AgentHandle, RequestInbox) {
        let (to_agent, messages) = mpsc::channel(WAITING);
        let (index, index_receiver) = watch::channel(0);
        let (events, _) = broadcast::channel(BEHIND);
        let counters = Arc::<Counters>::default();
        let agent_handle = AgentHandle {
            messages: to_agent,
            index: index_receiver,
            events: events.clone(),
            allocs,
            counters: counters.clone(),
            sessions: Sessions::default(),
            no_sessions: None,
        };
        (
            agent_handle,
            RequestInbox {
                messages,
                index,
                events,
                commits: Vec::new(),
                notices: None,
                counters,
            },
        )
    }

    /// The same handle, for an agent whose drivers open these sessions.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Sessions) -> AgentHandle {
        self.sessions = sessions;
        self
    }

    /// The same handle, by which nobody opens sessions: whoever wants one is told why.
    #[must_use]
    pub fn without_sessions(mut self, why: &str) -> AgentHandle {
        self.no_sessions = Some(why.into());
        self
    }

    /// Opens an exec session beside a task. With the answer comes the end of whoever is connected to it,
    /// through which output comes at once.
    ///
    /// # Errors
    /// The agent has stopped.
    pub async fn open_session(
        &self,
        alloc: AllocId,
        task: TaskName,
        run: SessionCommand,
        tty: bool,
    ) -> Result<(Reply, SessionClient), AgentStopped> {
        let (asking, client) = self.sessions.begin();
        if let Some(why) = &self.no_sessions {
            let refused = Refusal::Forbidden(why.to_string());
            return Ok((Reply::Refused(refused), client));
        }
        let reply = self.request(requests::OpenSession {
            session: asking.id,
            alloc,
            task,
            run,
            tty,
        });
        Ok((reply.await?, client))
    }

    /// Asks something of the state.
    ///
    /// # Errors
    /// The agent has stopped.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(View<'_>) -> T + Send + 'static,
    ) -> Result<T, AgentStopped> {
        let (answer, answered) = oneshot::channel();
        let ask = Message::Ask(Box::new(move |view| {
            // Who asked may have gone away meanwhile.
            let _ = answer.send(question(view));
        }));
        self.messages.send(ask).await.map_err(|_| AgentStopped)?;
        answered.await.map_err(|_| AgentStopped)
    }

    /// Asks for a change; the answer comes when it is saved.
    ///
    /// # Errors
    /// The agent has stopped.
    pub async fn request(&self, what: impl Into<Request>) -> Result<Reply, AgentStopped> {
        let (answer, answered) = oneshot::channel();
        self.messages
            .send(Message::Request(what.into(), answer))
            .await
            .map_err(|_| AgentStopped)?;
        answered.await.map_err(|_| AgentStopped)
    }

    /// Asks the agent to end.
    ///
    /// # Errors
    /// It has stopped already.
    pub async fn shutdown(&self, mode: ShutdownMode) -> Result<(), AgentStopped> {
        self.messages
            .send(Message::Shutdown(mode))
            .await
            .map_err(|_| AgentStopped)
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
    pub fn core_metrics(&self) -> CoreMetrics {
        CoreMetrics {
            answers: self.counters.answers.load(Ordering::Relaxed),
            requests: WAITING - self.messages.capacity(),
            steps: self.counters.steps.timing(),
            questions: self.counters.questions.timing(),
        }
    }

    /// The directory of the allocations' directories, as a handle.
    pub fn alloc_root(&self) -> Arc<OwnedFd> {
        self.allocs.clone()
    }
}

impl RequestInbox {
    /// Passes each commit to this listener from now on, as it goes to the store.
    pub fn on_commit(&mut self, listener: impl FnMut(View<'_>, &Batch) + Send + 'static) {
        self.commits.push(Box::new(listener));
    }

    /// Passes each notice of the core to this listener from now on.
    pub fn on_notice(&mut self, listener: impl FnMut(Arc<Notice>) + Send + 'static) {
        self.notices = Some(Box::new(listener));
    }

    /// Passes on what is committed, with the state that it is of.
    pub fn committed(&mut self, view: View<'_>, batch: &Batch) {
        for listener in &mut self.commits {
            listener(view, batch);
        }
    }

    /// Notes that the core worked for so long.
    pub fn worked(&self, what: Work, time: Duration) {
        match what {
            Work::Step => self.counters.steps.note(time),
            Work::Question => self.counters.questions.note(time),
        }
    }

    /// Notes how many answers wait for the core now.
    pub fn waits(&self, answers: usize) {
        self.counters.answers.store(answers, Ordering::Relaxed);
    }

    /// Passes on a notification of the core. Who does not listen misses it.
    pub fn notify(&mut self, notification: Notification) {
        match notification {
            Notification::Index(index) => {
                self.index.send_replace(index);
            }
            Notification::Event(task, event) => {
                let _ = self.events.send((task, event));
            }
            Notification::Notice(notice) => {
                if let Some(listener) = &mut self.notices {
                    listener(notice);
                }
            }
        }
    }
}
