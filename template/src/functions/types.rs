//! Sprig's defaults, conversions, names of types and encodings.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest;

use super::Param::{Any, Text};
use super::{Function, Result, checksums, encode, function, parse};
use crate::ast::WordKind;
use crate::encode::json::Style;
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::format;
use crate::literal;
use crate::value::{List, Value};

const LINE: Style = Style {
    pretty: false,
    html: true,
};
const LINES: Style = Style {
    pretty: true,
    html: true,
};
const RAW: Style = Style {
    pretty: false,
    html: false,
};

pub(super) const TABLE: &[Function] = &[
    function(
        "sprig_default",
        &[Any],
        "the last value, or the first one if that is empty",
        |_, args| {
            let given = args.len() > 1 && args.last()?.is_true();
            Ok(if given {
                args.last()?.clone()
            } else {
                args.get(0)?.clone()
            })
        },
    )
    .cheap()
    .and_any(Any),
    function(
        "sprig_coalesce",
        &[],
        "the first value that is not empty, or nil",
        |_, args| {
            Ok(args
                .0
                .iter()
                .find(|value| value.is_true())
                .cloned()
                .unwrap_or(Value::Nil))
        },
    )
    .cheap()
    .and_any(Any),
    function(
        "sprig_ternary",
        &[Any, Any, Any],
        "the first value if the last is true, else the second",
        |_, args| match args.get(2)? {
            Value::Bool(true) => Ok(args.get(0)?.clone()),
            Value::Bool(false) => Ok(args.get(1)?.clone()),
            _ => Err(Fault::failed("the last argument must be true or false")),
        },
    )
    .cheap(),
    function(
        "sprig_empty",
        &[Any],
        "whether a value is empty, zero or nil",
        |_, args| Ok(Value::Bool(!args.get(0)?.is_true())),
    )
    .cheap(),
    function("sprig_all", &[], "whether no value is empty", |_, args| {
        Ok(Value::Bool(args.0.iter().all(Value::is_true)))
    })
    .cheap()
    .and_any(Any),
    function(
        "sprig_any",
        &[],
        "whether some value is not empty",
        |_, args| Ok(Value::Bool(args.0.iter().any(Value::is_true))),
    )
    .cheap()
    .and_any(Any),
    function(
        "sprig_fail",
        &[Text],
        "an error with this text",
        |_, args| Err(Fault::failed(args.str(0)?.into_owned())),
    ),
    function(
        "sprig_kindOf",
        &[Any],
        "the sort of a value's type, as Go has it",
        |cx, args| cx.text(args.get(0)?.kind_name()),
    )
    .cheap(),
    function(
        "sprig_kindIs",
        &[Text, Any],
        "whether a value's type is of a sort",
        |_, args| {
            Ok(Value::Bool(
                args.get(1)?.kind_name().as_bytes() == args.text(0)?.as_ref(),
            ))
        },
    )
    .cheap(),
    function(
        "sprig_typeOf",
        &[Any],
        "the name of a value's type, as Go has it",
        |cx, args| {
            cx.text(match args.get(0)? {
                Value::Nil => "<nil>",
                other => other.type_name(),
            })
        },
    )
    .cheap(),
    function("sprig_toString", &[Any], "a value as text", |cx, args| {
        let text = text(cx, args.get(0)?)?;
        cx.text(text)
    }),
    function(
        "sprig_toStrings",
        &[Any],
        "the values of a list as texts",
        |cx, args| {
            let texts = texts(cx, args.get(0)?)?;
            cx.texts(texts)
        },
    ),
    function(
        "sprig_int",
        &[Any],
        "a value as a whole number; zero if it is none",
        |_, args| Ok(Value::int(int(args.get(0)?))),
    ),
    function(
        "sprig_int64",
        &[Any],
        "a value as a whole number; zero if it is none",
        |_, args| Ok(Value::int64(int(args.get(0)?))),
    ),
    function(
        "sprig_float64",
        &[Any],
        "a value as a fraction; zero if it is none",
        |_, args| Ok(Value::Float(float(args.get(0)?))),
    ),
    function(
        "sprig_atoi",
        &[Text],
        "a text as a whole number; zero if it is none",
        |_, args| Ok(Value::int(args.str(0)?.parse().unwrap_or_default())),
    ),
    function("sprig_b64enc", &[Text], "a text in base64", |cx, args| {
        cx.text(STANDARD.encode(args.text(0)?))
    }),
    function(
        "sprig_b64dec",
        &[Text],
        "the text decoded from base64",
        |cx, args| checksums::decode(cx, args, &STANDARD),
    ),
    function(
        "sprig_sha1sum",
        &[Text],
        "the SHA-1 of a text",
        |cx, args| cx.text(checksums::hex(&sha1::Sha1::digest(args.text(0)?))),
    ),
    function(
        "sprig_sha256sum",
        &[Text],
        "the SHA-256 of a text",
        |cx, args| cx.text(checksums::hex(&sha2::Sha256::digest(args.text(0)?))),
    ),
    function(
        "sprig_sha512sum",
        &[Text],
        "the SHA-512 of a text",
        |cx, args| cx.text(checksums::hex(&sha2::Sha512::digest(args.text(0)?))),
    ),
    function(
        "sprig_toJson",
        &[Any],
        "JSON in one line, safe inside of HTML",
        |cx, args| encode::to_json(cx, args, &LINE),
    ),
    function(
        "sprig_toPrettyJson",
        &[Any],
        "JSON in lines, safe inside of HTML",
        |cx, args| encode::to_json(cx, args, &LINES),
    ),
    function("sprig_toRawJson", &[Any], "JSON in one line", |cx, args| {
        encode::to_json(cx, args, &RAW)
    }),
    function(
        "sprig_fromJson",
        &[Text],
        "the value of a JSON text",
        |cx, args| parse::json(cx, args.text(0)?),
    ),
];

