//! Texts for other languages.

use super::Param::Any;
use super::{Args, Function, Result, function};
use crate::eval::cx::Cx;
use crate::format::{self, Sink, quote};
use crate::value::Value;

pub(super) const TABLE: &[Function] = &[
    function("html", &[], "the values as text for HTML", html).and_any(Any),
    function("js", &[], "the values as text for JavaScript", js).and_any(Any),
    function(
        "urlquery",
        &[],
        "the values as text for the query of a URL",
        urlquery,
    )
    .and_any(Any),
];

/// All values as one text.
fn joined(cx: &mut Cx<'_>, args: Args<'_>) -> Result<Vec<u8>> {
    let mut out = cx.sink();
    let shown = |value: &Value| match value {
        Value::Nil => Value::text("<no value>"),
        other => other.clone(),
    };
    let values: Vec<Value> = args.0.iter().map(shown).collect();
    format::print(&mut out, &values)?;
    Ok(out.into_bytes())
}

fn done(cx: &mut Cx<'_>, out: Sink) -> Result {
    cx.text(out.into_bytes())
}

fn html(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = joined(cx, args)?;
    let mut out = cx.sink();
    for byte in text {
        match byte {
            0 => out.push("\u{fffd}")?,
            b'"' => out.push("&#34;")?,
            b'\'' => out.push("&#39;")?,
            b'&' => out.push("&amp;")?,
            b'<' => out.push("&lt;")?,
            b'>' => out.push("&gt;")?,
            other => out.push([other])?,
        }
    }
    done(cx, out)
}

fn js(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = joined(cx, args)?;
    let mut out = cx.sink();
    for char in String::from_utf8_lossy(&text).chars() {
        match char {
            '\\' | '\'' | '"' => out.push(format!("\\{char}"))?,
            '<' | '>' | '&' | '=' => out.push(format!("\\u{:04X}", u32::from(char)))?,
            ' '..='~' => out.push_char(char)?,
            '\u{7f}' => out.push_char(char)?,
            _ if !char.is_ascii() && quote::is_printable(char) => out.push_char(char)?,
            _ => out.push(format!("\\u{:04X}", u32::from(char)))?,
        }
    }
    done(cx, out)
}

fn urlquery(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = joined(cx, args)?;
    let mut out = cx.sink();
    for byte in text {
        match byte {
            b' ' => out.push("+")?,
            b'-' | b'_' | b'.' | b'~' => out.push([byte])?,
            _ if byte.is_ascii_alphanumeric() => out.push([byte])?,
            _ => out.push(format!("%{byte:02X}"))?,
        }
    }
    done(cx, out)
}
