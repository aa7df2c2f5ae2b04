use super::*;
use crate::ids::NodeId;

fn node() -> Node {
    let mut node = Node {
        name: "n1".to_owned(),
        datacenter: "eu-1".to_owned(),
        ..Node::default()
    };
    for (key, value) in [
        ("kernel.name", "linux"),
        ("kernel.version", "5.15.0"),
        ("memory", "900"),
        ("load", "1.50"),
        ("empty", ""),
        ("features", "a, b ,c"),
    ] {
        node.attributes.insert(key.to_owned(), value.to_owned());
    }
    node.meta.insert("rack".to_owned(), "r7".to_owned());
    node
}

fn constraint(target: &str, operand: &str, value: &str) -> Constraint {
    Constraint {
        target: target.to_owned(),
        value: value.to_owned(),
        operand: operand.to_owned(),
    }
}

fn holds(target: &str, operand: &str, value: &str) -> bool {
    satisfies(&node(), &constraint(target, operand, value))
}

#[test]
fn both_operands_are_interpolated() {
    assert!(holds("${attr.kernel.name}", "", "linux"));
    assert!(holds("${attr.kernel.name}", "is", "linux"));
    assert!(holds("linux", "==", "${attr.kernel.name}"));
    assert!(holds("${meta.rack}", "=", "r7"));
    assert!(holds("${node.unique.name}", "=", "n1"));
    assert!(holds("${node.class}", "=", ""));
    assert!(holds("a", "=", "a"));
    assert!(!holds("${attr.nope}", "=", ""));
    assert!(!holds("${attr.nope}", "=", "${attr.nope}"));
    assert!(!holds("${env.HOME}", "=", "x"));
    assert!(!holds("${attr.kernel.name", "=", "linux"));
}

#[test]
fn unknown_attribute_compares_as_empty() {
    assert!(holds("${attr.kernel.name}", "!=", "windows"));
    assert!(!holds("${attr.kernel.name}", "not", "linux"));
    assert!(holds("${attr.nope}", "!=", "x"));
    assert!(!holds("${attr.nope}", "!=", ""));
    assert!(!holds("${attr.nope}", "!=", "${meta.nope}"));
}

#[test]
fn numeric_operands_compare_as_numbers() {
    assert!(holds("${attr.memory}", "<", "1000"));
    assert!(!holds("${attr.memory}", ">", "1000"));
    assert!(holds("${attr.memory}", ">=", "900"));
    assert!(holds("${attr.load}", "<=", "1.5"));
    assert!(holds("${attr.load}", "<", "10"));
    assert!(holds("-1.5", "<", "-1.25"));
    assert!(holds("-1", "<", "0.5"));
    assert!(holds("-0.0", ">=", "0"));
    assert!(holds("007.50", "<=", "7.5"));
    assert!(holds("99999999999999999999", ">", "5"));
    assert!(holds("b", ">", "a"));
    assert!(holds("9x", ">", "10"));
    assert!(!holds("${attr.nope}", "<", "1"));
}

#[test]
fn version_set_and_regexp_operands_are_checked() {
    assert!(holds("${attr.kernel.version}", "version", ">= 5.0, < 6"));
    assert!(!holds("${attr.kernel.version}", "version", "nonsense"));
    assert!(!holds("${attr.kernel.name}", "version", ">= 1"));
    assert!(holds("1.2.0-rc1", "semver", "> 1.1.0"));
    assert!(holds("${attr.kernel.name}", "regexp", "^li.*x$"));
    assert!(!holds("${attr.kernel.name}", "regexp", "("));
    assert!(holds("${attr.features}", "set_contains", "b,a"));
    assert!(!holds("${attr.features}", "set_contains_all", "a,d"));
    assert!(holds("${attr.features}", "set_contains_any", "d, c"));
    assert!(!holds("${attr.nope}", "set_contains_any", "d"));
}

#[test]
fn is_set_means_attribute_exists() {
    assert!(holds("${attr.empty}", "is_set", ""));
    assert!(!holds("${attr.nope}", "is_set", ""));
    assert!(holds("${attr.nope}", "is_not_set", ""));
}

