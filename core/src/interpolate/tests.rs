use super::*;

fn env() -> BTreeMap<String, String> {
    [
        ("NOMAD_PORT_http", "8080"),
        ("NOMAD_META_a_b", "cleaned"),
        ("my key", "spaced"),
        ("NESTED", "${NOMAD_PORT_http}"),
        ("attr.cpu.arch", "from env"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into()
}

fn node() -> Node {
    let mut node = Node {
        name: "n1".to_owned(),
        datacenter: "dc1".to_owned(),
        ..Node::default()
    };
    node.attributes
        .insert("cpu.arch".to_owned(), "amd64".to_owned());
    node.attributes
        .insert("kernel.name".to_owned(), "linux".to_owned());
    node.meta.insert("rack".to_owned(), "r7".to_owned());
    node
}

fn said(text: &str) -> String {
    interpolate(
        text,
        &Names {
            env: &env(),
            node: &node(),
        },
    )
}

#[test]
fn names_of_the_environment_and_the_node_are_known() {
    assert_eq!(said("x${NOMAD_PORT_http}y"), "x8080y");
    assert_eq!(said("${node.unique.name}/${node.datacenter}"), "n1/dc1");
    assert_eq!(said("${attr.kernel.name}-${meta.rack}"), "linux-r7");
    assert_eq!(said("${node.attr.kernel.name}${node.meta.rack}"), "linuxr7");
    assert_eq!(
        said("${env[\"my key\"]}${env.NOMAD_PORT_http}"),
        "spaced8080"
    );
    assert_eq!(said("${node.class}|"), "|", "an empty class is known");
}

#[test]
fn the_environment_comes_before_the_node() {
    assert_eq!(said("${attr.cpu.arch}"), "from env");
    assert_eq!(said("${node.attr.cpu.arch}"), "amd64");
}

#[test]
fn cleaned_names_are_found_by_what_was_written() {
    assert_eq!(said("${NOMAD_META_a-b}"), "cleaned");
}

#[test]
fn what_is_not_known_or_no_reference_stays() {
    for text in [
        "${meta.nothere}",
        "${env[\"attr.kernel.name\"]}",
        "${HOME:-/root}",
        "${}",
        "${env[\"\"]}",
        "${unclosed",
        "$NOMAD_PORT_http",
        "100% $ é$",
        "",
    ] {
        assert_eq!(said(text), text);
    }
    assert_eq!(said("${${NOMAD_PORT_http}}"), "${8080}");
}

#[test]
fn only_a_drivers_configuration_knows_escapes() {
    assert_eq!(said("$${NOMAD_PORT_http}"), "$8080");
    assert!(!has_reference("$${NOMAD_PORT_http}"));
    assert!(has_reference("$${A}${B}"));
}

#[test]
fn what_a_reference_stands_for_is_not_looked_at_again() {
    assert_eq!(said("${NESTED}"), "${NOMAD_PORT_http}");
}

#[test]
fn a_drivers_configuration_must_know_all_its_names() {
    let env = env();
    let node = node();
    let names = Names {
        env: &env,
        node: &node,
    };
    let list = |items: &[&str]| Value::List(items.iter().map(|s| Value::from(*s)).collect());
    assert_eq!(
        interpolate_value(
            &list(&["-p", "${NOMAD_PORT_http}", "$${X}"]),
            "args",
            &names
        ),
        Ok(list(&["-p", "8080", "${X}"]))
    );
    let config = [
        ("args".to_owned(), list(&["a", "${NOPE}"])),
        ("n".to_owned(), Value::Int(3)),
        (
            "labels".to_owned(),
            Value::List(vec![Value::Map(
                [("k".to_owned(), Value::from("${meta.no}"))].into(),
            )]),
        ),
    ]
    .into();
    let problems = interpolate_config(&config, &names)
        .err()
        .unwrap_or_default();
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "args[1]: unknown variable in \"${NOPE}\"",
            "labels[0].k: unknown variable in \"${meta.no}\"",
        ]
    );
}

#[test]
fn references_cannot_fill_the_memory() {
    let env = [("BIG".to_owned(), "x".repeat(1 << 20))].into();
    let node = Node::default();
    let names = Names {
        env: &env,
        node: &node,
    };
    let text = "${BIG}".repeat(1000);
    assert!(interpolate(&text, &names).len() <= MAX_EXPANDED + text.len());
    assert!(interpolate_value(&Value::String(text), "args", &names).is_err());
}
