//! Playing a recording, one step at a time, and comparing.

use std::fmt;

use drover_core::agent::{Agent, Input};
use drover_core::config::Config;
use drover_core::effect::{Effect, StoreEffect};
use drover_core::store::Saved;
use drover_core::time::{Instant, Now};
use drover_recorder::file::End;
use drover_recorder::{ContentHash, Outcome, Start};

use super::damage::Damage;
use super::recording::{Event, Recording, Segment};
use crate::names::Names;
use crate::sim::brief;
use crate::trace::{self, Column, Way};

/// What one step did.
#[derive(Clone, Debug)]
pub struct Played<'r> {
    /// Its number, from 1.
    pub number: usize,
    /// The segment that begins with it, if one does.
    pub begins: Option<&'r Segment>,
    /// When.
    pub now: Now,
    /// What came; none for a timeout, or where a segment begins.
    pub input: Option<&'r Input>,
    /// It in words.
    pub came: trace::Event,
    /// What followed, and in words what of it is worth any.
    pub effects: Vec<(Effect, Option<trace::Event>)>,
    /// How that differs from what was recorded.
    pub difference: Option<Difference>,
    /// Whether a hash of it was recorded, and is the same.
    pub agrees: bool,
}

/// The agent of today does not what the recorded one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: &'static str,
    /// What was recorded.
    pub expected: String,
    /// What came.
    pub came: String,
    /// What the agent asks for today, in words.
    pub effects: Vec<String>,
}

/// Plays a recording.
#[derive(Clone, Debug)]
pub struct Player<'r> {
    recording: &'r Recording,
    /// The number of the last step that was played.
    at: usize,
    agent: Option<Agent>,
    names: Names,
    /// When the first step was that was played.
    began: Option<Instant>,
}

impl<'r> Player<'r> {
    /// Before the first step.
    pub fn new(recording: &'r Recording) -> Player<'r> {
        Player {
            recording,
            at: 0,
            agent: None,
            names: Names::default(),
            began: None,
        }
    }

    /// The number of the last step that was played; 0 before the first.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The agent after that step; none before the first.
    pub fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// The recording.
    pub fn recording(&self) -> &'r Recording {
        self.recording
    }

    /// Plays until step `number` was played, also backwards; no further than to the end.
    pub fn go_to(&mut self, number: usize) {
        let number = number.min(self.recording.len());
        let beginning = self.recording.beginning(number);
        if number < self.at || self.at < beginning {
            // Every segment can be played without those before it.
            self.agent = None;
            self.at = beginning.saturating_sub(1);
        }
        while self.at < number && self.step().is_some() {}
    }

    /// Plays the next step; none at the end.
    pub fn step(&mut self) -> Option<Played<'r>> {
        let number = self.at + 1;
        let event = self.recording.event(number)?;
        let (begins, now, input, recorded) = match event {
            Event::Begin(segment) => {
                let (now, outcome) = segment.header.outcome();
                (Some(segment), now, None, outcome)
            }
            Event::Step(_, step) => (None, step.now, step.input.as_ref(), step.outcome),
        };
        let input_line = self.input_line(begins, input);
        let before = match begins {
            Some(_) => self.agent.take(),
            None => None,
        };
        let mut agent = match begins {
            Some(segment) => begin(segment),
            None => self.agent.take()?,
        };
        match (begins, input) {
            (Some(_), _) => {}
            (None, Some(input)) => agent.handle(now, input.clone()),
            (None, None) => agent.handle_timeout(now),
        }
        let effects: Vec<Effect> = core::iter::from_fn(|| agent.poll_effect()).collect();
        let came = outcome(&effects, recorded.state.is_some().then_some(&agent));
        let goes_on = before.filter(|_| begins.is_some_and(|it| self.goes_on(number, it)));
        let (one, other) = match &goes_on {
            // Where one segment goes on from another, the whole states are compared.
            Some(before) => (
                Outcome {
                    state: Some(ContentHash::of(before)),
                    ..came
                },
                Outcome {
                    state: Some(ContentHash::of(&agent)),
                    ..recorded
                },
            ),
            None => (came, recorded),
        };
        self.at = number;
        if begins.is_some() {
            self.names.learn_all(&agent);
        }
        let line = self.line(now, Way::In, input_line);
        let effects = self.effect_lines(now, &agent, effects);
        self.agent = Some(agent);
        let difference = difference(other, one, &effects);
        Some(Played {
            number,
            begins,
            now,
            input,
            came: line,
            effects,
            agrees: difference.is_none() && (other.commit.is_some() || other.state.is_some()),
            difference,
        })
    }

    /// Whether this segment begins exactly where the one before ended.
    fn goes_on(&self, number: usize, segment: &Segment) -> bool {
        let before = match self.recording.event(number.saturating_sub(1)) {
            Some(Event::Begin(before) | Event::Step(before, _)) => before,
            None => return false,
        };
        let header = &segment.header;
        !header.gap && (header.life.as_str(), header.step) == before.last()
    }

    /// What comes, before it is handled.
    fn input_line(&self, begins: Option<&Segment>, input: Option<&Input>) -> (Column, String) {
        match (begins, &self.agent) {
            (Some(segment), _) => {
                let words = match segment.header.start {
                    Start::Restore { .. } => "the agent starts",
                    Start::Snapshot { .. } if segment.header.gap => "goes on; steps are missing",
                    Start::Snapshot { .. } => "goes on",
                };
                (Column::Agent, format!("{words} ({})", segment.name))
            }
            (None, Some(agent)) => brief::input(&self.names, agent, input),
            (None, None) => (Column::Agent, String::new()),
        }
    }

    fn line(&mut self, now: Now, way: Way, (column, text): (Column, String)) -> trace::Event {
        trace::Event {
            at: now.at - *self.began.get_or_insert(now.at),
            step: u64::try_from(self.at).unwrap_or(u64::MAX),
            column,
            way,
            text,
        }
    }

    fn effect_lines(
        &mut self,
        now: Now,
        agent: &Agent,
        effects: Vec<Effect>,
    ) -> Vec<(Effect, Option<trace::Event>)> {
        let effect_lines = effects.into_iter().map(|effect| {
            self.names.learn(agent, &effect);
            if let Effect::Driver(_, key, asked) = &effect {
                self.names.launch(key, asked.launch());
            }
            let words = brief::effect(&self.names, &effect);
            let line = words.map(|words| self.line(now, Way::Out, words));
            (effect, line)
        });
        effect_lines.collect()
    }
}

