//! Actors: production code on threads of its own, one of which runs at a time, from one step to the next.

use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Whether an actor can go on.
pub(super) type Ready = Box<dyn Fn() -> bool + Send>;

/// Where an actor stands before its next step.
pub(super) enum Stand {
    /// It goes on with this once one of these holds.
    Waits(String, Vec<Ready>),
    /// It came to its end, or panicked with this message.
    Ended(Result<(), String>),
}

/// What is thrown in an actor whose agent dies.
struct Died;

/// The actor's side of its thread.
struct Own {
    go: Receiver<()>,
    stands: Sender<(Stand, u64)>,
    waits: Vec<Ready>,
    /// All that it has seen so far; what it does next depends on nothing else.
    seen: DefaultHasher,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// An actor that stands before a step.
pub(super) struct Actor {
    pub(super) name: &'static str,
    pub(super) stand: Stand,
    /// The hash of all that it has seen.
    pub(super) seen: u64,
    go: Option<Sender<()>>,
    stands: Receiver<(Stand, u64)>,
}

impl Actor {
    /// Begins one, and lets it come to its first step.
    pub(super) fn begin(
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> Actor {
        let (go, gone_on) = channel();
        let (report, stands) = channel();
        on_thread(Box::new(move || live(gone_on, report, work)));
        let mut actor = Actor {
            name,
            stand: Stand::Ended(Ok(())),
            seen: 0,
            go: Some(go),
            stands,
        };
        actor.take_stand();
        actor
    }

    fn take_stand(&mut self) {
        let lost = || (Stand::Ended(Err("its thread is gone".to_owned())), 0);
        (self.stand, self.seen) = self.stands.recv().unwrap_or_else(|_| lost());
    }

    /// Whether it can take its next step.
    pub(super) fn is_ready(&self) -> bool {
        match &self.stand {
            Stand::Waits(_, any) => any.iter().any(|ready| ready()),
            Stand::Ended(_) => false,
        }
    }

    /// Lets it take its next step.
    pub(super) fn go_on(&mut self) {
        if self.go.as_ref().is_some_and(|go| go.send(()).is_ok()) {
            self.take_stand();
        }
    }
}

impl Drop for Actor {
    /// It dies where it stands.
    fn drop(&mut self) {
        self.go = None;
        // Until nothing is left that could report.
        while self.stands.recv().is_ok() {}
    }
}

/// Threads that have nothing to do.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

type Job = Box<dyn FnOnce() + Send>;

/// Does this on a thread that has nothing to do, or on a new one: there are thousands of runs.
fn on_thread(job: Job) {
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = match idle().pop() {
        Some(thread) => thread.send(job).err().map(|refused| refused.0),
        None => Some(job),
    };
    let Some(job) = refused else { return };
    let (sender, jobs) = channel::<Job>();
    std::thread::spawn(move || {
        job();
        loop {
            idle().push(sender.clone());
            match jobs.recv() {
                Ok(job) => job(),
                Err(_) => return,
            }
        }
    });
}

/// The life of an actor.
fn live(go: Receiver<()>, stands: Sender<(Stand, u64)>, work: impl Future<Output = ()> + Send) {
    let own = Own {
        go,
        stands: stands.clone(),
        waits: Vec::new(),
        seen: DefaultHasher::new(),
    };
    OWN.set(Some(own));
    let ended = catch_unwind(AssertUnwindSafe(|| finish(work)));
    let ended = match ended {
        Err(thrown) if thrown.is::<Died>() => Ok(()),
        ended => ended.map_err(|thrown| message(&*thrown)),
    };
    OWN.set(None);
    let _ = stands.send((Stand::Ended(ended), 0));
}

fn message(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<String>().cloned();
    text.or_else(|| thrown.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

/// Whether an actor's waker was called since it was polled.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls a future to its end. It waits for its waker and for what [`wait_for`] was told.
fn finish(work: impl Future<Output = ()>) {
    let mut work: Pin<Box<_>> = Box::pin(work);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    while work.as_mut().poll(&mut context).is_pending() {
        let mut waits = OWN.with_borrow_mut(|own| match own {
            Some(own) => std::mem::take(&mut own.waits),
            None => Vec::new(),
        });
        let is_woken = woken.clone();
        waits.push(Box::new(move || is_woken.0.load(Ordering::Relaxed)));
        stand("goes on", waits);
        woken.0.store(false, Ordering::Relaxed);
    }
}

/// Notes what a future of this actor waits for.
pub(super) fn wait_for(ready: impl Fn() -> bool + Send + 'static) {
    OWN.with_borrow_mut(|own| {
        if let Some(own) = own {
            own.waits.push(Box::new(ready));
        }
    });
}

/// A step: others may take theirs before it. Does nothing outside of an actor.
pub(super) fn step(what: &str, ready: impl Fn() -> bool + Send + 'static) {
    stand(what, vec![Box::new(ready)]);
}

/// The same, named by the place in the code.
#[track_caller]
pub(in super::super) fn step_here() {
    if OWN.with_borrow(Option::is_some) {
        let place = Location::caller();
        let file = place.file().rsplit('/').next().unwrap_or_default();
        step(&format!("{file}:{}", place.line()), || true);
    }
}

/// Notes what a step has seen.
pub(in super::super) fn note(seen: &impl Debug) {
    OWN.with_borrow_mut(|own| {
        if let Some(own) = own {
            format!("{seen:?}").hash(&mut own.seen);
        }
    });
}

fn stand(what: &str, ready: Vec<Ready>) {
    // What dies takes no more steps.
    if std::thread::panicking() {
        return;
    }
    let goes_on = OWN.with_borrow_mut(|own| {
        let Some(own) = own else { return true };
        what.hash(&mut own.seen);
        let stand = Stand::Waits(what.to_owned(), ready);
        own.stands.send((stand, own.seen.finish())).is_ok() && own.go.recv().is_ok()
    });
    if !goes_on {
        resume_unwind(Box::new(Died));
    }
}
