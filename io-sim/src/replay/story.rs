//! A recording as a story: one line an event, a column for each who acts.

use std::collections::BTreeMap;

use drover_core::effect::{Effect, HookEffect, StoreEffect, Told};
use drover_core::ids::AllocId;
use drover_core::input::Input;
use drover_core::record::{Start, brief};
use drover_core::time::{Instant, Span};
use serde::Serialize;

use super::player::{Played, Player};
use super::recording::Recording;
use crate::timeline;
use crate::trace::{self, Column, Event};

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// The agent itself: its beginnings, its end, its timers.
    Agent,
    /// Whoever asks by the API.
    People,
    /// The store.
    Store,
    /// An allocation with its tasks.
    Alloc(AllocId),
}

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The step that it belongs to.
    pub step: usize,
    /// The time since the beginning of the recording, in nanoseconds.
    pub since: i64,
    /// Whose column it is.
    pub actor: Actor,
    /// Whether the agent was told it, or did it.
    pub way: Way,
    /// What happened.
    pub words: String,
}

/// Which way something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Into the agent.
    In,
    /// Out of it.
    Out,
    /// It is not what was recorded.
    Difference,
}

/// The story of a whole recording.
pub fn lines(recording: &Recording) -> Vec<Line> {
    let mut player = Player::new(recording);
    let mut began = None;
    let mut lines = Vec::new();
    while let Some(played) = player.step() {
        let began = *began.get_or_insert(played.now.at);
        lines.extend(of_step(&played, began));
    }
    lines
}

/// The lines of one step.
pub fn of_step(played: &Played<'_>, began: Instant) -> Vec<Line> {
    let line = |way, actor, words| Line {
        step: played.number,
        since: (played.now.at - began).0,
        actor,
        way,
        words,
    };
    let mut lines = Vec::new();
    match (played.begins, played.input) {
        (Some(segment), _) => {
            let words = match segment.header.start {
                Start::Restore { .. } => "the agent begins",
                Start::Snapshot { .. } if segment.header.gap => "goes on; steps are missing",
                Start::Snapshot { .. } => "goes on",
            };
            let words = format!("{words} ({})", segment.name);
            lines.push(line(Way::In, Actor::Agent, words));
        }
        (None, None) => lines.push(line(Way::In, Actor::Agent, "timeout".to_owned())),
        (None, Some(input)) => {
            let said = brief::said(input);
            let words = match task_of_input(input) {
                Some(task) => format!("{task}: {said}"),
                None => said,
            };
            lines.push(line(Way::In, who_says(input), words));
        }
    }
    for effect in &played.effects {
        if let Some((actor, words)) = of_effect(effect) {
            lines.push(line(Way::Out, actor, words));
        }
    }
    if played.difference.is_some() {
        let words = "not what was recorded".to_owned();
        lines.push(line(Way::Difference, Actor::Agent, words));
    }
    lines
}

fn who_says(input: &Input) -> Actor {
    match input {
        Input::Driver(key, _) => Actor::Alloc(key.alloc),
        Input::Hook(hook) => Actor::Alloc(hook.alloc),
        Input::Template(key, _) => Actor::Alloc(key.alloc),
        Input::Store(_) => Actor::Store,
        Input::Local(..) | Input::Operator(..) | Input::Shutdown(_) => Actor::People,
        Input::Node(_) => Actor::Agent,
    }
}

fn task_of_input(input: &Input) -> Option<&str> {
    match input {
        Input::Driver(key, _) | Input::Template(key, _) => Some(key.task.as_str()),
        Input::Hook(hook) => hook.task.as_ref().map(|task| task.as_str()),
        Input::Store(_)
        | Input::Local(..)
        | Input::Operator(..)
        | Input::Shutdown(_)
        | Input::Node(_) => None,
    }
}

fn of_effect(effect: &Effect) -> Option<(Actor, String)> {
    let words = brief::effect(effect);
    Some(match effect {
        Effect::Driver(_, key, asked) => {
            let what = brief::driver_word(asked);
            (Actor::Alloc(key.alloc), format!("{}: {what}", key.task))
        }
        Effect::Hook(HookEffect::Run {
            alloc, task, work, ..
        }) => {
            let task = task.as_ref().map(|task| format!("{task}: "));
            let words = format!("{}{}", task.unwrap_or_default(), work.words());
            (Actor::Alloc(*alloc), words)
        }
        Effect::Tell(Told::Event(key, event)) => {
            let mut words = format!("{}: {}", key.task, event.kind.as_str());
            if event.display_message != event.kind.as_str() {
                words.push_str(&format!(" ({})", event.display_message));
            }
            (Actor::Alloc(key.alloc), words)
        }
        Effect::Store(StoreEffect::Commit(id, batch)) => {
            let records = if batch.len() == 1 {
                "record"
            } else {
                "records"
            };
            (
                Actor::Store,
                format!("commit {}, {} {records}", id.0, batch.len()),
            )
        }
        Effect::Reply(..) => (Actor::People, words),
        Effect::Stopped => (Actor::Agent, "stopped".to_owned()),
        Effect::Node(_) => (Actor::Agent, words),
        Effect::Tell(Told::Index(_)) | Effect::Forget(..) | Effect::Hook(_) => return None,
    })
}

/// The story as a picture: a column for each who acts.
pub fn text(recording: &Recording) -> String {
    let names = names(recording);
    let event = |line: Line| Event {
        at: Span(line.since),
        step: u64::try_from(line.step).unwrap_or(u64::MAX),
        column: match &line.actor {
            Actor::Agent => Column::Agent,
            Actor::People => Column::People,
            Actor::Store => Column::Store,
            Actor::Alloc(id) => {
                let name = names.get(id).cloned().unwrap_or_else(|| id.short());
                Column::Of(name.into())
            }
        },
        way: line.way.into(),
        text: line.words,
    };
    let events: Vec<Event> = lines(recording).into_iter().map(event).collect();
    timeline::draw(&events)
}

/// The allocations' names.
fn names(recording: &Recording) -> BTreeMap<AllocId, String> {
    let mut player = Player::new(recording);
    let mut names = BTreeMap::new();
    while player.step().is_some() {
        let allocs = player
            .agent()
            .into_iter()
            .flat_map(|agent| agent.view().allocs());
        for alloc in allocs {
            let record = alloc.record();
            let name = || format!("{} {}", record.name, record.id.short());
            names.entry(record.id).or_insert_with(name);
        }
    }
    names
}

impl From<Way> for trace::Way {
    fn from(way: Way) -> trace::Way {
        match way {
            Way::In => trace::Way::In,
            Way::Out => trace::Way::Out,
            Way::Difference => trace::Way::Fault,
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.way {
            Way::In => "->",
            Way::Out => "   <-",
            Way::Difference => "!!",
        };
        write!(f, "{:>6} {sign} ", self.step)?;
        if let Actor::Alloc(id) = &self.actor {
            write!(f, "{} ", id.short())?;
        }
        f.write_str(&self.words)
    }
}

/// A time since the beginning, as `12.345s`.
pub fn seconds(nanos: i64) -> String {
    let Span(nanos) = Span(nanos.max(0));
    format!("{}.{:03}s", nanos / 1_000_000_000, nanos / 1_000_000 % 1000)
}
