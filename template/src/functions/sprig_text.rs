//! Sprig's functions of texts. The text that is worked on comes last.

use super::Param::{Any, Int, Text};
use super::{Args, Function, Result, function, text, types};
use crate::error::Fault;
use crate::eval::cx::Cx;
use crate::format::quote;
use crate::value::{Of, Value};

pub(super) const TABLE: &[Function] = &[
    function("sprig_lower", &[Text], "in small letters", |cx, args| {
        cx.text(text::lower(&args.str(0)?))
    }),
    function("sprig_upper", &[Text], "in capital letters", |cx, args| {
        cx.text(text::upper(&args.str(0)?))
    }),
    function(
        "sprig_title",
        &[Text],
        "each word with a capital letter first",
        |cx, args| each_word(cx, args, text::capital, in_word),
    ),
    function(
        "sprig_untitle",
        &[Text],
        "each word with a small letter first",
        |cx, args| each_word(cx, args, text::small, |char| !char.is_whitespace()),
    ),
    function(
        "sprig_trim",
        &[Text],
        "without spaces and new lines at its ends",
        |cx, args| cx.text(args.str(0)?.trim()),
    ),
    function(
        "sprig_trimAll",
        &[Text, Text],
        "without any of the characters of the first text at its ends",
        text::trim_all,
    ),
    function(
        "sprig_trimPrefix",
        &[Text, Text],
        "without the first text at its beginning",
        text::trim_prefix,
    ),
    function(
        "sprig_trimSuffix",
        &[Text, Text],
        "without the first text at its end",
        text::trim_suffix,
    ),
    function(
        "sprig_nospace",
        &[Text],
        "without any spaces",
        |cx, args| cx.text(args.str(0)?.split_whitespace().collect::<String>()),
    ),
    function(
        "sprig_trunc",
        &[Int, Text],
        "as many bytes of its beginning, or of its end if the number is negative",
        trunc,
    ),
    function(
        "sprig_substr",
        &[Int, Int, Text],
        "its bytes from one index up to another",
        substr,
    ),
    function("sprig_repeat", &[Int, Text], "the text many times", repeat),
    function(
        "sprig_replace",
        &[Text, Text, Text],
        "with the second text in place of each first one",
        |cx, args| text::replace(cx, &args.str(2)?, &args.str(0)?, &args.str(1)?),
    ),
    function(
        "sprig_contains",
        &[Text, Text],
        "whether the first text is in the second",
        |_, args| Ok(Value::Bool(args.str(1)?.contains(args.str(0)?.as_ref()))),
    ),
    function(
        "sprig_hasPrefix",
        &[Text, Text],
        "whether the second text begins with the first",
        |_, args| Ok(Value::Bool(args.text(1)?.starts_with(args.text(0)?))),
    ),
    function(
        "sprig_hasSuffix",
        &[Text, Text],
        "whether the second text ends with the first",
        |_, args| Ok(Value::Bool(args.text(1)?.ends_with(args.text(0)?))),
    ),
    function(
        "sprig_quote",
        &[],
        "each value as text in double quotes, with spaces between them",
        |cx, args| quotes(cx, args, |text| quote::quoted(text, false).into_bytes()),
    )
    .and_any(Any),
    function(
        "sprig_squote",
        &[],
        "each value as text in single quotes, with spaces between them",
        |cx, args| quotes(cx, args, |text| [b"'", text, b"'"].concat()),
    )
    .and_any(Any),
    function(
        "sprig_cat",
        &[],
        "all values as one text with spaces between them",
        cat,
    )
    .and_any(Any),
    function(
        "sprig_indent",
        &[Int, Text],
        "each line after as many spaces",
        |cx, args| indent(cx, args, ""),
    ),
    function(
        "sprig_nindent",
        &[Int, Text],
        "a new line, and each line after as many spaces",
        |cx, args| indent(cx, args, "\n"),
    ),
    function(
        "sprig_splitList",
        &[Text, Text],
        "the parts between the first text, in the second",
        |cx, args| text::parts(cx, &args.str(0)?, &args.str(1)?),
    ),
    function(
        "sprig_split",
        &[Text, Text],
        "the parts between the first text as a map: `_0`, `_1`, …",
        split,
    ),
    function(
        "sprig_join",
        &[Text, Any],
        "the values of a list as texts, with a text between them",
        join,
    ),
    function(
        "sprig_plural",
        &[Text, Text, Int],
        "the first text for one, the second for any other number",
        |_, args| {
            let at = if args.int(2)? == 1 { 0 } else { 1 };
            Ok(Value::Text(args.text(at)?.clone()))
        },
    ),
    function(
        "sprig_regexMatch",
        &[Text, Text],
        "whether a regular expression is found in a text",
        |cx, args| {
            Ok(Value::Bool(
                cx.regex(args.text(0)?, args.text(1)?.len())?
                    .is_match(args.text(1)?),
            ))
        },
    ),
    function(
        "sprig_regexFind",
        &[Text, Text],
        "the first match of a regular expression",
        |cx, args| {
            let regex = cx.regex(args.text(0)?, args.text(1)?.len())?;
            let found = regex
                .find(args.text(1)?)
                .map(|found| found.as_bytes().to_vec());
            cx.text(found.unwrap_or_default())
        },
    ),
    function(
        "sprig_regexFindAll",
        &[Text, Text, Int],
        "as many matches of a regular expression; all for -1",
        |cx, args| {
            let within = args.text(1)?;
            let regex = cx.regex(args.text(0)?, within.len())?;
            let most = usize::try_from(args.int(2)?).unwrap_or(usize::MAX);
            cx.texts(
                regex
                    .find_iter(within)
                    .filter(|found| text::is_whole(within, found))
                    .take(most)
                    .map(|found| found.as_bytes().to_vec()),
            )
        },
    ),
    function(
        "sprig_regexReplaceAll",
        &[Text, Text, Text],
        "the second text, with the third, in which `$1` is a group, for each match of the first",
        |cx, args| text::regex_replace(cx, args, 2, 1),
    ),
    function(
        "sprig_regexQuoteMeta",
        &[Text],
        "a regular expression for exactly this text",
        |cx, args| cx.text(regex::escape(&args.str(0)?)),
    ),
];

