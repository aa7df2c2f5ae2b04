//! Command lines of units.

use super::read::{Entry, Specifiers, words};
use crate::error::Result;
use crate::text::Text;
use crate::words::shell;

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Plain(String),
    /// The value of a variable of the environment.
    Variable(String),
}

/// A command line.
#[derive(Clone, Debug)]
pub(super) struct Command {
    words: Vec<Vec<Piece>>,
    /// Whether its failure does not matter.
    pub ignores_failure: bool,
    /// What cannot be said of it here.
    pub remarks: Vec<String>,
    pub line: usize,
}

impl Command {
    /// Reads the value of `ExecStart` and the like.
    pub(super) fn read(entry: &Entry, specifiers: &Specifiers) -> Result<Command> {
        let mut command = Command {
            words: Vec::new(),
            ignores_failure: false,
            remarks: Vec::new(),
            line: entry.line,
        };
        let mut expands = true;
        let mut has_name = false;
        let program = entry.value.trim_start_matches(|c| {
            match c {
                '-' => command.ignores_failure = true,
                ':' => expands = false,
                '@' => has_name = true,
                '+' | '!' => command.remarks.push(format!(
                    "{c} before the program: it has no more rights than the task's user"
                )),
                '|' => command
                    .remarks
                    .push("| before the program: no shell of the user is started".to_owned()),
                _ => return false,
            }
            true
        });
        let rest = Entry {
            value: program.to_owned(),
            ..entry.clone()
        };
        for (at, word) in words(&rest)?.into_iter().enumerate() {
            if has_name && at == 1 {
                command.remarks.push(format!(
                    "@ before the program: it is called by its path, and not {word}"
                ));
                continue;
            }
            let (word, unknown) = specifiers.replace(&word);
            for sign in unknown {
                command
                    .remarks
                    .push(format!("%{sign} is not known here and stays as it is"));
            }
            let pieces = if expands {
                command.pieces(&word)
            } else {
                vec![Piece::Plain(word)]
            };
            command.words.push(pieces);
        }
        let odd = |program: &str| program.is_empty() || program.contains(char::is_control);
        if command.words.is_empty() || command.program().is_some_and(odd) {
            return Err(entry.mistake(format!("{} names no program", entry.key)));
        }
        Ok(command)
    }

    fn pieces(&mut self, word: &str) -> Vec<Piece> {
        if let Some(name) = word.strip_prefix('$').filter(|name| is_variable(name)) {
            self.remarks
                .push(format!("${name} stays one word, whatever spaces are in it"));
            return vec![Piece::Variable(name.to_owned())];
        }
        let (mut pieces, mut plain) = (Vec::new(), String::new());
        let mut rest = word;
        while let Some((before, behind)) = rest.split_once('$') {
            plain.push_str(before);
            if let Some(after) = behind.strip_prefix('$') {
                plain.push('$');
                rest = after;
                continue;
            }
            let inner = behind
                .strip_prefix('{')
                .and_then(|inner| inner.split_once('}'));
            match inner.filter(|(name, _)| is_variable(name)) {
                Some((name, after)) => {
                    pieces.push(Piece::Plain(core::mem::take(&mut plain)));
                    pieces.push(Piece::Variable(name.to_owned()));
                    rest = after;
                }
                None => {
                    plain.push('$');
                    rest = behind;
                }
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Plain(plain));
        pieces.retain(|piece| *piece != Piece::Plain(String::new()));
        pieces
    }

    /// The program, if no variable is in its name.
    pub(super) fn program(&self) -> Option<&str> {
        match self.words.first()?.as_slice() {
            [Piece::Plain(program)] => Some(program),
            _ => None,
        }
    }

    /// Whether a variable of this name is in it.
    pub(super) fn names(&self, variable: &str) -> bool {
        let mut pieces = self.words.iter().flatten();
        pieces.any(|piece| *piece == Piece::Variable(variable.to_owned()))
    }

    /// Its words, as a job file has them.
    fn plain(&self) -> Vec<Text> {
        let word = |pieces: &Vec<Piece>| {
            let piece = |piece: &Piece| match piece {
                Piece::Plain(text) => text.clone(),
                Piece::Variable(name) => format!("${{{name}}}"),
            };
            Text::from(pieces.iter().map(piece).collect::<String>())
        };
        self.words.iter().map(word).collect()
    }

    /// Its words, as a line for a shell.
    fn line(&self) -> String {
        let word = |pieces: &Vec<Piece>| {
            let piece = |piece: &Piece| match piece {
                Piece::Plain(text) => shell(text),
                Piece::Variable(name) => format!("\"${name}\""),
            };
            match pieces.is_empty() {
                true => shell(""),
                false => pieces.iter().map(piece).collect::<String>(),
            }
        };
        let line = self.words.iter().map(word).collect::<Vec<_>>().join(" ");
        match self.ignores_failure {
            true => format!("{line} || true"),
            false => line,
        }
    }
}

/// Program and arguments that run these commands one after the other.
pub(super) fn chain(commands: &[Command]) -> (Text, Vec<Text>) {
    if let [only] = commands
        && !only.ignores_failure
    {
        let mut words = only.plain().into_iter();
        let program = words.next().unwrap_or_default();
        return (program, words.collect());
    }
    let lines: Vec<String> = commands.iter().map(Command::line).collect();
    let script = format!("set -e; {}", lines.join("; "));
    ("/bin/sh".into(), vec!["-c".into(), script.into()])
}

fn is_variable(name: &str) -> bool {
    crate::hcl::is_identifier(name)
}
