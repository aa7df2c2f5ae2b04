//! Writing values as JSON, YAML and TOML.

use super::Param::Any;
use super::{Args, Function, Result, function};
use crate::encode::json::{self, Style};
use crate::encode::{toml, yaml};
use crate::eval::cx::Cx;

pub(super) const TABLE: &[Function] = &[
    function(
        "toJSON",
        &[Any],
        "JSON in one line, safe inside of HTML",
        |cx, args| {
            to_json(
                cx,
                args,
                &Style {
                    pretty: false,
                    html: true,
                },
            )
        },
    ),
    function(
        "toJSONPretty",
        &[Any],
        "JSON in lines, safe inside of HTML",
        |cx, args| {
            to_json(
                cx,
                args,
                &Style {
                    pretty: true,
                    html: true,
                },
            )
        },
    ),
    function("toUnescapedJSON", &[Any], "JSON in one line", |cx, args| {
        to_json(
            cx,
            args,
            &Style {
                pretty: false,
                html: false,
            },
        )
    }),
    function(
        "toUnescapedJSONPretty",
        &[Any],
        "JSON in lines",
        |cx, args| {
            to_json(
                cx,
                args,
                &Style {
                    pretty: true,
                    html: false,
                },
            )
        },
    ),
    function(
        "toYAML",
        &[Any],
        "YAML, without a new line at the end",
        |cx, args| {
            let mut out = cx.sink();
            yaml::write(&mut out, args.get(0)?)?;
            cx.text(out.into_bytes().trim_ascii())
        },
    ),
    function(
        "toTOML",
        &[Any],
        "TOML of a map, without a new line at the end",
        |cx, args| {
            let mut out = cx.sink();
            toml::write(&mut out, args.get(0)?)?;
            cx.text(out.into_bytes().trim_ascii())
        },
    ),
];

pub(super) fn to_json(cx: &mut Cx<'_>, args: Args<'_>, style: &Style) -> Result {
    let mut out = cx.sink();
    json::write(&mut out, style, args.get(0)?)?;
    cx.text(out.into_bytes())
}
