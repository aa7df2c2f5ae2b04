//! Units as systemd writes them: sections, assignments, lines that go on, and what is replaced in values.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Mistake, Place, Result, quote};

/// The most assignments of a file.
const MAX_ENTRIES: usize = 10_000;
/// The most words of a value.
const MAX_WORDS: usize = 1_000;

/// An assignment.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub section: String,
    pub key: String,
    pub value: String,
    pub line: usize,
}

impl Entry {
    pub(crate) fn mistake(&self, message: impl Into<String>) -> Mistake {
        let place = Place {
            line: self.line,
            column: 1,
        };
        Mistake::new(place, message)
    }
}

/// Entries of which there are not too many.
pub(crate) fn at_most(most: usize, entries: Vec<Entry>) -> Result<Vec<Entry>> {
    match entries.get(most) {
        Some(entry) => Err(entry.mistake(format!("{}: more than {most} of them", entry.key))),
        None => Ok(entries),
    }
}

/// A file, of which is known what was taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    entries: Vec<Entry>,
    taken: BTreeSet<(String, String)>,
}

impl Unit {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Result<Unit> {
        let mut unit = Unit::default();
        let mut section: Option<String> = None;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines().enumerate();
        while let Some((at, first)) = lines.next() {
            let line = at + 1;
            let place = |column| Place { line, column };
            let trimmed = first.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if first.contains('\0') {
                return Err(Mistake::new(place(1), "a NUL character"));
            }
            if let Some(inner) = trimmed.strip_prefix('[') {
                let name = inner.strip_suffix(']').filter(|name| !name.is_empty());
                let bad = || Mistake::new(place(1), format!("{} is no section", quote(trimmed)));
                section = Some(name.ok_or_else(bad)?.to_owned());
                continue;
            }
            let mut whole = first.trim_start().to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                // Comments in between are left out.
                let comment = |line: &str| line.trim_start().starts_with(['#', ';']);
                let Some((_, next)) = lines.by_ref().find(|(_, next)| !comment(next)) else {
                    break;
                };
                whole.push(' ');
                whole.push_str(next);
            }
            let Some((key, value)) = whole.split_once('=') else {
                let message = format!("{} is neither a section nor KEY=VALUE", quote(trimmed));
                return Err(Mistake::new(place(1), message));
            };
            let Some(section) = &section else {
                let message = format!("{} stands before the first section", quote(key.trim()));
                return Err(Mistake::new(place(1), message));
            };
            if unit.entries.len() >= MAX_ENTRIES {
                let message = format!("more than {MAX_ENTRIES} assignments");
                return Err(Mistake::new(place(1), message));
            }
            unit.entries.push(Entry {
                section: section.clone(),
                key: key.trim().to_owned(),
                value: value.trim().replace('\0', " "),
                line,
            });
        }
        Ok(unit)
    }

    /// All values of a key; an empty one takes back those before it.
    pub(crate) fn all(&mut self, section: &str, key: &str) -> Vec<Entry> {
        self.taken.insert((section.to_owned(), key.to_owned()));
        let mut all = Vec::new();
        for entry in self
            .entries
            .iter()
            .filter(|it| it.section == section && it.key == key)
        {
            match entry.value.is_empty() {
                true => all.clear(),
                false => all.push(entry.clone()),
            }
        }
        all
    }

    /// The last value of a key.
    pub(crate) fn last(&mut self, section: &str, key: &str) -> Option<Entry> {
        self.all(section, key).pop()
    }

    /// A truth value.
    pub(crate) fn flag(&mut self, section: &str, key: &str) -> Result<Option<bool>> {
        let Some(entry) = self.last(section, key) else {
            return Ok(None);
        };
        match entry.value.to_ascii_lowercase().as_str() {
            "1" | "yes" | "y" | "true" | "t" | "on" => Ok(Some(true)),
            "0" | "no" | "n" | "false" | "f" | "off" => Ok(Some(false)),
            _ => Err(entry.mistake(format!("{key} must be yes or no"))),
        }
    }

    /// What was not taken and says something.
    pub(crate) fn rest(&self) -> Vec<Entry> {
        let left = |entry: &&Entry| {
            let name = (entry.section.clone(), entry.key.clone());
            !entry.value.is_empty() && !self.taken.contains(&name)
        };
        self.entries.iter().filter(left).cloned().collect()
    }
}

/// What stands for `%n` and the like, as far as it is known without the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Specifiers(BTreeMap<char, String>);

impl Specifiers {
    /// Of a unit with this name, such as `backup@home.service`.
    pub(crate) fn of(file: &str) -> Specifiers {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        let last = prefix.rsplit('-').next().unwrap_or(prefix);
        let known = [
            ('n', file),
            ('N', stem),
            ('p', prefix),
            ('P', prefix),
            ('i', instance),
            ('I', instance),
            ('j', last),
            ('J', last),
            ('H', "${attr.unique.hostname}"),
            ('v', "${attr.kernel.version}"),
            ('t', "/run"),
            ('S', "/var/lib"),
            ('C', "/var/cache"),
            ('L', "/var/log"),
            ('E', "/etc"),
            ('T', "/tmp"),
            ('V', "/var/tmp"),
            ('u', "root"),
            ('U', "0"),
            ('g', "root"),
            ('G', "0"),
            ('h', "/root"),
            ('s', "/bin/sh"),
            ('%', "%"),
        ];
        let known = known.into_iter();
        Specifiers(known.map(|(sign, text)| (sign, text.to_owned())).collect())
    }

    /// The text with them replaced, and those that are not known and stay.
    pub(crate) fn replace(&self, text: &str) -> (String, Vec<char>) {
        let (mut all, mut unknown) = (String::new(), Vec::new());
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                all.push(c);
                continue;
            }
            let Some(sign) = chars.next() else {
                all.push('%');
                break;
            };
            match self.0.get(&sign) {
                Some(text) => all.push_str(text),
                None => {
                    all.extend(['%', sign]);
                    unknown.push(sign);
                }
            }
        }
        (all, unknown)
    }
}

/// The words of a value: quotes and backslashes as systemd reads them.
pub(crate) fn words(entry: &Entry) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted: Option<char> = None;
    let mut chars = entry.value.chars().peekable();
    while let Some(c) = chars.next() {
        match (quoted, c) {
            (_, '\\') => {
                let sign = escaped(&mut chars);
                word.get_or_insert_default().push_str(&sign);
            }
            (Some(quote), c) if c == quote => quoted = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quoted = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
        if words.len() > MAX_WORDS {
            return Err(entry.mistake(format!("{}: more than {MAX_WORDS} words", entry.key)));
        }
    }
    if quoted.is_some() {
        return Err(entry.mistake(format!("{}: a quote has no end", entry.key)));
    }
    words.extend(word);
    Ok(words)
}

/// What a backslash and the signs behind it stand for.
fn escaped(chars: &mut core::iter::Peekable<core::str::Chars<'_>>) -> String {
    let Some(sign) = chars.next() else {
        return "\\".to_owned();
    };
    let simple = match sign {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        's' => ' ',
        '\\' | '"' | '\'' => sign,
        'x' => {
            let digits: String = core::iter::from_fn(|| chars.next_if(char::is_ascii_hexdigit))
                .take(2)
                .collect();
            let code = u32::from_str_radix(&digits, 16)
                .ok()
                .filter(|code| (1..128).contains(code));
            return match code.and_then(char::from_u32) {
                Some(c) => c.to_string(),
                None => format!("\\x{digits}"),
            };
        }
        other => return format!("\\{other}"),
    };
    simple.to_string()
}
