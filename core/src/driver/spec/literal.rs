//! Values that plugins write as text, such as defaults: `"json-file"`, `true`, `[]`, `{ a = 1 }`.

use std::collections::BTreeMap;

use super::cursor::{Cursor, MAX_DEPTH, Malformed};
use crate::model::value::Value;

/// Reads a literal. Calls of functions and references are none.
///
/// # Errors
/// It has no sense, or is nested too deep.
pub fn literal(text: &str) -> Result<Value, Malformed> {
    let mut cursor = Cursor::new(text);
    let value = read(&mut cursor, MAX_DEPTH)?;
    cursor.end()?;
    Ok(value)
}

fn read(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Malformed> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(cursor.wrong("nested too deep"));
    };
    cursor.skip_space();
    match cursor.peek() {
        Some('"') => text(cursor).map(Value::String),
        Some('[') => list(cursor, depth),
        Some('{') => map(cursor, depth),
        Some(c) if c.is_ascii_digit() || c == '-' => number(cursor),
        Some(_) | None => match cursor.name()? {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" => Ok(Value::Null),
            other => Err(Malformed(format!("{other:?} is no value"))),
        },
    }
}

fn list(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Malformed> {
    let mut items = Vec::new();
    cursor.expect('[')?;
    while !cursor.eat(']') {
        items.push(read(cursor, depth)?);
        if !cursor.eat(',') {
            cursor.expect(']')?;
            break;
        }
    }
    Ok(Value::List(items))
}

fn map(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Malformed> {
    let mut entries = BTreeMap::new();
    cursor.expect('{')?;
    while !cursor.eat('}') {
        cursor.skip_space();
        let name = match cursor.peek() {
            Some('"') => text(cursor)?,
            Some(_) | None => cursor.name()?.to_owned(),
        };
        if !cursor.eat('=') {
            cursor.expect(':')?;
        }
        entries.insert(name, read(cursor, depth)?);
        cursor.eat(',');
    }
    Ok(Value::Map(entries))
}

fn number(cursor: &mut Cursor<'_>) -> Result<Value, Malformed> {
    let word = cursor.word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    if let Ok(whole) = word.parse() {
        return Ok(Value::Int(whole));
    }
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Value::Float(number.to_bits())),
        Ok(_) | Err(_) => Err(Malformed(format!("{word:?} is not a number"))),
    }
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, Malformed> {
    let mut text = String::new();
    cursor.expect('"')?;
    loop {
        match cursor.next() {
            Some('"') => return Ok(text),
            Some('\\') => text.push(escaped(cursor)?),
            Some('$' | '%') if cursor.peek() == Some('{') => {
                return Err(cursor.wrong("a literal holds no reference"));
            }
            Some(other) => text.push(other),
            None => return Err(Malformed("a text has no end".to_owned())),
        }
    }
}

fn escaped(cursor: &mut Cursor<'_>) -> Result<char, Malformed> {
    let digits = match cursor.next() {
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some(c @ ('"' | '\\')) => return Ok(c),
        Some('u') => 4,
        Some('U') => 8,
        Some(_) | None => return Err(cursor.wrong("unknown escape")),
    };
    let code = (0..digits).try_fold(0_u32, |code, _| {
        let digit = cursor.next().and_then(|c| c.to_digit(16))?;
        code.checked_mul(16)?.checked_add(digit)
    });
    code.and_then(char::from_u32)
        .ok_or_else(|| cursor.wrong("no character"))
}
