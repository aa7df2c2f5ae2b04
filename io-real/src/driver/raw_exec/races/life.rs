//! One run: a machine, the agent that lives on it, and what the core asks of it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use drover_core::agent::Input;
use drover_core::effect::request::{Destroy, Recover, Start, Stop};
use drover_core::effect::{DriverEffect, TaskConfig};
use drover_core::ids::{LaunchId, Run as StartNumber, TaskKey};
use drover_core::input::DriverInput;
use drover_core::model::task::LogConfig;
use drover_core::op::Op;
use drover_core::time::Span;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::actor::{Actor, Stand};
use super::fake::Shared;
use super::model::{Model, Move, Troubles};
use crate::driver::Inbox;
use crate::driver::answer::Answer;
use crate::driver::raw_exec::{World, destroy};

/// The launch that all is about.
pub(super) const LAUNCH: LaunchId = LaunchId(1);

/// What the core asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ask {
    Start,
    Recover,
    Stop,
    Destroy,
    /// Once it was answered that the launch is destroyed.
    Forget,
}

/// Who asks for what, on which machine, and what goes wrong there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub name: &'static str,
    /// Whether an earlier agent left the launch running.
    pub runs: bool,
    /// What the core asks for, in this order.
    pub asks: &'static [Ask],
    /// What it asks the next agent for, if the first one dies.
    pub next_asks: &'static [Ask],
    pub troubles: Troubles,
    pub has_groups: bool,
    /// How often whoever could go on is interrupted, at most; as often as can be if none.
    pub interruptions: Option<u32>,
}

/// What can happen next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// The core asks for what is next.
    Ask,
    /// An actor takes a step.
    Step(usize),
    Move(Move),
    /// The agent dies, and another begins.
    Death,
}

impl Choice {
    /// The actor that takes a step.
    pub(super) fn actor(self) -> Option<usize> {
        match self {
            Choice::Step(at) => Some(at),
            Choice::Ask | Choice::Move(_) | Choice::Death => None,
        }
    }

    /// Whether it happens sooner or later, if nothing else does.
    pub(super) fn is_certain(self) -> bool {
        match self {
            Choice::Ask | Choice::Step(_) => true,
            Choice::Move(what) => what.is_certain(),
            Choice::Death => false,
        }
    }
}

/// An agent, from its start to its death.
struct Life {
    world: Arc<World<Shared>>,
    inputs: UnboundedReceiver<Input>,
    actors: Vec<Actor>,
}

impl Life {
    fn begin(machine: &Shared) -> Life {
        let (sender, inputs) = unbounded_channel();
        let world = Arc::new(World::new(machine.clone(), Inbox::new(sender)));
        let actors = Vec::new();
        Life {
            world,
            inputs,
            actors,
        }
    }

    fn ask(&mut self, ask: Ask, op: Op) {
        let (world, launch, task) = (self.world.clone(), LAUNCH, TaskKey::default());
        let owed = |effect: DriverEffect| Answer::owed(&self.world.inbox, &task, &effect);
        let actor = match ask {
            Ask::Start => {
                let config = Arc::new(config());
                let asked = Start { op, launch, config };
                let owed = owed(DriverEffect::Start(asked.clone()));
                Actor::begin("start", world.start(owed, task, asked))
            }
            Ask::Recover => {
                let logs = LogConfig::default();
                let asked = Recover { op, launch, logs };
                let owed = owed(DriverEffect::Recover(asked.clone()));
                Actor::begin("recover", world.recover(owed, task, asked))
            }
            Ask::Stop => {
                let (signal, grace) = (String::new(), Span::default());
                let asked = Stop {
                    op,
                    launch,
                    signal,
                    grace,
                };
                let owed = owed(DriverEffect::Stop(asked.clone()));
                Actor::begin("stop", world.stop(owed, task, asked))
            }
            Ask::Destroy => {
                let asked = Destroy { op, launch };
                let owed = owed(DriverEffect::Destroy(asked.clone()));
                Actor::begin("destroy", world.end_by_force(owed, task, asked))
            }
            Ask::Forget => Actor::begin("forget", async move {
                let _ = destroy::forget(&world.dependencies, launch);
            }),
        };
        self.actors.push(actor);
    }
}

