//! Commands: a function with its arguments, or a value.

use super::Render;
use crate::ast::{Command, Word, WordKind};
use crate::error::Fault;
use crate::functions::{Args, Function, Run};
use crate::value::Value;

impl<'a> Render<'a> {
    /// The value of a command; `last` is what the one before it in the pipeline said.
    pub(super) fn command(
        &mut self,
        command: &'a Command,
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, Fault> {
        let Some((first, rest)) = command.words.split_first() else {
            return Ok(Value::Absent);
        };
        let found = match &first.kind {
            WordKind::Function(function) => self.function(function, rest, dot, last),
            WordKind::Fields(names) => {
                let args = self.arguments(rest, dot, last)?;
                self.fields(dot.clone(), names, args)
            }
            WordKind::Variable(slot, names) if !names.is_empty() => {
                let args = self.arguments(rest, dot, last)?;
                let value = self.variable(*slot);
                self.fields(value, names, args)
            }
            WordKind::Chain(inner, names) => {
                let args = self.arguments(rest, dot, last)?;
                let value = self.word(inner, dot)?;
                self.fields(value, names, args)
            }
            WordKind::Nil => Err(Fault::failed("nil is a value, not a command")),
            _ if !rest.is_empty() || last.is_some() => {
                Err(Fault::failed("only functions and methods take arguments"))
            }
            _ => self.word(first, dot),
        };
        found.map_err(|fault| fault.at(first.position))
    }

    fn arguments(
        &mut self,
        words: &'a [Word],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Vec<Value>, Fault> {
        let mut args = Vec::with_capacity(words.len() + 1);
        for word in words {
            args.push(argument(self.word(word, dot)?));
        }
        args.extend(last.map(argument));
        Ok(args)
    }

    /// The value of a word that stands alone.
    fn word(&mut self, word: &'a Word, dot: &Value) -> Result<Value, Fault> {
        let found = match &word.kind {
            WordKind::Dot => Ok(dot.clone()),
            WordKind::Nil => Ok(Value::Nil),
            WordKind::Bool(bool) => Ok(Value::Bool(*bool)),
            WordKind::Int(int) => Ok(Value::int(*int)),
            WordKind::Float(float) => Ok(Value::Float(*float)),
            WordKind::Text(text) => Ok(Value::Text(text.clone())),
            WordKind::Fields(names) => self.fields(dot.clone(), names, Vec::new()),
            WordKind::Variable(slot, names) => {
                let value = self.variable(*slot);
                self.fields(value, names, Vec::new())
            }
            WordKind::Function(function) => self.function(function, &[], dot, None),
            WordKind::Group(pipe) => self.deeper(|render| render.pipe(pipe, dot)),
            WordKind::Chain(inner, names) => {
                let value = self.word(inner, dot)?;
                self.fields(value, names, Vec::new())
            }
        };
        found.map_err(|fault| fault.at(word.position))
    }

    fn variable(&self, slot: usize) -> Value {
        self.variables.get(slot).cloned().unwrap_or(Value::Absent)
    }

    fn function(
        &mut self,
        function: &'static Function,
        words: &'a [Word],
        dot: &Value,
        last: Option<Value>,
    ) -> Result<Value, Fault> {
        let plain = match function.run {
            Run::And => return self.shorten(words, dot, last, false),
            Run::Or => return self.shorten(words, dot, last, true),
            Run::Plain(plain) => plain,
        };
        let args = self.arguments(words, dot, last)?;
        function.check(&args)?;
        let work = match function.cheap {
            true => 0,
            false => args.iter().map(Value::weight).sum::<u64>(),
        };
        self.cx.spend(1 + work)?;
        plain(&mut self.cx, Args(&args)).map_err(|fault| fault.of(function.name))
    }

    /// `and` and `or`: the first argument that decides, and none after it is looked at.
    fn shorten(
        &mut self,
        words: &'a [Word],
        dot: &Value,
        last: Option<Value>,
        until: bool,
    ) -> Result<Value, Fault> {
        let mut value = None;
        for word in words {
            let found = argument(self.word(word, dot)?);
            if found.is_true() == until {
                return Ok(found);
            }
            value = Some(found);
        }
        let value = last.map(argument).or(value);
        value.ok_or_else(|| Fault::failed("and and or want one argument at least"))
    }
}

/// What is not there is nil to a function.
fn argument(value: Value) -> Value {
    match value {
        Value::Absent => Value::Nil,
        other => other,
    }
}
