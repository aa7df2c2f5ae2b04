//! What a step touched: the allocations that its input, its effects and its commit name.

use std::collections::BTreeSet;

use drover_core::agent::requests::{Request, Subject};
use drover_core::agent::{Agent, Input};
use drover_core::alloc::runner::AllocRunner;
use drover_core::effect::{Effect, HookEffect, Notification, StoreEffect};
use drover_core::ids::{AllocId, JobKey};
use drover_core::store::{Batch, Key};
use drover_core::time::Instant;

/// Everything is looked at once in so many steps.
const EVERYTHING_EVERY: u64 = 32;

/// What has to be looked at after this step.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    allocs: BTreeSet<AllocId>,
    everything: bool,
    steps: u64,
}

/// What is looked at.
pub(super) enum Scope {
    /// All there is.
    Everything,
    /// These allocations, which may be gone by now.
    Allocs(BTreeSet<AllocId>),
}

impl Touched {
    pub(super) fn everything(&mut self) {
        self.everything = true;
    }

    /// What to look at now; the next step begins with nothing.
    pub(super) fn take(&mut self) -> Scope {
        self.steps += 1;
        let allocs = core::mem::take(&mut self.allocs);
        let everything = core::mem::take(&mut self.everything);
        if everything || self.steps.is_multiple_of(EVERYTHING_EVERY) {
            Scope::Everything
        } else {
            Scope::Allocs(allocs)
        }
    }

    pub(super) fn input(
        &mut self,
        now: Instant,
        agent: &Agent,
        input: Option<&Input>,
        in_flight: Option<&Batch>,
    ) {
        match input {
            Some(Input::Driver(key, _) | Input::Template(key, _)) => {
                self.siblings(agent, key.alloc)
            }
            Some(Input::Hook(hook)) => self.siblings(agent, hook.alloc),
            Some(Input::Check(check)) => self.siblings(agent, check.alloc),
            Some(Input::Request(_, asked)) => self.request(asked),
            Some(Input::Shutdown(_)) => self.everything(),
            Some(Input::Store(_)) => self.batch(in_flight),
            // Who could not be placed may have one now.
            Some(Input::Node(_) | Input::Server(_)) => self.everything(),
            None => self.called_back(now, agent),
        }
    }

    /// The agent is called back: several may be due at once. What is due of the node itself may be about everything.
    fn called_back(&mut self, now: Instant, agent: &Agent) {
        let view = agent.view();
        let due = |alloc: &&AllocRunner| view.next_timer(alloc).is_some_and(|at| at <= now);
        let due: Vec<AllocId> = (view.allocs().filter(due))
            .map(|alloc| alloc.record().id)
            .collect();
        if due.is_empty() {
            self.everything();
        }
        due.into_iter().for_each(|id| self.siblings(agent, id));
    }

    /// What somebody asks for may make allocations, so that others of any job have to go.
    fn request(&mut self, asked: &Request) {
        match asked.get().subject() {
            Subject::Variable(_) | Subject::Namespace(_) | Subject::Acl => {}
            Subject::Alloc(_)
            | Subject::Job(_)
            | Subject::Deployment(_)
            | Subject::Node
            | Subject::Everything => self.everything(),
        }
    }

    pub(super) fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Driver(_, key, _) | Effect::Notify(Notification::Event(key, _)) => {
                self.alloc(key.alloc)
            }
            Effect::Hook(HookEffect::Run { alloc, .. }) => self.alloc(*alloc),
            Effect::Store(StoreEffect::Commit(_, batch)) => self.batch(Some(batch)),
            Effect::Check(_)
            | Effect::Hook(HookEffect::Cancel { .. })
            | Effect::Node(_)
            | Effect::Server(_)
            | Effect::Forget(..)
            | Effect::Reply(..)
            | Effect::Notify(Notification::Index(_) | Notification::Notice(_))
            | Effect::Stopped => {}
        }
    }

    fn alloc(&mut self, id: AllocId) {
        self.allocs.insert(id);
    }

    /// An allocation, and those of its job: they replace and wait for each other.
    fn siblings(&mut self, agent: &Agent, id: AllocId) {
        self.alloc(id);
        if let Some(alloc) = agent.view().alloc(id) {
            self.job(agent, &alloc.record().job);
        }
    }

    fn job(&mut self, agent: &Agent, key: &JobKey) {
        let of_job = agent.view().allocs_of(key);
        self.allocs.extend(of_job.map(|alloc| alloc.record().id));
    }

    fn batch(&mut self, batch: Option<&Batch>) {
        let keys = batch.into_iter().flat_map(Batch::keys);
        self.allocs.extend(keys.filter_map(|key| match key {
            Key::Alloc(id) | Key::Task(id, _) | Key::Collected(id) | Key::Placed(id) => Some(*id),
            Key::Meta
            | Key::Job(_)
            | Key::Eval(_)
            | Key::Deployment(_)
            | Key::Disk(_)
            | Key::Submission(..)
            | Key::Periodic(_)
            | Key::Node
            | Key::Volume(_)
            | Key::Namespace(_)
            | Key::AclPolicy(_)
            | Key::AclToken(_)
            | Key::AclBootstrap
            | Key::Server
            | Key::Reported(_)
            | Key::Announced(_)
            | Key::Variable(_) => None,
        }));
    }
}