#[test]
fn distinct_constraints_hold_on_one_node() {
    assert!(holds("", "distinct_hosts", "true"));
    assert!(holds("${meta.rack}", "distinct_property", ""));
    assert!(!holds("a", "nonsense", "a"));
}

#[test]
fn first_failed_constraint_is_reported() {
    let all = [
        constraint("${attr.kernel.name}", "", "linux"),
        constraint("${attr.kernel.name}", "", "windows"),
        constraint("${attr.nope}", "is_set", ""),
    ];
    assert_eq!(
        check_node(&node(), &all),
        Err("${attr.kernel.name} = windows".to_owned())
    );
    assert_eq!(check_node(&node(), all.iter().take(1)), Ok(()));
    assert_eq!(
        check_node(&node(), all.iter().skip(2)),
        Err("${attr.nope} is_set".to_owned())
    );
}

#[test]
fn meaningless_constraint_is_refused() {
    for (target, operand, value) in [
        ("a", "nonsense", "b"),
        ("", "=", "b"),
        ("a", "=", ""),
        ("a", "<", ""),
        ("a", "set_contains", ""),
        ("a", "regexp", ""),
        ("a", "regexp", "("),
        ("a", "version", ">> 1"),
        ("a", "semver", "~> 1"),
        ("a", "is_set", "b"),
        ("", "is_not_set", ""),
        ("a", "distinct_property", "0"),
        ("a", "distinct_property", "x"),
    ] {
        let found = check_constraint(&constraint(target, operand, value));
        assert!(found.is_err(), "{target} {operand} {value}");
    }
    for (target, operand, value) in [
        ("a", "", "b"),
        ("", "distinct_hosts", ""),
        ("a", "distinct_property", ""),
        ("a", "distinct_property", "2"),
        ("a", "is_set", ""),
        ("a", "regexp", "${meta.pattern}"),
        ("a", "version", "~> 1.2"),
    ] {
        let found = check_constraint(&constraint(target, operand, value));
        assert_eq!(found, Ok(()), "{target} {operand} {value}");
    }
    assert_eq!(
        check_constraint(&constraint("a", "regex", "b")),
        Err("unknown operator \"regex\" (did you mean \"regexp\"?)".to_owned())
    );
}

#[test]
fn data_centres_are_matched_by_patterns() {
    let patterns = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    assert!(datacenter_matches(&patterns(&["*"]), "dc1"));
    assert!(datacenter_matches(&patterns(&["us-*", "eu-*"]), "eu-1"));
    assert!(!datacenter_matches(&patterns(&["dc"]), "dc1"));
    assert!(!datacenter_matches(&[], "dc1"));
}

#[test]
fn two_character_operators_are_parsed() {
    let hint = |operand: &str| {
        let why = check_constraint(&constraint("a", operand, "b")).err();
        why.is_some_and(|why| why.contains("did you mean"))
    };
    assert!(hint("regex"));
    assert!(!hint("iz"));
}

#[test]
fn node_attributes_resolve_by_all_names() {
    let node = Node {
        id: NodeId(7),
        region: "north".to_owned(),
        class: "big".to_owned(),
        pool: "spare".to_owned(),
        ..node()
    };
    let holds = |target: &str, value: &str| satisfies(&node, &constraint(target, "=", value));
    assert!(holds("${node.unique.id}", &node.id.to_string()));
    assert!(holds("${node.unique.name}", "n1"));
    assert!(holds("${node.datacenter}", "eu-1"));
    assert!(holds("${node.region}", "north"));
    assert!(holds("${node.class}", "big"));
    assert!(holds("${node.pool}", "spare"));
    assert!(!holds("${node.other}", "spare"));
}

#[test]
fn number_like_text_compares_as_text() {
    // As a number 10 is more than 9, as text it is less.
    assert!(holds("10", ">", "9"));
    for text in ["9x", "9.x", "x.9", "9.9.9"] {
        assert!(holds("10", "<", text), "{text}");
    }
    assert!(holds(".5", "<", "10"));
    assert!(holds("5.", "<", "10"));
    assert!(!holds(".", ">", "/"), "a point alone is text");
}
