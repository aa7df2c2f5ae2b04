//! Writing HCL in the layout of `drover fmt`: two columns for each level, and the signs of neighbouring assignments
//! below each other.

use crate::text::{Text, string};

/// How wide lines are made where there is a choice.
const WIDTH: usize = 100;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Text(Text),
    Number(u64),
    Bool(bool),
    List(Vec<Expr>),
    Map(Vec<(String, Expr)>),
    /// As it is to be written, on one line.
    Raw(String),
}

impl From<Text> for Expr {
    fn from(text: Text) -> Expr {
        Expr::Text(text)
    }
}

impl From<&str> for Expr {
    fn from(text: &str) -> Expr {
        Expr::Text(text.into())
    }
}

impl From<String> for Expr {
    fn from(text: String) -> Expr {
        Expr::Text(text.into())
    }
}

impl From<Vec<Text>> for Expr {
    fn from(list: Vec<Text>) -> Expr {
        Expr::List(list.into_iter().map(Expr::Text).collect())
    }
}

impl From<u64> for Expr {
    fn from(number: u64) -> Expr {
        Expr::Number(number)
    }
}

impl From<bool> for Expr {
    fn from(value: bool) -> Expr {
        Expr::Bool(value)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Attribute(String, Expr),
    Block(String, Body),
    Comment(String),
    /// The comments before it stand alone.
    Break,
}

/// What stands in a file or between the braces of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Body(Vec<Item>);

impl Body {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `NAME = VALUE`. What is set twice has the later value.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Expr>) {
        let value = value.into();
        let mine = self.0.iter_mut().find_map(|item| match item {
            Item::Attribute(other, mine) if other == name => Some(mine),
            Item::Attribute(..) | Item::Block(..) | Item::Comment(_) | Item::Break => None,
        });
        match mine {
            Some(mine) => *mine = value,
            None => self.0.push(Item::Attribute(name.to_owned(), value)),
        }
    }

    /// The same, unless there is nothing in the list.
    pub(crate) fn set_list(&mut self, name: &str, list: Vec<Text>) {
        if !list.is_empty() {
            self.set(name, list);
        }
    }

    /// A block.
    pub(crate) fn block(&mut self, kind: &str, body: Body) {
        self.0.push(Item::Block(kind.to_owned(), body));
    }

    /// A block with a label.
    pub(crate) fn labelled(&mut self, kind: &str, label: &str, body: Body) {
        self.block(&format!("{kind} {}", string(label)), body);
    }

    /// A comment above what comes next. Lines that begin with two spaces are not broken.
    pub(crate) fn comment(&mut self, text: impl Into<String>) {
        self.0.push(Item::Comment(text.into()));
    }

    /// What was said in comments stands alone, and not above what comes next.
    pub(crate) fn end_comments(&mut self) {
        self.0.push(Item::Break);
    }

    /// A comment on something that was read, and is not carried over.
    pub(crate) fn lost(&mut self, line: usize, what: &str, advice: &str) {
        self.comment(format!("Not carried over{}: {what}: {advice}.", at(line)));
        self.0.push(Item::Break);
    }

    /// A comment on something that is carried over, and is not quite the same.
    pub(crate) fn remark(&mut self, line: usize, what: &str, words: &str) {
        self.comment(format!("{what}{}: {words}.", at(line)));
    }

    /// All of another body behind this one. Comments at its end do not become those of what comes next.
    pub(crate) fn append(&mut self, other: Body) {
        let ends = matches!(other.0.last(), Some(Item::Comment(_)));
        for item in other.0 {
            match item {
                // Names are never given twice.
                Item::Attribute(name, value) => self.set(&name, value),
                item => self.0.push(item),
            }
        }
        if ends {
            self.0.push(Item::Break);
        }
    }

    /// Adds a map of texts: a block where all keys are names, else an attribute.
    pub(crate) fn pairs(&mut self, name: &str, pairs: Vec<(String, Text)>) {
        if pairs.is_empty() {
            return;
        }
        if pairs.iter().all(|(key, _)| is_identifier(key)) {
            let mut body = Body::default();
            for (key, value) in pairs {
                body.set(&key, value);
            }
            return self.block(name, body);
        }
        self.map(name, pairs);
    }

