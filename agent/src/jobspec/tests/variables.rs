//! Variables and locals.

use serde_json::{Value, json};

use super::super::{Options, VarFile};
use super::{bad, bad_with, good, good_with};

/// A file with these declarations, and the expression in the job's meta.
fn file(declarations: &str, expr: &str) -> String {
    format!("{declarations}\njob \"j\" {{\n  meta = {{ x = jsonencode({expr}) }}\n}}\n")
}

fn meta(declarations: &str, expr: &str, options: &Options) -> Value {
    let parsed = good_with(&file(declarations, expr), options);
    let text = parsed.job.meta.get("x").map_or("null", String::as_str);
    serde_json::from_str(text).unwrap()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = list
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect()
}

fn var_file(text: &str) -> VarFile {
    VarFile {
        name: "values.hcl".to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn later_variable_source_wins() {
    let declared = "variable \"a\" {\n  default = \"default\"\n}";
    let mut options = Options::default();
    let value = |options: &Options| meta(declared, "var.a", options);
    assert_eq!(value(&options), json!("default"));
    options.env = pairs(&[("NOMAD_VAR_a", "env"), ("NOMAD_VAR_other", "ignored")]);
    assert_eq!(value(&options), json!("env"));
    options.env.extend(pairs(&[("DROVER_VAR_a", "own env")]));
    assert_eq!(value(&options), json!("own env"));
    options.var_files = vec![var_file("a = \"one\""), var_file("{\"a\": \"t\\u0077o\"}")];
    assert_eq!(value(&options), json!("two"));
    options.vars = pairs(&[("a", "first"), ("a", "last")]);
    assert_eq!(value(&options), json!("last"));
}

#[test]
fn variable_value_has_declared_type() {
    let table = [
        ("string", "12", json!("12")),
        ("number", "12", json!(12)),
        ("bool", "true", json!(true)),
        ("list(string)", "[\"a\", 1]", json!(["a", "1"])),
        ("set(number)", "[2, 1, 2]", json!([1, 2])),
        ("map(number)", "{a = \"1\"}", json!({"a": 1})),
        ("tuple([string, number])", "[1, \"2\"]", json!(["1", 2])),
        (
            "object({a = string, b = optional(number, 7)})",
            "{a = 1, c = 2}",
            json!({"a": "1", "b": 7}),
        ),
        ("any", "[1]", json!("[1]")),
    ];
    for (ty, text, expected) in table {
        let declared = format!("variable \"a\" {{\n  type = {ty}\n}}");
        let options = Options {
            vars: pairs(&[("a", text)]),
            ..Options::default()
        };
        assert_eq!(meta(&declared, "var.a", &options), expected, "{ty}");
    }
}

#[test]
fn untyped_variable_takes_type_of_default() {
    let options = Options {
        vars: pairs(&[("n", "5"), ("l", "[3]"), ("off", "false")]),
        env: pairs(&[("NOMAD_VAR_on", "true")]),
        ..Options::default()
    };
    let declared = "variables {\n  n = 1\n  l = [1]\n  s = \"x\"\n  off = true\n  on = false\n}";
    assert_eq!(
        meta(declared, "[var.n, var.l, var.s, var.off, var.on]", &options),
        json!([5, [3], "x", false, true])
    );
}

#[test]
fn null_for_optional_entry_takes_its_default() {
    let declared = "variable \"a\" {\n  type = object({n = optional(number, 7), s = \
                    optional(string), r = string})\n}";
    for (text, expected) in [
        ("{r = null}", json!({"n": 7, "s": null, "r": null})),
        (
            "{n = null, s = null, r = \"x\"}",
            json!({"n": 7, "s": null, "r": "x"}),
        ),
        ("{n = 1, s = 2, r = 3}", json!({"n": 1, "s": "2", "r": "3"})),
    ] {
        let options = Options {
            vars: pairs(&[("a", text)]),
            ..Options::default()
        };
        assert_eq!(meta(declared, "var.a", &options), expected, "{text}");
    }
}

#[test]
fn locals_may_depend_on_each_other() {
    let declared = "locals {\n  c = \"${local.b}!\"\n  b = upper(var.a)\n}\nvariable \"a\" { default = \"x\" }\nlocals {\n  d = [local.c, local[\"b\"]]\n}";
    assert_eq!(
        meta(declared, "local.d", &Options::default()),
        json!(["X!", "X"])
    );
}

/// Locals are evaluated by their names where nothing says otherwise, so each stands before those
/// that it needs.
#[test]
fn local_in_index_of_another_is_evaluated_before_it() {
    for (expr, zones) in [
        ("local.zones[local.zone]", "{ k = 3 }"),
        ("local.zones.z[local.zone]", "{ z = { k = 3 } }"),
        ("local[\"zones\"][lower(local.zone)]", "{ k = 3 }"),
    ] {
        let declared = format!("locals {{\n  a = {expr}\n  zone = \"k\"\n  zones = {zones}\n}}");
        let value = meta(&declared, "local.a", &Options::default());
        assert_eq!(value, json!(3), "{expr}");
    }
}

#[test]
fn variable_mistakes_are_reported() {
    let missing = bad(&file("variable \"a\" {}", "1"));
    assert!(
        missing.contains("test.nomad:1:1: the variable \"a\" has no value"),
        "{missing}"
    );
    let twice = bad(&file(
        "variable \"a\" { default = 1 }\nvariables { a = 2 }",
        "1",
    ));
    assert!(
        twice.contains("2:13: the variable \"a\" is declared twice"),
        "{twice}"
    );
    let ty = bad(&file("variable \"a\" { type = strin }", "1"));
    assert!(ty.contains("1:23: unknown type strin"), "{ty}");
    let default = bad(&file(
        "variable \"a\" {\n type = number\n default = \"x\"\n}",
        "1",
    ));
    assert!(
        default.contains("has not its type: \"x\" is not a number"),
        "{default}"
    );
    let rule = "variable \"a\" {\n default = 3\n validation {\n condition = var.a > 5\n error_message = \"must be large\"\n}\n}";
    let refused = bad(&file(rule, "1"));
    assert!(
        refused.contains("3:2: the value of the variable \"a\" is refused: must be large"),
        "{refused}"
    );
    let blank = bad(&file(&rule.replace("must be large", " "), "1"));
    assert!(
        blank.contains("5:18: the error_message is blank"),
        "{blank}"
    );
    let within = bad(&file("variable \"a\" { default = var.b }", "1"));
    assert!(
        within.contains("variables and locals cannot be used here"),
        "{within}"
    );
    let near = bad(&file("variable \"region\" { default = 1 }", "var.regoin"));
    assert!(near.contains("there is no var.regoin"), "{near}");
    assert!(near.contains("Did you mean \"region\"?"), "{near}");
}

#[test]
fn value_for_undeclared_variable_is_refused() {
    let text = file("variable \"image\" { default = 1 }", "1");
    let mut options = Options {
        vars: pairs(&[("imag", "x")]),
        var_files: vec![var_file("\nimge = 2")],
        ..Options::default()
    };
    let strict = bad_with(&text, &options);
    assert!(
        strict.contains("-var imag: the job file declares no variable \"imag\""),
        "{strict}"
    );
    assert!(
        strict.contains("values.hcl:2:1: the job file declares no variable \"imge\""),
        "{strict}"
    );
    assert!(strict.contains("Did you mean \"image\"?"), "{strict}");
    options.lenient_variables = true;
    assert_eq!(good_with(&text, &options).warnings.len(), 2);
}

#[test]
fn cycle_of_locals_is_named() {
    let circle = bad("locals {\n  a = local.b\n  b = [local.c]\n  c = local.a\n}\njob \"j\" {}\n");
    let expected =
        "test.nomad:2:3: these locals need each other: local.a → local.b → local.c → local.a";
    assert!(circle.starts_with(expected), "{circle}");
    let circle = bad("locals {\n  a = local.b[local.a]\n  b = {}\n}\njob \"j\" {}\n");
    let expected = "test.nomad:2:3: these locals need each other: local.a → local.a";
    assert!(circle.starts_with(expected), "{circle}");
}

#[test]
fn long_chain_of_locals_is_evaluated() {
    let mut text = String::from("locals {\n  a0 = 1\n");
    for n in 1..3000 {
        text += &format!("  a{n} = local.a{}\n", n - 1);
    }
    text += "}\njob \"j\" {\n  priority = local.a2999\n}\n";
    assert_eq!(good(&text).job.priority, 1);
}
