//! What an archive of images says of its layers. An engine unpacks a layer as often as it stands on other layers than
//! before, however seldom it is in the archive: so what is unpacked again counts again.
//!
//! Lists of layers may stand before the layers or behind them, in files of any name: links lead to them. So each file
//! counts that reads like such a list. Where it is not certain which file a list means, it means the largest.
//!
//! Which images there are, and what they are called, is listed in one of these files. An image's id is the name of its
//! configuration, since both are the sum of that.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use serde::de::{Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::measure::broken;

/// How much of names is remembered, in bytes, and what each costs beside its text.
const NAME_BUDGET: usize = 32 << 20;
const COST: usize = 64;

/// How many links may lead to one another.
const LINKS: usize = 8;

/// What an engine looks for first. Older archives have none: each of their links is a layer of its own.
const MANIFEST: &str = "manifest.json";

/// The images of an archive, by their ids, with the names that they get.
pub(super) type Brings = BTreeMap<String, BTreeSet<String>>;

/// What is known of an archive.
pub(super) struct Mentions {
    /// What each file becomes, in bytes.
    files: BTreeMap<String, u64>,
    /// Where each link leads to, if that is certain.
    links: BTreeMap<String, Option<String>>,
    /// The layers of each image, from the lowest.
    images: BTreeSet<Vec<String>>,
    brings: Brings,
    /// Whether what is read now is the file that names the images.
    is_manifest: bool,
    largest: u64,
    /// Whether names may mean something else than here.
    is_odd: bool,
    budget: usize,
}

impl Mentions {
    pub(super) fn new() -> Mentions {
        Mentions {
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            images: BTreeSet::new(),
            brings: Brings::new(),
            is_manifest: false,
            largest: 0,
            is_odd: false,
            budget: NAME_BUDGET,
        }
    }

    /// Notes which file is read from now on.
    pub(super) fn begin(&mut self, name: &[u8]) {
        self.is_manifest = clean(&String::from_utf8_lossy(name)) == MANIFEST;
    }

    /// The images that are in it.
    pub(super) fn brings(&mut self) -> Brings {
        std::mem::take(&mut self.brings)
    }

    /// Takes an entry that is no link, and what it becomes.
    pub(super) fn file(&mut self, name: &[u8], size: u64) -> io::Result<()> {
        let name = self.name(name)?;
        self.largest = self.largest.max(size);
        let file = self.files.entry(name).or_default();
        *file = size.max(*file);
        Ok(())
    }

    /// Takes a link.
    pub(super) fn link(&mut self, name: &[u8], target: &[u8], is_hard: bool) -> io::Result<()> {
        let name = self.name(name)?;
        let target = std::str::from_utf8(target)
            .ok()
            .and_then(|target| match is_hard {
                true => Some(clean(target)),
                false => followed(&name, target),
            });
        self.spend(target.as_ref().map_or(0, String::len))?;
        self.is_odd |= self.links.insert(name, target).is_some();
        Ok(())
    }

    /// Names cannot be told for certain.
    pub(super) fn doubt(&mut self) {
        self.is_odd = true;
    }

    /// Takes a file that may say something of layers.
    pub(super) fn read_layers(&mut self, text: &[u8]) -> io::Result<()> {
        let mut failed = None;
        let is_list = text.trim_ascii_start().starts_with(b"[");
        let read = match is_list {
            true => elements(text, |image| self.image_or(image, &mut failed)),
            false => self.image(text, &mut failed),
        };
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Err(_)) => Err(broken("the description of its images is invalid")),
            (None, Ok(())) => Ok(()),
        }
    }

    fn image_or(&mut self, image: &RawValue, failed: &mut Option<io::Error>) -> Read {
        match image.get().starts_with('{') {
            true => self.image(image.get().as_bytes(), failed),
            false => Ok(()),
        }
    }

    fn image(&mut self, text: &[u8], failed: &mut Option<io::Error>) -> Read {
        let mut has_layers = false;
        if self.is_manifest {
            self.note_image(text, failed)?;
        }
        fields(text, |key, value| {
            if !is(key, "layers") || !value.get().starts_with('[') {
                return Ok(());
            }
            // Engines differ in which of two they mean.
            if std::mem::replace(&mut has_layers, true) {
                return Err(serde_json::Error::custom("layers are given twice"));
            }
            let mut layers = Vec::new();
            elements(value.get().as_bytes(), |layer| {
                let Some(layer) = layer_of(layer)? else {
                    return Ok(());
                };
                if let Err(error) = self.spend(layer.len()) {
                    *failed = Some(error);
                    return Err(serde_json::Error::custom("too much"));
                }
                layers.push(layer);
                Ok(())
            })?;
            self.images.insert(layers);
            Ok(())
        })
    }

    /// Notes which image that is, and what it is called.
    fn note_image(&mut self, text: &[u8], failed: &mut Option<io::Error>) -> Read {
        let (mut id, mut names) = (None, BTreeSet::new());
        fields(text, |key, value| {
            if is(key, "config") && value.get().starts_with('"') {
                id = id_of(&serde_json::from_str::<String>(value.get())?);
            }
            if is(key, "repotags") && value.get().starts_with('[') {
                return elements(value.get().as_bytes(), |name| {
                    names.insert(serde_json::from_str::<String>(name.get())?);
                    Ok(())
                });
            }
            Ok(())
        })?;
        let Some(id) = id else { return Ok(()) };
        let length = names
            .iter()
            .map(|name| name.len().saturating_add(COST))
            .sum();
        if let Err(error) = self.spend(length) {
            *failed = Some(error);
            return Err(serde_json::Error::custom("too much"));
        }
        self.brings.entry(id).or_default().extend(names);
        Ok(())
    }

    /// How much is unpacked beside what each file becomes once.
    pub(super) fn again(&self) -> u64 {
        let is_odd = self.is_odd || self.links.keys().any(|link| self.is_also_other(link));
        let size = |name| match is_odd {
            true => (name, None),
            false => self.meant(name),
        };
        let mut steps = BTreeMap::new();
        let mut once = BTreeSet::new();
        let mut sum = 0_u64;
        for layers in &self.images {
            let mut below = 0;
            for layer in layers {
                let (file, size) = size(layer);
                let next = steps.len() + 1;
                let step = *steps.entry((below, file)).or_insert(next);
                below = step;
                let is_counted = size.is_some() && once.insert(file);
                if step == next && !is_counted {
                    sum = sum.saturating_add(size.unwrap_or(self.largest));
                }
            }
        }
        if is_odd || !self.files.contains_key(MANIFEST) {
            for link in self.links.keys() {
                sum = sum.saturating_add(size(link).1.unwrap_or(self.largest));
            }
        }
        sum
    }

    /// Whether something else has the name of a link, or stands below it.
    fn is_also_other(&self, link: &str) -> bool {
        let below = format!("{link}/");
        let first = |next: Option<&String>| next.is_some_and(|name| name.starts_with(&below));
        self.files.contains_key(link)
            || first(
                self.files
                    .range(below.clone()..)
                    .next()
                    .map(|(name, _)| name),
            )
            || first(
                self.links
                    .range(below.clone()..)
                    .next()
                    .map(|(name, _)| name),
            )
    }

    /// The file that a name means, and what it becomes if that is known.
    fn meant<'a>(&'a self, mut name: &'a str) -> (&'a str, Option<u64>) {
        for _ in 0..LINKS {
            match self.links.get(name) {
                None => return (name, self.files.get(name).copied()),
                Some(None) => break,
                Some(Some(target)) => name = target,
            }
        }
        (name, None)
    }

    fn name(&mut self, name: &[u8]) -> io::Result<String> {
        self.is_odd |= std::str::from_utf8(name).is_err();
        let name = clean(&String::from_utf8_lossy(name));
        self.spend(name.len())?;
        Ok(name)
    }

    fn spend(&mut self, length: usize) -> io::Result<()> {
        let left = self.budget.checked_sub(length.saturating_add(COST));
        self.budget = left.ok_or_else(|| broken("it names too many files"))?;
        Ok(())
    }
}

