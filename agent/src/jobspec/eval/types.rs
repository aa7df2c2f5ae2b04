//! Type constraints, as in `type = list(string)`.

use std::collections::BTreeMap;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall, ObjectKey};

use super::convert;
use super::value::Val;
use super::{Evaluator, Fault};
use crate::jobspec::bounds::Exhausted;

/// What a variable's value must be.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    Any,
    Text,
    Number,
    Bool,
    List(Box<Type>),
    Set(Box<Type>),
    Map(Box<Type>),
    Tuple(Vec<Type>),
    /// Each entry's type, and whether it may be missing, with the value it then has.
    Object(BTreeMap<String, (Type, Option<Val>)>),
}

const HELP: &str = "Types are string, number, bool, any, list(…), set(…), map(…), tuple([…]) and \
                    object({…}).";

/// Reads a type constraint.
pub(crate) fn parse(on: &Evaluator<'_>, expr: &Expression) -> Result<Type, Fault> {
    let unknown = |name: &str| {
        on.fault(&expr.span(), format!("unknown type {name}"))
            .help(HELP)
    };
    match expr {
        Expression::Variable(name) => match name.as_str() {
            "any" => Ok(Type::Any),
            "string" => Ok(Type::Text),
            "number" => Ok(Type::Number),
            "bool" => Ok(Type::Bool),
            "list" => Ok(Type::List(Box::new(Type::Any))),
            "set" => Ok(Type::Set(Box::new(Type::Any))),
            "map" => Ok(Type::Map(Box::new(Type::Any))),
            name => Err(unknown(name)),
        },
        // Types in quotes are an older way to write them.
        Expression::String(name) => match name.as_str() {
            "string" => Ok(Type::Text),
            "list" => Ok(Type::List(Box::new(Type::Any))),
            "map" => Ok(Type::Map(Box::new(Type::Any))),
            name => Err(unknown(name)),
        },
        Expression::Parenthesis(inner) => parse(on, inner.inner()),
        Expression::FuncCall(call) => parse_call(on, expr, call),
        _ => Err(on.fault(&expr.span(), "a type is needed here").help(HELP)),
    }
}

fn parse_call(on: &Evaluator<'_>, expr: &Expression, call: &FuncCall) -> Result<Type, Fault> {
    let name = call.name.name.as_str();
    let bad = |what: &str| {
        on.fault(&expr.span(), format!("{name} needs {what}"))
            .help(HELP)
    };
    let (Some(arg), 1) = (call.args.get(0), call.args.len()) else {
        return Err(bad("one argument"));
    };
    match (name, arg) {
        ("list", arg) => Ok(Type::List(Box::new(parse(on, arg)?))),
        ("set", arg) => Ok(Type::Set(Box::new(parse(on, arg)?))),
        ("map", arg) => Ok(Type::Map(Box::new(parse(on, arg)?))),
        ("tuple", Expression::Array(items)) => {
            let items: Result<_, _> = items.iter().map(|item| parse(on, item)).collect();
            Ok(Type::Tuple(items?))
        }
        ("tuple", _) => Err(bad("a list of types")),
        ("object", Expression::Object(object)) => {
            let mut entries = BTreeMap::new();
            for (key, value) in object {
                let name = match key {
                    ObjectKey::Ident(name) => name.as_str().to_owned(),
                    ObjectKey::Expression(Expression::String(name)) => name.value().clone(),
                    ObjectKey::Expression(Expression::Variable(name)) => name.as_str().to_owned(),
                    ObjectKey::Expression(_) => return Err(bad("plain names")),
                };
                entries.insert(name, parse_entry(on, value.expr())?);
            }
            Ok(Type::Object(entries))
        }
        ("object", _) => Err(bad("names with types in braces")),
        (name, _) => Err(on
            .fault(&expr.span(), format!("unknown type {name}(…)"))
            .help(HELP)),
    }
}

