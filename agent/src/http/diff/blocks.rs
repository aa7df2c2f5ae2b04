//! What differs between two blocks, by the JSON of the API: fields are compared as text, blocks of a list by
//! what names them or, where nothing does, as wholes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::http::dto::{DiffType, FieldDiff, ObjectDiff};

/// Keys and values of JSON.
pub(super) type Fields = Map<String, Value>;

/// Maps whose keys are the author's: in jobs, groups and tasks a field each, `Env[KEY]`.
const MAPS: [&str; 2] = ["Env", "Meta"];

/// What differs between two JSON objects: their fields, and the blocks in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Difference {
    pub(super) fields: Vec<FieldDiff>,
    pub(super) objects: Vec<ObjectDiff>,
}

impl Difference {
    /// Compares all but `skipped`. What is the same in both is told only for `context`.
    pub(super) fn of(old: &Fields, new: &Fields, skipped: &[&str], context: bool) -> Difference {
        let mut difference = Difference::default();
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys
            .into_iter()
            .filter(|key| !skipped.contains(&key.as_str()))
        {
            let (before, after) = (present(old.get(key)), present(new.get(key)));
            difference.compare(key, before, after, context);
        }
        difference.fields.sort_by(|a, b| a.name.cmp(&b.name));
        difference
    }

    fn compare(&mut self, key: &str, old: Option<&Value>, new: Option<&Value>, context: bool) {
        match (old, new) {
            (None, None) => {}
            (Some(Value::Object(_)), None | Some(Value::Object(_)))
            | (None, Some(Value::Object(_))) => {
                let (old, new) = (object(old), object(new));
                if MAPS.contains(&key) {
                    self.keyed_fields(key, old.unwrap_or(&Map::new()), new.unwrap_or(&Map::new()));
                } else if key == "Volumes" {
                    let values = |all: Option<&Fields>| {
                        all.map(|all| all.values().cloned().collect::<Vec<_>>())
                            .unwrap_or_default()
                    };
                    self.blocks(key, &values(old), &values(new));
                } else if key == "Config" {
                    self.objects.extend(flat_block(key, old, new));
                } else {
                    self.objects.extend(block(&block_name(key), old, new));
                }
            }
            (Some(Value::Array(_)), None | Some(Value::Array(_)))
            | (None, Some(Value::Array(_))) => {
                let (old, new) = (array(old), array(new));
                let all = || old.iter().chain(new);
                if all().any(Value::is_object) {
                    self.blocks(key, old, new);
                } else {
                    self.objects.extend(set(key, old, new));
                }
            }
            (old, new) => self
                .fields
                .extend(field(key, &text(old), &text(new), context)),
        }
    }

    fn keyed_fields(&mut self, key: &str, old: &Fields, new: &Fields) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        let fields = names.into_iter().filter_map(|name| {
            let (before, after) = (text(old.get(name)), text(new.get(name)));
            let label = format!("{key}[{name}]");
            match (old.contains_key(name), new.contains_key(name)) {
                (true, true) => field(&label, &before, &after, false),
                (true, false) => Some(field_of(DiffType::Deleted, &label, &before, "")),
                (false, _) => Some(field_of(DiffType::Added, &label, "", &after)),
            }
        });
        self.fields.extend(fields);
    }

    fn blocks(&mut self, key: &str, old: &[Value], new: &[Value]) {
        let name = block_name(key);
        for (before, after) in pairs(old, new) {
            self.objects.extend(block(&name, before, after));
        }
    }
}

/// What a block that was or is there became, if anything of it changed.
fn block(name: &str, old: Option<&Fields>, new: Option<&Fields>) -> Option<ObjectDiff> {
    if old == new {
        return None;
    }
    let none = Map::new();
    let inside = Difference::of(old.unwrap_or(&none), new.unwrap_or(&none), &OWN, true);
    Some(object_of(name, old.is_some(), new.is_some(), inside))
}

/// What a node writes into blocks itself.
const OWN: [&str; 2] = ["CreateIndex", "ModifyIndex"];

/// The same of a driver's configuration, whose inner values have a name each: `args[0]`.
fn flat_block(name: &str, old: Option<&Fields>, new: Option<&Fields>) -> Option<ObjectDiff> {
    if old == new {
        return None;
    }
    let flat = |fields: Option<&Fields>| {
        let mut flat = BTreeMap::new();
        for (key, value) in fields.into_iter().flatten() {
            flatten(key, value, &mut flat);
        }
        flat
    };
    let (before, after) = (flat(old), flat(new));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value =
        |of: &BTreeMap<String, String>, name: &str| of.get(name).cloned().unwrap_or_default();
    let fields = names
        .into_iter()
        .filter_map(|name| field(name, &value(&before, name), &value(&after, name), true));
    let inside = Difference {
        fields: fields.collect(),
        objects: Vec::new(),
    };
    Some(object_of(name, old.is_some(), new.is_some(), inside))
}

