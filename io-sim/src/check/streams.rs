//! Streams of news of drivers: one that ended is opened again, at once if it had worked for a while, else less and less
//! often.

use std::collections::BTreeMap;

use drover_core::agent::Agent;
use drover_core::effect::NodeEffect;
use drover_core::input::{DriverReport, NodeInput, ShutdownMode};
use drover_core::managers::stream::Phase;
use drover_core::op::Op;
use drover_core::time::{Instant, Span};

use super::{Checker, Property, Verdict};
use crate::world::World;

/// Who was heard for so long works.
const STEADY: Span = Span::secs(60);

/// The first and the longest pause after an end.
const PAUSES: (Span, Span) = (Span::secs(5), Span::secs(120));

/// What is known of streams in this life of the agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    of_drivers: BTreeMap<String, Known>,
    /// Those that end in this step, and for how long they rest.
    ended: Vec<(String, Span)>,
}

/// What is known of one.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    op: Option<Op>,
    /// How often it was opened since it worked.
    opened: u32,
    /// When it was first heard since.
    heard: Option<Instant>,
}

impl Known {
    /// It is over. Returns for how long it rests.
    fn ends(&mut self, now: Instant) -> Span {
        let works = self.heard.is_some_and(|since| now - since >= STEADY);
        self.op = None;
        if works {
            self.opened = 0;
            return Span::ZERO;
        }
        let (first, longest) = PAUSES;
        Span(first.0 << self.opened.saturating_sub(1).min(20)).min(longest)
    }
}

impl Streams {
    pub(super) fn agent_died(&mut self) {
        *self = Streams::default();
    }

    /// The agent listens from now.
    pub(super) fn asked(&mut self, effect: &NodeEffect) {
        if let NodeEffect::WatchDriver { op, driver } = effect {
            let known = self.of_drivers.entry(driver.to_string()).or_default();
            (known.op, known.heard) = (Some(*op), None);
            known.opened += 1;
        }
    }

    /// Something is heard.
    pub(super) fn delivered(&mut self, world: &World, agent: &Agent, reported: &NodeInput) {
        self.ended.clear();
        let NodeInput::Driver { op, driver, report } = reported else {
            return;
        };
        let view = agent.view();
        let deaf = view.stopped() || view.shutdown() == Some(ShutdownMode::KeepTasks);
        let known = self.of_drivers.get_mut(driver);
        let Some(known) = known.filter(|known| known.op == Some(*op) && !deaf) else {
            return;
        };
        match report {
            DriverReport::Fingerprint(_) | DriverReport::Failed(_) => {
                known.heard.get_or_insert(world.scene.at);
            }
            DriverReport::Ended(_) => self
                .ended
                .push((driver.clone(), known.ends(world.scene.at))),
        }
    }

    /// The agent is called back: whoever was not heard by now is given up.
    pub(super) fn called_back(&mut self, world: &World, agent: &Agent) {
        self.ended.clear();
        let view = agent.view();
        let late = |op: Op| {
            let until = view.operations().get(op).and_then(|one| one.until());
            until.is_some_and(|until| until <= world.scene.at)
        };
        for (name, known) in &mut self.of_drivers {
            if known.heard.is_none() && known.op.is_some_and(late) {
                self.ended.push((name.clone(), known.ends(world.scene.at)));
            }
        }
    }
}

impl Checker {
    /// A stream that ends in this step rests for as long as it should.
    pub(super) fn ended_stream_is_opened_again_in_time(
        &mut self,
        world: &World,
        agent: &Agent,
    ) -> Verdict {
        for (name, pause) in core::mem::take(&mut self.streams.ended) {
            let Some(driver) = agent.view().machine().drivers().get(&name) else {
                continue;
            };
            let (soonest, latest) = (pause, Span(pause.0 + pause.0 / 4));
            let holds = match driver.stream().phase() {
                Phase::Resting(until) => (soonest..=latest).contains(&(until - world.scene.at)),
                Phase::Opening | Phase::Open => pause == Span::ZERO,
            };
            self.holds(Property::EndedStreamIsOpenedAgainInTime, holds, || {
                let phase = driver.stream().phase();
                format!(
                    "{name} ended at {:?}: {phase:?}, not after {pause}",
                    world.scene.at
                )
            })?;
        }
        Ok(())
    }
}
