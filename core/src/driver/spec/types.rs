//! Types of values, as plugins write them: `list(map(string))`.

use core::fmt;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cursor::{Cursor, MAX_DEPTH, Malformed};

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// Text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Anything.
    Any,
    /// Values of one type, in order.
    List(Box<Type>),
    /// Values of one type, each once.
    Set(Box<Type>),
    /// Values of one type by name.
    Map(Box<Type>),
    /// Values by names that are known.
    Object(BTreeMap<String, Type>),
    /// So many values, each of its type.
    Tuple(Vec<Type>),
}

impl Type {
    /// Reads a type; nothing and `null` are anything.
    ///
    /// # Errors
    /// It has no sense, or is nested too deep.
    pub fn parse(text: &str) -> Result<Type, Malformed> {
        if matches!(text.trim(), "" | "null") {
            return Ok(Type::Any);
        }
        let mut cursor = Cursor::new(text);
        let kind = read(&mut cursor, MAX_DEPTH)?;
        cursor.end()?;
        Ok(kind)
    }
}

fn read(cursor: &mut Cursor<'_>, depth: usize) -> Result<Type, Malformed> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.wrong("nested too deep"));
    };
    let name = cursor.name()?;
    match name {
        "string" => return Ok(Type::String),
        "number" => return Ok(Type::Number),
        "bool" => return Ok(Type::Bool),
        "any" => return Ok(Type::Any),
        _ => cursor.expect('(')?,
    }
    let kind = match name {
        "list" => Type::List(Box::new(read(cursor, depth)?)),
        "set" => Type::Set(Box::new(read(cursor, depth)?)),
        "map" => Type::Map(Box::new(read(cursor, depth)?)),
        "object" => Type::Object(object(cursor, depth)?),
        "tuple" => Type::Tuple(tuple(cursor, depth)?),
        other => return Err(Malformed(format!("there is no type {other:?}"))),
    };
    cursor.expect(')')?;
    Ok(kind)
}

fn object(cursor: &mut Cursor<'_>, depth: usize) -> Result<BTreeMap<String, Type>, Malformed> {
    let mut fields = BTreeMap::new();
    cursor.expect('{')?;
    while !cursor.eat('}') {
        let name = cursor.name()?.to_owned();
        if !cursor.eat('=') {
            cursor.expect(':')?;
        }
        fields.insert(name, read(cursor, depth)?);
        cursor.eat(',');
    }
    Ok(fields)
}

fn tuple(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Type>, Malformed> {
    let mut items = Vec::new();
    cursor.expect('[')?;
    while !cursor.eat(']') {
        items.push(read(cursor, depth)?);
        cursor.eat(',');
    }
    Ok(items)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::String => "a string",
            Type::Number => "a number",
            Type::Bool => "a bool",
            Type::Any => "anything",
            Type::List(_) | Type::Set(_) | Type::Tuple(_) => "a list",
            Type::Map(_) | Type::Object(_) => "a map",
        })
    }
}
