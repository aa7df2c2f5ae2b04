//! Functions of lists and maps.

use std::collections::BTreeMap;

use super::super::bounds::MAX_RANGE;
use super::super::eval::convert;
use super::super::eval::value::{Number, Val};
use super::args::{arg, int, list, map, number, text, texts};
use super::{Context, Function, MANY, Outcome, Refused};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::moving("chunklist", (2, 2), chunklist),
    Function::moving("coalesce", (1, MANY), |_, args| {
        first(args, |val| {
            !matches!(val, Val::Null) && !matches!(val, Val::Text(text) if text.text.is_empty())
        })
    }),
    Function::moving("coalescelist", (1, MANY), |_, args| {
        first(
            args,
            |val| matches!(val, Val::List(list) if !list.items.is_empty()),
        )
    }),
    Function::moving("compact", (1, 1), |_, args| {
        let full = |val: &&Val| {
            !matches!(val, Val::Null) && !matches!(val, Val::Text(text) if text.text.is_empty())
        };
        Ok(Val::list(
            list(args, 0)?.iter().filter(full).cloned().collect(),
        )?)
    }),
    Function::moving("concat", (1, MANY), |_, args| {
        let mut items = Vec::new();
        for at in 0..args.len() {
            items.extend_from_slice(list(args, at)?);
        }
        Ok(Val::list(items)?)
    }),
    Function::new("contains", (2, 2), |_, args| {
        Ok(Val::Bool(list(args, 0)?.contains(arg(args, 1))))
    }),
    Function::new("distinct", (1, 1), distinct),
    Function::moving("element", (2, 2), element),
    Function::moving("flatten", (1, 1), |_, args| {
        let mut items = Vec::new();
        flatten(list(args, 0)?, &mut items);
        Ok(Val::list(items)?)
    }),
    Function::new("index", (2, 2), |_, args| {
        let at = list(args, 0)?.iter().position(|item| item == arg(args, 1));
        Ok(Val::int(at.ok_or("the list has no such item")? as i64))
    }),
    Function::moving("keys", (1, 1), |_, args| {
        let keys = map(args, 0)?.keys().map(|key| Val::text(key.as_str()));
        Ok(Val::list(keys.collect())?)
    }),
    Function::moving("length", (1, 1), |_, args| match arg(args, 0) {
        Val::List(list) => Ok(Val::int(list.items.len() as i64)),
        Val::Map(map) => Ok(Val::int(map.entries.len() as i64)),
        Val::Text(_) => Err("a list or a map is needed, not a string; use strlen".into()),
        other => Err(format!("a list or a map is needed, not {}", other.kind()).into()),
    }),
    Function::moving("lookup", (2, 3), lookup),
    Function::moving("merge", (1, MANY), |_, args| {
        let mut entries = BTreeMap::new();
        for at in 0..args.len() {
            if !matches!(arg(args, at), Val::Null) {
                entries.extend(map(args, at)?.clone());
            }
        }
        Ok(Val::map(entries)?)
    }),
    Function::new("range", (1, 3), range),
    Function::moving("reverse", (1, 1), |_, args| {
        Ok(Val::list(list(args, 0)?.iter().rev().cloned().collect())?)
    }),
    Function::moving("slice", (3, 3), slice),
    Function::new("sort", (1, 1), |_, args| {
        let mut items = texts(list(args, 0)?)?;
        items.sort();
        Ok(Val::list(items.into_iter().map(Val::text).collect())?)
    }),
    Function::moving("values", (1, 1), |_, args| {
        Ok(Val::list(map(args, 0)?.values().cloned().collect())?)
    }),
    Function::moving("zipmap", (2, 2), zipmap),
];

fn first(args: &[Val], good: impl Fn(&Val) -> bool) -> Outcome {
    let found = args.iter().find(|val| good(val)).cloned();
    found.ok_or_else(|| "no argument has a value".into())
}

