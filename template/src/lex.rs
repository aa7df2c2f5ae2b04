//! A template's text as tokens.

use std::ops::Range;

use crate::error::{Fault, Position};
use crate::options::Options;

/// What a token is; its words are the text at its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Outside of actions.
    Text,
    /// An action begins.
    Open,
    /// An action ends.
    Close,
    Space,
    /// A keyword, a function or a constant.
    Word,
    /// `.name`
    Field,
    /// `$` or `$name`
    Variable,
    Dot,
    Number,
    /// `'x'`
    Char,
    /// `"x"`
    Quoted,
    /// `` `x` ``
    Raw,
    Pipe,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    Comma,
    OpenParen,
    CloseParen,
    End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

impl Token {
    pub(crate) fn position(&self) -> Position {
        Position(self.range.start)
    }
}

/// All tokens, the last of which is [`Kind::End`].
pub(crate) fn tokens(text: &str, options: &Options) -> Result<Vec<Token>, Fault> {
    let or = |given: &'_ str, usual: &str| {
        let chosen = if given.is_empty() { usual } else { given };
        chosen.to_owned()
    };
    let mut lexer = Lexer {
        text,
        at: 0,
        left: or(&options.left, "{{"),
        right: or(&options.right, "}}"),
        found: Vec::new(),
    };
    lexer.text()?;
    lexer.push(Kind::End, text.len());
    Ok(lexer.found)
}

