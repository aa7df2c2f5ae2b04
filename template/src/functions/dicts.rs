//! Sprig's functions of maps. `set` and `unset` change the map for all who have it.

use std::collections::BTreeMap;

use super::Param::{Any, Map, Text};
use super::{Args, Function, Result, function, lists, types};
use crate::error::Fault;
use crate::eval::cx::{Cx, too_deep};
use crate::options::VALUE_DEPTH;
use crate::value::{Of, Value};

pub(super) const TABLE: &[Function] = &[
    function("sprig_dict", &[], "a map of keys and values by turns", dict)
        .cheap()
        .and_any(Any),
    function(
        "sprig_get",
        &[Map, Text],
        "a key's value, or an empty text",
        |_, args| {
            Ok(args
                .map(0)?
                .get(args.text(1)?)
                .unwrap_or_else(|| Value::text("")))
        },
    )
    .cheap(),
    function(
        "sprig_set",
        &[Map, Text, Any],
        "the map, in which the key has this value now",
        |cx, args| {
            cx.put(args.map(0)?, args.text(1)?.clone(), args.get(2)?.clone())?;
            Ok(args.get(0)?.clone())
        },
    )
    .cheap(),
    function(
        "sprig_unset",
        &[Map, Text],
        "the map, which does not have the key any more",
        |_, args| {
            args.map(0)?.remove(args.text(1)?);
            Ok(args.get(0)?.clone())
        },
    )
    .cheap(),
    function(
        "sprig_hasKey",
        &[Map, Text],
        "whether the map has the key",
        |_, args| Ok(Value::Bool(args.map(0)?.get(args.text(1)?).is_some())),
    )
    .cheap(),
    function(
        "sprig_keys",
        &[],
        "the keys of all maps, in their order",
        |cx, args| {
            let mut found = Vec::new();
            for at in 0..args.len() {
                found.extend(args.map(at)?.entries().into_iter().map(|(key, _)| key));
            }
            cx.texts(found)
        },
    )
    .and_any(Map),
    function(
        "sprig_values",
        &[Map],
        "the values of a map, in the order of their keys",
        |cx, args| {
            cx.anys(
                args.map(0)?
                    .entries()
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect(),
            )
        },
    ),
    function(
        "sprig_pick",
        &[Map],
        "the map with these keys only",
        |cx, args| chosen(cx, args, true),
    )
    .and_any(Text),
    function(
        "sprig_omit",
        &[Map],
        "the map without these keys",
        |cx, args| chosen(cx, args, false),
    )
    .and_any(Text),
    function(
        "sprig_pluck",
        &[Text],
        "the values of a key in all maps that have it",
        pluck,
    )
    .and_any(Map),
    function(
        "sprig_merge",
        &[Map],
        "the first map, into which the others are put where it has nothing",
        |cx, args| merge(cx, args, false),
    )
    .and_any(Map),
    function(
        "sprig_mergeOverwrite",
        &[Map],
        "the first map, into which the others are put over what it has",
        |cx, args| merge(cx, args, true),
    )
    .and_any(Map),
    function(
        "sprig_deepCopy",
        &[Any],
        "a value that shares nothing with the first",
        |cx, args| copy(cx, args.get(0)?, 0),
    ),
    function(
        "sprig_dig",
        &[Text, Any],
        "a value deep inside of a map: its keys, what to say if it is not there, and the map",
        dig,
    )
    .cheap()
    .and_any(Any),
];

fn dict(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut entries = BTreeMap::new();
    for pair in args.0.chunks(2) {
        let key = types::text(cx, pair.first().unwrap_or(&Value::Nil))?;
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        entries.insert(key.into(), value);
    }
    cx.map(entries, Of::Any)
}

fn chosen(cx: &mut Cx<'_>, args: Args<'_>, keep: bool) -> Result {
    let mut wanted = std::collections::BTreeSet::new();
    for at in 1..args.len() {
        wanted.insert(args.text(at)?);
    }
    let mut entries: BTreeMap<_, _> = args.map(0)?.entries().into_iter().collect();
    entries.retain(|key, _| wanted.contains(key) == keep);
    cx.map(entries, Of::Any)
}

fn pluck(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut found = Vec::new();
    for at in 1..args.len() {
        found.extend(args.map(at)?.get(args.text(0)?));
    }
    cx.anys(found)
}

fn merge(cx: &mut Cx<'_>, args: Args<'_>, over: bool) -> Result {
    let first = args.get(0)?;
    for other in args.from(1) {
        let merged = match over {
            true => lists::merge(cx, first, other, &|_| true, 0)?,
            // What is empty is as if it were not there.
            false => lists::merge(cx, other, first, &Value::is_true, 0)?,
        };
        if let Value::Map(merged) = merged {
            for (key, value) in merged.entries() {
                cx.put(args.map(0)?, key, value)?;
            }
        }
    }
    Ok(first.clone())
}

fn copy(cx: &mut Cx<'_>, value: &Value, depth: usize) -> Result {
    if depth > VALUE_DEPTH {
        return Err(too_deep());
    }
    cx.spend(1)?;
    match value {
        Value::List(list) => {
            let items: Result<Vec<_>> = list
                .items
                .iter()
                .map(|item| copy(cx, item, depth + 1))
                .collect();
            cx.list(items?, list.of)
        }
        Value::Map(map) => {
            let mut entries = BTreeMap::new();
            for (key, value) in map.entries() {
                entries.insert(key, copy(cx, &value, depth + 1)?);
            }
            cx.map(entries, map.of())
        }
        other => Ok(other.clone()),
    }
}

fn dig(_: &mut Cx<'_>, args: Args<'_>) -> Result {
    let [keys @ .., default, map] = args.0 else {
        return Err(Fault::failed("it takes keys, a value and a map"));
    };
    let mut at = map.clone();
    for key in 0..keys.len() {
        let Value::Map(map) = &at else {
            return Err(Fault::failed("what is on the way is no map"));
        };
        match map.get(args.text(key)?) {
            Some(next) => at = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(at)
}
