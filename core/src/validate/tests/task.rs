use super::*;

#[test]
fn disk_and_log_settings_are_validated() {
    let disk = |size_mb| {
        group_with(|g| {
            g.ephemeral_disk = Some(EphemeralDisk {
                size_mb,
                ..EphemeralDisk::default()
            });
        })
    };
    assert_eq!(disk(100).len(), 0);
    assert_eq!(
        disk(99),
        [
            "group[\"web\"].task[\"server\"].logs: 100 MB of logs do not fit into ephemeral_disk of 99 MB"
        ]
    );
    assert_eq!(disk(9).len(), 2);
    let logs = |max_files, max_file_size_mb, disabled| {
        task_with(|t| {
            t.log_config = Some(LogConfig {
                max_files,
                max_file_size_mb,
                disabled,
            });
        })
    };
    assert_eq!(logs(0, 10, false).len(), 1);
    assert_eq!(logs(10, 0, false).len(), 1);
    assert_eq!(logs(i64::MAX, i64::MAX, false).len(), 1);
    assert_eq!(logs(0, 0, true).len(), 0);
}

#[test]
fn ports_are_validated() {
    let port = |label: &str, value, to| Port {
        label: label.into(),
        value,
        to,
        ..Port::default()
    };
    let with = |reserved: Vec<Port>, dynamic: Vec<Port>| {
        group_with(|g| {
            g.networks = vec![Network {
                reserved_ports: reserved,
                dynamic_ports: dynamic,
                ..Network::default()
            }];
        })
    };
    assert_eq!(
        with(vec![port("a", 80, 0)], vec![port("b", 0, -1)]).len(),
        0
    );
    assert_eq!(
        with(vec![port("a", 80, 0)], vec![port("a", 0, 0)]),
        ["group[\"web\"].network.port[\"a\"]: another port has the same label"]
    );
    assert_eq!(
        with(vec![port("a", 80, 0), port("b", 80, 0)], vec![]),
        ["group[\"web\"].network.port[\"b\"].static: port \"a\" has the same number"]
    );
    for good in ["a-b", "a_b", "9"] {
        assert_eq!(with(vec![], vec![port(good, 0, 0)]), [""; 0], "{good:?}");
    }
    for bad in ["", "é", "a b", "a/b"] {
        assert_eq!(with(vec![], vec![port(bad, 0, 0)]).len(), 1, "{bad:?}");
    }
    for value in [0, -1, 65_536] {
        assert_eq!(with(vec![port("a", value, 0)], vec![]).len(), 1);
    }
    for to in [-2, 65_536] {
        assert_eq!(with(vec![], vec![port("a", 0, to)]).len(), 1);
    }
    let elsewhere = Port {
        host_network: "private".into(),
        ..port("a", 0, 0)
    };
    assert_eq!(with(vec![], vec![elsewhere.clone()]), [""; 0]);
    for bad in ["a b", "a/b", "\u{1}"] {
        let nowhere = Port {
            host_network: bad.into(),
            ..elsewhere.clone()
        };
        assert_eq!(with(vec![], vec![nowhere]).len(), 1, "{bad:?}");
    }
    assert_eq!(
        group_with(|g| g.networks = vec![Network::default(), Network::default()]),
        ["group[\"web\"].network: only one may be given"]
    );
    let crowded = warnings(|j| {
        for group in &mut j.task_groups {
            group.count = Some(2);
            group.networks = vec![Network {
                reserved_ports: vec![port("a", 80, 0)],
                ..Network::default()
            }];
        }
    });
    assert_eq!(crowded.len(), 1);
}

#[test]
fn network_modes_are_validated() {
    let mode = |mode: &str| {
        group_with(|g| {
            g.networks = vec![Network {
                mode: mode.into(),
                ..Network::default()
            }];
        })
    };
    for good in ["", "host", "bridge", "none", "cni/mine"] {
        assert_eq!(mode(good), [""; 0], "{good}");
    }
    assert_eq!(
        mode("brige"),
        [
            "group[\"web\"].network.mode: unknown network mode \"brige\": host, bridge, none and \
             cni/NAME are known"
        ]
    );
    let foreign = group_with(|g| {
        g.networks = vec![Network {
            mode: "bridge".into(),
            ..Network::default()
        }];
        g.tasks[0].driver = "qemu".into();
    });
    assert_eq!(foreign.len(), 1, "{foreign:?}");
}

#[test]
fn arguments_for_plugins_are_validated() {
    let with = |cni: Value| {
        group_with(|g| {
            g.networks = vec![Network {
                mode: "cni/mine".into(),
                cni: Some(cni),
                ..Network::default()
            }];
        })
    };
    let map = |name: &str, value: Value| Value::Map([(name.to_owned(), value)].into());
    let text = |text: &str| Value::String(text.to_owned());
    let args = |name: &str, value: Value| with(map("Args", map(name, value)));
    for good in ["10.0.0.9", "", "${NOMAD_ALLOC_ID}", "two words"] {
        assert_eq!(args("IP", text(good)), [""; 0], "{good}");
    }
    for (name, value) in [
        ("IP", text("1;K8S_POD_NAME=bank")),
        ("IP", text("a=b")),
        ("IP", text("a\nb")),
        ("IP", text(&"a".repeat(2_000))),
        ("IP", Value::Int(1)),
        ("A;B", text("a")),
        ("A=B", text("a")),
        ("", text("a")),
    ] {
        assert_eq!(args(name, value.clone()).len(), 1, "{name} {value:?}");
    }
    assert_eq!(with(map("Other", text("a"))).len(), 1);
    assert_eq!(with(map("Args", text("a"))).len(), 1);
    let many = (0..65).map(|at| (format!("a{at}"), text("1"))).collect();
    assert_eq!(with(map("Args", Value::Map(many))).len(), 1);
}

