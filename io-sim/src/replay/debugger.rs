//! A small debugger for recordings: goes through the steps, forwards and backwards, stops where
//! something happens, and shows states and what changed in them.
//!
//! It takes one command at a time as text and answers with text, so that a person can use it at a
//! terminal, and a script or a test through a pipe.

use drover_core::agent::Awaiting;
use drover_recorder::ContentHash;
use serde_json::Value;

use super::diff::{self, Change};
use super::entity::Entity;
use super::player::{Played, Player};
use super::recording::Recording;
use super::story;
use crate::check::Checker;
use crate::trace::{Event, Way};

/// What a person may type.
pub const HELP: &str = "\
step [N]          play the next step, or the next N
back [N]          go back a step, or N
go N              go to step N; 0 is before the first
run               play until a break, or to the end
break ENTITY      stop where a job, an allocation or a task is touched
break violation   stop where a property of the agent's states does not hold
break difference  stop where the agent does something else than was recorded (always on)
breaks            list breaks
clear             forget all breaks
show [PATH]       show the state, or a part of it such as `local.jobs`
diff [FROM [TO]]  show what the last step changed, or what changed between two steps
pending           show who waits for what
help              show this
quit              end";

/// Whether the debugger goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With these words.
    Text(String),
    /// No.
    Quit,
}

/// Where to stop.
#[derive(Clone, Debug)]
enum Break {
    Entity(String, Entity),
    Violation,
}

/// The debugger of one recording.
#[derive(Debug)]
pub struct Debugger<'r> {
    player: Player<'r>,
    breaks: Vec<Break>,
}

