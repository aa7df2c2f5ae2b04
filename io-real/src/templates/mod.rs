//! Templates of tasks: rendered before a start, and again when what they are made of changes.
//!
//! Each rendering that the core asks for is a small program of its own: a round renders everything;
//! when something is missing or may change, it sleeps until the kernel reports that a file changed
//! (or every few seconds, if the kernel watches no more files), or the agent's own state has other answers.
//! Reports reach the core in their order. A rendering
//! that needs nothing from outside is done when it is answered. The templates of a task that servers of a cluster placed
//! ask these instead of the agent's own state; what is not answered soon is reported as missing.
//!
//! A template without files is watched by nobody. File names that matter are compared before
//! anybody is woken. Two renderings of a task are at least 250 ms apart.

mod feed;
mod known;
mod render;
mod servers;
mod source;
mod variables;
mod watch;

use drover_core::ids::TaskKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::agent::Input;
use drover_core::input::{HookInput, HookOutput, TemplateInput};
use drover_core::model::authority::Authority;
use drover_core::model::variable::Reads;
use drover_core::op::{Failure, Op};
use drover_core::time::Span;
use drover_core::work::Rendering;
use drover_template::{Answer, Need};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use self::feed::Feed;
use self::known::{Asking, Known, News};
use self::render::{Outcome, Renderer, Round};
use self::servers::Questions;
use self::source::Asked;
use self::watch::Watcher;
use crate::agent_handle::AgentHandle;
use crate::cluster::ServeTasks;
use crate::dirs::AllocDirs;
use crate::driver::Inbox;
use crate::gate::Gate;

/// Two renderings of one task are at least so far apart: a file that is written all the time must
/// not keep the agent busy.
const PACE: Duration = Duration::from_millis(250);
/// What is missing is told no oftener than this.
const REPORT_MISSING: Duration = Duration::from_secs(3);

/// Whoever renders templates. Cheap to clone; the clones are the same.
#[derive(Clone)]
pub(crate) struct Templates {
    dirs: AllocDirs,
    inbox: Inbox,
    gate: Gate,
    watcher: Watcher,
    /// The way to the agent's own state.
    feed: Feed,
    /// The servers of the cluster, if the node is in one.
    servers: Option<Arc<dyn ServeTasks>>,
    /// How each rendering that goes on is ended.
    running: Arc<Mutex<BTreeMap<Op, oneshot::Sender<()>>>>,
}

impl Templates {
    pub(crate) fn new(
        dirs: AllocDirs,
        inbox: Inbox,
        gate: Gate,
        agent_handle: AgentHandle,
    ) -> Templates {
        Templates {
            dirs,
            inbox,
            gate,
            watcher: Watcher::default(),
            feed: Feed::new(agent_handle),
            servers: None,
            running: Arc::default(),
        }
    }

    /// What these placed asks them.
    pub(crate) fn with_servers(self, servers: Option<Arc<dyn ServeTasks>>) -> Templates {
        Templates { servers, ..self }
    }

    /// Whom a rendering asks.
    fn asking(&self, key: &TaskKey, work: &Rendering) -> Asking {
        match work.authority {
            Authority::Node => Asking::State(self.feed.clone()),
            Authority::Servers => {
                let (servers, namespace) = (self.servers.clone(), work.reads.namespace.clone());
                Asking::Servers(Questions::new(servers, key.clone(), namespace))
            }
        }
    }

    /// Begins to render, and to watch afterwards; one answer follows, and then news.
    pub(crate) fn begin(&self, op: Op, key: TaskKey, work: Arc<Rendering>) {
        let (end, ended) = oneshot::channel();
        self.running().insert(op, end);
        let all = self.clone();
        tokio::spawn(async move {
            let renderer = Renderer::new(all.dirs.clone(), &key, work.clone());
            let asking = all.asking(&key, &work);
            let mut going = Going {
                state: asking.listen(),
                asking,
                reads: work.reads.clone(),
                op,
                key,
                wait: longest(&work),
                answered: false,
                last: HookOutput::default(),
                missing: Vec::new(),
                trouble: None,
                all: all.clone(),
            };
            let cancelled = tokio::select! {
                () = going.go_on(renderer) => false,
                _ = ended => true,
            };
            if cancelled && !going.answered {
                going.answer(Err(Failure::recoverable("it was cancelled")));
            }
            all.watcher.forget(op);
            all.running().remove(&op);
        });
    }

