//! Lists and maps.

use std::collections::BTreeMap;

use super::Param::{Any, Int, List, Map};
use super::args::as_text;
use super::{Args, Function, Result, ask, function};
use crate::error::Fault;
use crate::eval::cx::{Cx, too_deep};
use crate::options::VALUE_DEPTH;
use crate::value::{Of, Text, Value};

pub(super) const TABLE: &[Function] = &[
    function(
        "containsAll",
        &[List, Any],
        "whether all of the first list are in the second",
        |cx, args| Ok(Value::Bool(found(cx, args)? == args.items(0)?.len())),
    ),
    function(
        "containsAny",
        &[List, Any],
        "whether one of the first list is in the second",
        |cx, args| Ok(Value::Bool(found(cx, args)? > 0)),
    ),
    function(
        "containsNone",
        &[List, Any],
        "whether none of the first list is in the second",
        |cx, args| Ok(Value::Bool(found(cx, args)? == 0)),
    ),
    function(
        "containsNotAll",
        &[List, Any],
        "whether one of the first list is not in the second",
        |cx, args| Ok(Value::Bool(found(cx, args)? < args.items(0)?.len())),
    ),
    function(
        "loop",
        &[Int],
        "numbers up to one, or from one up to another, for `range`",
        |_, args| match args.len() {
            1 => Ok(Value::Count(0, args.int(0)?)),
            _ => Ok(Value::Count(args.int(0)?, args.int(1)?)),
        },
    )
    .and_up_to(1, Int),
    function(
        "explodeMap",
        &[Map],
        "a map of maps: `a/b` becomes `b` in `a`",
        explode,
    ),
    function(
        "mergeMap",
        &[Map, Map],
        "both maps; what both have is the first one's",
        |cx, args| merge(cx, args.get(1)?, args.get(0)?, &|_| true, 0),
    ),
    function(
        "mergeMapWithOverride",
        &[Map, Map],
        "both maps; what both have is the second one's",
        |cx, args| merge(cx, args.get(0)?, args.get(1)?, &|_| true, 0),
    ),
    function(
        "byTag",
        &[List],
        "a map of services by each of their tags",
        ask::by_tag,
    ),
];

/// How many of the first list are in the second.
fn found(cx: &mut Cx<'_>, args: Args<'_>) -> Result<usize> {
    let mut count = 0;
    for needle in args.items(0)? {
        if contains(cx, args.get(1)?, needle)?.is_true() {
            count += 1;
        }
    }
    Ok(count)
}

/// Whether something is in a list or in a text; in nothing else there is anything.
pub(super) fn contains(cx: &mut Cx<'_>, all: &Value, needle: &Value) -> Result {
    cx.spend(1 + all.weight())?;
    let found = match all {
        Value::List(list) => list.items.iter().any(|item| same(item, needle)),
        Value::Text(text) => match needle {
            Value::Text(needle) => {
                String::from_utf8_lossy(text).contains(String::from_utf8_lossy(needle).as_ref())
            }
            _ => false,
        },
        _ => false,
    };
    Ok(Value::Bool(found))
}

/// Whether two simple values are the same.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(one), Value::Bool(other)) => one == other,
        (Value::Int(one, _), Value::Int(other, _)) => one == other,
        (Value::Uint(one, _), Value::Uint(other, _)) => one == other,
        (Value::Int(int, _), Value::Uint(uint, _)) | (Value::Uint(uint, _), Value::Int(int, _)) => {
            i128::from(*int) == i128::from(*uint)
        }
        (Value::Float(one), Value::Float(other)) => one == other,
        _ => match (as_text(one), as_text(other)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        },
    }
}

/// A tree of what was a flat map.
#[derive(Default)]
struct Tree(BTreeMap<Text, Branch>);

enum Branch {
    Leaf(Value),
    Tree(Tree),
}

fn explode(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut tree = Tree::default();
    for (key, value) in args.map(0)?.entries() {
        cx.grow(key.len() * 8 + 128)?;
        let parts: Vec<&[u8]> = key.split(|byte| *byte == b'/').collect();
        if parts.len() > VALUE_DEPTH {
            return Err(too_deep());
        }
        let Some((last, before)) = parts.split_last() else {
            continue;
        };
        let mut at = &mut tree;
        for part in before {
            let branch =
                (at.0.entry(Text::from(*part))).or_insert_with(|| Branch::Tree(Tree::default()));
            at = match branch {
                Branch::Tree(tree) => tree,
                Branch::Leaf(_) => {
                    let part = String::from_utf8_lossy(part);
                    let message = format!("{part:?} is a value and has others below it");
                    return Err(Fault::failed(message));
                }
            };
        }
        if !last.is_empty() {
            at.0.insert(Text::from(*last), Branch::Leaf(value));
        }
    }
    grown(cx, tree)
}

fn grown(cx: &mut Cx<'_>, tree: Tree) -> Result {
    let mut entries = BTreeMap::new();
    for (key, branch) in tree.0 {
        let value = match branch {
            Branch::Leaf(value) => value,
            Branch::Tree(tree) => grown(cx, tree)?,
        };
        entries.insert(key, value);
    }
    cx.map(entries, Of::Any)
}

/// Both maps; what the second says counts, and maps in them are put together.
///
/// What the second says of a key only counts if `counts` says so.
pub(super) fn merge(
    cx: &mut Cx<'_>,
    one: &Value,
    other: &Value,
    counts: &dyn Fn(&Value) -> bool,
    depth: usize,
) -> Result {
    if depth > VALUE_DEPTH {
        return Err(too_deep());
    }
    let (Value::Map(one), Value::Map(other)) = (one, other) else {
        return Ok(other.clone());
    };
    cx.spend(Value::Map(one.clone()).weight() + Value::Map(other.clone()).weight())?;
    let mut entries: BTreeMap<_, _> = one.entries().into_iter().collect();
    for (key, value) in other.entries() {
        let merged = match entries.get(&key) {
            Some(before) if !counts(&value) => before.clone(),
            Some(before) => merge(cx, before, &value, counts, depth + 1)?,
            None => value,
        };
        entries.insert(key, merged);
    }
    cx.map(entries, Of::Any)
}
