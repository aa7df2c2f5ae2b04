//! Pipelines, commands and their words.

use std::sync::Arc;

use super::Parser;
use crate::ast::{Command, Pipe, Sets, Word, WordKind};
use crate::error::Fault;
use crate::functions;
use crate::lex::{Kind, Token};
use crate::literal;

/// Names of what a pipeline sets, and whether they are new.
struct Names<'a> {
    names: Vec<(&'a str, Token)>,
    new: bool,
}

impl<'a> Parser<'a> {
    /// A pipeline up to its end, which is taken too. Only a loop may set two variables.
    pub(super) fn pipe(&mut self, end: Kind, two: bool, of: &str) -> Result<Pipe, Fault> {
        self.skip_space();
        let names = self.names(two)?;
        let mut commands = Vec::new();
        loop {
            self.skip_space();
            let token = self.peek();
            if token.kind == end && commands.is_empty() && !of.is_empty() {
                let message = format!("{of} has no value: write one");
                return Err(Fault::syntax(token.position(), message));
            }
            commands.push(self.command(end)?);
            self.skip_space();
            let token = self.take();
            if token.kind == end {
                break;
            }
            if token.kind != Kind::Pipe {
                return Err(self.unexpected(token));
            }
        }
        check_stages(&commands)?;
        let sets = match names {
            None => Sets::Nothing,
            Some(names) => self.sets(&names)?,
        };
        Ok(Pipe { sets, commands })
    }

