//! From the core to the recorder's thread: bounded, and nobody waits on the core's side.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{Effect, StoreEffect};
use drover_core::store::{Batch, CommitId, Saved};
use drover_core::time::Now;

/// How many things may wait; each takes some 300 bytes, and what its input holds.
const MOST: usize = 8192;

/// Memory for so many is kept while there are fewer.
const KEPT: usize = 2048;

/// While more inputs wait, the core hands over so many things at once.
const AT_ONCE: usize = 64;

/// After it was woken the thread sleeps this long, so that under load it is woken by nobody. A crash of
/// the agent costs no more than this.
const NAP: Duration = Duration::from_millis(20);

/// One thing that happened to the core.
#[derive(Debug)]
pub(super) struct Item {
    /// When.
    pub(super) now: Now,
    pub(super) what: What,
    /// How many effects followed.
    pub(super) effects: u32,
    /// What is saved because of it.
    pub(super) commit: Option<(CommitId, Arc<Batch>)>,
    /// The state after it, if it was asked for.
    pub(super) agent: Option<Box<Agent>>,
}

impl Item {
    fn new(now: Now, what: What) -> Item {
        Item {
            now,
            what,
            effects: 0,
            commit: None,
            agent: None,
        }
    }
}

/// What happened.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are steps, and a box for each would be freed by another thread"
)]
pub(super) enum What {
    /// The core was told this; nothing if its time had come.
    Step(Option<Input>),
    /// An agent is restored.
    Begin(Box<(Config, Saved)>),
    /// So many steps are left out.
    Gap(u64),
}

#[derive(Debug, Default)]
struct Inner {
    items: Vec<Item>,
    /// The thread waits to be woken.
    asleep: bool,
    /// The state is asked for.
    wants_state: bool,
    /// The core says no more.
    ended: bool,
    /// Nothing is recorded any more.
    over: bool,
}

/// What both ends know.
#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    woken: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked left whole items behind.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both ends of a new queue.
pub(super) fn queue() -> (Sender, Receiver) {
    let shared = Arc::new(Shared::default());
    let sender = Sender {
        shared: shared.clone(),
        items: Vec::with_capacity(AT_ONCE),
        lost: 0,
        last: Now::default(),
    };
    (sender, Receiver { shared })
}

/// Nothing is recorded any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over;

/// The core's end.
#[derive(Debug)]
pub(super) struct Sender {
    shared: Arc<Shared>,
    /// What is not handed over yet.
    items: Vec<Item>,
    /// How many steps were left out, and no state followed yet.
    lost: u64,
    /// When the last step was.
    last: Now,
}

impl Sender {
    /// Something happens.
    #[inline]
    pub(super) fn push(&mut self, now: Now, what: What) {
        self.last = now;
        self.items.push(Item::new(now, what));
    }

    /// The core is told something.
    #[inline]
    pub(super) fn step(&mut self, now: Now, input: Option<&Input>) {
        if self.lost == 0 {
            self.push(now, What::Step(input.cloned()));
        } else {
            (self.lost, self.last) = (self.lost + 1, now);
        }
    }

    /// Something follows from what happened last.
    #[inline]
    pub(super) fn effect(&mut self, effect: &Effect) {
        if let Some(item) = self.items.last_mut() {
            item.effects += 1;
            if let Effect::Store(StoreEffect::Commit(id, batch)) = effect {
                item.commit = Some((*id, batch.clone()));
            }
        }
    }

    /// Hands over what happened. Where `more` is to come at once, it may wait for that.
    #[inline]
    pub(super) fn hand_over(&mut self, agent: &Agent, more: bool) -> Result<(), Over> {
        if more && self.items.len() < AT_ONCE || self.items.is_empty() && self.lost == 0 {
            return Ok(());
        }
        let mut inner = self.shared.lock();
        if inner.over {
            return Err(Over);
        }
        if self.lost > 0 {
            if !inner.items.is_empty() {
                return Ok(());
            }
            // There is room again: what comes next goes on from the state.
            let lost = What::Gap(mem::take(&mut self.lost));
            self.items.push(Item::new(self.last, lost));
            inner.wants_state = true;
        }
        if mem::take(&mut inner.wants_state)
            && let Some(last) = self.items.last_mut()
        {
            last.agent = Some(Box::new(agent.clone()));
        }
        if inner.items.len() + self.items.len() > MOST {
            self.lost += u64::try_from(self.items.len()).unwrap_or(0);
            self.items.clear();
        }
        inner.items.append(&mut self.items);
        if mem::take(&mut inner.asleep) {
            self.shared.woken.notify_all();
        }
        Ok(())
    }