impl<'r> Debugger<'r> {
    /// Before the first step.
    pub fn new(recording: &'r Recording) -> Debugger<'r> {
        Debugger {
            player: Player::new(recording),
            breaks: Vec::new(),
        }
    }

    /// What to ask with.
    pub fn prompt(&self) -> String {
        format!("{}/{}> ", self.player.at(), self.player.recording().len())
    }

    /// Does what a line says.
    pub fn command(&mut self, line: &str) -> Answer {
        let mut words = line.split_whitespace();
        let (command, first, second) = (words.next(), words.next(), words.next());
        let number = |word: Option<&str>, default: usize| match word {
            None => Ok(default),
            Some(word) => word
                .parse()
                .map_err(|_| format!("{word:?} is not a number")),
        };
        let text = match command.unwrap_or("step") {
            "step" | "s" => number(first, 1).map(|count| self.forward(count)),
            "back" | "b" => number(first, 1).map(|count| self.back(count)),
            "go" | "g" => number(first, 0).map(|to| self.go(to)),
            "run" | "r" => Ok(self.forward(usize::MAX)),
            "break" => self.add_break(first),
            "breaks" => Ok(self.list_breaks()),
            "clear" => {
                self.breaks.clear();
                Ok("no breaks".to_owned())
            }
            "show" | "p" => self.show(first),
            "diff" | "d" => {
                let at = self.player.at();
                number(first, at.saturating_sub(1))
                    .and_then(|from| Ok((from, number(second, at)?)))
                    .map(|(from, to)| self.diff(from, to))
            }
            "pending" => Ok(self.pending()),
            "help" | "h" | "?" => Ok(HELP.to_owned()),
            "quit" | "q" | "exit" => return Answer::Quit,
            other => Err(format!("no command is called {other:?}; try help")),
        };
        Answer::Text(text.unwrap_or_else(|why| why))
    }

    /// Plays on, and says what happened and why it stops.
    fn forward(&mut self, count: usize) -> String {
        let mut last = None;
        for _ in 0..count {
            let before: Vec<_> = self.states();
            let Some(played) = self.player.step() else {
                let end = "the end".to_owned();
                return last.map_or(end.clone(), |played| {
                    format!("{}\n{end}", step_line(&played))
                });
            };
            let why = self.stops(&before, &played);
            if let Some(why) = why {
                return format!("{}\nstopped: {why}", step_line(&played));
            }
            last = Some(played);
        }
        last.map_or_else(String::new, |played| step_line(&played))
    }

    /// What each break is about, before or after a step.
    fn states(&self) -> Vec<Option<Vec<ContentHash>>> {
        let state = |stop: &Break| match (stop, self.player.agent()) {
            (Break::Entity(_, entity), Some(agent)) => Some(entity.state(agent)),
            (Break::Entity(..), None) | (Break::Violation, _) => None,
        };
        self.breaks.iter().map(state).collect()
    }

    fn stops(&self, before: &[Option<Vec<ContentHash>>], played: &Played<'_>) -> Option<String> {
        if let Some(difference) = &played.difference {
            return Some(difference.to_string());
        }
        let after = self.states();
        let mut breaks = self.breaks.iter().zip(before.iter().zip(&after));
        breaks.find_map(|(stop, (before, after))| match stop {
            Break::Entity(name, entity) => entity
                .is_touched(before.as_ref(), played, after.as_ref())
                .then(|| format!("{name} is touched")),
            Break::Violation => {
                let agent = self.player.agent()?;
                let violation = Checker::default().alone(agent).err()?;
                let (name, detail) = (violation.invariant, violation.detail);
                Some(format!("{name} does not hold: {detail}"))
            }
        })
    }

    fn back(&mut self, count: usize) -> String {
        self.go(self.player.at().saturating_sub(count))
    }

    fn go(&mut self, number: usize) -> String {
        if number == 0 {
            self.player = Player::new(self.player.recording());
            return "before the first step".to_owned();
        }
        self.player.go_to(number - 1);
        match self.player.step() {
            Some(played) => step_line(&played),
            None => "the end".to_owned(),
        }
    }

    fn add_break(&mut self, name: Option<&str>) -> Result<String, String> {
        match name {
            None => return Err("break on what? try help".to_owned()),
            Some("violation") => self.breaks.push(Break::Violation),
            Some("difference") => {}
            Some(name) => {
                let entity = Entity::find(self.player.recording(), name);
                let entity = entity.map_err(|why| why.to_string())?;
                self.breaks.push(Break::Entity(name.to_owned(), entity));
            }
        }
        Ok(self.list_breaks())
    }

    fn list_breaks(&self) -> String {
        let mut words = vec!["break difference".to_owned()];
        words.extend(self.breaks.iter().map(|stop| match stop {
            Break::Entity(name, _) => format!("break {name}"),
            Break::Violation => "break violation".to_owned(),
        }));
        words.join("\n")
    }

    fn show(&self, path: Option<&str>) -> Result<String, String> {
        let agent = self
            .player
            .agent()
            .ok_or("there is no state before the first step")?;
        let mut state = diff::json(agent);
        for part in path.into_iter().flat_map(|path| path.split('.')) {
            state = match state.get_mut(part) {
                Some(below) => below.take(),
                None => return Err(format!("there is no {part:?}; there are {}", names(&state))),
            };
        }
        serde_json::to_string_pretty(&state).map_err(|error| error.to_string())
    }

    fn diff(&self, from: usize, to: usize) -> String {
        let state = |number: usize| {
            let mut player = self.player.clone();
            player.go_to(number);
            player.agent().map_or(Value::Null, diff::json)
        };
        let changes = diff::changes(&state(from), &state(to));
        match changes.is_empty() {
            true => format!("nothing changed from step {from} to step {to}"),
            false => changes
                .iter()
                .map(Change::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    fn pending(&self) -> String {
        let Some(agent) = self.player.agent() else {
            return "there is no state before the first step".to_owned();
        };
        let pending = agent.pending();
        if pending.is_empty() {
            return "nothing is pending".to_owned();
        }
        let line = |one: &Awaiting| match one.until {
            Some(until) => format!("{} until {}", one.wait, until.0),
            None => one.wait.to_string(),
        };
        pending
            .awaiting
            .iter()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// A step as lines.
fn step_line(played: &Played<'_>) -> String {
    let line = |line: Event| {
        let sign = match line.way {
            Way::In => "->",
            Way::Out => "   <-",
            Way::World | Way::Fault => "!!",
        };
        format!("{:>6} {sign} {}", line.step, line.words())
    };
    let lines: Vec<String> = story::of_step(played).into_iter().map(line).collect();
    lines.join("\n")
}

fn names(value: &Value) -> String {
    match value.as_object() {
        Some(map) => map.keys().cloned().collect::<Vec<_>>().join(", "),
        None => "no parts below it".to_owned(),
    }
}