/// A run, as far as it is.
pub(super) struct Run {
    pub scenario: Scenario,
    pub machine: Shared,
    life: Life,
    /// How many agents died.
    pub deaths: u32,
    /// How much the core asked this agent for.
    pub asked: usize,
    /// What it heard from it.
    pub received: Vec<DriverInput>,
    /// It was answered once that the launch is destroyed.
    pub is_destroyed: bool,
    /// What happened, a line each.
    pub story: Vec<String>,
}

impl Run {
    pub(super) fn begin(scenario: Scenario) -> Run {
        let mut model = Model {
            has_groups: scenario.has_groups,
            troubles: scenario.troubles,
            ..Model::default()
        };
        if scenario.runs {
            model.run();
        }
        let machine = Shared::new(model);
        Run {
            scenario,
            life: Life::begin(&machine),
            machine,
            deaths: 0,
            asked: 0,
            received: Vec::new(),
            is_destroyed: false,
            story: Vec::new(),
        }
    }

    /// What the core asks this agent for, all in all.
    pub(super) fn asks(&self) -> &'static [Ask] {
        match self.deaths {
            0 => self.scenario.asks,
            _ => self.scenario.next_asks,
        }
    }

    /// What can happen next, always in the same order.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        match self.asks().get(self.asked) {
            Some(Ask::Forget) if !self.is_destroyed => {}
            Some(_) => choices.push(Choice::Ask),
            None => {}
        }
        let actors = self.life.actors.iter().enumerate();
        let ready = actors.filter(|(_, actor)| actor.is_ready());
        choices.extend(ready.map(|(at, _)| Choice::Step(at)));
        let (moves, may_die) = (self.machine).with(|it| (it.moves(), it.troubles.deaths > 0));
        choices.extend(moves.into_iter().map(Choice::Move));
        if may_die && self.asked > 0 {
            choices.push(Choice::Death);
        }
        choices
    }

    /// Lets it happen.
    ///
    /// # Errors
    /// An actor panicked.
    pub(super) fn take(&mut self, choice: Choice) -> Result<(), String> {
        let line = match choice {
            Choice::Ask => {
                let ask = self.asks()[self.asked];
                self.life.ask(ask, Op(self.asked as u64));
                self.asked += 1;
                format!("the core asks: {ask:?}")
            }
            Choice::Step(at) => {
                let actor = &mut self.life.actors[at];
                let line = match &actor.stand {
                    Stand::Waits(what, _) => format!("{} {at}: {what}", actor.name),
                    Stand::Ended(_) => String::new(),
                };
                actor.go_on();
                line
            }
            Choice::Move(what) => {
                self.machine.with(|machine| machine.happen(what));
                format!("by itself: {what:?}")
            }
            Choice::Death => {
                self.machine.with(|machine| machine.troubles.deaths -= 1);
                self.life = Life::begin(&self.machine);
                (self.asked, self.deaths) = (0, self.deaths + 1);
                self.received.clear();
                "the agent dies".to_owned()
            }
        };
        self.story.push(line);
        self.take_inputs();
        let mut actors = self.life.actors.iter();
        actors.try_for_each(|actor| match &actor.stand {
            Stand::Ended(ended) => ended.clone(),
            Stand::Waits(..) => Ok(()),
        })
    }

    fn take_inputs(&mut self) {
        while let Ok(Input::Driver(_, input)) = self.life.inputs.try_recv() {
            self.story.push(format!("    the core receives: {input:?}"));
            self.is_destroyed |= matches!(input, DriverInput::Destroyed { result: Ok(_), .. });
            self.received.push(input);
        }
    }

    /// Whether the agent still has the launch in hand.
    pub(super) fn holds_launch(&self) -> bool {
        self.life.world.held.holds(LAUNCH)
    }

    /// The launches in hand, as text.
    pub(super) fn held(&self) -> String {
        format!("{:?}", self.life.world.held)
    }

    /// A hash of all on which it depends what can happen from here on, and what will be wrong.
    pub(super) fn state(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        (self.deaths, self.asked, &self.received, self.is_destroyed).hash(&mut hash);
        self.machine.with(|machine| machine.hash(&mut hash));
        self.held().hash(&mut hash);
        for actor in &self.life.actors {
            let ended = matches!(actor.stand, Stand::Ended(_));
            (actor.name, actor.seen, ended, actor.is_ready()).hash(&mut hash);
        }
        hash.finish()
    }
}

fn config() -> TaskConfig {
    TaskConfig {
        run: StartNumber(1),
        ..TaskConfig::default()
    }
}