    /// Lets the thread write what waits and end, and waits for it no longer than this.
    pub(super) fn end(&mut self, timeout: Duration) {
        let mut inner = self.shared.lock();
        inner.items.append(&mut self.items);
        (inner.ended, inner.asleep) = (true, false);
        self.shared.woken.notify_all();
        let woken = &self.shared.woken;
        drop(woken.wait_timeout_while(inner, timeout, |inner| !inner.over));
    }
}

/// The thread's end.
#[derive(Debug)]
pub(super) struct Receiver {
    shared: Arc<Shared>,
}

impl Receiver {
    /// Waits until something happened, and a little more, and takes it for what `items` was: an empty
    /// list, whose memory is used again. `false` at the end.
    pub(super) fn take(&self, items: &mut Vec<Item>) -> bool {
        items.shrink_to(KEPT);
        let woken = &self.shared.woken;
        let mut inner = self.shared.lock();
        if inner.items.is_empty() && !inner.ended {
            inner.asleep = true;
            let awake = woken.wait_while(inner, |inner| inner.asleep);
            inner = awake.unwrap_or_else(PoisonError::into_inner);
        }
        let rested = woken.wait_timeout_while(inner, NAP, |inner| !inner.ended);
        let mut inner = rested.unwrap_or_else(PoisonError::into_inner).0;
        mem::swap(items, &mut inner.items);
        !items.is_empty() || !inner.ended
    }

    /// Asks for the state at the end of the next turn.
    pub(super) fn want_state(&self) {
        self.shared.lock().wants_state = true;
    }

    /// Nothing is recorded any more, and what waits is dropped.
    pub(super) fn give_up(&self) {
        let mut inner = self.shared.lock();
        *inner = Inner {
            over: true,
            ..Inner::default()
        };
        drop(inner);
        self.shared.woken.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use drover_core::effect::Notification;
    use drover_core::input::ShutdownMode;
    use drover_core::model::node::Node;

    use super::*;

    fn agent() -> Agent {
        let config = Config::new(1, Node::default(), "/alloc");
        Agent::restore(config, Saved::default(), Now::default())
    }

    fn taken(receiver: &Receiver) -> Vec<Item> {
        let mut items = Vec::new();
        assert!(receiver.take(&mut items));
        items
    }

    /// A step with so many effects.
    fn live(sender: &mut Sender, effects: u64) {
        let input = Input::Shutdown(ShutdownMode::KeepTasks);
        sender.step(Now::default(), Some(&input));
        for number in 0..effects {
            sender.effect(&Effect::Notify(Notification::Index(number)));
        }
    }

    #[test]
    fn steps_arrive_with_their_effects_in_order() {
        let (mut sender, receiver) = queue();
        let agent = agent();
        for effects in 0..100 {
            live(&mut sender, effects);
            assert_eq!(sender.hand_over(&agent, effects % 10 < 9), Ok(()));
        }
        let items = taken(&receiver);
        let effects: Vec<u32> = items.iter().map(|item| item.effects).collect();
        assert_eq!(effects, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn dropped_steps_are_counted_and_state_follows() {
        let (mut sender, receiver) = queue();
        let agent = agent();
        let many = u64::try_from(MOST).unwrap_or(u64::MAX) + 100;
        for _ in 0..many {
            live(&mut sender, 1);
            assert_eq!(sender.hand_over(&agent, false), Ok(()));
        }
        assert_eq!(taken(&receiver).len(), MOST);
        assert_eq!(sender.hand_over(&agent, false), Ok(()));
        live(&mut sender, 1);
        assert_eq!(sender.hand_over(&agent, false), Ok(()));
        let items = taken(&receiver);
        assert!(matches!(items[0].what, What::Gap(100)), "{items:?}");
        assert!(items[0].agent.is_some());
        assert!(matches!(items[1].what, What::Step(Some(_))), "{items:?}");
    }

    #[test]
    fn queue_refuses_steps_after_writer_ended() {
        let (mut sender, receiver) = queue();
        live(&mut sender, 1);
        receiver.give_up();
        assert_eq!(sender.hand_over(&agent(), false), Err(Over));
    }
}
