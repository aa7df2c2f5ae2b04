//! From the text of an expression to its tree.

use core::iter::Peekable;
use core::str::Chars;

use super::{Place, Set};

/// The most letters that an expression may have.
pub const MAX_LENGTH: usize = 1_000;

/// How deep groups may be in groups.
const MAX_DEPTH: usize = 50;

/// The largest number in `{m,n}`, as in the field.
const MAX_REPEAT: u32 = 1_000;

/// A part of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Nothing.
    Empty,
    /// One letter of the set of this number.
    Take(usize),
    /// A place.
    At(Place),
    /// One after the other.
    All(Vec<Tree>),
    /// One of them.
    Any(Vec<Tree>),
    /// So often at least, and at most.
    Repeat(Box<Tree>, u32, Option<u32>),
}

/// The tree of an expression and its sets of letters.
pub(super) fn parse(text: &str) -> Result<(Tree, Vec<Set>), String> {
    if text.chars().count() > MAX_LENGTH {
        return Err(format!(
            "the regular expression is longer than {MAX_LENGTH} letters"
        ));
    }
    let mut parser = Parser {
        rest: text.chars().peekable(),
        sets: Vec::new(),
        flags: Flags::default(),
        depth: 0,
    };
    let tree = parser.alternatives()?;
    if parser.rest.next().is_some() {
        return Err("unexpected ) in the regular expression".to_owned());
    }
    Ok((tree, parser.sets))
}

#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    dot_takes_newline: bool,
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    sets: Vec<Set>,
    flags: Flags,
    depth: usize,
}

impl Parser<'_> {
    fn accept(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    fn alternatives(&mut self) -> Result<Tree, String> {
        let mut all = vec![self.sequence()?];
        while self.accept('|') {
            all.push(self.sequence()?);
        }
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            last => {
                all.extend(last);
                Tree::Any(all)
            }
        })
    }

    fn sequence(&mut self) -> Result<Tree, String> {
        let mut parts = Vec::new();
        while let Some(&c) = self.rest.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            let part = self.atom()?;
            parts.push(self.repeated(part)?);
        }
        Ok(Tree::All(parts))
    }

    fn repeated(&mut self, part: Tree) -> Result<Tree, String> {
        let Some((least, most)) = self.repetition()? else {
            return Ok(part);
        };
        // Whether few or many are tried first changes nothing about whether there is a match.
        self.accept('?');
        if self.repetition()?.is_some() {
            return Err("a repetition of a repetition in the regular expression".to_owned());
        }
        Ok(Tree::Repeat(Box::new(part), least, most))
    }

    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let found = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(),
            Some(_) | None => return Ok(None),
        };
        self.rest.next();
        Ok(Some(found))
    }

    /// `{m}`, `{m,}` or `{m,n}`; anything else that begins with `{` is plain text.
    fn counted(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        let mut inside = String::new();
        loop {
            match ahead.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || c == ',' => inside.push(c),
                Some(_) | None => return Ok(None),
            }
        }
        let (least, most) = match inside.split_once(',') {
            None => (inside.as_str(), Some(inside.as_str())),
            Some((least, "")) => (least, None),
            Some((least, most)) => (least, Some(most)),
        };
        if least.is_empty() || most.is_some_and(|most| most.contains(',')) {
            return Ok(None);
        }
        self.rest = ahead;
        let number = |digits: &str| digits.parse().ok().filter(|n| *n <= MAX_REPEAT);
        let bad = || format!("bad repetition {{{inside}}} in the regular expression");
        let least: u32 = number(least).ok_or_else(bad)?;
        let most: Option<u32> = match most {
            Some(most) => Some(number(most).filter(|n| *n >= least).ok_or_else(bad)?),
            None => None,
        };
        Ok(Some((least, most)))
    }

    fn atom(&mut self) -> Result<Tree, String> {
        match self.rest.next() {
            None => Ok(Tree::Empty),
            Some('(') => self.group(),
            Some('[') => self.class(),
            Some('^') => Ok(Tree::At(Place::Start)),
            Some('$') => Ok(Tree::At(Place::End)),
            Some('\\') => self.escape(),
            Some('.') if self.flags.dot_takes_newline => Ok(self.take(Vec::new(), true)),
            Some('.') => Ok(self.take(vec![('\n', '\n')], true)),
            Some(c @ ('*' | '+' | '?')) => Err(format!(
                "nothing to repeat before {c} in the regular expression"
            )),
            Some(c) => Ok(self.take(vec![(c, c)], false)),
        }
    }

    fn take(&mut self, ranges: Vec<(char, char)>, negated: bool) -> Tree {
        self.sets.push(Set {
            ranges,
            negated,
            fold: self.flags.fold,
        });
        Tree::Take(self.sets.len() - 1)
    }

    fn group(&mut self) -> Result<Tree, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("too many groups in groups in the regular expression".to_owned());
        }
        let outside = self.flags;
        if self.accept('?') && !self.group_head()? {
            // `(?i)` holds for the rest of the group that it stands in.
            self.depth -= 1;
            return Ok(Tree::Empty);
        }
        let tree = self.alternatives()?;
        if !self.accept(')') {
            return Err("missing ) in the regular expression".to_owned());
        }
        self.flags = outside;
        self.depth -= 1;
        Ok(tree)
    }

    /// What follows `(?`; whether a group's body follows it.
    fn group_head(&mut self) -> Result<bool, String> {
        let unknown = || "unknown kind of group in the regular expression".to_owned();
        if self.accept('P') && self.rest.peek() != Some(&'<') {
            return Err(unknown());
        }
        if self.accept('<') {
            let part_of_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
            let named = self.rest.next_if(part_of_name).is_some();
            while self.rest.next_if(part_of_name).is_some() {}
            if named && self.accept('>') {
                return Ok(true);
            }
            return Err(unknown());
        }
        let mut on = true;
        loop {
            match self.rest.next() {
                Some(':') => return Ok(true),
                Some(')') => return Ok(false),
                Some('-') if on => on = false,
                Some('i') => self.flags.fold = on,
                Some('s') => self.flags.dot_takes_newline = on,
                Some(_) | None => return Err(unknown()),
            }
        }
    }

    fn escape(&mut self) -> Result<Tree, String> {
        let Some(c) = self.rest.next() else {
            return Err("a \\ at the end of the regular expression".to_owned());
        };
        match c {
            'b' => return Ok(Tree::At(Place::Boundary)),
            'B' => return Ok(Tree::At(Place::NoBoundary)),
            'A' => return Ok(Tree::At(Place::Start)),
            'z' => return Ok(Tree::At(Place::End)),
            _ => {}
        }
        if let Some(ranges) = perl_class(c.to_ascii_lowercase()) {
            return Ok(self.take(ranges, c.is_ascii_uppercase()));
        }
        let c = plain_escape(c)?;
        Ok(self.take(vec![(c, c)], false))
    }

    fn class(&mut self) -> Result<Tree, String> {
        let unclosed = || "missing ] in the regular expression".to_owned();
        let negated = self.accept('^');
        let mut ranges = Vec::new();
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(unclosed)?;
            if c == ']' && !first {
                return Ok(self.take(ranges, negated));
            }
            first = false;
            let from = match self.class_item(c)? {
                Item::Ranges(more) => {
                    ranges.extend(more);
                    continue;
                }
                Item::Letter(from) => from,
            };
            let mut ahead = self.rest.clone();
            ahead.next();
            if self.rest.peek() != Some(&'-') || ahead.peek() == Some(&']') {
                ranges.push((from, from));
                continue;
            }
            self.rest = ahead;
            let c = self.rest.next().ok_or_else(unclosed)?;
            match self.class_item(c)? {
                Item::Letter(to) if from <= to => ranges.push((from, to)),
                Item::Letter(_) | Item::Ranges(_) => {
                    return Err("bad range in the regular expression".to_owned());
                }
            }
        }
    }

    fn class_item(&mut self, c: char) -> Result<Item, String> {
        if c == '[' && self.rest.peek() == Some(&':') {
            self.rest.next();
            let mut name = String::new();
            while let Some(c) = self.rest.next_if(char::is_ascii_alphabetic) {
                name.push(c);
            }
            let closed = self.accept(':') && self.accept(']');
            return match posix_class(&name) {
                Some(ranges) if closed => Ok(Item::Ranges(ranges)),
                Some(_) | None => Err("unknown class in the regular expression".to_owned()),
            };
        }
        if c != '\\' {
            return Ok(Item::Letter(c));
        }
        let Some(c) = self.rest.next() else {
            return Err("a \\ at the end of the regular expression".to_owned());
        };
        match perl_class(c.to_ascii_lowercase()) {
            Some(ranges) if c.is_ascii_uppercase() => Ok(Item::Ranges(inverted(ranges))),
            Some(ranges) => Ok(Item::Ranges(ranges)),
            None => plain_escape(c).map(Item::Letter),
        }
    }
}

