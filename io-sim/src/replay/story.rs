//! A recording as a story: one line an event, a column for each who acts.
//!
//! `->` is what the agent was told, `<-` what it asked for, `·` what it said happened.

use std::collections::BTreeMap;

use drover_core::effect::{Effect, HookEffect, StoreEffect, Told};
use drover_core::ids::AllocId;
use drover_core::input::Input;
use drover_core::record::{Start, brief};
use drover_core::time::{Instant, Span};
use serde::Serialize;

use super::player::{Played, Player};
use super::recording::Recording;

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
    /// What happened.
    pub words: String,
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
    let line = |actor, words| Line {
        step: played.number,
        since: (played.now.at - began).0,
        actor,
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
            lines.push(line(Actor::Agent, format!("{words} ({})", segment.name)));
        }
        (None, None) => lines.push(line(Actor::Agent, "-> timeout".to_owned())),
        (None, Some(input)) => {
            let words = match task_of_input(input) {
                Some(task) => format!("-> {task}: {}", brief::said(input)),
                None => format!("-> {}", brief::said(input)),
            };
            lines.push(line(who_says(input), words));
        }
    }
    for effect in &played.effects {
        if let Some((actor, words)) = of_effect(effect) {
            lines.push(line(actor, words));
        }
    }
    if played.difference.is_some() {
        let words = "!! not what was recorded".to_owned();
        lines.push(line(Actor::Agent, words));
    }
    lines
}

fn who_says(input: &Input) -> Actor {
    match input {
        Input::Driver(key, _) => Actor::Alloc(key.alloc),
        Input::Hook(hook) => Actor::Alloc(hook.alloc),
        Input::Store(_) => Actor::Store,
        Input::Local(..) | Input::Operator(..) | Input::Shutdown(_) => Actor::People,
        Input::Node(_) => Actor::Agent,
    }
}

fn task_of_input(input: &Input) -> Option<&str> {
    match input {
        Input::Driver(key, _) => Some(key.task.as_str()),
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
            (Actor::Alloc(key.alloc), format!("<- {}: {what}", key.task))
        }
        Effect::Hook(HookEffect::Run {
            alloc, task, work, ..
        }) => {
            let task = task.as_ref().map(|task| format!("{task}: "));
            let words = format!("<- {}{}", task.unwrap_or_default(), brief::hook_word(work));
            (Actor::Alloc(*alloc), words)
        }
        Effect::Tell(Told::Event(key, event)) => {
            let mut words = format!("· {}: {}", key.task, event.kind.as_str());
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
                format!("<- commit {}, {} {records}", id.0, batch.len()),
            )
        }
        Effect::Reply(..) => (Actor::People, format!("<- {words}")),
        Effect::Stopped => (Actor::Agent, "<- stopped".to_owned()),
        Effect::Tell(Told::Index(_)) | Effect::Forget(..) | Effect::Hook(_) => return None,
    })
}

/// The least and the greatest width of a column.
const NARROWEST: usize = 12;
const WIDEST: usize = 44;

/// A column.
struct Column {
    actor: Actor,
    title: String,
    width: usize,
}

/// The story as text: step, time, and a column for each who acts.
pub fn text(recording: &Recording) -> String {
    let lines = lines(recording);
    let columns = columns(&lines, &names(recording));
    let mut out = row("step", "time", &columns, |column| column.title.clone());
    for line in &lines {
        let own = columns.iter().find(|column| column.actor == line.actor);
        let parts = wrap(&line.words, own.map_or(WIDEST, |column| column.width));
        for (nth, part) in parts.into_iter().enumerate() {
            let (step, time) = match nth {
                0 => (line.step.to_string(), seconds(line.since)),
                _ => (String::new(), String::new()),
            };
            let cell = |column: &Column| match column.actor == line.actor {
                true => part.clone(),
                false => String::new(),
            };
            out.push_str(&row(&step, &time, &columns, cell));
        }
    }
    out
}

/// The allocations' names.
fn names(recording: &Recording) -> BTreeMap<AllocId, String> {
    let mut player = Player::new(recording);
    let mut names = BTreeMap::new();
    while player.step().is_some() {
        for alloc in player
            .agent()
            .into_iter()
            .flat_map(|agent| agent.view().allocs())
        {
            let record = alloc.record();
            let name = || format!("{} {}", record.name, record.id.short());
            names.entry(record.id).or_insert_with(name);
        }
    }
    names
}

/// Those who act, allocations last, each as they first appear.
fn columns(lines: &[Line], names: &BTreeMap<AllocId, String>) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for line in lines {
        let known = columns.iter_mut().find(|column| column.actor == line.actor);
        let width = line.words.chars().count();
        if let Some(column) = known {
            column.width = column.width.max(width);
            continue;
        }
        let title = match &line.actor {
            Actor::Agent => "agent".to_owned(),
            Actor::People => "people".to_owned(),
            Actor::Store => "store".to_owned(),
            Actor::Alloc(id) => names.get(id).cloned().unwrap_or_else(|| id.short()),
        };
        columns.push(Column {
            actor: line.actor.clone(),
            width: width.max(title.chars().count()),
            title,
        });
    }
    for column in &mut columns {
        column.width = column.width.clamp(NARROWEST, WIDEST);
    }
    columns.sort_by_key(|column| matches!(column.actor, Actor::Alloc(_)));
    columns
}

fn row(step: &str, time: &str, columns: &[Column], cell: impl Fn(&Column) -> String) -> String {
    let mut line = format!("{step:>6}  {time:>10}");
    for column in columns {
        let width = column.width;
        line.push_str(&format!("  {:width$}", cell(column)));
    }
    format!("{}\n", line.trim_end())
}

/// A text in lines of at most `width` letters, broken at spaces where there are any.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let length = line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > width {
            lines.push(core::mem::replace(&mut line, "     ".to_owned()));
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}

/// A time since the beginning, as `12.345s`.
pub fn seconds(nanos: i64) -> String {
    let Span(nanos) = Span(nanos.max(0));
    format!("{}.{:03}s", nanos / 1_000_000_000, nanos / 1_000_000 % 1000)
}