/// A value as text.
pub(super) fn text(cx: &mut Cx<'_>, value: &Value) -> Result<Vec<u8>> {
    let mut out = cx.sink();
    match value {
        Value::Text(text) => out.push(text)?,
        other => format::plain(&mut out, other)?,
    }
    cx.grow(out.len() + 32)?;
    Ok(out.into_bytes())
}

/// The values of a list as texts, but those that are nil; one value is a list of it.
pub(super) fn texts(cx: &mut Cx<'_>, value: &Value) -> Result<Vec<Vec<u8>>> {
    let one = [value.clone()];
    let items: &[Value] = match value {
        Value::List(list) => {
            let List { items, .. } = list.as_ref();
            items
        }
        _ => &one,
    };
    let mut found = Vec::new();
    for item in items.iter().filter(|item| !matches!(item, Value::Nil)) {
        found.push(text(cx, item)?);
    }
    Ok(found)
}

/// A value as a whole number; what cannot be one is zero.
pub(super) fn int(value: &Value) -> i64 {
    match value {
        Value::Int(int, _) => *int,
        Value::Uint(uint, _) => i64::try_from(*uint).unwrap_or(i64::MAX),
        // Fractions are cut off. What does not fit is the least number, as on most machines.
        Value::Float(float) if float.abs() < 9.2e18 => *float as i64,
        Value::Float(_) => i64::MIN,
        Value::Bool(bool) => i64::from(*bool),
        Value::Text(text) => match literal::number(&String::from_utf8_lossy(text)) {
            Some(WordKind::Int(int)) => int,
            _ => 0,
        },
        _ => 0,
    }
}

/// A value as a fraction; what cannot be one is zero.
pub(super) fn float(value: &Value) -> f64 {
    match value {
        // Numbers beyond 2^53 lose digits, as they do in Go.
        Value::Int(int, _) => *int as f64,
        Value::Uint(uint, _) => *uint as f64,
        Value::Float(float) => *float,
        Value::Bool(bool) => f64::from(u8::from(*bool)),
        Value::Text(text) => parse::float(&String::from_utf8_lossy(text)).unwrap_or_default(),
        _ => 0.0,
    }
}