fn flatten(name: &str, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                flatten(&format!("{name}[{at}]"), item, flat);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                flatten(&format!("{name}[{key}]"), field, flat);
            }
        }
        value => {
            flat.insert(name.to_owned(), text(Some(value)));
        }
    }
}

/// What was added to and taken from a list of values whose order means nothing.
fn set(name: &str, old: &[Value], new: &[Value]) -> Option<ObjectDiff> {
    let texts = |list: &[Value]| {
        list.iter()
            .map(|one| text(Some(one)))
            .collect::<BTreeSet<_>>()
    };
    let (before, after) = (texts(old), texts(new));
    if before == after {
        return None;
    }
    let added = after.difference(&before);
    let added = added.map(|one| field_of(DiffType::Added, name, "", one));
    let deleted = before.difference(&after);
    let deleted = deleted.map(|one| field_of(DiffType::Deleted, name, one, ""));
    let inside = Difference {
        fields: added.chain(deleted).collect(),
        objects: Vec::new(),
    };
    Some(object_of(
        name,
        !before.is_empty(),
        !after.is_empty(),
        inside,
    ))
}

fn object_of(name: &str, was: bool, is: bool, inside: Difference) -> ObjectDiff {
    let kind = kind_of(was, is);
    ObjectDiff {
        kind,
        name: name.to_owned(),
        fields: inside.fields,
        objects: inside.objects,
    }
}

/// What became of something that is not the same as before.
pub(super) fn kind_of(was: bool, is: bool) -> DiffType {
    match (was, is) {
        (true, true) => DiffType::Edited,
        (true, false) => DiffType::Deleted,
        (false, true) => DiffType::Added,
        (false, false) => DiffType::None,
    }
}

/// What became of a value, as text; empty is the same as not there.
fn field(name: &str, old: &str, new: &str, context: bool) -> Option<FieldDiff> {
    if old == new {
        return context.then(|| field_of(DiffType::None, name, old, new));
    }
    Some(field_of(
        kind_of(!old.is_empty(), !new.is_empty()),
        name,
        old,
        new,
    ))
}

fn field_of(kind: DiffType, name: &str, old: &str, new: &str) -> FieldDiff {
    FieldDiff {
        kind,
        name: name.to_owned(),
        old: old.to_owned(),
        new: new.to_owned(),
        annotations: Vec::new(),
    }
}

/// Which blocks of a list are versions of the same: by their name, or because they are equal.
fn pairs<'a>(old: &'a [Value], new: &'a [Value]) -> Vec<(Option<&'a Fields>, Option<&'a Fields>)> {
    let mut rest: Vec<&Fields> = new.iter().filter_map(Value::as_object).collect();
    let mut pairs = Vec::new();
    let mut gone = Vec::new();
    for before in old.iter().filter_map(Value::as_object) {
        let same = rest.iter().position(|after| *after == before);
        let named = || {
            rest.iter()
                .position(|after| names(before).is_some() && names(before) == names(after))
        };
        // A list of one block is that block, whatever changed.
        let only = || (old.len() == 1 && new.len() == 1 && names(before).is_none()).then_some(0);
        match same.or_else(named).or_else(only) {
            Some(at) => pairs.push((Some(before), Some(rest.remove(at)))),
            None => gone.push((Some(before), None)),
        }
    }
    pairs.extend(gone);
    pairs.extend(rest.into_iter().map(|after| (None, Some(after))));
    pairs
}

/// By what a block is known.
fn names(fields: &Fields) -> Option<(&str, &str)> {
    ["Name", "Label", "DestPath", "RelativeDest", "Destination"]
        .into_iter()
        .find_map(|key| Some((key, fields.get(key)?.as_str()?)))
}

/// How a block is called: the name of its list is that of many.
fn block_name(key: &str) -> String {
    match key {
        "DynamicPorts" => "Dynamic Port".to_owned(),
        "ReservedPorts" => "Static Port".to_owned(),
        "ScalingPolicies" => "Scaling".to_owned(),
        "Resources" | "DNS" | "Args" => key.to_owned(),
        key => match (key.strip_suffix("ies"), key.strip_suffix('s')) {
            (Some(stem), _) => format!("{stem}y"),
            (None, Some(stem)) => stem.to_owned(),
            (None, None) => key.to_owned(),
        },
    }
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    })
}

fn object(value: Option<&Value>) -> Option<&Fields> {
    value.and_then(Value::as_object)
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