fn chunklist(_: &Context<'_>, args: &[Val]) -> Outcome {
    let size = usize::try_from(int(args, 1)?).map_err(|_| "the size is negative")?;
    let items = list(args, 0)?;
    let size = if size == 0 { items.len().max(1) } else { size };
    let chunks: Result<Vec<Val>, _> = items
        .chunks(size)
        .map(|part| Val::list(part.to_vec()))
        .collect();
    Ok(Val::list(chunks?)?)
}

fn distinct(_: &Context<'_>, args: &[Val]) -> Outcome {
    let items = list(args, 0)?;
    let mut order: Vec<usize> = (0..items.len()).collect();
    let get = |at: &usize| items.get(*at).unwrap_or(&Val::Null);
    order.sort_by(|a, b| get(a).compare(get(b)).then(a.cmp(b)));
    order.dedup_by(|b, a| get(a) == get(b));
    order.sort_unstable();
    Ok(Val::list(order.iter().map(|at| get(at).clone()).collect())?)
}

fn element(_: &Context<'_>, args: &[Val]) -> Outcome {
    let items = list(args, 0)?;
    if items.is_empty() {
        return Err("the list is empty".into());
    }
    // Beyond the end it begins again.
    let at = int(args, 1)?.rem_euclid(items.len() as i64);
    Ok(items.get(at as usize).cloned().unwrap_or(Val::Null))
}

fn flatten(items: &[Val], to: &mut Vec<Val>) {
    for item in items {
        match item {
            Val::List(inner) => flatten(&inner.items, to),
            other => to.push(other.clone()),
        }
    }
}

fn lookup(_: &Context<'_>, args: &[Val]) -> Outcome {
    if arg(args, 1).has_runtime() {
        return Err("the key is known at run time only".into());
    }
    let key = text(args, 1)?;
    let found = map(args, 0)?.get(&key).or(args.get(2)).cloned();
    found.ok_or_else(|| format!("the map has no \"{key}\" and there is no default").into())
}

fn range(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (start, end) = match args.len() {
        1 => (Number::Int(0), number(args, 0)?),
        _ => (number(args, 0)?, number(args, 1)?),
    };
    let down = end.compare(start).is_lt();
    let step = match args.len() {
        3 => number(args, 2)?,
        _ if down => Number::Int(-1),
        _ => Number::Int(1),
    };
    let against = |step: Number| (step.as_f64() < 0.0) != down;
    if step.as_f64() == 0.0 || (start.compare(end).is_ne() && against(step)) {
        return Err("the step does not lead from the start to the end".into());
    }
    let count = ((end.as_f64() - start.as_f64()) / step.as_f64()).ceil();
    if count > MAX_RANGE as f64 {
        return Err(format!("a range may have {MAX_RANGE} items").into());
    }
    let item = |at: i64| match (start, step) {
        (Number::Int(start), Number::Int(step)) => {
            Val::int(start.saturating_add(step.saturating_mul(at)))
        }
        _ => Val::Number(Number::from_f64(start.as_f64() + step.as_f64() * at as f64)),
    };
    Ok(Val::list((0..count.max(0.0) as i64).map(item).collect())?)
}

fn slice(_: &Context<'_>, args: &[Val]) -> Outcome {
    let items = list(args, 0)?;
    let (start, end) = (
        usize::try_from(int(args, 1)?),
        usize::try_from(int(args, 2)?),
    );
    let part = match (start, end) {
        (Ok(start), Ok(end)) => items.get(start..end),
        _ => None,
    };
    let outside = || {
        Refused::from(format!(
            "the bounds are not within a list of {}",
            items.len()
        ))
    };
    Ok(Val::list(part.ok_or_else(outside)?.to_vec())?)
}

fn zipmap(_: &Context<'_>, args: &[Val]) -> Outcome {
    let (keys, values) = (list(args, 0)?, list(args, 1)?);
    if keys.len() != values.len() {
        return Err("there must be as many keys as values".into());
    }
    let mut entries = BTreeMap::new();
    for (key, value) in keys.iter().zip(values) {
        if key.has_runtime() {
            return Err("a key is known at run time only".into());
        }
        let (key, _) = convert::to_text(key)?;
        entries.insert(key, value.clone());
    }
    Ok(Val::map(entries)?)
}
