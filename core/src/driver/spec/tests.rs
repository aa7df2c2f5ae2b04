//! What a plugin may announce, and what becomes of configurations by it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

fn attr(name: &str, kind: &str, required: bool) -> Spec {
    Spec::Attr {
        name: name.to_owned(),
        kind: Type::parse(kind).unwrap(),
        required,
    }
}

fn object(parts: impl IntoIterator<Item = (&'static str, Spec)>) -> Spec {
    let parts = parts.into_iter().map(|(k, v)| (k.to_owned(), v));
    Spec::Object(parts.collect())
}

fn value(text: &str) -> Value {
    literal(text).unwrap()
}

fn decoded(spec: &Spec, config: &str) -> Result<Value, Vec<String>> {
    let Value::Map(body) = value(config) else {
        panic!("{config} is no body");
    };
    decode(spec, &body, Strictness::Resolved)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn sample() -> Spec {
    let port = object([("number", attr("number", "number", true))]);
    object([
        ("image", attr("image", "string", true)),
        (
            "tries",
            Spec::Default {
                primary: Box::new(attr("tries", "number", false)),
                default: Box::new(Spec::Literal(Value::Int(3))),
            },
        ),
        ("labels", attr("labels", "list(map(string))", false)),
        (
            "mount",
            Spec::BlockList {
                name: "mount".to_owned(),
                min: 0,
                max: 2,
                nested: Box::new(object([("to", attr("to", "string", false))])),
            },
        ),
        (
            "port",
            Spec::BlockMap {
                name: "port".to_owned(),
                labels: vec!["label".to_owned()],
                nested: Box::new(port),
            },
        ),
        (
            "limits",
            Spec::BlockAttrs {
                name: "limits".to_owned(),
                kind: Type::Number,
                required: false,
            },
        ),
        (
            "auth",
            Spec::Block {
                name: "auth".to_owned(),
                required: false,
                nested: Box::new(object([("user", attr("user", "string", false))])),
            },
        ),
    ])
}

#[test]
fn schema_announcement_has_every_field() {
    assert_eq!(
        decoded(&sample(), r#"{ image = "web" }"#),
        Ok(value(
            r#"{ image = "web", tries = 3, labels = null, mount = [], port = {}, limits = null,
                 auth = null }"#
        ))
    );
}

/// Nothing and zero are not the same.
#[test]
fn given_zero_is_not_replaced_by_default() {
    let given = decoded(&sample(), r#"{ image = "web", tries = 0 }"#);
    let Ok(Value::Map(given)) = given else {
        panic!("{given:?}");
    };
    assert_eq!(given.get("tries"), Some(&Value::Int(0)));
}

#[test]
fn value_is_converted_to_schema_type() {
    let config = r#"{ image = 7, tries = "8", labels = { a = true }, mount = { to = "/x" },
        port = { http = { number = 80.0 } }, limits = [{ files = 1.5 }], auth = [{ user = "me" }] }"#;
    let wanted = r#"{ image = "7", tries = 8, labels = [{ a = "true" }], mount = [{ to = "/x" }],
        port = { http = { number = 80 } }, limits = { files = 1.5 }, auth = { user = "me" } }"#;
    assert_eq!(decoded(&sample(), config), Ok(value(wanted)));
}

#[test]
fn invalid_value_is_reported_with_path() {
    let table = [
        (r#"{}"#, "image: must be given"),
        (
            r#"{ image = "x", tires = 1 }"#,
            r#"tires: unknown option "tires" (did you mean "tries"?)"#,
        ),
        (
            r#"{ image = "x", tries = "few" }"#,
            "tries: expected a number, found a string",
        ),
        (
            r#"{ image = "x", mount = [{}, {}, {}] }"#,
            "mount: only 2 blocks may be given",
        ),
        (
            r#"{ image = "x", port = { a = {} } }"#,
            r#"port["a"].number: must be given"#,
        ),
        (
            r#"{ image = "x", auth = [{}, {}] }"#,
            "auth: only one block may be given",
        ),
        (
            r#"{ image = "x", auth = { usr = "me" } }"#,
            r#"auth.usr: unknown option "usr" (did you mean "user"?)"#,
        ),
        (
            r#"{ image = [1] }"#,
            "image: expected a string, found a list",
        ),
    ];
    for (config, expected) in table {
        assert_eq!(
            decoded(&sample(), config),
            Err(vec![expected.to_owned()]),
            "{config}"
        );
    }
}

#[test]
fn reference_matches_any_type_until_resolved() {
    let spec = object([("tries", attr("tries", "number", false))]);
    let body = [("tries".to_owned(), Value::from("${meta.tries}"))].into();
    assert!(decode(&spec, &body, Strictness::Unresolved).is_ok());
    assert!(decode(&spec, &body, Strictness::Resolved).is_err());
}

#[test]
fn types_and_literals_are_read_or_refused() {
    for good in [
        "",
        "null",
        "any",
        "list(string)",
        " map( set(bool) ) ",
        "object({a=string, b = list(any)})",
        "tuple([string,number])",
    ] {
        assert!(Type::parse(good).is_ok(), "{good}");
    }
    let deep = "list(".repeat(100);
    for bad in [
        "text",
        "list",
        "list(string",
        "object({a})",
        "string x",
        &deep,
    ] {
        assert!(Type::parse(bad).is_err(), "{bad}");
    }
    let deep = "[".repeat(100);
    for bad in [
        "", "\"", "\"${a}\"", "[1", "{a}", "abs(1)", "1e999", "\"\\q\"", "- 1", "1 2", &deep,
    ] {
        assert!(literal(bad).is_err(), "{bad}");
    }
    assert_eq!(literal(r#""a\n\u00e4""#), Ok(Value::from("a\nä")));
}

fn one(kind: &str, given: &str) -> Result<Value, Vec<String>> {
    let spec = object([("it", attr("it", kind, true))]);
    let config = format!("{{ it = {given} }}");
    decoded(&spec, &config).map(|found| found.as_map().unwrap().get("it").unwrap().clone())
}

#[test]
fn collections_are_checked_by_element() {
    assert_eq!(
        one("set(string)", "[1, \"1\", 2]"),
        Ok(value(r#"["1", "2"]"#))
    );
    assert_eq!(
        one("tuple([string, number])", "[1, \"2\"]"),
        Ok(value(r#"["1", 2]"#))
    );
    assert!(one("tuple([string, number])", "[1]").is_err());
    assert!(one("tuple([string])", "[1, 2]").is_err());
    let kind = "object({user = string, tries = number})";
    let given = r#"{ user = 1, tries = "2" }"#;
    assert_eq!(one(kind, given), Ok(value(r#"{ user = "1", tries = 2 }"#)));
    assert_eq!(
        one(kind, r#"{ user = "me", tris = 1 }"#),
        Err(vec![
            r#"it.tris: unknown option "tris" (did you mean "tries"?)"#.to_owned(),
            "it.tries: must be given".to_owned(),
        ])
    );
}

#[test]
fn single_block_is_list_of_one() {
    assert_eq!(
        one("list(map(string))", "{ a = 1 }"),
        Ok(value(r#"[{ a = "1" }]"#))
    );
    assert_eq!(one("list(any)", "{ a = 1 }"), Ok(value("[{ a = 1 }]")));
    assert!(one("list(string)", "{ a = 1 }").is_err());
    assert!(one("list(string)", "7").is_err());
}

#[test]
fn null_matches_any_type() {
    for kind in ["string", "number", "list(string)", "map(bool)"] {
        let list = one(&format!("list({kind})"), "[null]");
        assert_eq!(list, Ok(value("[null]")), "{kind}");
    }
}

#[test]
fn plain_dollar_is_text() {
    assert_eq!(literal("\"$5 and 5%\""), Ok(Value::from("$5 and 5%")));
    assert!(literal("\"%{if}\"").is_err());
}

#[test]
fn maximum_number_of_blocks_is_accepted() {
    let two = r#"{ image = "x", mount = [{}, {}] }"#;
    assert!(decoded(&sample(), two).is_ok());
    let nested = Box::new(object([]));
    let no_end = object([(
        "it",
        Spec::BlockList {
            name: "it".to_owned(),
            min: 1,
            max: 0,
            nested,
        },
    )]);
    assert!(decoded(&no_end, "{ it = [{}, {}, {}] }").is_ok());
    assert!(decoded(&no_end, "{ it = [{}] }").is_ok());
    assert!(decoded(&no_end, "{}").is_err());
}

#[test]
fn reference_in_block_matches_any_type() {
    let nested = Box::new(object([]));
    let name = "it".to_owned();
    let (min, max) = (1, 1);
    let spec = object([(
        "it",
        Spec::BlockList {
            name,
            min,
            max,
            nested,
        },
    )]);
    let body = [("it".to_owned(), Value::from("${meta.it}"))].into();
    assert!(decode(&spec, &body, Strictness::Unresolved).is_ok());
    assert!(decode(&spec, &body, Strictness::Resolved).is_err());
}
