//! What rendering may use and what it asked for: handed to every function.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use regex::bytes::{Regex, RegexBuilder};

use crate::dialect;
use crate::error::Fault;
use crate::format::Sink;
use crate::need::{Answer, Need, Source};
use crate::options::{Limits, VALUE_DEPTH};
use crate::value::{List, Map, Of, Text, Value};

/// Bytes of a compiled regular expression, up to which searching is fast.
const SMALL_REGEX: usize = 64 << 10;

/// Bytes of the largest compiled regular expression.
const LARGE_REGEX: usize = 1 << 20;

/// What an entry of a list or map counts as, in bytes.
const ENTRY: usize = 64;

pub(crate) struct Cx<'a> {
    source: &'a dyn Source,
    limits: Limits,
    steps: u64,
    memory: usize,
    pub(crate) asked: BTreeSet<Need>,
    pub(crate) missing: BTreeSet<Need>,
    /// Every map that was made. It holds them to the end and empties them then, so that neither
    /// circles nor long chains of them are a danger.
    maps: Vec<Rc<Map>>,
    pub(crate) scratch: BTreeMap<Text, Value>,
    /// With the steps that each takes for a byte.
    regexes: BTreeMap<Text, (Regex, u64)>,
}

impl Drop for Cx<'_> {
    fn drop(&mut self) {
        for map in &self.maps {
            map.clear();
        }
    }
}

impl<'a> Cx<'a> {
    pub(super) fn new(source: &'a dyn Source, limits: Limits) -> Self {
        Self {
            source,
            limits,
            steps: limits.steps,
            memory: limits.memory,
            asked: BTreeSet::new(),
            missing: BTreeSet::new(),
            maps: Vec::new(),
            scratch: BTreeMap::new(),
            regexes: BTreeMap::new(),
        }
    }

    /// Counts work.
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), Fault> {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => {
                let message = format!("more than {} steps: make it loop less", self.limits.steps);
                return Err(Fault::limit(message));
            }
        }
        Ok(())
    }

    /// Counts bytes of a value that is made.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.memory.checked_sub(bytes) {
            Some(left) => self.memory = left,
            None => return Err(self.too_large()),
        }
        Ok(())
    }

    fn too_large(&self) -> Fault {
        let memory = self.limits.memory;
        Fault::limit(format!(
            "values of more than {memory} bytes: make fewer or smaller ones"
        ))
    }

    /// Refuses what would not fit before it is made.
    pub(crate) fn fits(&self, bytes: Option<usize>) -> Result<(), Fault> {
        match bytes.is_some_and(|bytes| bytes <= self.memory) {
            true => Ok(()),
            false => Err(self.too_large()),
        }
    }

    /// Somewhere to write a text that takes no more than what is left.
    pub(crate) fn sink(&self) -> Sink {
        Sink::new(self.memory, "values", self.limits.memory)
    }

    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> Result<Value, Fault> {
        let text = text.as_ref();
        self.grow(text.len())?;
        Ok(Value::text(text))
    }

    pub(crate) fn list(&mut self, items: Vec<Value>, of: Of) -> Result<Value, Fault> {
        self.grow(items.len().saturating_mul(ENTRY))?;
        let depth_of = |item: &Value| match item {
            Value::List(list) => list.depth,
            _ => 0,
        };
        let depth = 1 + items.iter().map(depth_of).max().unwrap_or_default();
        if depth > VALUE_DEPTH {
            return Err(too_deep());
        }
        Ok(Value::List(Rc::new(List { items, of, depth })))
    }

    pub(crate) fn anys(&mut self, items: Vec<Value>) -> Result<Value, Fault> {
        self.list(items, Of::Any)
    }

    /// A list of texts.
    pub(crate) fn texts<T: AsRef<[u8]>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Value, Fault> {
        let mut items = Vec::new();
        for text in texts {
            self.grow(ENTRY)?;
            items.push(self.text(text)?);
        }
        self.list(items, Of::Texts)
    }

    pub(crate) fn map(&mut self, entries: BTreeMap<Text, Value>, of: Of) -> Result<Value, Fault> {
        self.grow(entries.len().saturating_mul(2 * ENTRY))?;
        Ok(Value::Map(self.keep(Map::new(entries, of))?))
    }

    /// Takes a map into its care.
    pub(crate) fn keep(&mut self, map: Map) -> Result<Rc<Map>, Fault> {
        self.grow(2 * ENTRY)?;
        let map = Rc::new(map);
        self.maps.push(map.clone());
        Ok(map)
    }

    /// Takes a map into its care that others hold already.
    pub(crate) fn keep_too(&mut self, map: &Rc<Map>) {
        self.maps.push(map.clone());
    }

    /// Puts something into a map.
    pub(crate) fn put(&mut self, map: &Map, key: Text, value: Value) -> Result<(), Fault> {
        self.grow(2 * ENTRY + key.len())?;
        map.set(key, value);
        Ok(())
    }

    /// What is known of something; nothing if it is not known yet, which is noted.
    pub(crate) fn ask(&mut self, need: Need) -> Result<Option<Answer>, Fault> {
        self.spend(20)?;
        let answer = self.source.answer(&need);
        match &answer {
            Some(Answer::Refused(why)) => return Err(Fault::refused(why.clone())),
            Some(Answer::Text(text)) => self.grow(text.len())?,
            Some(_) => {}
            None => {
                self.missing.insert(need.clone());
            }
        }
        self.asked.insert(need);
        Ok(answer)
    }

    /// Notes that something must be there, and is not.
    pub(crate) fn wait_for(&mut self, need: Need) {
        self.missing.insert(need);
    }

    /// A regular expression, compiled once, to search a text of some bytes.
    pub(crate) fn regex(&mut self, pattern: &[u8], text: usize) -> Result<Regex, Fault> {
        if !self.regexes.contains_key(pattern) {
            let made = self.compile(pattern)?;
            self.regexes.insert(pattern.into(), made);
        }
        let Some((regex, steps)) = self.regexes.get(pattern).cloned() else {
            return Err(Fault::failed("the regular expression is lost"));
        };
        let text = u64::try_from(text).unwrap_or(u64::MAX);
        self.spend(text.saturating_mul(steps))?;
        Ok(regex)
    }

    /// A regular expression, and how many steps it takes for each byte at worst.
    fn compile(&mut self, pattern: &[u8]) -> Result<(Regex, u64), Fault> {
        self.spend(20_000)?;
        self.grow(LARGE_REGEX / 4)?;
        let text = std::str::from_utf8(pattern)
            .map_err(|_| Fault::failed("the regular expression is not UTF-8"))?;
        if let Ok(small) = regex(text, SMALL_REGEX) {
            return Ok((small, 2));
        }
        let large = regex(text, LARGE_REGEX).map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default();
            Fault::failed(format!("the regular expression cannot be used: {why}"))
        })?;
        Ok((large, 32))
    }
}

fn regex(pattern: &str, size: usize) -> Result<Regex, regex::Error> {
    (RegexBuilder::new(&dialect::translated(pattern)).size_limit(size))
        .dfa_size_limit(size)
        .nest_limit(50)
        .build()
}

pub(crate) fn too_deep() -> Fault {
    let message = format!("lists and maps are more than {VALUE_DEPTH} deep inside of each other");
    Fault::limit(message)
}
