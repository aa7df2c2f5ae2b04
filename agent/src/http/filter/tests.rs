use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::*;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Task {
    state: &'static str,
    failed: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Object {
    #[serde(rename = "ID")]
    id: &'static str,
    kind: &'static str,
    priority: i64,
    share: f64,
    stop: bool,
    datacenters: Vec<&'static str>,
    meta: BTreeMap<&'static str, &'static str>,
    periodic: Option<Task>,
    tasks: BTreeMap<&'static str, Task>,
    #[serde(skip_serializing_if = "str::is_empty")]
    next: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related: Vec<&'static str>,
}

fn object() -> Object {
    let task = |state, failed| Task { state, failed };
    Object {
        id: "calc",
        kind: "batch",
        priority: 50,
        share: 0.5,
        stop: false,
        datacenters: vec!["dc1", "dc2"],
        meta: BTreeMap::from([("owner", "me"), ("a.b", "dotted"), ("x/y", "slashed")]),
        periodic: None,
        tasks: BTreeMap::from([("a", task("dead", true)), ("b", task("running", false))]),
        next: "",
        related: Vec::new(),
    }
}

fn takes(expression: &str) -> Result<bool, String> {
    let filter = Filter::parse(expression).map_err(|error| error.message)?;
    filter.takes(&object()).map_err(|error| error.message)
}

#[test]
fn comparison_by_the_type_of_the_field_holds() {
    for (expression, holds) in [
        (r#"Kind == "batch""#, true),
        ("Kind == batch", true),
        ("Kind==`batch`", true),
        (r#"Kind != "batch""#, false),
        ("Priority == 50", true),
        (r#"Priority == "50""#, true),
        ("Share == 0.5", true),
        ("Stop == false", true),
        ("Stop != true", true),
        (r#"Meta.owner == "me""#, true),
        (r#"Meta["a.b"] == "dotted""#, true),
        (r#"Meta[`a.b`] == "dotted""#, true),
        (r#""/Meta/x~1y" == "slashed""#, true),
        ("Meta.x/y == slashed", true),
        (r#"Datacenters.1 == "dc2""#, true),
        (r#"Datacenters.7 == "dc2""#, false),
        (r#"Datacenters contains "dc1""#, true),
        (r#""dc3" not in Datacenters"#, true),
        ("dc1 in Datacenters", true),
        (r#""owner" in Meta"#, true),
        (r#"Kind contains "atc""#, true),
        (r#"ID matches "^c""#, true),
        (r#"ID not matches "^c""#, false),
        (r"ID matches `^c\w+$`", true),
        (r#"ID matches "^c\\w+$""#, true),
        ("Periodic is nil", true),
        ("Periodic is not nil", false),
        ("Periodic is empty", true),
        ("Kind is not empty", true),
        ("Meta is empty", false),
        (r#"Next == """#, true),
        ("Next == x", false),
        ("Next matches `.`", false),
        ("Next is empty", true),
        // Keys of maps are data: what is not there matches nothing, and its opposite does.
        (r#"Meta.nothing == "x""#, false),
        (r#"Meta.nothing != "x""#, true),
        ("Meta.nothing is empty", true),
        (r#"Periodic.State == "x""#, false),
    ] {
        assert_eq!(takes(expression), Ok(holds), "{expression}");
    }
}

#[test]
fn words_between_comparisons_bind_as_in_nomad() {
    for (expression, holds) in [
        (r#"Kind == "x" and ID == "x" or Priority == 50"#, true),
        (r#"Kind == "x" and (ID == "x" or Priority == 50)"#, false),
        (r#"not Kind == "x" and ID == "calc""#, true),
        (r#"not (Kind == "x" or ID == "calc")"#, false),
        (r#"not not ID == "calc""#, true),
        (
            "(ID == calc) and (Stop == false or Kind == x)\n\tor Stop == true",
            true,
        ),
        ("any Tasks as name { name == b }", true),
        // Empty, and therefore left out of answers.
        ("any Related as one { one == b }", false),
        ("all Related as one { one == b }", true),
        ("all Tasks as name { name == b }", false),
        ("any Tasks as name, task { task.Failed == true }", true),
        ("all Tasks as _, task { task.State is not empty }", true),
        ("any Datacenters as dc { dc matches `2$` }", true),
        ("any Datacenters as at, dc { at == 0 and dc == dc2 }", false),
        (
            "(any Datacenters as dc { dc == dc2 }) and Stop == false",
            true,
        ),
        (
            "any Datacenters as dc { any Tasks as t { t == a and dc == dc1 } }",
            true,
        ),
    ] {
        assert_eq!(takes(expression), Ok(holds), "{expression}");
    }
}

#[test]
fn expression_that_cannot_be_evaluated_names_what_is_wrong() {
    for (expression, words) in [
        (
            r#"Nope == "x""#,
            "failed to read result page: error finding value in datum: /Nope at part 0: couldn't \
             find key: struct field with name \"Nope\"",
        ),
        (
            "Kind.x == 1",
            "/Kind/x at part 1: invalid value kind: string",
        ),
        ("Datacenters.x == 1", "at part 1: couldn't convert \"x\""),
        ("Datacenters == dc1", "on type slice of /Datacenters"),
        ("Priority == high", "high"),
        ("Stop == perhaps", "perhaps"),
        ("Priority matches `5`", "matches operations on type int"),
        ("Stop is empty", "is empty operations on type bool"),
        ("any Kind as k { k == 1 }", "/Kind is a string"),
    ] {
        let failed = takes(expression).unwrap_err();
        assert!(failed.contains(words), "{expression}: {failed}");
    }
}

#[test]
fn syntax_error_names_position_and_expected_tokens() {
    let start = "failed to create result paginator: failed to read filter expression: ";
    for (expression, words) in [
        (
            "Type ==",
            "1:8 (7): no match found, expected: \"-\", \"0\", \"\\\"\", \"`\", [ \\t\\r\\n], \
             [1-9] or [a-zA-Z]",
        ),
        ("", "1:1 (0): no match found, expected: "),
        ("a == 1\nand", "2:4 (10): no match found, expected: "),
        ("a < 1", "1:3 (2): no match found, expected: "),
        ("a == 007", "1:7 (6): no match found, expected: "),
        ("a == 1 b", "1:8 (7): no match found, expected: "),
        ("(a == 1", "1:8 (7): no match found, expected: "),
        (
            "a matches `(`",
            "the regular expression \"(\" cannot be used",
        ),
        (r#"a matches "\w""#, "invalid string"),
        (
            "any a as x { x == 1 } and b == 1",
            "1:23 (22): no match found",
        ),
    ] {
        let failed = takes(expression).unwrap_err();
        let why = failed.strip_prefix(start).unwrap_or_default();
        assert!(why.contains(words), "{expression}: {failed}");
    }
}

#[test]
fn expression_beyond_the_limits_is_refused() {
    let long = format!("a == `{}`", "x".repeat(MAX_LENGTH));
    assert!(takes(&long).unwrap_err().contains("4096 are allowed"));
    for deep in ["(", "not (", "any a as b {", "((", "a == 1 and ("] {
        for times in [31, 32, 200, 800] {
            let text = deep.repeat(times);
            assert!(takes(text.get(..MAX_LENGTH).unwrap_or(&text)).is_err());
        }
    }
    let wide = "ID == calc or ".repeat(250) + "ID == calc";
    assert_eq!(takes(&wide), Ok(true));
    let huge = "a matches `(x{1000}){1000}`";
    assert!(takes(huge).unwrap_err().contains("cannot be used"));
}

/// Whatever is written, reading and evaluating it ends soon, and panics never.
#[test]
fn any_text_is_read_or_refused() {
    let pieces = [
        "a",
        "ID",
        "Tasks",
        "Meta",
        "not",
        "and",
        "or",
        "in",
        "is",
        "nil",
        "empty",
        "any",
        "all",
        "as",
        "contains",
        "matches",
        "==",
        "!=",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ".",
        ",",
        "_",
        "/",
        "-",
        "\"",
        "`",
        "\\",
        "0",
        "17",
        " ",
        " ",
        " ",
        "\n",
        "ü",
        "\u{1F600}",
        "x y",
        "\"dc1\"",
        "`^c`",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let object = object();
    let mut read = 0;
    for _ in 0..20_000 {
        let length = 1 + next(12);
        let text: String = (0..length).map(|_| pieces[next(pieces.len())]).collect();
        if let Ok(filter) = Filter::parse(&text) {
            read += 1;
            let _ = filter.takes(&object);
            let _ = filter.takes(&json!({ "a": [{ "b": 1 }], "ID": null }));
        }
    }
    // Words in a row, so that more of them are expressions.
    for _ in 0..20_000 {
        let length = 3 + next(10);
        let words: Vec<&str> = (0..length).map(|_| pieces[next(pieces.len())]).collect();
        if let Ok(filter) = Filter::parse(&words.join(" ")) {
            read += 1;
            let _ = filter.takes(&object);
        }
    }
    assert!(read > 10, "only {read} were expressions");
}