    /// Adds a map of texts as an attribute.
    pub(crate) fn map(&mut self, name: &str, pairs: Vec<(String, Text)>) {
        if !pairs.is_empty() {
            let pairs = pairs.into_iter();
            let map = pairs.map(|(key, value)| (key, Expr::Text(value)));
            self.set(name, Expr::Map(map.collect()));
        }
    }

    /// The text of a file with this in it.
    pub(crate) fn file(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        let units = units(&self.0);
        let mut before: Option<&Unit<'_>> = None;
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            if before.is_some_and(|before| before.is_apart() || unit.is_apart()) {
                out.push('\n');
            }
            for text in &unit.comments {
                comment(out, text, depth);
            }
            // Neighbours without comments between them stand below each other.
            let alone =
                |unit: &&Unit<'_>| unit.comments.is_empty() && unit.one_line(depth).is_some();
            let next = units.get(at + 1..).unwrap_or_default();
            let more = match unit.one_line(depth) {
                Some(_) => next.iter().take_while(alone).count(),
                None => 0,
            };
            let these = units.get(at..=at + more).unwrap_or_default();
            match unit.one_line(depth) {
                Some(_) => assignments(out, these, depth),
                None => unit.write(out, depth),
            }
            at += these.len().max(1);
            before = these.last();
        }
    }
}

/// Where in the file that is read.
fn at(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(" (line {line})"),
    }
}

/// An item with the comments above it; comments alone at the end.
struct Unit<'a> {
    comments: Vec<&'a str>,
    item: Option<&'a Item>,
}

fn units(items: &[Item]) -> Vec<Unit<'_>> {
    let mut units = Vec::new();
    let mut comments = Vec::new();
    for item in items {
        match item {
            Item::Comment(text) => comments.push(text.as_str()),
            Item::Break => alone(&mut units, &mut comments),
            Item::Attribute(..) | Item::Block(..) => units.push(Unit {
                comments: core::mem::take(&mut comments),
                item: Some(item),
            }),
        }
    }
    alone(&mut units, &mut comments);
    units
}

/// Comments that belong to no item; those of neighbours stand together.
fn alone<'a>(units: &mut Vec<Unit<'a>>, comments: &mut Vec<&'a str>) {
    let comments = core::mem::take(comments);
    match units.last_mut() {
        _ if comments.is_empty() => {}
        Some(last) if last.item.is_none() => last.comments.extend(comments),
        Some(_) | None => units.push(Unit {
            comments,
            item: None,
        }),
    }
}

impl Unit<'_> {
    /// Whether there is an empty line between this and its neighbours.
    fn is_apart(&self) -> bool {
        !matches!(self.item, Some(Item::Attribute(..)))
    }

    /// Name and value of an assignment that takes part in putting signs below each other.
    fn one_line(&self, depth: usize) -> Option<(&str, String)> {
        match self.item? {
            Item::Attribute(name, value) => Some((name.as_str(), value.one_line(depth, name)?)),
            Item::Block(..) | Item::Comment(_) | Item::Break => None,
        }
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self.item {
            Some(Item::Attribute(name, value)) => {
                indent(out, depth);
                out.push_str(&format!("{name} = "));
                value.many_lines(out, depth);
                out.push('\n');
            }
            Some(Item::Block(head, body)) => {
                indent(out, depth);
                out.push_str(head);
                if body.is_empty() {
                    return out.push_str(" {}\n");
                }
                out.push_str(" {\n");
                body.write(out, depth + 1);
                indent(out, depth);
                out.push_str("}\n");
            }
            Some(Item::Comment(_) | Item::Break) | None => {}
        }
    }
}

