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

fn output(text: &str) -> String {
    interpolate(
        text,
        &Names {
            env: &env(),
            node: &node(),
        },
    )
}

#[test]
fn environment_and_node_names_resolve() {
    assert_eq!(output("x${NOMAD_PORT_http}y"), "x8080y");
    assert_eq!(output("${node.unique.name}/${node.datacenter}"), "n1/dc1");
    assert_eq!(output("${attr.kernel.name}-${meta.rack}"), "linux-r7");
    assert_eq!(
        output("${node.attr.kernel.name}${node.meta.rack}"),
        "linuxr7"
    );
    assert_eq!(
        output("${env[\"my key\"]}${env.NOMAD_PORT_http}"),
        "spaced8080"
    );
    assert_eq!(output("${node.class}|"), "|", "an empty class is known");
}

#[test]
fn references_are_replaced_in_every_text_of_an_artifact() {
    let (env, node) = (env(), node());
    let pair = |value: &str| BTreeMap::from([("${node.datacenter}".to_owned(), value.to_owned())]);
    let artifact = Artifact {
        getter_source: "https://${attr.kernel.name}/a".to_owned(),
        getter_options: pair("${meta.rack}"),
        getter_headers: pair("Bearer ${meta.rack}"),
        relative_dest: "local/${meta.rack}".to_owned(),
        ..Artifact::default()
    };
    let names = Names {
        env: &env,
        node: &node,
    };
    let replaced = |value: &str| BTreeMap::from([("dc1".to_owned(), value.to_owned())]);
    let expected = Artifact {
        getter_source: "https://linux/a".to_owned(),
        getter_options: replaced("r7"),
        getter_headers: replaced("Bearer r7"),
        relative_dest: "local/r7".to_owned(),
        ..Artifact::default()
    };
    assert_eq!(interpolate_artifact(&artifact, &names), expected);
}

#[test]
fn environment_overrides_node_names() {
    assert_eq!(output("${attr.cpu.arch}"), "from env");
    assert_eq!(output("${node.attr.cpu.arch}"), "amd64");
}

#[test]
fn sanitized_name_resolves_by_original() {
    assert_eq!(output("${NOMAD_META_a-b}"), "cleaned");
}

#[test]
fn unknown_reference_is_unchanged() {
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
        assert_eq!(output(text), text);
    }
    assert_eq!(output("${${NOMAD_PORT_http}}"), "${8080}");
}

#[test]
fn only_driver_config_has_escapes() {
    assert_eq!(output("$${NOMAD_PORT_http}"), "$8080");
    assert!(!has_reference("$${NOMAD_PORT_http}"));
    assert!(has_reference("$${A}${B}"));
}

#[test]
fn interpolation_is_not_recursive() {
    assert_eq!(output("${NESTED}"), "${NOMAD_PORT_http}");
}

#[test]
fn unknown_reference_in_driver_config_is_refused() {
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
    let output: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        output,
        [
            "args[1]: unknown variable in \"${NOPE}\"",
            "labels[0].k: unknown variable in \"${meta.no}\"",
        ]
    );
}

#[test]
fn interpolated_size_is_bounded() {
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
