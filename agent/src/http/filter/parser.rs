//! Reads expressions. The grammar is Nomad's:
//!
//! ```text
//! or       = and [ "or" or ]
//! and      = not [ "and" and ]
//! not      = "not" not | "(" or ")" | match
//! match    = selector ( "==" | "!=" | [ "not" ] "contains" | [ "not" ] "matches" ) value
//!          | selector "is" [ "not" ] ( "empty" | "nil" )
//!          | value [ "not" ] "in" selector
//! each     = ( "any" | "all" ) selector "as" names "{" or "}"       where a whole `or` may stand
//! selector = ident { "." ident | "." digits | "[" string "]" } | '"' { "/" segment } '"'
//! value    = selector | number | string in double quotes or back-ticks
//! ```
//!
//! Where nothing fits, the error names the farthest position that was reached, and what could stand there.

use std::collections::BTreeSet;

use regex::RegexBuilder;

use super::syntax::{Each, Expr, Match, Names, Selector, Test};

/// How deep expressions nest at most.
const MAX_DEPTH: usize = 32;
/// The most bytes of a compiled regular expression.
const MAX_REGEX: usize = 1 << 20;

/// Reads a whole expression.
///
/// # Errors
/// Why it is none, and where.
pub(super) fn parse(text: &str) -> Result<Expr, String> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        farthest: 0,
        expected: BTreeSet::new(),
        failure: None,
    };
    parser.blank();
    let read = parser.or();
    parser.blank();
    if let Some(failure) = parser.failure {
        return Err(failure);
    }
    match read {
        Some(expr) if parser.at == text.len() => Ok(expr),
        _ => {
            parser.expect("EOF");
            Err(parser.no_match())
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    /// The farthest place where something was looked for in vain, and what that was.
    farthest: usize,
    expected: BTreeSet<String>,
    /// What is wrong though the grammar is right; nothing else is tried then.
    failure: Option<String>,
}

/// What follows a selector.
#[derive(Clone, Copy)]
enum Operator {
    Equals,
    Contains,
    Matches,
}

impl Parser<'_> {
    fn or(&mut self) -> Option<Expr> {
        if self.depth == MAX_DEPTH {
            let words = format!("the expression nests deeper than {MAX_DEPTH} times");
            self.failure.get_or_insert(words);
            return None;
        }
        self.depth += 1;
        let read = match self.each() {
            None => self.chain("or", Parser::and, Expr::Or),
            each => each,
        };
        self.depth -= 1;
        read
    }

    fn and(&mut self) -> Option<Expr> {
        self.chain("and", Parser::not, Expr::And)
    }

    /// One or more of something, with a word between them.
    fn chain(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Option<Expr>,
        all: fn(Vec<Expr>) -> Expr,
    ) -> Option<Expr> {
        let mut parts = vec![part(self)?];
        loop {
            let before = self.at;
            let more = self.space() && self.word(word) && self.space();
            match more.then(|| part(self)).flatten() {
                Some(one) => parts.push(one),
                None => {
                    self.at = before;
                    break;
                }
            }
        }
        match parts.len() {
            1 => parts.pop(),
            _ => Some(all(parts)),
        }
    }

    fn not(&mut self) -> Option<Expr> {
        let before = self.at;
        let mut negated = false;
        loop {
            let one = self.at;
            if !(self.word("not") && self.space()) {
                self.at = one;
                break;
            }
            negated = !negated;
        }
        let mut read = self.operand();
        // A field may be called `not`.
        if read.is_none() && self.at > before {
            self.at = before;
            negated = false;
            read = self.comparison().map(Expr::Match);
        }
        let read = read?;
        Some(match negated {
            true => Expr::Not(Box::new(read)),
            false => read,
        })
    }

    fn operand(&mut self) -> Option<Expr> {
        let before = self.at;
        if self.symbol("(") {
            self.blank();
            let inner = self.or();
            self.blank();
            if inner.is_some() && self.symbol(")") {
                return inner;
            }
            self.at = before;
            return None;
        }
        self.comparison().map(Expr::Match)
    }

    fn each(&mut self) -> Option<Expr> {
        let before = self.at;
        let read = self.each_here();
        if read.is_none() {
            self.at = before;
        }
        read.map(Expr::Each)
    }

    fn each_here(&mut self) -> Option<Each> {
        let all = self.word("all");
        if !(all || self.word("any")) || !self.space() {
            return None;
        }
        let selector = self.selector()?;
        if !(self.space() && self.word("as") && self.space()) {
            return None;
        }
        let names = self.names()?;
        self.blank();
        if !self.symbol("{") {
            return None;
        }
        self.blank();
        let condition = Box::new(self.or()?);
        self.blank();
        self.symbol("}").then_some(Each {
            all,
            selector,
            names,
            condition,
        })
    }

    fn names(&mut self) -> Option<Names> {
        let first = self.binding()?;
        let before = self.at;
        self.blank();
        if !self.symbol(",") {
            self.at = before;
            return Some(Names {
                only: first,
                ..Names::default()
            });
        }
        self.blank();
        let value = self.binding()?;
        Some(Names {
            key: first,
            value,
            only: None,
        })
    }

    /// A name, or `_` for none.
    fn binding(&mut self) -> Option<Option<String>> {
        if self.symbol("_") {
            return Some(None);
        }
        self.ident().map(Some)
    }

    fn comparison(&mut self) -> Option<Match> {
        let before = self.at;
        if let Some(selector) = self.selector() {
            let after = self.at;
            if let Some(read) = self.operation(&selector) {
                return Some(read);
            }
            self.at = after;
            if let Some((negated, test)) = self.state() {
                return Some(Match {
                    selector,
                    negated,
                    test,
                });
            }
            self.at = before;
        }
        let value = self.value();
        let read = value.and_then(|value| {
            let spaced = self.space();
            let negated = spaced && self.negation();
            if !(spaced && self.word("in") && self.space()) {
                return None;
            }
            Some(Match {
                selector: self.selector()?,
                negated,
                test: Test::Contains(value),
            })
        });
        if read.is_none() {
            self.at = before;
        }
        read
    }

    /// An operator and a value.
    fn operation(&mut self, selector: &Selector) -> Option<Match> {
        let (negated, operator) = self.operator()?;
        let value = self.value()?;
        let test = match operator {
            Operator::Equals => Test::Equals(value),
            Operator::Contains => Test::Contains(value),
            Operator::Matches => self.regex(&value)?,
        };
        Some(Match {
            selector: selector.clone(),
            negated,
            test,
        })
    }

    fn operator(&mut self) -> Option<(bool, Operator)> {
        let before = self.at;
        self.blank();
        for (symbol, negated) in [("==", false), ("!=", true)] {
            if self.symbol(symbol) {
                self.blank();
                return Some((negated, Operator::Equals));
            }
        }
        self.at = before;
        if !self.space() {
            return None;
        }
        let negated = self.negation();
        for (word, operator) in [
            ("contains", Operator::Contains),
            ("matches", Operator::Matches),
        ] {
            if self.word(word) && self.space() {
                return Some((negated, operator));
            }
        }
        None
    }

    /// `is empty`, `is not nil` and the like.
    fn state(&mut self) -> Option<(bool, Test)> {
        if !(self.space() && self.word("is") && self.space()) {
            return None;
        }
        let negated = self.negation();
        if self.word("empty") {
            return Some((negated, Test::Empty));
        }
        self.word("nil").then_some((negated, Test::Nil))
    }

    /// `not` with the space behind it.
    fn negation(&mut self) -> bool {
        let before = self.at;
        let is_there = self.word("not") && self.space();
        if !is_there {
            self.at = before;
        }
        is_there
    }

    fn regex(&mut self, pattern: &str) -> Option<Test> {
        let mut builder = RegexBuilder::new(pattern);
        let built = builder.size_limit(MAX_REGEX).nest_limit(64).build();
        match built {
            Ok(regex) => Some(Test::Matches(regex)),
            Err(error) => {
                let why = error.to_string().replace('\n', " ");
                let words = format!("the regular expression {pattern:?} cannot be used: {why}");
                self.failure.get_or_insert(words);
                None
            }
        }
    }

    fn selector(&mut self) -> Option<Selector> {
        let before = self.at;
        if self.symbol("\"") {
            let pointer = self.pointer();
            if pointer.is_none() {
                self.at = before;
            }
            return pointer;
        }
        let mut path = vec![self.ident()?];
        loop {
            let one = self.at;
            let part = if self.symbol(".") {
                self.ident().or_else(|| self.digits())
            } else if self.symbol("[") {
                self.blank();
                let key = self.string();
                self.blank();
                key.filter(|_| self.symbol("]"))
            } else {
                None
            };
            match part {
                Some(part) => path.push(part),
                None => {
                    self.at = one;
                    return Some(Selector(path));
                }
            }
        }
    }

    /// The rest of `"/a/b"`, with `~1` for a slash and `~0` for a tilde.
    fn pointer(&mut self) -> Option<Selector> {
        let mut path = Vec::new();
        while self.symbol("/") {
            let segment = self.until(|c| c == '/' || c == '"');
            path.push(segment.replace("~1", "/").replace("~0", "~"));
        }
        let is_whole = self.symbol("\"") && path.iter().all(|part| !part.is_empty());
        (is_whole && !path.is_empty()).then_some(Selector(path))
    }

    fn value(&mut self) -> Option<String> {
        let before = self.at;
        if let Some(text) = self.string() {
            return Some(text);
        }
        self.at = before;
        if let Some(number) = self.number() {
            return Some(number);
        }
        self.at = before;
        let selector = self.selector()?;
        Some(selector.0.join("."))
    }

    fn number(&mut self) -> Option<String> {
        let before = self.at;
        self.symbol("-");
        if !self.symbol("0") {
            self.class("[1-9]", |c| matches!(c, '1'..='9'))?;
            self.until(|c| !c.is_ascii_digit());
        }
        let whole = self.at;
        if !(self.symbol(".") && self.digits().is_some()) {
            self.at = whole;
        }
        self.text.get(before..self.at).map(str::to_owned)
    }

    fn digits(&mut self) -> Option<String> {
        let before = self.at;
        self.class("[0-9]", |c| c.is_ascii_digit())?;
        self.until(|c| !c.is_ascii_digit());
        self.text.get(before..self.at).map(str::to_owned)
    }

    fn ident(&mut self) -> Option<String> {
        let before = self.at;
        self.class("[a-zA-Z]", |c| c.is_ascii_alphabetic())?;
        self.until(|c| !(c.is_ascii_alphanumeric() || c == '_' || c == '/'));
        self.text.get(before..self.at).map(str::to_owned)
    }

    fn string(&mut self) -> Option<String> {
        let before = self.at;
        for quote in ["\"", "`"] {
            if !self.symbol(quote) {
                continue;
            }
            let inner = self.until(|c| quote.starts_with(c)).to_owned();
            if !self.symbol(quote) {
                return None;
            }
            if quote == "`" {
                return Some(inner);
            }
            let text = unquote(&inner);
            if text.is_none() {
                let place = self.place(before);
                let words = format!("{place}: invalid string {inner:?}");
                self.failure.get_or_insert(words);
            }
            return text;
        }
        None
    }

    /// Takes characters up to one that ends them.
    fn until(&mut self, ends: impl Fn(char) -> bool) -> &str {
        let rest = self.rest();
        let length = rest.find(ends).unwrap_or(rest.len());
        let taken = self.text.get(self.at..self.at + length);
        self.at += length;
        taken.unwrap_or_default()
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn class(&mut self, name: &str, takes: impl Fn(char) -> bool) -> Option<()> {
        match self.rest().chars().next().filter(|c| takes(*c)) {
            Some(c) => {
                self.at += c.len_utf8();
                Some(())
            }
            None => {
                self.expect(name);
                None
            }
        }
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let is_there = self.rest().starts_with(symbol);
        if is_there {
            self.at += symbol.len();
        } else {
            self.expect(&format!("{symbol:?}"));
        }
        is_there
    }

    /// A word of the language: not the beginning of a longer one.
    fn word(&mut self, word: &str) -> bool {
        let rest = self.rest();
        let follows = rest.strip_prefix(word).map(|rest| rest.chars().next());
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '[');
        let is_there = follows.is_some_and(|next| !next.is_some_and(part));
        if is_there {
            self.at += word.len();
        } else {
            self.expect(&format!("{word:?}"));
        }
        is_there
    }

    /// At least one blank.
    fn space(&mut self) -> bool {
        let before = self.at;
        self.blank();
        self.at > before
    }

    /// Any number of blanks.
    fn blank(&mut self) {
        self.until(|c| !matches!(c, ' ' | '\t' | '\r' | '\n'));
        self.expect("[ \\t\\r\\n]");
    }

    fn expect(&mut self, what: &str) {
        if self.at > self.farthest {
            self.farthest = self.at;
            self.expected.clear();
        }
        if self.at == self.farthest && !self.expected.contains(what) {
            self.expected.insert(what.to_owned());
        }
    }

    /// Line, column and offset, as Nomad writes them.
    fn place(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default();
        format!("{line}:{} ({at})", column.chars().count() + 1)
    }

    fn no_match(&self) -> String {
        let place = self.place(self.farthest);
        let names: Vec<&str> = self.expected.iter().map(String::as_str).collect();
        let expected = match names.as_slice() {
            [] => String::new(),
            [one] => (*one).to_owned(),
            [first @ .., last] => format!("{} or {last}", first.join(", ")),
        };
        format!("{place}: no match found, expected: {expected}")
    }
}

/// The text of a string in double quotes, with its escapes.
fn unquote(inner: &str) -> Option<String> {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => return None,
            '\\' => text.push(escaped(&mut rest)?),
            c => text.push(c),
        }
    }
    Some(text)
}

fn escaped(rest: &mut std::str::Chars<'_>) -> Option<char> {
    let digits = match rest.next()? {
        'a' => return Some('\x07'),
        'b' => return Some('\x08'),
        'f' => return Some('\x0c'),
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        'v' => return Some('\x0b'),
        '\\' => return Some('\\'),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let mut code = 0_u32;
    for _ in 0..digits {
        code = code.checked_mul(16)? + rest.next()?.to_digit(16)?;
    }
    char::from_u32(code)
}
