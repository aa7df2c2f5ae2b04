//! Formats: what stands after a percent sign, and values by it.

use super::leaf;
use super::sink::Sink;
use crate::error::Fault;
use crate::eval::cx::too_deep;
use crate::options::VALUE_DEPTH;
use crate::value::{Record, Shown, Value};

/// Widths and precisions above this one are mistakes.
const LARGEST: usize = 1_000_000;

/// How one verb is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    /// Whether fields are shown with their names.
    pub(super) names: bool,
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
}

/// A format and its arguments, while one goes through them.
struct Format<'a> {
    rest: std::str::Chars<'a>,
    values: &'a [Value],
    next: usize,
    /// Whether an argument was named by its number: then it is no mistake to leave some out.
    reordered: bool,
    bad_index: bool,
}

/// Writes values as a format says.
pub(crate) fn printf(out: &mut Sink, format: &[u8], values: &[Value]) -> Result<(), Fault> {
    let text = std::str::from_utf8(format);
    let text = text.map_err(|_| Fault::failed("the format is not UTF-8"))?;
    let mut format = Format {
        rest: text.chars(),
        values,
        next: 0,
        reordered: false,
        bad_index: false,
    };
    while let Some(char) = format.rest.next() {
        match char {
            '%' => format.verb(out)?,
            _ => out.push_char(char)?,
        }
    }
    format.extra(out)
}

