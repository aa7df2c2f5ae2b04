//! Playing a recording, one step at a time, and comparing.

use std::fmt;

use drover_core::agent::Agent;
use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::record::digest::fingerprint;
use drover_core::record::{Mark, Start, brief};
use drover_core::time::Now;

use super::damage::Damage;
use super::recording::{Event, Recording, Segment};

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
    /// What followed.
    pub effects: Vec<Effect>,
    /// How that differs from what was recorded.
    pub difference: Option<Difference>,
}

/// The agent of today does not what the recorded one did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Other effects.
    Effects(Box<OtherEffects>),
    /// The same effects so far, but another state.
    State,
}

/// The first effect of a step that is another one than was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherEffects {
    /// How many of this step come before it, and are the same.
    same: usize,
    /// How many there are: the more of the recorded and of those that came.
    of: usize,
    /// What was recorded.
    expected: Option<Mark>,
    /// What came, also in more words.
    came: Option<(Mark, String)>,
}

/// Plays a recording.
#[derive(Clone, Debug)]
pub struct Player<'r> {
    recording: &'r Recording,
    /// The number of the last step that was played.
    at: usize,
    agent: Option<Agent>,
}

impl<'r> Player<'r> {
    /// Before the first step.
    pub fn new(recording: &'r Recording) -> Player<'r> {
        Player {
            recording,
            at: 0,
            agent: None,
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
        self.at = number;
        Some(match event {
            Event::Begin(segment) => self.begin(number, segment),
            Event::Step(_, step) => {
                let mut effects = Vec::new();
                if let Some(agent) = &mut self.agent {
                    match &step.input {
                        Some(input) => agent.handle(step.now, input.clone()),
                        None => agent.handle_timeout(step.now),
                    }
                    effects = drain(agent);
                }
                Played {
                    number,
                    begins: None,
                    now: step.now,
                    input: step.input.as_ref(),
                    difference: compare(&step.marks, &effects),
                    effects,
                }
            }
        })
    }

    fn begin(&mut self, number: usize, segment: &'r Segment) -> Played<'r> {
        let before = self.agent.take();
        let (mut agent, now) = match &segment.header.start {
            Start::Restore {
                config, saved, now, ..
            } => {
                let (config, saved) = (Box::clone(config), Box::clone(saved));
                (Agent::restore(*config, *saved, *now), *now)
            }
            Start::Snapshot { agent, now } => (Agent::clone(agent), *now),
        };
        let effects = drain(&mut agent);
        let difference = match &segment.header.start {
            Start::Restore { marks, .. } => compare(marks, &effects),
            Start::Snapshot { .. } => {
                let goes_on = self.goes_on(number, segment);
                let other = before.filter(|before| fingerprint(before) != fingerprint(&agent));
                other.filter(|_| goes_on).map(|_| Difference::State)
            }
        };
        self.agent = Some(agent);
        Played {
            number,
            begins: Some(segment),
            now,
            input: None,
            effects,
            difference,
        }
    }

    /// Whether this segment begins exactly where the one before ended.
    fn goes_on(&self, number: usize, segment: &Segment) -> bool {
        let before = match self.recording.event(number.saturating_sub(1)) {
            Some(Event::Begin(before) | Event::Step(before, _)) => before,
            None => return false,
        };
        let steps = u64::try_from(before.steps.len()).unwrap_or(u64::MAX);
        let header = &segment.header;
        !header.gap
            && header.life == before.header.life
            && header.step == before.header.step.saturating_add(steps)
    }
}

fn drain(agent: &mut Agent) -> Vec<Effect> {
    std::iter::from_fn(|| agent.poll_effect()).collect()
}

fn compare(expected: &[Mark], effects: &[Effect]) -> Option<Difference> {
    let came: Vec<Mark> = effects.iter().map(Mark::of).collect();
    if came == expected {
        return None;
    }
    let pairs = expected.iter().zip(&came);
    let same = pairs
        .take_while(|(expected, came)| expected == came)
        .count();
    let words = || effects.get(same).map(brief::effect);
    Some(Difference::Effects(Box::new(OtherEffects {
        same,
        of: expected.len().max(came.len()),
        expected: expected.get(same).copied(),
        came: came.get(same).copied().zip(words()),
    })))
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::State => {
                f.write_str("the same effects, but another state than was recorded here")
            }
            Difference::Effects(other) => other.fmt(f),
        }
    }
}

impl fmt::Display for OtherEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NOTHING: &str = "nothing more";
        writeln!(f, "effect {} of {}", self.same + 1, self.of)?;
        match &self.expected {
            Some(mark) => writeln!(f, "  expected: {mark}")?,
            None => writeln!(f, "  expected: {NOTHING}")?,
        }
        match &self.came {
            Some((mark, words)) => write!(f, "  came:     {mark}, {words}")?,
            None => write!(f, "  came:     {NOTHING}")?,
        }
        let kind = |mark: &Mark| mark.kind;
        let expected = self.expected.as_ref().map(kind);
        if expected.is_some() && expected == self.came.as_ref().map(|(mark, _)| kind(mark)) {
            f.write_str("\n  (the same kind, with other contents)")?;
        }
        Ok(())
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
    /// The first step that differs, and how.
    pub difference: Option<(usize, Difference)>,
}

/// Plays all of a recording, up to the first difference.
pub fn verify(recording: &Recording) -> Verdict {
    let segments = recording.segments();
    let mut lives: Vec<&str> = segments.iter().map(|s| s.header.life.as_str()).collect();
    lives.dedup();
    let damages = recording.damages();
    let named = |segment: &Segment| damages.iter().any(|damage| damage.file == segment.name);
    let torn = segments.iter().filter(|s| s.torn > 0 && !named(s));
    let torn = torn.map(|segment| segment.torn);
    let mut verdict = Verdict {
        steps: recording.len(),
        lives: lives.len(),
        gaps: segments.iter().filter(|s| s.header.gap).count(),
        torn: (torn.clone().count(), torn.sum()),
        damages: damages.to_vec(),
        difference: None,
    };
    let mut player = Player::new(recording);
    while let Some(played) = player.step() {
        if let Some(difference) = played.difference {
            verdict.difference = Some((played.number, difference));
            break;
        }
    }
    verdict
}