/// The first character of each word by one rule; what is in a word by another.
fn each_word(
    cx: &mut Cx<'_>,
    args: Args<'_>,
    first: fn(char) -> char,
    is_inside: fn(char) -> bool,
) -> Result {
    let mut inside = false;
    let each = |char: char| {
        let shown = if inside { char } else { first(char) };
        inside = is_inside(char);
        shown
    };
    cx.text(args.str(0)?.chars().map(each).collect::<String>())
}

fn in_word(char: char) -> bool {
    match char.is_ascii() {
        true => char.is_ascii_alphanumeric() || char == '_',
        false => !char.is_whitespace(),
    }
}

fn trunc(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let (count, text) = (args.int(0)?, args.text(1)?);
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let kept = match count < 0 {
        true => text.get(text.len().saturating_sub(size)..),
        false => text.get(..size.min(text.len())),
    };
    cx.text(kept.unwrap_or_default())
}

fn substr(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let text = args.text(2)?;
    let from = args.count(0)?;
    let to = match args.int(1)? {
        to if to < 0 => text.len(),
        _ => args.count(1)?.min(text.len()),
    };
    let part = text.get(from..to);
    let part = part.ok_or_else(|| Fault::failed("the part ends before it begins"))?;
    cx.text(part)
}

fn repeat(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    if args.int(0)? < 0 {
        return Err(Fault::failed("the number of times is below zero"));
    }
    let (times, text) = (args.count(0)?, args.text(1)?);
    cx.fits(times.checked_mul(text.len()))?;
    cx.text(text.repeat(times))
}

fn quotes(cx: &mut Cx<'_>, args: Args<'_>, each: fn(&[u8]) -> Vec<u8>) -> Result {
    let mut out = cx.sink();
    for value in args.0.iter().filter(|value| !matches!(value, Value::Nil)) {
        if out.len() > 0 {
            out.push(" ")?;
        }
        out.push(each(&types::text(cx, value)?))?;
    }
    cx.text(out.into_bytes())
}

fn cat(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    for value in args.0.iter().filter(|value| !matches!(value, Value::Nil)) {
        if out.len() > 0 {
            out.push(" ")?;
        }
        out.push(types::text(cx, value)?)?;
    }
    cx.text(out.into_bytes())
}

fn indent(cx: &mut Cx<'_>, args: Args<'_>, before: &str) -> Result {
    let mut out = cx.sink();
    out.push(before)?;
    for (at, line) in args.text(1)?.split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            out.push("\n")?;
        }
        out.repeat(' ', args.count(0)?)?;
        out.push(line)?;
    }
    cx.text(out.into_bytes())
}

fn split(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let Value::List(list) = text::parts(cx, &args.str(0)?, &args.str(1)?)? else {
        return Ok(Value::Nil);
    };
    let key = |at: usize| format!("_{at}").into_bytes().into();
    let parts = list.items.iter().enumerate();
    cx.map(
        parts.map(|(at, part)| (key(at), part.clone())).collect(),
        Of::Texts,
    )
}

fn join(cx: &mut Cx<'_>, args: Args<'_>) -> Result {
    let mut out = cx.sink();
    let texts = types::texts(cx, args.get(1)?)?;
    for (at, text) in texts.iter().enumerate() {
        if at > 0 {
            out.push(args.text(0)?)?;
        }
        out.push(text)?;
    }
    cx.text(out.into_bytes())
}