fn assignments(out: &mut String, units: &[Unit<'_>], depth: usize) {
    let lines: Vec<_> = units.iter().filter_map(|it| it.one_line(depth)).collect();
    aligned(out, &lines, depth, "");
}

/// Assignments whose signs stand below each other; each line ends with `end`.
fn aligned(out: &mut String, lines: &[(&str, String)], depth: usize, end: &str) {
    let width = |name: &str| name.chars().count();
    let widest = lines.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    for (name, value) in lines {
        indent(out, depth);
        out.push_str(name);
        out.extend(core::iter::repeat_n(' ', widest - width(name)));
        out.push_str(&format!(" = {value}{end}\n"));
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(core::iter::repeat_n("  ", depth));
}

impl Expr {
    /// The value, if it stands on one line, or is a heredoc.
    fn one_line(&self, depth: usize, name: &str) -> Option<String> {
        match self {
            Expr::Text(text) => Some(text.heredoc().unwrap_or_else(|| text.quoted())),
            Expr::Number(number) => Some(number.to_string()),
            Expr::Bool(value) => Some(value.to_string()),
            Expr::Raw(text) => Some(text.clone()),
            Expr::Map(map) => map.is_empty().then(|| "{}".to_owned()),
            Expr::List(list) => {
                let line = format!("[{}]", self.items(list).join(", "));
                let line_width = WIDTH.saturating_sub(depth * 2 + name.len() + 3);
                (line.chars().count() <= line_width).then_some(line)
            }
        }
    }

    fn items(&self, list: &[Expr]) -> Vec<String> {
        list.iter().map(Expr::inline).collect()
    }

    /// The value without any line breaks of its own.
    fn inline(&self) -> String {
        match self {
            Expr::Text(text) => text.quoted(),
            Expr::List(list) => format!("[{}]", self.items(list).join(", ")),
            Expr::Map(map) => {
                let pairs = map.iter();
                let pairs =
                    pairs.map(|(key, value)| format!("{} = {}", string(key), value.inline()));
                format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }
            Expr::Number(_) | Expr::Bool(_) | Expr::Raw(_) => {
                self.one_line(0, "").unwrap_or_default()
            }
        }
    }

    fn many_lines(&self, out: &mut String, depth: usize) {
        match self {
            Expr::List(list) => {
                out.push_str("[\n");
                for item in self.items(list) {
                    indent(out, depth + 1);
                    out.push_str(&format!("{item},\n"));
                }
                indent(out, depth);
                out.push(']');
            }
            Expr::Map(map) => {
                let keys: Vec<String> = map.iter().map(|(key, _)| string(key)).collect();
                let values = map.iter().map(|(_, value)| value.inline());
                let lines: Vec<_> = keys.iter().map(String::as_str).zip(values).collect();
                out.push_str("{\n");
                aligned(out, &lines, depth + 1, "");
                indent(out, depth);
                out.push('}');
            }
            Expr::Text(_) | Expr::Number(_) | Expr::Bool(_) | Expr::Raw(_) => {
                out.push_str(&self.inline());
            }
        }
    }
}

/// A comment, broken into lines.
fn comment(out: &mut String, text: &str, depth: usize) {
    let line_width = WIDTH.saturating_sub(depth * 2 + 2).max(40);
    for line in text.split('\n') {
        let line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if line.starts_with("  ") {
            comment_line(out, &line, depth);
            continue;
        }
        let mut filled = String::new();
        for word in pieces(&line) {
            let longer = filled.chars().count() + 1 + word.chars().count();
            if !filled.is_empty() && longer > line_width {
                comment_line(out, &filled, depth);
                filled.clear();
            }
            if !filled.is_empty() {
                filled.push(' ');
            }
            filled.push_str(&word);
        }
        comment_line(out, &filled, depth);
    }
}

/// The words of a line; what stands between backticks is one.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut open = false;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        match pieces.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(' ');
                last.push_str(word);
            }
            None => pieces.push(word.to_owned()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    pieces
}

fn comment_line(out: &mut String, text: &str, depth: usize) {
    indent(out, depth);
    let line = format!("# {}", text.trim_end());
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Whether this can be the name of an attribute.
pub(crate) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
