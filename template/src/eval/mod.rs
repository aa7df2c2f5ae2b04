//! Rendering: going through a tree with a dot and variables.

mod command;
pub(crate) mod cx;
mod field;
mod looping;

use std::collections::BTreeSet;

use crate::ast::{Body, Choice, Node, Pipe, Sets};
use crate::error::{ErrorKind, Fault, Position};
use crate::format::{self, Sink};
use crate::functions::parse;
use crate::need::{Need, Source};
use crate::options::{DEPTH, Options};
use crate::parse::Parsed;
use crate::value::Value;
use cx::Cx;

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) text: Vec<u8>,
    pub(crate) asked: BTreeSet<Need>,
    pub(crate) missing: BTreeSet<Need>,
}

/// Renders what was read from `text`, with data if there are any.
pub(crate) fn render(
    text: &str,
    parsed: &Parsed,
    options: &Options,
    data: Option<&serde_json::Value>,
    source: &dyn Source,
) -> Result<Outcome, Fault> {
    let limits = options.limits;
    let mut cx = Cx::new(source, limits);
    let dot = match data {
        Some(data) => parse::data(&mut cx, data.clone())?,
        None => Value::Absent,
    };
    let mut render = Render {
        text,
        parsed,
        strict: options.error_on_missing_key,
        cx,
        out: Sink::new(limits.output, "output", limits.output),
        variables: vec![dot.clone()],
        depth: 0,
    };
    let done = render.body(&parsed.main, &dot);
    match done {
        Ok(_) => {}
        // It may have failed because something is missing; that is seen when nothing is.
        Err(fault) if fault.kind() == ErrorKind::Failed && !render.cx.missing.is_empty() => {}
        Err(fault) => return Err(fault),
    }
    Ok(Outcome {
        text: std::mem::take(&mut render.out).into_bytes(),
        asked: std::mem::take(&mut render.cx.asked),
        missing: std::mem::take(&mut render.cx.missing),
    })
}

/// Where control goes after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

struct Render<'a> {
    text: &'a str,
    parsed: &'a Parsed,
    strict: bool,
    cx: Cx<'a>,
    out: Sink,
    /// The first one is `$`.
    variables: Vec<Value>,
    depth: usize,
}

impl<'a> Render<'a> {
    fn body(&mut self, body: &'a Body, dot: &Value) -> Result<Flow, Fault> {
        for node in body {
            let flow = self.node(node, dot)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, node: &'a Node, dot: &Value) -> Result<Flow, Fault> {
        match node {
            Node::Text(range) => {
                let text = self.text.get(range.clone()).unwrap_or_default();
                self.out
                    .push(text)
                    .map_err(|fault| fault.at(Position(range.start)))?;
            }
            Node::Action(pipe) => self.show(pipe, dot)?,
            Node::If(choice) => return self.scope(|render| render.choose(choice, dot, false)),
            Node::With(choice) => return self.scope(|render| render.choose(choice, dot, true)),
            Node::Range(range) => return self.scope(|render| render.range(range, dot)),
            Node::Template {
                position,
                name,
                data,
            } => {
                let called = self.call(name, data.as_ref(), dot);
                called.map_err(|fault| fault.at(*position))?;
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    fn show(&mut self, pipe: &'a Pipe, dot: &Value) -> Result<(), Fault> {
        let value = self.pipe(pipe, dot)?;
        if pipe.sets != Sets::Nothing {
            return Ok(());
        }
        let position = position_of(pipe);
        self.cx.spend(1).map_err(|fault| fault.at(position))?;
        format::show(&mut self.out, &value).map_err(|fault| fault.at(position))
    }

    /// One level deeper, with variables of its own.
    fn scope<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let variables = self.variables.len();
        let found = self.deeper(inside)?;
        self.variables.truncate(variables);
        Ok(found)
    }

    fn deeper<T>(
        &mut self,
        inside: impl FnOnce(&mut Self) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        if self.depth >= DEPTH {
            let message = format!("more than {DEPTH} blocks and templates inside of each other");
            return Err(Fault::limit(message));
        }
        self.depth += 1;
        let found = inside(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn choose(&mut self, choice: &'a Choice, dot: &Value, with: bool) -> Result<Flow, Fault> {
        for (pipe, body) in &choice.arms {
            let value = self.pipe(pipe, dot)?;
            if value.is_true() {
                return self.body(body, if with { &value } else { dot });
            }
        }
        self.body(&choice.otherwise, dot)
    }

    fn call(&mut self, name: &[u8], data: Option<&'a Pipe>, dot: &Value) -> Result<(), Fault> {
        let Some(body) = self.parsed.named.get(name) else {
            let name = String::from_utf8_lossy(name);
            return Err(Fault::failed(format!("no template {name:?} is defined")));
        };
        let data = match data {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Value::Absent,
        };
        let variables = std::mem::replace(&mut self.variables, vec![data.clone()]);
        self.deeper(|render| render.body(body, &data))?;
        self.variables = variables;
        Ok(())
    }

    /// The value of a pipeline, to which it also sets its variables.
    fn pipe(&mut self, pipe: &'a Pipe, dot: &Value) -> Result<Value, Fault> {
        let mut value = None;
        for command in &pipe.commands {
            self.cx
                .spend(1)
                .map_err(|fault| fault.at(command.position))?;
            value = Some(self.command(command, dot, value)?);
        }
        let value = value.unwrap_or(Value::Absent);
        match &pipe.sets {
            Sets::Nothing => {}
            Sets::New { first, count } => {
                self.variables.truncate(*first);
                self.variables
                    .extend(std::iter::repeat_n(&value, *count).cloned());
            }
            Sets::Old(slots) => {
                for slot in slots {
                    self.set(*slot, value.clone());
                }
            }
        }
        Ok(value)
    }

    fn set(&mut self, slot: usize, value: Value) {
        if let Some(variable) = self.variables.get_mut(slot) {
            *variable = value;
        }
    }
}

fn position_of(pipe: &Pipe) -> Position {
    pipe.commands
        .last()
        .map_or(Position::default(), |command| command.position)
}