/// Whether a file may be one that [`Mentions::read_layers`] understands, by what it begins with.
pub(super) fn may_describe_layers(begin: &[u8], is_all: bool) -> bool {
    match begin.trim_ascii_start().first() {
        Some(first) => b"[{".contains(first),
        None => !is_all,
    }
}

/// A name from the top of the archive.
fn clean(name: &str) -> String {
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Where a symbolic link leads to. Not certain if that goes up again: what it goes up from may be a link.
fn followed(link: &str, target: &str) -> Option<String> {
    let parts = target.split('/').filter(|part| !["", "."].contains(part));
    let mut down = parts.skip_while(|part| *part == "..");
    if down.any(|part| part == "..") {
        return None;
    }
    let (dir, _) = link.rsplit_once('/').unwrap_or_default();
    match target.starts_with('/') {
        true => Some(clean(target)),
        false => Some(clean(&format!("{dir}/{target}"))),
    }
}

/// The id of the image whose configuration is this file.
fn id_of(config: &str) -> Option<String> {
    let name = config.rsplit('/').next().unwrap_or(config);
    let digest = name.strip_suffix(".json").unwrap_or(name);
    let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    (digest.len() == 64 && digest.bytes().all(is_digit)).then(|| format!("sha256:{digest}"))
}

/// A layer: its file, or what has its digest.
fn layer_of(layer: &RawValue) -> Result<Option<String>, serde_json::Error> {
    let layer = layer.get();
    if layer.starts_with('"') {
        return serde_json::from_str(layer).map(|name: String| Some(clean(&name)));
    }
    if !layer.starts_with('{') {
        return Ok(None);
    }
    let mut digest: Option<String> = None;
    fields(layer.as_bytes(), |key, value| {
        if is(key, "digest") {
            if digest.is_some() {
                return Err(serde_json::Error::custom("a digest is given twice"));
            }
            digest = serde_json::from_str(value.get())?;
        }
        Ok(())
    })?;
    Ok(digest.map(|digest| format!("blobs/{}", digest.replacen(':', "/", 1))))
}

/// Whether engines take a key for this one: they care neither for its case nor for old forms of its letters.
fn is(key: &str, name: &str) -> bool {
    key.to_uppercase().to_lowercase() == name
}

type Read = Result<(), serde_json::Error>;

fn elements(text: &[u8], each: impl FnMut(&RawValue) -> Read) -> Read {
    Deserializer::from_slice(text).deserialize_seq(Elements(each))
}

fn fields(text: &[u8], each: impl FnMut(&str, &RawValue) -> Read) -> Read {
    Deserializer::from_slice(text).deserialize_map(Fields(each))
}

struct Elements<F>(F);

impl<'de, F: FnMut(&RawValue) -> Read> Visitor<'de> for Elements<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut all: A) -> Result<(), A::Error> {
        while let Some(value) = all.next_element::<&RawValue>()? {
            (self.0)(value).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

struct Fields<F>(F);

impl<'de, F: FnMut(&str, &RawValue) -> Read> Visitor<'de> for Fields<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut all: A) -> Result<(), A::Error> {
        while let Some((key, value)) = all.next_entry::<String, &RawValue>()? {
            (self.0)(&key, value).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
