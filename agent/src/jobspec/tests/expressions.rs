//! Expressions, templates and references.

use serde_json::json;

use super::{bad, good, in_config, value};

#[test]
fn expressions_are_evaluated() {
    let table = [
        ("1 + 2 * 3", json!(7)),
        ("(1 + 2) * 3", json!(9)),
        ("10 / 4", json!(2.5)),
        ("10 / 5", json!(2)),
        ("7 % 3", json!(1)),
        ("-5", json!(-5)),
        ("!true", json!(false)),
        ("1 < 2 && 2 >= 2", json!(true)),
        ("\"a\" == \"a\"", json!(true)),
        ("\"1\" == 1", json!(false)),
        ("9223372036854775807", json!(i64::MAX)),
        ("1.5", json!(1.5)),
        ("true ? \"y\" : \"n\"", json!("y")),
        ("true ? 1 : \"n\"", json!("1")),
        ("[1, \"a\", true]", json!([1, "a", true])),
        (
            "{ a = 1, \"b c\" = 2, (\"d\") = 3 }",
            json!({"a": 1, "b c": 2, "d": 3}),
        ),
        ("{ a = null, b = 1 }", json!({"b": 1})),
        ("[for x in [1, 2, 3] : x * 2 if x != 2]", json!([2, 6])),
        ("[for i, x in [\"a\"] : \"${i}${x}\"]", json!(["0a"])),
        ("{for k, v in {a = 1} : upper(k) => v + 1}", json!({"A": 2})),
        (
            "{for x in [\"aa\", \"ab\", \"b\"] : substr(x, 0, 1) => x...}",
            json!({"a": ["aa", "ab"], "b": ["b"]}),
        ),
        ("[{a = 1}, {a = 2}][*].a", json!([1, 2])),
        ("[{a = 1}, {a = 2}].*.a", json!([1, 2])),
        ("[[1], [2]][*][0]", json!([1, 2])),
        ("[5, 6][1]", json!(6)),
        ("[5, 6].1", json!(6)),
        ("{a = {b = 3}}.a[\"b\"]", json!(3)),
        ("\"a${1 + 1}b\"", json!("a2b")),
        ("\"${[1]}\"", json!([1])),
        ("\"%{ if true }yes%{ else }no%{ endif }\"", json!("yes")),
        ("\"%{ for x in [1, 2] }<${x}>%{ endfor }\"", json!("<1><2>")),
        ("\"a  ${~ \"b\" ~}  c\"", json!("abc")),
        ("\"tab\\t\\u00e9\\\"\"", json!("tab\té\"")),
        ("max([1, 5, 3]...)", json!(5)),
        ("try({}.a, \"other\")", json!("other")),
        ("can({}.a)", json!(false)),
        (
            "convert([\"b\", \"a\", \"b\"], set(string))",
            json!(["a", "b"]),
        ),
    ];
    for (expr, expected) in table {
        assert_eq!(value(expr), expected, "{expr}");
    }
}

#[test]
fn run_time_references_are_preserved() {
    let table = [
        ("attr.kernel.name", json!("${attr.kernel.name}")),
        ("\"${attr.kernel.name}\"", json!("${attr.kernel.name}")),
        ("\"${ meta.rack }-x\"", json!("${meta.rack}-x")),
        ("NOMAD_PORT_http", json!("${NOMAD_PORT_http}")),
        ("\"a${env[\"HOME\"]}\"", json!("a${env[\"HOME\"]}")),
        ("\"$${HOME} %%{x}\"", json!("${HOME} %{x}")),
        ("\"${HOME}/x\"", json!("${HOME}/x")),
        // Moving and putting together leave the text as it is.
        (
            "concat([\"a\"], [NOMAD_TASK_DIR])",
            json!(["a", "${NOMAD_TASK_DIR}"]),
        ),
        (
            "join(\"/\", [NOMAD_TASK_DIR, \"x\"])",
            json!("${NOMAD_TASK_DIR}/x"),
        ),
        (
            "format(\"%s/%d\", NOMAD_TASK_DIR, 1)",
            json!("${NOMAD_TASK_DIR}/1"),
        ),
        ("true ? meta.a : meta.b", json!("${meta.a}")),
        ("[for x in [meta.a] : \"<${x}>\"]", json!(["<${meta.a}>"])),
        // Text that only looks like a reference is known.
        ("upper(\"$${x}\")", json!("${X}")),
    ];
    for (expr, expected) in table {
        assert_eq!(value(expr), expected, "{expr}");
    }
}