    /// Ends a rendering; one that was not answered is, with a failure.
    pub(crate) fn cancel(&self, op: Op) {
        // Dropping the sender ends it.
        drop(self.running().remove(&op));
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<Op, oneshot::Sender<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until something else would be answered, or is refused: then that is returned.
async fn other_answers(state: &mut News, reads: &Reads, asked: &Asked) -> Option<String> {
    loop {
        if state.changed().await.is_err() {
            return std::future::pending().await;
        }
        let known = state.borrow_and_update();
        let is_other = |(need, answer): (&Need, &Option<Answer>)| {
            known.as_ref().and_then(|known| known.answer(need, reads)) != *answer
        };
        if asked.iter().any(is_other) {
            return None;
        }
        let refused = known.as_ref().and_then(Known::refused);
        if refused.is_some() {
            return refused;
        }
    }
}

/// The longest wait of the templates, at least and at most.
fn longest(work: &Rendering) -> (Duration, Duration) {
    let span = |span: Span| Duration::from_nanos(u64::try_from(span.0).unwrap_or(0));
    let waits = || work.templates.iter().map(|template| template.wait);
    let least = waits().map(|(least, _)| least).max().unwrap_or_default();
    let most = waits().map(|(_, most)| most).max().unwrap_or_default();
    (span(least), span(most))
}

/// A rendering that goes on.
struct Going {
    asking: Asking,
    state: News,
    reads: Reads,
    op: Op,
    key: TaskKey,
    wait: (Duration, Duration),
    answered: bool,
    last: HookOutput,
    missing: Vec<String>,
    /// Why the last rendering failed, if it did and that was told.
    trouble: Option<String>,
    all: Templates,
}

impl Going {
    /// Until there is nothing more to do; with files to watch, for ever.
    async fn go_on(&mut self, mut renderer: Renderer) {
        let changed = Arc::new(Notify::new());
        let mut reported_missing = Instant::now();
        let mut pause = Duration::ZERO;
        loop {
            let state = self.state.borrow_and_update().clone();
            let known = state.clone();
            let work = move || (renderer.round(state.as_ref()), renderer);
            let round = match self.all.gate.run(work).await {
                Ok((round, back)) => {
                    renderer = back;
                    round
                }
                Err(lost) => return self.failed(&format!("its work was lost: {lost}")),
            };
            let Round {
                outcome,
                glimpses,
                asked,
            } = round;
            let answers_all =
                |known: &Option<Known>| known.as_ref().is_some_and(|it| it.answers_all(&asked));
            self.asking.begin(&asked);
            if !asked.is_empty() && !answers_all(&known) {
                // It is asked for the first time, and answered soon; nothing is missing yet.
                if !self.all_answered(&asked).await {
                    return self.failed("the agent ends");
                }
                continue;
            }
            if self.all.watcher.watch(self.op, &changed, &glimpses) {
                // Something may have changed before it was watched.
                sleep(pause).await;
                pause = PACE;
                continue;
            }
            pause = Duration::ZERO;
            let waits = matches!(outcome, Outcome::Waiting(_));
            let idle = glimpses.is_empty() && asked.is_empty();
            if waits && idle {
                return self.failed("something is missing that cannot come any more");
            }
            if waits && reported_missing > Instant::now() {
                sleep_until(reported_missing).await;
            }
            if waits {
                reported_missing = Instant::now() + REPORT_MISSING;
            }
            if !self.take(outcome) || idle {
                return;
            }
            drop(glimpses);
            self.quiet(&changed, &asked).await;
        }
    }

    /// Waits until all of this is answered; what takes long is told as missing. `false` if nobody answers any more.
    async fn all_answered(&mut self, asked: &Asked) -> bool {
        loop {
            let all = |known: &Option<Known>| {
                let known = known.as_ref();
                known.is_some_and(|known| known.answers_all(asked))
            };
            if let Ok(found) = timeout(REPORT_MISSING, self.state.wait_for(all)).await {
                return found.is_ok();
            }
            let known = self.state.borrow().clone();
            let missing = known.map_or_else(Vec::new, |known| known.unanswered(asked));
            if !missing.is_empty() {
                self.take(Outcome::Waiting(missing));
            }
        }
    }

    /// Waits for a change, and until no more come.
    async fn quiet(&mut self, changed: &Notify, asked: &Asked) {
        self.change(changed, asked).await;
        let (least, most) = self.wait;
        let end = Instant::now() + most;
        while !least.is_zero() {
            let next = (Instant::now() + least).min(end);
            let another = timeout_at(next, self.change(changed, asked)).await;
            if another.is_err() || Instant::now() >= end {
                break;
            }
        }
        sleep(PACE).await;
    }

    /// Waits until a file changed, or something else would be answered to what was asked.
    async fn change(&mut self, changed: &Notify, asked: &Asked) {
        loop {
            let (state, reads) = (&mut self.state, &self.reads);
            let refused = tokio::select! {
                () = changed.notified() => return,
                refused = other_answers(state, reads, asked) => refused,
            };
            match refused {
                None => return,
                Some(why) => self.trouble(why),
            }
        }
    }

    /// Tells what came of a round. Returns whether to go on.
    fn take(&mut self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Done(output) => self.done(output),
            Outcome::Waiting(missing) if missing != self.missing => {
                self.missing.clone_from(&missing);
                let op = self.op;
                self.send(TemplateInput::Missing { op, missing });
            }
            Outcome::Waiting(_) => {}
            Outcome::Failed(failure) if self.answered => self.trouble(failure.message),
            Outcome::Failed(failure) => {
                self.answer(Err(failure));
                return false;
            }
        }
        true
    }

    fn done(&mut self, output: HookOutput) {
        self.missing = Vec::new();
        self.trouble = None;
        let same = self.answered && output == self.last;
        self.last.clone_from(&output);
        if !self.answered {
            self.answer(Ok(output));
        } else if !same {
            let op = self.op;
            self.send(TemplateInput::Rendered { op, output });
        }
    }

    /// The same trouble is told once.
    fn trouble(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            self.trouble = Some(why.clone());
            self.send(TemplateInput::Failed { op: self.op, why });
        }
    }

    fn failed(&mut self, why: &str) {
        if self.answered {
            self.trouble(why.to_owned());
        } else {
            self.answer(Err(Failure::recoverable(why)));
        }
    }

    fn answer(&mut self, result: Result<HookOutput, Failure>) {
        self.answered = true;
        self.all.inbox.deliver(Input::Hook(HookInput {
            op: self.op,
            alloc: self.key.alloc,
            task: Some(self.key.task.clone()),
            result,
        }));
    }

    fn send(&self, reported: TemplateInput) {
        let key = self.key.clone();
        self.all.inbox.deliver(Input::Template(key, reported));
    }
}
