use super::*;

/// A service of ours with these fields besides.
fn service(fields: &[(&str, &str)]) -> Value {
    let own = [("Provider", "nomad"), ("Name", "web"), ("PortLabel", "80")];
    let all = own.iter().chain(fields);
    let map = all.map(|(key, text)| ((*key).to_owned(), Value::from(*text)));
    Value::Map(map.collect())
}

#[test]
fn unsupported_service_is_refused() {
    let of = |fields: &[(&str, &str)]| group_with(|g| g.services = vec![service(fields)]);
    for good in [
        &[][..],
        &[("Name", "a-b9")],
        &[("Name", "${NOMAD_JOB_NAME}!")],
        &[("AddressMode", "host"), ("Address", "example.org")],
        &[("TaskName", "server")],
    ] {
        assert_eq!(of(good), [""; 0], "{good:?}");
    }
    let long = "a".repeat(64);
    for bad in [
        [("Name", "a_b")],
        [("Name", "")],
        [("Name", "-a")],
        [("Name", &long)],
        [("PortLabel", "0")],
        [("PortLabel", "http")],
        [("AddressMode", "alloc_ipv6")],
        [("TaskName", "nobody")],
        [("Provider", "somebody")],
    ] {
        assert_eq!(of(&bad).len(), 1, "{bad:?}");
    }
    let labelled = group_with(|g| {
        g.networks = vec![Network {
            mode: "host".into(),
            dynamic_ports: vec![Port {
                label: "http".into(),
                ..Port::default()
            }],
            ..Network::default()
        }];
        g.services = vec![service(&[("PortLabel", "http")])];
    });
    assert_eq!(labelled, [""; 0]);
}

#[test]
fn ineffective_service_setting_is_warned_about() {
    let advice = |block: Value| {
        warnings(|j| {
            for task in j.task_groups.iter_mut().flat_map(|g| &mut g.tasks) {
                task.services = vec![block.clone()];
            }
        })
    };
    assert_eq!(advice(service(&[])), [""; 0]);
    assert_eq!(advice(service(&[("Provider", "consul")])).len(), 1);
    assert_eq!(advice(service(&[("AddressMode", "alloc")])).len(), 1);
    let of_driver = service(&[("AddressMode", "driver")]);
    assert_eq!(advice(of_driver.clone()), [""; 0]);
    let of_group = warnings(|j| j.task_groups[0].services = vec![of_driver.clone()]);
    assert_eq!(of_group.len(), 1, "no driver knows the network of a group");
}

/// A check with these fields, which has a type, an interval and a timeout already.
fn check(fields: &[(&str, Value)]) -> Value {
    let own = [
        ("Type", Value::from("tcp")),
        ("Interval", Value::Int(10_000_000_000)),
        ("Timeout", Value::from("2s")),
    ];
    let all = own.iter().chain(fields);
    Value::Map(
        all.map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect(),
    )
}

fn checked(checks: Vec<Value>) -> Value {
    let mut service = service(&[]);
    if let Value::Map(fields) = &mut service {
        fields.insert("Checks".to_owned(), Value::List(checks));
    }
    service
}

#[test]
fn check_that_cannot_be_run_is_refused() {
    let of = |checks: Vec<Value>| group_with(|g| g.services = vec![checked(checks.clone())]);
    let text = |text: &str| Value::from(text);
    let http = |fields: &[(&str, Value)]| {
        let own = [("Type", text("http")), ("Path", text("/"))];
        check(&own.iter().chain(fields).cloned().collect::<Vec<_>>())
    };
    let headers = |name: &str, value: &str| {
        let values = Value::List(vec![text(value)]);
        Value::Map([(name.to_owned(), values)].into())
    };
    for good in [
        check(&[]),
        http(&[]),
        http(&[("Method", text("head")), ("Header", headers("X-A", "b"))]),
        http(&[
            ("Protocol", text("https")),
            ("TLSSkipVerify", Value::Bool(true)),
        ]),
        check(&[("Type", text("grpc"))]),
        check(&[
            ("Type", text("script")),
            ("Command", text("/bin/true")),
            ("TaskName", text("server")),
        ]),
        check(&[
            ("InitialStatus", text("passing")),
            ("OnUpdate", text("ignore")),
        ]),
        check(&[("PortLabel", text("81")), ("AddressMode", text("host"))]),
    ] {
        assert_eq!(of(vec![good.clone()]), [""; 0], "{good:?}");
    }
    for bad in [
        check(&[("Type", text("ping"))]),
        check(&[("Interval", Value::Int(999_999_999))]),
        check(&[("Interval", text("soon"))]),
        check(&[("Timeout", Value::Null)]),
        check(&[("Type", text("http"))]),
        http(&[("Protocol", text("gopher"))]),
        http(&[("Method", text("GET / HTTP/1.1"))]),
        http(&[("Header", headers("a b", "c"))]),
        http(&[("Header", headers("a", "b\r\nc"))]),
        http(&[("Body", text(&"x".repeat(70_000)))]),
        check(&[("Type", text("grpc")), ("GRPCUseTLS", Value::Bool(true))]),
        check(&[("Type", text("script")), ("TaskName", text("server"))]),
        check(&[("Type", text("script")), ("Command", text("/bin/true"))]),
        check(&[("TaskName", text("nobody"))]),
        check(&[("PortLabel", text("admin"))]),
        check(&[("AddressMode", text("auto"))]),
        check(&[("InitialStatus", text("well"))]),
        check(&[("OnUpdate", text("never"))]),
        check(&[("SuccessBeforePassing", Value::Int(-1))]),
    ] {
        assert_eq!(of(vec![bad.clone()]).len(), 1, "{bad:?}");
    }
    let twice = check(&[("Name", text("alive"))]);
    assert_eq!(
        of(vec![twice.clone(), twice]).len(),
        1,
        "names are different"
    );
    assert_eq!(
        of(vec![check(&[]); 200]).len(),
        100,
        "names, and the number"
    );
}