fn begin(segment: &Segment) -> Agent {
    match &segment.header.start {
        Start::Restore {
            config, saved, now, ..
        } => Agent::restore(Config::clone(config), Saved::clone(saved), *now),
        Start::Snapshot { agent, .. } => Agent::clone(agent),
    }
}

/// What is kept of these effects; of the state after them too, if it is given.
pub fn outcome(effects: &[Effect], agent: Option<&Agent>) -> Outcome {
    let mut commits = effects.iter().filter_map(|effect| match effect {
        Effect::Store(StoreEffect::Commit(id, batch)) => Some(ContentHash::of_commit(*id, batch)),
        Effect::Driver(..)
        | Effect::Forget(..)
        | Effect::Hook(_)
        | Effect::Check(_)
        | Effect::Node(_)
        | Effect::Server(_)
        | Effect::Reply(..)
        | Effect::Notify(_)
        | Effect::Stopped => None,
    });
    Outcome {
        effects: u32::try_from(effects.len()).unwrap_or(u32::MAX),
        commit: commits.next(),
        state: agent.map(ContentHash::of),
    }
}

fn difference(
    expected: Outcome,
    came: Outcome,
    effects: &[(Effect, Option<trace::Event>)],
) -> Option<Difference> {
    let text = |hash: Option<ContentHash>| hash.map_or("none".to_owned(), |hash| hash.to_string());
    let number = |number: u32| number.to_string();
    let all = [
        (
            "the number of effects",
            number(expected.effects),
            number(came.effects),
        ),
        ("what is saved", text(expected.commit), text(came.commit)),
        ("the state", text(expected.state), text(came.state)),
    ];
    let (what, expected, came) = all.into_iter().find(|(_, one, other)| one != other)?;
    let lines = effects.iter().filter_map(|(_, line)| line.as_ref());
    Some(Difference {
        what,
        expected,
        came,
        effects: lines.map(trace::Event::words).collect(),
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            what,
            expected,
            came,
            effects,
        } = self;
        write!(f, "{what}\n  expected: {expected}\n  came:     {came}")?;
        effects
            .iter()
            .try_for_each(|effect| write!(f, "\n  today:    {effect}"))
    }
}

/// What playing all of a recording says.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How many steps there are.
    pub steps: usize,
    /// How many lives of the agent.
    pub lives: usize,
    /// How often steps are missing within a life.
    pub gaps: usize,
    /// How many segments have an end that cannot be read, and how many bytes these are.
    pub torn: (usize, usize),
    /// What of the recording cannot be played.
    pub damages: Vec<Damage>,
    /// The first steps that differ, and how the last of them does.
    pub difference: Option<(Interval, Difference)>,
}

/// Steps of which something differs: the first after what was the same, and the one that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

/// Plays all of a recording, up to the first difference.
pub fn verify(recording: &Recording) -> Verdict {
    let segments = recording.segments();
    let mut lives: Vec<&str> = segments.iter().map(|s| s.header.life.as_str()).collect();
    lives.dedup();
    let damages = recording.damages();
    let named = |segment: &&Segment| damages.iter().any(|damage| damage.file == segment.name);
    let torn = segments.iter().filter(|segment| !named(segment));
    let torn = torn.filter_map(|segment| match segment.end {
        End::Torn(bytes) => Some(bytes),
        End::Whole | End::Damaged(_) => None,
    });
    let mut verdict = Verdict {
        steps: recording.len(),
        lives: lives.len(),
        gaps: segments.iter().filter(|s| s.header.gap).count(),
        torn: (torn.clone().count(), torn.sum()),
        damages: damages.to_vec(),
        difference: None,
    };
    let mut player = Player::new(recording);
    let mut first = 1;
    while let Some(played) = player.step() {
        let last = played.number;
        if let Some(segment) = played.begins
            && (segment.header.gap || matches!(segment.header.start, Start::Restore { .. }))
        {
            first = last;
        }
        if let Some(difference) = played.difference {
            verdict.difference = Some((Interval { first, last }, difference));
            break;
        }
        if played.agrees {
            first = last + 1;
        }
    }
    verdict
}
