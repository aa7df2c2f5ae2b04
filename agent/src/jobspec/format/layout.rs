//! What stands between the tokens of a file: how far lines are moved in, where there is a space, and
//! which signs and comments stand below each other.

use super::lex::{Kind, Token};

/// Columns for each level.
const STEP: usize = 2;

/// A line without its end.
struct Line<'a, 't> {
    tokens: &'a [Token<'t>],
    /// Its end as it was written; empty if it is the last one.
    end: &'t str,
    /// Spaces before each of its tokens.
    spaces: Vec<usize>,
}

/// The text of these tokens in the canonical layout.
pub(super) fn write(tokens: &[Token<'_>]) -> String {
    let mut lines = lines(tokens);
    let mut indents = Vec::new();
    for line in &mut lines {
        let indent = indent(&mut indents, line.brackets());
        line.space_out(indent);
    }
    align(&mut lines, Line::assignment);
    align(&mut lines, Line::comment);
    let mut text = String::new();
    for line in &lines {
        for (token, spaces) in line.tokens.iter().zip(&line.spaces) {
            text.extend(core::iter::repeat_n(' ', *spaces));
            text.push_str(token.text);
        }
        text.push_str(line.end);
    }
    text
}

fn lines<'a, 't>(tokens: &'a [Token<'t>]) -> Vec<Line<'a, 't>> {
    let cut = tokens.split_inclusive(|token| token.kind == Kind::Newline);
    let line = |all: &'a [Token<'t>]| {
        let (tokens, end) = match all.split_last() {
            Some((last, before)) if last.kind == Kind::Newline => (before, last.text),
            _ => (all, ""),
        };
        let spaces = vec![0; tokens.len()];
        Line {
            tokens,
            end,
            spaces,
        }
    };
    cut.map(line).collect()
}

/// How far a line is moved in that opens so many brackets more than it closes. Brackets that are
/// opened on one line are one level, however many they are; so a line that closes and opens as many
/// is moved in as what is between them.
fn indent(indents: &mut Vec<usize>, brackets: isize) -> usize {
    let before = indents.len() * STEP;
    if brackets > 0 {
        indents.push(brackets.unsigned_abs());
        return before;
    }
    let mut closed = brackets.unsigned_abs();
    while let Some(last) = indents.last_mut().filter(|_| closed > 0) {
        let these = closed.min(*last);
        *last -= these;
        closed -= these;
        if *last == 0 {
            indents.pop();
        }
    }
    indents.len() * STEP
}

/// Puts one part of neighbouring lines below each other, if each of them has it.
fn align<'a, 't>(lines: &mut [Line<'a, 't>], part: fn(&Line<'a, 't>) -> Option<usize>) {
    let mut rest = lines;
    while !rest.is_empty() {
        let parts: Vec<usize> = rest.iter().map_while(part).collect();
        let (these, others) = rest.split_at_mut(parts.len().max(1));
        let width = |(line, at): (&Line<'_, '_>, &usize)| line.width(*at);
        let widest = these.iter().zip(&parts).map(width).max().unwrap_or(0);
        for (line, at) in these.iter_mut().zip(&parts) {
            let spaces = widest - line.width(*at) + 1;
            if let Some(before) = line.spaces.get_mut(*at) {
                *before = spaces;
            }
        }
        rest = others;
    }
}

impl Line<'_, '_> {
    /// How many brackets more are opened than closed.
    fn brackets(&self) -> isize {
        self.tokens.iter().map(|token| bracket(token.kind)).sum()
    }

    fn space_out(&mut self, indent: usize) {
        if let Some(first) = self.spaces.first_mut() {
            *first = indent;
        }
        for at in 1..self.tokens.len() {
            let before = at.checked_sub(2).and_then(|at| self.tokens.get(at));
            if let (Some([left, right]), Some(spaces)) =
                (self.tokens.get(at - 1..=at), self.spaces.get_mut(at))
            {
                *spaces = usize::from(has_space(before, left, right));
            }
        }
    }

    /// The columns before this token, without the spaces in front of it.
    fn width(&self, at: usize) -> usize {
        let before = self.tokens.iter().zip(&self.spaces).take(at);
        let width = |(token, spaces): (&Token<'_>, &usize)| {
            let last_line = token.text.rsplit('\n').next().unwrap_or_default();
            last_line.chars().count() + spaces
        };
        before.map(width).sum()
    }

    /// The place of the sign of an assignment that ends on this line.
    fn assignment(&self) -> Option<usize> {
        let sign = self.tokens.iter().position(|token| token.text == "=")?;
        let value = self.tokens.get(sign..)?;
        let brackets: isize = value.iter().map(|token| bracket(token.kind)).sum();
        (sign > 0 && brackets == 0).then_some(sign)
    }

    /// The place of the comment up to the end of this line, if there is something before it. `/* … */` may
    /// stand anywhere.
    fn comment(&self) -> Option<usize> {
        let (last, before) = self.tokens.split_last()?;
        let is_one = last.kind == Kind::Comment && !last.text.starts_with("/*");
        (is_one && !before.is_empty()).then_some(before.len())
    }
}

fn bracket(kind: Kind) -> isize {
    match kind {
        Kind::Open(_) => 1,
        Kind::Close(_) => -1,
        _ => 0,
    }
}

/// Whether there is a space between two tokens, the first of which has a token before it or not.
fn has_space(before: Option<&Token<'_>>, left: &Token<'_>, right: &Token<'_>) -> bool {
    let after_name = before.is_some_and(|token| token.kind == Kind::Ident);
    let is_in = left.text == "in" && after_name;
    match (left.kind, right.kind) {
        (Kind::Ident, Kind::Open(b'(')) => is_in,
        _ if matches!(left.text, "." | "::") || matches!(right.text, "." | "::") => false,
        _ if matches!(right.text, "," | "...") => false,
        _ if left.text == "," => true,
        (Kind::Ident, Kind::Open(b'[')) if is_in => true,
        (Kind::Ident | Kind::Number | Kind::Close(_), Kind::Open(b'[')) => false,
        _ if left.text == "!" => false,
        _ if left.text == "-" => is_subtraction(before),
        (Kind::Open(b'{'), Kind::Close(b'}')) => false,
        (Kind::Open(b'{'), _) | (_, Kind::Close(b'}')) => true,
        (Kind::Open(_), _) | (_, Kind::Close(_)) => false,
        _ => true,
    }
}

/// Whether a minus with this token before it stands between two values.
fn is_subtraction(before: Option<&Token<'_>>) -> bool {
    before.is_some_and(|token| match token.kind {
        Kind::Sign | Kind::Open(_) | Kind::Newline | Kind::Comment => false,
        Kind::Ident | Kind::Number | Kind::Quoted | Kind::Heredoc | Kind::Close(_) => true,
    })
}