#[test]
fn run_time_reference_in_function_is_refused() {
    let table = [
        (
            "upper(attr.foo)",
            "the function upper cannot be applied to ${attr.foo}",
        ),
        (
            "upper(\"a${attr.foo}\")",
            "the function upper cannot be applied to a${attr.foo}",
        ),
        (
            "sort([meta.a])",
            "the function sort cannot be applied to a list",
        ),
        (
            "attr.foo == \"a\"",
            "an operator cannot be applied to ${attr.foo}",
        ),
        ("attr.foo + 1", "an operator cannot be applied"),
        (
            "attr.foo ? 1 : 2",
            "a conditional cannot be applied to ${attr.foo}",
        ),
        (
            "[for x in attr.foo : x]",
            "for cannot be applied to ${attr.foo}",
        ),
        (
            "[for x in [attr.foo] : 1 if x]",
            "the condition of a for cannot be applied",
        ),
        (
            "\"%{ if attr.foo }a%{ endif }\"",
            "a condition of a template cannot be applied",
        ),
        (
            "attr[upper(\"a\")]",
            "a run-time reference to \"attr\" cannot be computed",
        ),
        ("{a = 1}[meta.x]", "an index cannot be applied"),
        ("{(meta.x) = 1}", "a key of a map cannot be applied"),
        ("format(\"%10s\", meta.x)", "%s cannot be applied"),
    ];
    for (expr, expected) in table {
        let message = bad(&in_config(expr));
        assert!(message.starts_with("test.nomad:5:"), "{expr}: {message}");
        assert!(message.contains(expected), "{expr}: {message}");
    }
}

#[test]
fn unknown_bare_word_is_warned_about() {
    let parsed = good(
        "job \"j\" {\n  group \"g\" {\n    task \"t\" {\n      driver = docker\n    }\n  }\n}\n",
    );
    assert_eq!(parsed.job.task_groups[0].tasks[0].driver, "${docker}");
    let warning = parsed.warnings[0].to_string();
    assert!(
        warning.starts_with("test.nomad:4:16: \"docker\" is taken as the text"),
        "{warning}"
    );
}

#[test]
fn heredocs_keep_or_lose_their_indentation() {
    let text = |body: &str| value(body).as_str().unwrap_or("").to_owned();
    assert_eq!(text("<<EOF\n  a\n    b\nEOF"), "  a\n    b\n");
    assert_eq!(text("<<-EOF\n  a\n\n    b ${1 + 1}\n  EOF"), "a\n\n  b 2\n");
    assert_eq!(text("<<-EOF\n    ${\"x\"}\n      y\n    EOF"), "x\n  y\n");
    assert_eq!(text("<<EOF\nEOF"), "");
    assert_eq!(
        text("<<EOF\n\\n \"quoted\" $${a} ${NOMAD_X}\nEOF"),
        "\\n \"quoted\" ${a} ${NOMAD_X}\n"
    );
    let list = "<<-EOF\n    %{ for x in [1, 2] ~}\n    item ${x}\n      more\n    %{ endfor ~}\n    end\n    EOF";
    assert_eq!(text(list), "item 1\n  more\nitem 2\n  more\nend\n");
    let plain = "<<-EOF\n  %{ if false }\n  a\n  %{ else }\n  b\n  %{ endif }\n  EOF";
    assert_eq!(text(plain), "\nb\n\n");
}