/// The type of an object's entry, which may be `optional(type)` or `optional(type, default)`.
fn parse_entry(on: &Evaluator<'_>, expr: &Expression) -> Result<(Type, Option<Val>), Fault> {
    let Expression::FuncCall(call) = expr else {
        return Ok((parse(on, expr)?, None));
    };
    if call.name.name.as_str() != "optional" {
        return Ok((parse(on, expr)?, None));
    }
    let (Some(inner), 1 | 2) = (call.args.get(0), call.args.len()) else {
        let fault = on.fault(&expr.span(), "optional needs a type and perhaps a default");
        return Err(fault);
    };
    let inner = parse(on, inner)?;
    let default = match call.args.get(1) {
        Some(default) => on.eval(default, &super::scope::Scope::default())?,
        None => Val::Null,
    };
    Ok((inner, Some(default)))
}

impl Type {
    /// Whether a value on a command line is taken as it is written.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Type::Text | Type::Number | Type::Bool | Type::Any)
    }

    /// The value as this type, or why it is none. Null is of every type.
    pub(crate) fn convert(&self, val: &Val) -> Result<Val, String> {
        let large = |_: Exhausted| Exhausted::MESSAGE.to_owned();
        match (self, val) {
            (Type::Any, val) | (_, val @ Val::Null) => Ok(val.clone()),
            (Type::Text, val) => convert::text_of(val),
            (Type::Number, val) => convert::number_of(val).map(Val::Number),
            (Type::Bool, val) => convert::bool_of(val).map(Val::Bool),
            (Type::List(inner), Val::List(list)) => {
                let items: Result<_, _> =
                    list.items.iter().map(|item| inner.convert(item)).collect();
                Val::list(items?).map_err(large)
            }
            (Type::Set(inner), Val::List(list)) => {
                let items: Result<_, _> =
                    list.items.iter().map(|item| inner.convert(item)).collect();
                Val::list(sorted_set(items?)).map_err(large)
            }
            (Type::Map(inner), Val::Map(map)) => {
                let mut entries = BTreeMap::new();
                for (key, val) in map.entries.iter() {
                    let val = inner
                        .convert(val)
                        .map_err(|why| format!("\"{key}\": {why}"))?;
                    entries.insert(key.clone(), val);
                }
                Val::map(entries).map_err(large)
            }
            (Type::Tuple(types), Val::List(list)) => {
                if types.len() != list.items.len() {
                    return Err(format!("a list of {} items is needed", types.len()));
                }
                let pairs = types.iter().zip(list.items.iter());
                let items: Result<_, _> = pairs.map(|(ty, item)| ty.convert(item)).collect();
                Val::list(items?).map_err(large)
            }
            (Type::Object(types), Val::Map(map)) => {
                let mut entries = BTreeMap::new();
                for (key, (inner, default)) in types {
                    let val = match (map.entries.get(key), default) {
                        (Some(Val::Null) | None, Some(default)) => default.clone(),
                        (Some(val), _) => val.clone(),
                        (None, None) => return Err(format!("\"{key}\" is missing")),
                    };
                    let val = inner
                        .convert(&val)
                        .map_err(|why| format!("\"{key}\": {why}"))?;
                    entries.insert(key.clone(), val);
                }
                Val::map(entries).map_err(large)
            }
            (wanted, val) => Err(format!("{} is needed, not {}", wanted.name(), val.kind())),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Type::Any => "a value",
            Type::Text => "a string",
            Type::Number => "a number",
            Type::Bool => "true or false",
            Type::List(_) | Type::Tuple(_) => "a list",
            Type::Set(_) => "a set",
            Type::Map(_) | Type::Object(_) => "a map",
        }
    }
}

/// The items in their order, each once.
pub(crate) fn sorted_set(mut items: Vec<Val>) -> Vec<Val> {
    items.sort_by(Val::compare);
    items.dedup();
    items
}