#[test]
fn hostile_network_values_are_refused() {
    let with = |change: fn(&mut Network)| {
        group_with(|g| {
            let mut network = Network {
                mode: "bridge".into(),
                ..Network::default()
            };
            change(&mut network);
            g.networks = vec![network];
        })
    };
    let dns = |change: fn(&mut Dns)| {
        group_with(|g| {
            let mut dns = Dns::default();
            change(&mut dns);
            g.networks = vec![Network {
                dns: Some(dns),
                ..Network::default()
            }];
        })
        .len()
    };
    assert_eq!(with(|it| it.hostname = "web-1.example".into()), [""; 0]);
    assert_eq!(with(|it| it.hostname = "${NOMAD_JOB_ID}".into()), [""; 0]);
    assert_eq!(with(|it| it.hostname = "a\nb".into()).len(), 1);
    assert_eq!(with(|it| it.hostname = "a".repeat(64)).len(), 1);
    assert_eq!(
        dns(|it| it.servers = vec!["1.1.1.1".into(), "::1".into()]),
        0
    );
    assert_eq!(
        dns(|it| it.servers = vec!["1.1.1.1\nnameserver 6.6.6.6".into()]),
        1
    );
    assert_eq!(dns(|it| it.servers = vec!["1.1.1.1".into(); 17]), 1);
    assert_eq!(dns(|it| it.searches = vec!["a\noptions x".into()]), 1);
    assert_eq!(dns(|it| it.options = vec!["ndots:2".into()]), 0);
    assert_eq!(dns(|it| it.options = vec!["ndots:2 timeout:1".into()]), 1);
    let closed = with(|it| {
        it.mode = "none".into();
        it.dynamic_ports = vec![Port {
            label: "http".into(),
            ..Port::default()
        }];
    });
    assert_eq!(closed.len(), 1, "{closed:?}");
}

#[test]
fn static_port_is_there_once_in_each_host_network() {
    let with = |second: &str| {
        group_with(|g| {
            let port = |label: &str, host_network: &str| Port {
                label: label.into(),
                value: 80,
                host_network: host_network.into(),
                ..Port::default()
            };
            g.networks = vec![Network {
                reserved_ports: vec![port("a", ""), port("b", second)],
                ..Network::default()
            }];
        })
        .len()
    };
    assert_eq!((with("default"), with("public")), (1, 0));
}

#[test]
fn resources_are_validated() {
    let with = |change: fn(&mut Task)| task_with(change);
    assert_eq!(with(|t| t.resources.cpu = 0).len(), 1);
    assert_eq!(with(|t| t.resources.memory_mb = 9).len(), 1);
    assert_eq!(with(|t| t.resources.memory_mb = i64::MAX).len(), 1);
    assert_eq!(with(|t| t.resources.memory_max_mb = -1).len(), 0);
    assert_eq!(with(|t| t.resources.memory_max_mb = -2).len(), 1);
    assert_eq!(with(|t| t.resources.memory_max_mb = 299).len(), 1);
    assert_eq!(with(|t| t.resources.memory_max_mb = 300).len(), 0);
    assert_eq!(with(|t| t.resources.secrets_mb = 301).len(), 1);
    assert_eq!(with(|t| t.resources.cores = -1).len(), 1);
    let cores = with(|t| {
        t.resources.cores = 2;
        t.resources.cpu = 0;
    });
    assert_eq!(cores.len(), 0);
}

#[test]
fn driver_config_is_validated() {
    assert_eq!(
        task_with(|t| t.driver.clear()),
        ["group[\"web\"].task[\"server\"].driver: must be given"]
    );
    assert_eq!(
        task_with(|t| {
            t.config.insert("arg".into(), Value::Null);
        }),
        [
            "group[\"web\"].task[\"server\"].config.arg: unknown option \"arg\" (did you mean \"args\"?)"
        ]
    );
    assert_eq!(
        task_with(|t| {
            t.config.insert("command".into(), Value::from(""));
        }),
        ["group[\"web\"].task[\"server\"].config.command: must not be empty"]
    );
    let foreign = task_with(|t| {
        t.driver = "other".into();
        t.config.insert("anything".into(), Value::Int(1));
    });
    assert_eq!(foreign.len(), 0);
}

#[test]
fn env_and_meta_are_validated() {
    for (key, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "\0")] {
        let found = task_with(|t| {
            t.env.insert(key.into(), value.into());
        });
        assert_eq!(found.len(), 1, "{key:?}");
    }
    for (key, value) in [("", "x"), ("a\0", "x"), ("a", "\0")] {
        let found = job_with(|j| {
            j.meta.insert(key.into(), value.into());
        });
        assert_eq!(found.len(), 1, "{key:?}");
    }
    let warnings = warnings(|j| {
        j.meta.insert("a-b".into(), "x".into());
        j.meta.insert("a_b".into(), "x".into());
    });
    assert_eq!(warnings.len(), 1);
}
