//! Listening to plugins, which measure by themselves, for as long as somebody asks.
//!
//! Plugins measure at intervals and report what they found. The first request opens their stream,
//! and waits a quarter of a second for the first report; a minute without a request closes it. A
//! stream that breaks off, is silent for ten seconds, floods, or reports what cannot be true is
//! ended, its numbers are not shown any more, and a later request opens it again, after a pause
//! that grows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::RECENT;

/// How often plugins are asked to measure.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// How long a stream may say nothing.
const SILENCE: Duration = Duration::from_secs(10);

/// A stream that spoke so long works: that it ended says nothing of the next one.
const STEADY: Duration = Duration::from_secs(10);

/// How long who looks first waits for what is said first.
const TIMEOUT: Duration = Duration::from_millis(250);

/// The pause after a first failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A stream of measurements, or why there is none.
pub(crate) type Opening<T> = BoxFuture<'static, Result<Measurements<T>, String>>;

/// Measurements one after the other; an error is the end.
pub(crate) type Measurements<T> = BoxStream<'static, Result<T, String>>;

/// Whoever takes what is said.
pub(crate) trait Listener<T>: Send + 'static {
    /// This was measured.
    ///
    /// # Errors
    /// It cannot be so; the stream is not listened to any more.
    fn take(&mut self, reported: T) -> Result<(), String>;

    /// Nothing more comes, for now. Why, unless nobody looked any more.
    fn over(&mut self, why: Option<&str>);
}

/// Who is listened to. Cheap to clone; the clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Listening(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// How many measurements were taken.
    taken: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    last_used: Instant,
    run: Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    /// Nobody listens, and nothing is wrong.
    Idle,
    /// The stream is being opened, or says nothing so far, after so many failures.
    Opening(u32),
    /// It speaks, since then; before that it failed so often.
    Open(u32, Instant),
    /// It failed so often, and is not asked before then.
    Resting(u32, Instant),
}

impl Default for Listening {
    fn default() -> Listening {
        let state = State {
            last_used: Instant::now(),
            run: Run::Idle,
        };
        Listening(Arc::new(Shared {
            state: Mutex::new(state),
            taken: watch::Sender::new(0),
        }))
    }
}

impl Listening {
    /// Somebody looks: from now on, for a minute, `listener` hears what the stream says that
    /// `open` opens. Waits a moment for the first it says.
    pub(crate) async fn subscribe<T: Send + 'static>(
        &self,
        open: impl FnOnce() -> Opening<T>,
        listener: impl FnOnce() -> Box<dyn Listener<T>>,
    ) {
        let mut taken = self.0.taken.subscribe();
        let waits = {
            let mut state = self.0.state();
            state.last_used = Instant::now();
            let tries = match state.run {
                Run::Idle => Some(0),
                Run::Resting(tries, until) if until <= Instant::now() => Some(tries),
                Run::Resting(..) | Run::Opening(_) | Run::Open(..) => None,
            };
            if let Some(tries) = tries {
                state.run = Run::Opening(tries);
                tokio::spawn(self.0.clone().listen(open(), listener()));
            }
            matches!(state.run, Run::Opening(_))
        };
        if waits {
            // Whether it came or not: what is known is what is told.
            let _ = timeout(TIMEOUT, taken.changed()).await;
        }
    }

    /// Whether it is of use to remember this: something is heard, or is waited for.
    pub(crate) fn is_idle(&self) -> bool {
        match self.0.state().run {
            Run::Idle => true,
            Run::Resting(_, until) => until <= Instant::now(),
            Run::Opening(_) | Run::Open(..) => false,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen<T: 'static>(
        self: Arc<Self>,
        open: Opening<T>,
        mut listener: Box<dyn Listener<T>>,
    ) {
        let end = tokio::select! {
            why = self.receive(open, listener.as_mut()) => Some(why),
            () = self.until_unused() => None,
        };
        listener.over(end.as_deref());
        let mut state = self.state();
        state.run = match (end, state.run) {
            (None, _) => Run::Idle,
            (Some(_), Run::Open(_, since)) if since.elapsed() >= STEADY => rest(0),
            (Some(_), Run::Opening(tries) | Run::Open(tries, _)) => rest(tries),
            (Some(_), Run::Idle | Run::Resting(..)) => rest(0),
        };
        drop(state);
        // Who waits for the first measurement waits in vain.
        self.taken.send_modify(|_| {});
    }

    /// Takes what is said until that is over; why.
    async fn receive<T: 'static>(
        &self,
        open: Opening<T>,
        listener: &mut dyn Listener<T>,
    ) -> String {
        let mut stream = match timeout(SILENCE, open).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(why)) => return why,
            Err(_) => return "it does not answer".to_owned(),
        };
        loop {
            match timeout_at(Instant::now() + SILENCE, stream.next()).await {
                Ok(Some(Ok(reported))) => {
                    if let Err(why) = listener.take(reported) {
                        return format!("it cannot be believed: {why}");
                    }
                    self.opened();
                    self.taken
                        .send_modify(|taken| *taken = taken.wrapping_add(1));
                }
                Ok(Some(Err(why))) => return why,
                Ok(None) => return "it ended its stream".to_owned(),
                Err(_) => return "it sends nothing any more".to_owned(),
            }
        }
    }

    fn opened(&self) {
        let mut state = self.state();
        if let Run::Opening(tries) = state.run {
            state.run = Run::Open(tries, Instant::now());
        }
    }

    /// Until nobody has looked for a minute.
    async fn until_unused(&self) {
        loop {
            let until = self.state().last_used + RECENT;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

fn rest(tries: u32) -> Run {
    let (first, longest) = PAUSES;
    let pause = first.saturating_mul(1 << tries.min(10)).min(longest);
    Run::Resting(tries.saturating_add(1), Instant::now() + pause)
}

#[cfg(test)]
mod tests;
