//! What could happen next in a simulation, and when the agent wants to be called back.

use drover_core::agent::Agent;
use drover_core::time::{Instant, Span};
use serde::Serialize;

use super::Sim;
use crate::faults::Fault;
use crate::inbox::Source;
use crate::point::Point;
use crate::search::Candidate;

/// Something that could happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// The world does what it was asked for, or does by itself.
    World(Instant, u64),
    /// The first input of this source is delivered.
    Input(Source),
    /// The agent is called back.
    Timer,
    /// A new agent begins.
    Restart,
    /// The servers of the cluster do something by themselves.
    Servers,
}

/// When the agent is really called back that wants to be called at some instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) wanted: Instant,
    pub(super) at: Instant,
    pub(super) rank: u32,
}

impl Sim {
    /// What happens now, as the search picks it.
    pub(super) fn next_turn(&mut self) -> Option<Turn> {
        self.set_call();
        // The search draws from the choices while it looks at everything else.
        let mut scheduler = core::mem::take(&mut self.world.scene.scheduler);
        let mut choices = core::mem::take(&mut self.world.scene.choices);
        let turn = scheduler.pick(&mut choices, self.candidates());
        self.world.scene.scheduler = scheduler;
        self.world.scene.choices = choices;
        turn
    }

    /// Everything that could happen now.
    pub fn turns(&mut self) -> Vec<Turn> {
        self.set_call();
        self.candidates().map(|candidate| candidate.what).collect()
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate<'_, Turn>> {
        let now = self.world.scene.at;
        let due = (self.world.scene.later)
            .range(..=(now, u64::MAX))
            .map(|((at, number), due)| Candidate {
                what: Turn::World(*at, *number),
                at: *at,
                number: *number,
                rank: due.rank,
                entity: &due.entity,
            });
        let lives = self.agent.is_some();
        let delivery = (self.world.scene.inbox.heads())
            .filter(move |(_, delivery)| lives && delivery.at <= now)
            .map(|(source, delivery)| Candidate {
                what: Turn::Input(source),
                at: delivery.at,
                number: delivery.number,
                rank: delivery.rank,
                entity: &delivery.entity,
            });
        let call = self.call.filter(|call| lives && call.at <= now);
        let call = call.map(|call| Candidate {
            what: Turn::Timer,
            at: call.at,
            number: u64::MAX - 1,
            rank: call.rank,
            entity: "clock",
        });
        let restart = self.restart_at.filter(|at| *at <= now);
        let restart = restart.map(|at| Candidate {
            what: Turn::Restart,
            at,
            number: u64::MAX,
            rank: 0,
            entity: "agent",
        });
        let servers = self.servers_at().filter(|at| *at <= now);
        let servers = servers.map(|at| Candidate {
            what: Turn::Servers,
            at,
            number: u64::MAX,
            rank: 0,
            entity: "servers",
        });
        due.chain(delivery)
            .chain(call)
            .chain(restart)
            .chain(servers)
    }

    /// Notes when the agent wants to be called back, and when it really is.
    pub(super) fn set_call(&mut self) {
        if self.world.scene.clock_was_set && self.agent.is_some() {
            let at = self.world.scene.at;
            let rank = (self.world.scene.scheduler).rank(&mut self.world.scene.choices, "clock");
            let wanted = Instant(u64::MAX);
            self.call.get_or_insert(Call { wanted, at, rank }).at = at;
            return;
        }
        let wanted = self.agent.as_ref().and_then(Agent::poll_timeout);
        let Some((wanted, _)) = wanted else {
            self.call = None;
            return;
        };
        if self.call.is_some_and(|call| call.wanted == wanted) {
            return;
        }
        let mut at = wanted.max(self.world.scene.at);
        if self.world.scene.fires(Fault::SlowTimer, "clock") {
            let grid = [Span::millis(1), Span::secs(1), Span::secs(60)];
            let late = (self.world.scene.choices).one_of(&grid, Point::Late, "clock");
            at = at + late.unwrap_or(Span::ZERO);
        }
        let world = &mut self.world;
        let rank = world
            .scene
            .scheduler
            .rank(&mut world.scene.choices, "clock");
        self.call = Some(Call { wanted, at, rank });
    }

    /// When something happens next, whatever it is.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let agent = self.agent.as_ref();
        let inbox = agent.and_then(|_| self.world.scene.inbox.next_at());
        let call = self.call.map(|call| call.at);
        let later = self.world.scene.later.keys().next().map(|(at, _)| *at);
        [inbox, call, later, self.restart_at, self.servers_at()]
            .into_iter()
            .flatten()
            .min()
    }

    /// If nothing can happen now, time passes until something can. Returns whether anything can
    /// within `horizon`.
    pub(crate) fn pass_time(&mut self, horizon: Span) -> bool {
        self.set_call();
        let end = self.world.scene.at + horizon;
        match self.next_at().filter(|at| *at <= end) {
            Some(at) => {
                self.world.scene.advance(at);
                true
            }
            None => false,
        }
    }

    /// What the world has in store for the agent, in time from now.
    pub(crate) fn ahead(&self) -> impl Serialize {
        let now = self.world.scene.at;
        (
            self.call.map(|call| call.at - now),
            self.restart_at.map(|at| at - now),
            self.stopped,
            self.agent.is_some(),
        )
    }
}
