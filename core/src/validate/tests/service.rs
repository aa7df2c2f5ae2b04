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
    let mut checked = service(&[]);
    if let Value::Map(fields) = &mut checked {
        let checks = Value::List(vec![Value::Map(BTreeMap::new())]);
        fields.insert("Checks".to_owned(), checks);
    }
    assert_eq!(advice(checked).len(), 1);
}
