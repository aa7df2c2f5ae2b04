//! Playing a recording, one step at a time, and comparing.

use std::fmt;

use drover_core::agent::Agent;
use drover_core::effect::Effect;
use drover_core::input::Input;
use drover_core::record::mark::fingerprint;
use drover_core::record::{Mark, Start};
use drover_core::time::Now;

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
    Effects {
        /// What was recorded.
        expected: Vec<Mark>,
        /// What came.
        came: Vec<Mark>,
    },
    /// The same effects so far, but another state.
    State,
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
    (came != expected).then(|| Difference::Effects {
        expected: expected.to_vec(),
        came,
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference::Effects { expected, came } = self else {
            return f.write_str("the same effects, but another state than was recorded here");
        };
        let same = expected
            .iter()
            .zip(came)
            .take_while(|(a, b)| a == b)
            .count();
        let side = |marks: &[Mark]| match marks.get(same) {
            Some(mark) => format!("{} ({})", mark.brief, mark.fingerprint),
            None => "nothing more".to_owned(),
        };
        writeln!(
            f,
            "effect {} of {}",
            same + 1,
            expected.len().max(came.len())
        )?;
        writeln!(f, "  expected: {}", side(expected))?;
        write!(f, "  came:     {}", side(came))?;
        let words = |marks: &[Mark]| marks.get(same).map(|mark| mark.brief.clone());
        if words(expected).is_some() && words(expected) == words(came) {
            f.write_str("\n  (the same thing with other contents)")?;
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
    /// How many segments have a damaged end.
    pub torn: usize,
    /// The first step that differs, and how.
    pub difference: Option<(usize, Difference)>,
}

/// Plays all of a recording, up to the first difference.
pub fn verify(recording: &Recording) -> Verdict {
    let segments = recording.segments();
    let mut lives: Vec<&str> = segments.iter().map(|s| s.header.life.as_str()).collect();
    lives.dedup();
    let mut verdict = Verdict {
        steps: recording.len(),
        lives: lives.len(),
        gaps: segments.iter().filter(|s| s.header.gap).count(),
        torn: segments.iter().filter(|s| s.torn).count(),
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
