//! Sprig's functions of lists. None changes a list that is there.

use super::Param::{Any, Int, List};
use super::{Args, Function, Result, function, lists, types};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::{Of, Value};

pub(super) const TABLE: &[Function] = &[
    function("sprig_list", &[], "a list of values", |cx, args| {
        cx.anys(args.0.to_vec())
    })
    .cheap()
    .and_any(Any),
    function("sprig_tuple", &[], "a list of values", |cx, args| {
        cx.anys(args.0.to_vec())
    })
    .cheap()
    .and_any(Any),
    function(
        "sprig_first",
        &[List],
        "the first value, or nil",
        |_, args| Ok(args.items(0)?.first().cloned().unwrap_or(Value::Nil)),
    )
    .cheap(),
    function(
        "sprig_last",
        &[List],
        "the last value, or nil",
        |_, args| Ok(args.items(0)?.last().cloned().unwrap_or(Value::Nil)),
    )
    .cheap(),
    function("sprig_rest", &[List], "all but the first", |cx, args| {
        cx.anys(args.items(0)?.get(1..).unwrap_or_default().to_vec())
    }),
    function("sprig_initial", &[List], "all but the last", |cx, args| {
        let items = args.items(0)?;
        let most = items.len().saturating_sub(1);
        cx.anys(items.get(..most).unwrap_or_default().to_vec())
    }),
    function(
        "sprig_append",
        &[List, Any],
        "the list with one value more",
        |cx, args| {
            let more = [args.get(1)?.clone()];
            cx.anys(args.items(0)?.iter().cloned().chain(more).collect())
        },
    ),
    function(
        "sprig_prepend",
        &[List, Any],
        "the list with one value before",
        |cx, args| {
            let first = [args.get(1)?.clone()];
            cx.anys(
                first
                    .into_iter()
                    .chain(args.items(0)?.iter().cloned())
                    .collect(),
            )
        },
    ),
    function("sprig_concat", &[], "all lists as one", concat).and_any(List),
    function(
        "sprig_reverse",
        &[List],
        "the last one first",
        |cx, args| cx.anys(args.items(0)?.iter().rev().cloned().collect()),
    ),
    function("sprig_uniq", &[List], "each value once", |cx, args| {
        let mut kept: Vec<Value> = Vec::new();
        for item in args.items(0)? {
            cx.spend(1 + u64::try_from(kept.len()).unwrap_or(u64::MAX))?;
            if !kept.iter().any(|known| lists::same(known, item)) {
                kept.push(item.clone());
            }
        }
        cx.anys(kept)
    }),
    function(
        "sprig_without",
        &[List],
        "the list without some values",
        |cx, args| {
            let mut kept = Vec::new();
            for item in args.items(0)? {
                cx.spend(u64::try_from(args.len()).unwrap_or(u64::MAX))?;
                if !args.from(1).iter().any(|gone| lists::same(gone, item)) {
                    kept.push(item.clone());
                }
            }
            cx.anys(kept)
        },
    )
    .and_any(Any),
    function(
        "sprig_has",
        &[Any, List],
        "whether a value is in a list",
        |cx, args| {
            cx.spend(args.get(1)?.weight())?;
            let here = args
                .items(1)?
                .iter()
                .any(|item| lists::same(item, args.0.first().unwrap_or(item)));
            Ok(Value::Bool(here))
        },
    ),
    function(
        "sprig_compact",
        &[List],
        "the list without what is empty",
        |cx, args| {
            cx.anys(
                args.items(0)?
                    .iter()
                    .filter(|item| item.is_true())
                    .cloned()
                    .collect(),
            )
        },
    ),
    function(
        "sprig_sortAlpha",
        &[Any],
        "the values as texts, in their order",
        |cx, args| {
            let mut texts = types::texts(cx, args.get(0)?)?;
            cx.spend(20 * u64::try_from(texts.len()).unwrap_or(u64::MAX))?;
            texts.sort();
            cx.texts(texts)
        },
    ),
    function(
        "sprig_slice",
        &[List],
        "the values from one index up to another",
        slice,
    )
    .and_up_to(2, Int),
    function(
        "sprig_until",
        &[Int],
        "numbers from zero up to one",
        |cx, args| {
            let count = args.int(0)?;
            numbers(cx, 0, count, if count < 0 { -1 } else { 1 })
        },
    ),
    function(
        "sprig_untilStep",
        &[Int, Int, Int],
        "numbers from one up to another, by steps",
        |cx, args| numbers(cx, args.int(0)?, args.int(1)?, args.int(2)?),
    ),
];

fn concat(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut all = Vec::new();
    for at in 0..args.len() {
        let items = args.items(at)?;
        cx.fits((all.len() + items.len()).checked_mul(64))?;
        all.extend_from_slice(items);
    }
    cx.anys(all)
}

fn slice(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let items = args.items(0)?;
    let from = if args.len() > 1 { args.count(1)? } else { 0 };
    let to = if args.len() > 2 {
        args.count(2)?
    } else {
        items.len()
    };
    let part = items.get(from..to);
    let outside = || Fault::failed("the part is not inside of the list");
    cx.anys(part.ok_or_else(outside)?.to_vec())
}

fn numbers(cx: &mut Cx<'_>, from: i64, to: i64, step: i64) -> Result {
    let mut found = Vec::new();
    let mut at = from;
    while (step > 0 && at < to) || (step < 0 && at > to) {
        cx.spend(1)?;
        cx.grow(64)?;
        found.push(Value::int(at));
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    cx.list(found, Of::Ints)
}
