//! Notes that a template makes for itself.

use std::collections::BTreeMap;

use super::{Args, Function, Result, function};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::value::{Of, Value};

pub(super) const TABLE: &[Function] = &[function(
    "scratch",
    &[],
    "notes that last through one rendering: `.Set NAME VALUE`, `.SetX` (only if there is none), `.Get NAME`, `.Key NAME` (whether there is one), `.MapSet NAME KEY VALUE`, `.MapSetX`, `.MapValues NAME`",
    |_, _| Ok(Value::Scratch),
)];

/// What is to be done with notes.
pub(crate) fn method(cx: &mut Cx<'_>, name: &[u8], args: Args<'_>) -> Result {
    let wanted = match name {
        b"Key" | b"Get" | b"MapValues" => 1,
        b"Set" | b"SetX" => 2,
        b"MapSet" | b"MapSetX" => 3,
        _ => {
            let name = String::from_utf8_lossy(name);
            return Err(Fault::failed(format!("it has no method {name}")));
        }
    };
    if args.len() != wanted {
        let (name, given) = (String::from_utf8_lossy(name), args.len());
        return Err(Fault::failed(format!(
            "{name} takes {wanted} arguments, not {given}"
        )));
    }
    let note = args.text(0)?;
    match name {
        b"Key" => Ok(Value::Bool(cx.scratch.contains_key(note))),
        b"Get" => Ok(cx.scratch.get(note).cloned().unwrap_or(Value::Nil)),
        b"MapValues" => values(cx, args),
        b"Set" => set(cx, args, true),
        b"SetX" => set(cx, args, false),
        b"MapSet" => map_set(cx, args, true),
        _ => map_set(cx, args, false),
    }
}

fn set(cx: &mut Cx<'_>, args: Args<'_>, over: bool) -> Result {
    let note = args.text(0)?;
    cx.grow(note.len() + 128)?;
    if over || !cx.scratch.contains_key(note) {
        cx.scratch.insert(note.clone(), args.get(1)?.clone());
    }
    Ok(Value::text(""))
}

fn no_map(args: Args<'_>) -> Fault {
    let note = args.str(0).unwrap_or_default();
    Fault::failed(format!("the note {note:?} is no map"))
}

fn map_set(cx: &mut Cx<'_>, args: Args<'_>, over: bool) -> Result {
    let (note, key) = (args.text(0)?, args.text(1)?);
    let map = match cx.scratch.get(note) {
        Some(Value::Map(map)) => map.clone(),
        Some(_) => return Err(no_map(args)),
        None => {
            let made = cx.map(BTreeMap::new(), Of::Any)?;
            cx.scratch.insert(note.clone(), made.clone());
            match made {
                Value::Map(map) => map,
                _ => return Err(no_map(args)),
            }
        }
    };
    if over || map.get(key).is_none() {
        cx.put(&map, key.clone(), args.get(2)?.clone())?;
    }
    Ok(Value::text(""))
}

fn values(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    match cx.scratch.get(args.text(0)?) {
        None => cx.anys(Vec::new()),
        Some(Value::Map(map)) => {
            let values = map.entries().into_iter().map(|(_, value)| value).collect();
            cx.anys(values)
        }
        Some(_) => Err(no_map(args)),
    }
}