    /// `$x :=`, if the pipeline begins with it.
    fn names(&mut self, two: bool) -> Result<Option<Names<'a>>, Fault> {
        let begin = self.at;
        let mut names = Vec::new();
        while self.peek().kind == Kind::Variable {
            let token = self.take();
            names.push((self.words(token), token.clone()));
            self.skip_space();
            let after = self.peek();
            match after.kind {
                Kind::Declare | Kind::Assign => {
                    self.take();
                    let new = after.kind == Kind::Declare;
                    return Ok(Some(Names { names, new }));
                }
                Kind::Comma if two && names.len() == 1 => {
                    self.take();
                    self.skip_space();
                }
                Kind::Comma if names.len() == 1 => {
                    let message = "only {{range}} sets two variables";
                    return Err(Fault::syntax(after.position(), message));
                }
                _ => break,
            }
        }
        if names.len() > 1 {
            let message = "expected := or = after the variables";
            return Err(Fault::syntax(self.peek().position(), message));
        }
        self.at = begin;
        Ok(None)
    }

    fn sets(&mut self, names: &Names<'a>) -> Result<Sets, Fault> {
        if names.new {
            let (first, count) = (self.variables.len(), names.names.len());
            self.variables
                .extend(names.names.iter().map(|(name, _)| name));
            return Ok(Sets::New { first, count });
        }
        let mut slots = Vec::new();
        for (name, token) in &names.names {
            slots.push(self.slot(name, token)?);
        }
        Ok(Sets::Old(slots))
    }

    fn slot(&self, name: &str, token: &Token) -> Result<usize, Fault> {
        let found = self.variables.iter().rposition(|known| *known == name);
        let message = || format!("there is no variable {name} here: set it first with :=");
        found.ok_or_else(|| Fault::syntax(token.position(), message()))
    }

    fn command(&mut self, end: Kind) -> Result<Command, Fault> {
        let position = self.peek().position();
        let mut words = Vec::new();
        loop {
            self.skip_space();
            let token = self.peek();
            if token.kind == end || token.kind == Kind::Pipe {
                break;
            }
            words.push(self.word()?);
            let after = self.peek();
            let separated = after.kind == Kind::Space || after.kind == Kind::Pipe;
            if !separated && after.kind != end {
                return Err(self.unexpected(after));
            }
        }
        if words.is_empty() {
            return Err(Fault::syntax(
                self.peek().position(),
                "a command is missing here",
            ));
        }
        Ok(Command { position, words })
    }

    fn unexpected(&self, token: &Token) -> Fault {
        let message = match token.kind {
            Kind::End | Kind::Text => "the action is not closed".into(),
            Kind::Close => "the parenthesis is not closed: add \")\"".into(),
            Kind::Declare | Kind::Assign => {
                "only a variable at the beginning of a pipeline is set".into()
            }
            _ => format!("{:?} is not expected here", self.words(token)),
        };
        Fault::syntax(token.position(), message)
    }

    /// One word, with the fields that follow it.
    fn word(&mut self) -> Result<Word, Fault> {
        let token = self.take();
        let position = token.position();
        let kind = self.term(token)?;
        let fields = self.fields();
        if fields.is_empty() {
            return Ok(Word { position, kind });
        }
        let kind = match kind {
            WordKind::Fields(mut names) => {
                names.extend(fields);
                WordKind::Fields(names)
            }
            WordKind::Variable(slot, _) => WordKind::Variable(slot, fields),
            WordKind::Function(_) | WordKind::Group(_) => {
                WordKind::Chain(Box::new(Word { position, kind }), fields)
            }
            _ => {
                let message = "a constant has no fields";
                return Err(Fault::syntax(position, message));
            }
        };
        Ok(Word { position, kind })
    }

    fn fields(&mut self) -> Vec<Arc<[u8]>> {
        let mut names = Vec::new();
        while self.peek().kind == Kind::Field {
            let token = self.take();
            names.push(field(self.words(token)));
        }
        names
    }

    fn term(&mut self, token: &Token) -> Result<WordKind, Fault> {
        let words = self.words(token);
        let wrong = |what: &str| Fault::syntax(token.position(), format!("{words} is no {what}"));
        match token.kind {
            Kind::Dot => Ok(WordKind::Dot),
            Kind::Field => Ok(WordKind::Fields(vec![field(words)])),
            Kind::Variable => Ok(WordKind::Variable(self.slot(words, token)?, Vec::new())),
            Kind::Number => literal::number(words).ok_or_else(|| wrong("number that fits")),
            Kind::Char => {
                let number = literal::character(words);
                number.map(WordKind::Int).ok_or_else(|| wrong("character"))
            }
            Kind::Quoted => {
                let text = literal::text(words);
                text.map(WordKind::Text)
                    .ok_or_else(|| wrong("text: check its backslashes"))
            }
            Kind::Raw => Ok(WordKind::Text(literal::raw(words))),
            Kind::OpenParen => self.deeper(token.position(), |parser| {
                let pipe = parser.pipe(Kind::CloseParen, false, "the parenthesis")?;
                Ok(WordKind::Group(Box::new(pipe)))
            }),
            Kind::Word => match words {
                "true" => Ok(WordKind::Bool(true)),
                "false" => Ok(WordKind::Bool(false)),
                "nil" => Ok(WordKind::Nil),
                _ => function(words, token),
            },
            _ => Err(self.unexpected(token)),
        }
    }
}

fn field(words: &str) -> Arc<[u8]> {
    words.trim_start_matches('.').as_bytes().into()
}

fn function(name: &str, token: &Token) -> Result<WordKind, Fault> {
    if let Some(why) = functions::refused(name) {
        let message = format!("the function {name:?} is refused: it {why}");
        return Err(Fault::refused(message).at(token.position()));
    }
    let found = functions::find(name).map(WordKind::Function);
    found.ok_or_else(|| {
        let message = match super::is_keyword(name) {
            true => format!("{name:?} stands at the beginning of an action only"),
            false => format!("there is no function {name:?}; text is written in quotes"),
        };
        Fault::syntax(token.position(), message)
    })
}

/// What gets a value from the command before it must take one.
fn check_stages(commands: &[Command]) -> Result<(), Fault> {
    for command in commands.iter().skip(1) {
        let takes = match command.words.first().map(|word| &word.kind) {
            Some(
                WordKind::Bool(_)
                | WordKind::Dot
                | WordKind::Nil
                | WordKind::Int(_)
                | WordKind::Float(_)
                | WordKind::Text(_),
            ) => false,
            Some(_) | None => true,
        };
        if !takes {
            let message = "what follows \"|\" must be a function";
            return Err(Fault::syntax(command.position, message));
        }
    }
    Ok(())
}
