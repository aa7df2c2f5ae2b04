//! Arguments as the types that functions need.

use std::collections::BTreeMap;

use super::super::eval::convert;
use super::super::eval::value::{Number, Val};

/// The argument of a number from 0; functions are called with as many as they need.
pub(super) fn arg(args: &[Val], at: usize) -> &Val {
    args.get(at).unwrap_or(&Val::Null)
}

pub(super) fn text(args: &[Val], at: usize) -> Result<String, String> {
    convert::to_text(arg(args, at)).map(|(text, _)| text)
}

pub(super) fn number(args: &[Val], at: usize) -> Result<Number, String> {
    convert::number_of(arg(args, at))
}

pub(super) fn int(args: &[Val], at: usize) -> Result<i64, String> {
    convert::int_of(arg(args, at))
}

pub(super) fn list(args: &[Val], at: usize) -> Result<&[Val], String> {
    match arg(args, at) {
        Val::List(list) => Ok(&list.items),
        other => Err(format!("a list is needed, not {}", other.kind())),
    }
}

pub(super) fn map(args: &[Val], at: usize) -> Result<&BTreeMap<String, Val>, String> {
    match arg(args, at) {
        Val::Map(map) => Ok(&map.entries),
        other => Err(format!("a map is needed, not {}", other.kind())),
    }
}

/// The texts of a list.
pub(super) fn texts(items: &[Val]) -> Result<Vec<String>, String> {
    let texts = items.iter().map(convert::to_text);
    texts.map(|text| text.map(|(text, _)| text)).collect()
}