impl<'a> Format<'a> {
    fn verb(&mut self, out: &mut Sink) -> Result<(), Fault> {
        let mut spec = Spec::default();
        self.bad_index = false;
        self.flags(&mut spec);
        self.index();
        self.width(out, &mut spec)?;
        if self.peek() == Some('.') {
            self.rest.next();
            self.precision(out, &mut spec)?;
        }
        self.index();
        let Some(verb) = self.rest.next() else {
            return out.push("%!(NOVERB)");
        };
        if verb == '%' {
            return out.push("%");
        }
        if self.bad_index {
            return out.push(format!("%!{verb}(BADINDEX)"));
        }
        let Some(found) = self.values.get(self.next) else {
            return out.push(format!("%!{verb}(MISSING)"));
        };
        self.next += 1;
        if verb == 'v' {
            // With this verb a plus asks for names of fields, and not for signs.
            spec.names = std::mem::take(&mut spec.plus);
        }
        value(out, &spec, verb, found, 0)
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn flags(&mut self, spec: &mut Spec) {
        while let Some(char) = self.peek() {
            match char {
                '-' => {
                    spec.minus = true;
                    spec.zero = false;
                }
                '+' => spec.plus = true,
                '#' => spec.sharp = true,
                ' ' => spec.space = true,
                '0' => spec.zero = !spec.minus,
                _ => return,
            }
            self.rest.next();
        }
    }

    fn number(&mut self) -> Option<usize> {
        let text = self.rest.as_str();
        let rest = text.trim_start_matches(|char: char| char.is_ascii_digit());
        let digits = text.get(..text.len() - rest.len()).unwrap_or_default();
        if digits.is_empty() {
            return None;
        }
        self.rest = rest.chars();
        Some(digits.parse().unwrap_or(usize::MAX))
    }

    /// `[2]`: which argument is next.
    fn index(&mut self) {
        if self.peek() != Some('[') {
            return;
        }
        self.reordered = true;
        let Some((inside, rest)) = self.rest.as_str().split_once(']') else {
            self.bad_index = true;
            self.rest.next();
            return;
        };
        self.rest = rest.chars();
        let number: Option<usize> = inside.get(1..).and_then(|digits| digits.parse().ok());
        match number.and_then(|number| number.checked_sub(1)) {
            Some(next) if next < self.values.len() => self.next = next,
            _ => self.bad_index = true,
        }
    }

    /// An argument that is a width or precision.
    fn star(&mut self) -> Option<i64> {
        self.rest.next();
        let found = match self.values.get(self.next) {
            Some(Value::Int(int, _)) => Some(*int),
            Some(Value::Uint(uint, _)) => i64::try_from(*uint).ok(),
            _ => None,
        };
        self.next += 1;
        let small = |int: &i64| usize::try_from(int.unsigned_abs()).is_ok_and(|int| int <= LARGEST);
        found.filter(small)
    }

    fn width(&mut self, out: &mut Sink, spec: &mut Spec) -> Result<(), Fault> {
        if self.peek() != Some('*') {
            spec.width = self.number();
            if spec.width.is_some_and(|width| width > LARGEST) {
                spec.width = None;
                return out.push("%!(BADWIDTH)");
            }
            return Ok(());
        }
        match self.star() {
            None => return out.push("%!(BADWIDTH)"),
            Some(width) => {
                spec.width = usize::try_from(width.unsigned_abs()).ok();
                if width < 0 {
                    spec.minus = true;
                    spec.zero = false;
                }
            }
        }
        Ok(())
    }

    fn precision(&mut self, out: &mut Sink, spec: &mut Spec) -> Result<(), Fault> {
        self.index();
        if self.peek() != Some('*') {
            let number = self.number().unwrap_or(0);
            if number > LARGEST {
                return out.push("%!(BADPREC)");
            }
            spec.precision = Some(number);
            return Ok(());
        }
        match self.star() {
            None => out.push("%!(BADPREC)"),
            Some(precision) => {
                spec.precision = usize::try_from(precision).ok();
                match spec.precision {
                    None => out.push("%!(BADPREC)"),
                    Some(_) => Ok(()),
                }
            }
        }
    }

    /// What no verb wanted.
    fn extra(&self, out: &mut Sink) -> Result<(), Fault> {
        let left = self.values.get(self.next..).unwrap_or_default();
        if self.reordered || left.is_empty() {
            return Ok(());
        }
        out.push("%!(EXTRA ")?;
        for (at, extra) in left.iter().enumerate() {
            if at > 0 {
                out.push(", ")?;
            }
            match extra {
                Value::Nil => out.push("<nil>")?,
                _ => {
                    out.push(extra.type_name())?;
                    out.push("=")?;
                    value(out, &Spec::default(), 'v', extra, 0)?;
                }
            }
        }
        out.push(")")
    }
}

/// One value by a verb.
pub(super) fn value(
    out: &mut Sink,
    spec: &Spec,
    verb: char,
    of: &Value,
    depth: usize,
) -> Result<(), Fault> {
    if depth > VALUE_DEPTH {
        return Err(too_deep());
    }
    if verb == 'T' {
        let name = match of {
            Value::Nil | Value::Absent => "<nil>",
            _ => of.type_name(),
        };
        return leaf::text(out, spec, 's', name.as_bytes());
    }
    match of {
        Value::Nil | Value::Absent => nil(out, spec, verb, depth),
        Value::Bool(bool) => leaf::bool(out, spec, verb, *bool),
        Value::Int(int, _) => leaf::int(out, spec, verb, (*int).into(), of),
        Value::Uint(uint, _) => leaf::int(out, spec, verb, (*uint).into(), of),
        Value::Float(float) => leaf::float(out, spec, verb, *float),
        Value::Text(text) => leaf::text(out, spec, verb, text),
        Value::Count(..) | Value::Scratch => {
            let message = format!("{} cannot be shown", of.type_name());
            Err(Fault::failed(message))
        }
        Value::List(list) => {
            let [open, close] = brackets(spec, verb, of, "[");
            out.push(open)?;
            for (at, item) in list.items.iter().enumerate() {
                separate(out, spec, verb, at)?;
                value(out, spec, verb, item, depth + 1)?;
            }
            out.push(close)
        }
        Value::Map(map) => {
            let [open, close] = brackets(spec, verb, of, "map[");
            out.push(open)?;
            for (at, (key, item)) in map.entries().iter().enumerate() {
                separate(out, spec, verb, at)?;
                leaf::text(out, spec, verb, key)?;
                out.push(":")?;
                value(out, spec, verb, item, depth + 1)?;
            }
            out.push(close)
        }
        Value::Record(record) => match &record.shown {
            Shown::Text(text) | Shown::Item(text) | Shown::Time(text, _) => {
                leaf::text(out, spec, verb, text)
            }
            Shown::Fields => fields(out, spec, verb, record, depth),
        },
    }
}

/// What stands around the parts of a list or map.
fn brackets(spec: &Spec, verb: char, of: &Value, open: &str) -> [String; 2] {
    match spec.sharp && verb == 'v' {
        true => [format!("{}{{", of.type_name()), "}".into()],
        false => [open.into(), "]".into()],
    }
}

fn fields(
    out: &mut Sink,
    spec: &Spec,
    verb: char,
    record: &Record,
    depth: usize,
) -> Result<(), Fault> {
    out.push("{")?;
    for (at, (name, item)) in record.fields.iter().enumerate() {
        separate(out, spec, verb, at)?;
        if spec.names || spec.sharp {
            out.push(name)?;
            out.push(":")?;
        }
        value(out, spec, verb, item, depth + 1)?;
    }
    out.push("}")
}

fn separate(out: &mut Sink, spec: &Spec, verb: char, at: usize) -> Result<(), Fault> {
    match (at, spec.sharp && verb == 'v') {
        (0, _) => Ok(()),
        (_, true) => out.push(", "),
        (_, false) => out.push(" "),
    }
}

fn nil(out: &mut Sink, spec: &Spec, verb: char, depth: usize) -> Result<(), Fault> {
    match verb {
        'v' if spec.sharp && depth > 0 => out.push("interface {}(nil)"),
        _ if depth > 0 => out.push("<nil>"),
        'v' => leaf::pad(out, spec, "<nil>"),
        _ => out.push(format!("%!{verb}(<nil>)")),
    }
}