const TRIMMED: [char; 4] = [' ', '\t', '\r', '\n'];

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    left: String,
    right: String,
    found: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn first(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// A token from here to `end`.
    fn push(&mut self, kind: Kind, end: usize) {
        let range = self.at..end;
        self.found.push(Token { kind, range });
        self.at = end;
    }

    fn push_len(&mut self, kind: Kind, len: usize) {
        self.push(kind, self.at + len);
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::syntax(Position(self.at), message))
    }

    /// The whole template: text and actions by turns.
    fn text(&mut self) -> Result<(), Fault> {
        let mut trim = false;
        loop {
            if trim {
                self.at += self.rest().len() - self.rest().trim_start_matches(TRIMMED).len();
            }
            let Some(len) = self.rest().find(&self.left) else {
                let end = self.text.len();
                return self.plain(end, end);
            };
            let open = self.at + len;
            let after = self.text.get(open + self.left.len()..).unwrap_or_default();
            let trims = trims_before(after);
            let before = self.text.get(self.at..open).unwrap_or_default();
            let kept = match trims {
                true => self.at + before.trim_end_matches(TRIMMED).len(),
                false => open,
            };
            self.plain(kept, open)?;
            trim = self.action(trims)?;
        }
    }

    fn plain(&mut self, kept: usize, end: usize) -> Result<(), Fault> {
        if kept > self.at {
            self.push(Kind::Text, kept);
        }
        self.at = end;
        Ok(())
    }

    /// One action or comment; says whether the text after it is to be trimmed.
    fn action(&mut self, trimmed: bool) -> Result<bool, Fault> {
        let open = self.at;
        let marker = if trimmed { 2 } else { 0 };
        let inside = open + self.left.len() + marker;
        if (self.text.get(inside..)).is_some_and(|rest| rest.starts_with("/*")) {
            self.at = inside;
            return self.comment();
        }
        self.push(Kind::Open, inside);
        let mut parens = Vec::new();
        loop {
            if let Some((len, trim)) = self.close() {
                if let Some(paren) = parens.pop() {
                    return Err(Fault::syntax(paren, "\"(\" is not closed: add \")\""));
                }
                self.push_len(Kind::Close, len);
                return Ok(trim);
            }
            let Some(first) = self.first() else {
                let right = &self.right;
                let message = format!("the action is not closed: add {right:?}");
                return Err(Fault::syntax(Position(open), message));
            };
            match first {
                '(' => parens.push(Position(self.at)),
                ')' if parens.pop().is_none() => {
                    return self.fault("\")\" without \"(\" before it");
                }
                _ => {}
            }
            self.token(first)?;
        }
    }

    /// The length of what closes the action here, if something does, and whether it trims.
    fn close(&self) -> Option<(usize, bool)> {
        self.close_at(self.at)
    }

    fn close_at(&self, at: usize) -> Option<(usize, bool)> {
        let rest = self.text.get(at..)?;
        if rest.starts_with(&self.right) {
            return Some((self.right.len(), false));
        }
        let marked = rest.strip_prefix(TRIMMED)?.strip_prefix('-')?;
        let closes = marked.starts_with(&self.right);
        closes.then_some((2 + self.right.len(), true))
    }

    fn comment(&mut self) -> Result<bool, Fault> {
        let Some(len) = self.rest().find("*/") else {
            return self.fault("the comment is not closed: add \"*/\"");
        };
        let begin = self.at;
        self.at += len + 2;
        let Some((len, trim)) = self.close() else {
            let message = "a comment is an action of its own: close it after \"*/\"";
            return Err(Fault::syntax(Position(begin), message));
        };
        self.at += len;
        Ok(trim)
    }

    fn token(&mut self, first: char) -> Result<(), Fault> {
        match first {
            _ if TRIMMED.contains(&first) => self.space(),
            '(' => self.push_len(Kind::OpenParen, 1),
            ')' => self.push_len(Kind::CloseParen, 1),
            '|' => self.push_len(Kind::Pipe, 1),
            ',' => self.push_len(Kind::Comma, 1),
            '=' => self.push_len(Kind::Assign, 1),
            ':' if self.rest().starts_with(":=") => self.push_len(Kind::Declare, 2),
            ':' => return self.fault("\":\" is not a word: did you mean \":=\"?"),
            '"' => return self.quoted('"', Kind::Quoted),
            '\'' => return self.quoted('\'', Kind::Char),
            '`' => return self.raw(),
            '$' => return self.name(Kind::Variable),
            '.' => return self.dot(),
            '+' | '-' | '0'..='9' => return self.number(),
            _ if first.is_alphanumeric() || first == '_' => return self.name(Kind::Word),
            _ => return self.fault(format!("{first:?} has no meaning in an action")),
        }
        Ok(())
    }

    /// Spaces, but not the one of ` -}}`.
    fn space(&mut self) {
        let mut end = self.at;
        for char in self.rest().chars() {
            if !TRIMMED.contains(&char) {
                break;
            }
            if end > self.at && self.close_at(end).is_some() {
                break;
            }
            end += char.len_utf8();
        }
        self.push(Kind::Space, end);
    }

    fn quoted(&mut self, quote: char, kind: Kind) -> Result<(), Fault> {
        let mut escaped = false;
        for (at, char) in self.rest().char_indices().skip(1) {
            match char {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                _ if char == quote => {
                    self.push_len(kind, at + 1);
                    return Ok(());
                }
                _ => {}
            }
        }
        self.fault(format!("the text is not closed on its line: add {quote}"))
    }

    fn raw(&mut self) -> Result<(), Fault> {
        match self.rest().get(1..).and_then(|rest| rest.find('`')) {
            Some(len) => self.push_len(Kind::Raw, len + 2),
            None => return self.fault("the raw text is not closed: add `"),
        }
        Ok(())
    }

    fn dot(&mut self) -> Result<(), Fault> {
        match self.rest().chars().nth(1) {
            Some('0'..='9') => self.number(),
            Some(next) if next.is_alphanumeric() || next == '_' => self.name(Kind::Field),
            _ => {
                self.push_len(Kind::Dot, 1);
                Ok(())
            }
        }
    }

    /// A name, whose first character is already known to be right.
    fn name(&mut self, kind: Kind) -> Result<(), Fault> {
        let first = self.first().map_or(0, char::len_utf8);
        let rest = self.rest().get(first..).unwrap_or_default();
        let after = rest.trim_start_matches(|char: char| char.is_alphanumeric() || char == '_');
        self.push_len(kind, first + rest.len() - after.len());
        self.ends_here()
    }

    fn number(&mut self) -> Result<(), Fault> {
        let mut end = 0;
        let mut before = ' ';
        let hex = self
            .rest()
            .trim_start_matches(['+', '-'])
            .starts_with(['0'])
            && self
                .rest()
                .trim_start_matches(['+', '-', '0'])
                .starts_with(['x', 'X']);
        for char in self.rest().chars() {
            let sign = matches!(char, '+' | '-');
            let exponent = match hex {
                true => matches!(before, 'p' | 'P'),
                false => matches!(before, 'e' | 'E'),
            };
            let part = char.is_alphanumeric() || matches!(char, '_' | '.');
            if !(part || sign && (end == 0 || exponent)) {
                break;
            }
            before = char;
            end += char.len_utf8();
        }
        self.push_len(Kind::Number, end);
        self.ends_here()
    }

    /// After a word something else must begin.
    fn ends_here(&self) -> Result<(), Fault> {
        let ends = match self.first() {
            None => true,
            Some(next) => {
                TRIMMED.contains(&next)
                    || matches!(next, '.' | ',' | '|' | ':' | ')' | '(')
                    || self.rest().starts_with(&self.right)
            }
        };
        match self.first() {
            Some(next) if !ends => {
                self.fault(format!("{next:?} must not follow here: add a space"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether what follows the opening delimiter says that the text before is to be trimmed.
fn trims_before(after: &str) -> bool {
    let mut chars = after.chars();
    chars.next() == Some('-') && chars.next().is_some_and(|char| TRIMMED.contains(&char))
}