enum Item {
    Letter(char),
    Ranges(Vec<(char, char)>),
}

fn plain_escape(c: char) -> Result<char, String> {
    match c {
        't' => Ok('\t'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        'f' => Ok('\u{c}'),
        'v' => Ok('\u{b}'),
        'a' => Ok('\u{7}'),
        _ if c.is_ascii_punctuation() => Ok(c),
        _ => Err(format!("\\{c} is not known in regular expressions here")),
    }
}

fn perl_class(c: char) -> Option<Vec<(char, char)>> {
    match c {
        'd' => posix_class("digit"),
        'w' => posix_class("word"),
        's' => Some(vec![('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')]),
        _ => None,
    }
}

/// In ascending order.
fn posix_class(name: &str) -> Option<Vec<(char, char)>> {
    Some(match name {
        "alnum" => vec![('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => vec![('A', 'Z'), ('a', 'z')],
        "digit" => vec![('0', '9')],
        "lower" => vec![('a', 'z')],
        "upper" => vec![('A', 'Z')],
        "space" => vec![('\t', '\r'), (' ', ' ')],
        "blank" => vec![('\t', '\t'), (' ', ' ')],
        "punct" => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "word" => vec![('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => vec![('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}

/// All letters that are in none of the ranges, which are of ASCII and in ascending order.
fn inverted(ranges: Vec<(char, char)>) -> Vec<(char, char)> {
    let mut out = Vec::new();
    let mut next = 0_u8;
    for (from, to) in ranges {
        let from = u8::try_from(from).unwrap_or(0x7f);
        let to = u8::try_from(to).unwrap_or(0x7f);
        if let Some(before) = from.checked_sub(1).filter(|before| *before >= next) {
            out.push((char::from(next), char::from(before)));
        }
        next = to.saturating_add(1);
    }
    out.push((char::from(next), char::MAX));
    out
}
