//! What cannot be read is refused with its place, everything has a bound, and nothing is dropped unsaid.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use drover_import::{MAX_SIZE, Source, import};

fn try_import(name: &str, text: &str) -> Result<String, String> {
    let source = Source {
        name,
        directory: "/srv/shop",
        text,
    };
    import(&[source]).map_err(|error| error.to_string())
}

/// The message of what is refused.
fn refusal(name: &str, text: &str) -> String {
    try_import(name, text).expect_err(text)
}

/// A service with these lines.
fn service(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("    {line}\n")).collect();
    format!("services:\n  web:\n    image: nginx\n{lines}")
}

#[test]
fn mistakes_of_compose_files_have_a_place() {
    for (lines, wanted) in [
        (
            "ports: [80, x]",
            "compose.yml:4:17: \"x\" is no port: a number from 1 to 65535 is",
        ),
        (
            "ports: ['70000:80']",
            "compose.yml:4:13: \"70000\" is no port: a number from 1 to 65535 is",
        ),
        ("ports: 80", "compose.yml:4:12: ports must be a list"),
        (
            "ports: ['80-90:80-91']",
            "compose.yml:4:13: \"80-90\" and \"80-91\" are ranges of different lengths",
        ),
        (
            "image: [a]",
            "compose.yml:4:5: this is no YAML that can be read: duplicate mapping key: image",
        ),
        (
            "environment: [[a]]",
            "compose.yml:4:19: environment must have texts of the form NAME=VALUE",
        ),
        (
            "mem_limit: lots",
            "compose.yml:4:16: mem_limit: \"lots\" is no size such as 512m",
        ),
        (
            "stop_grace_period: soon",
            "compose.yml:4:24: stop_grace_period: \"soon\" is no duration such as 1m30s",
        ),
        (
            "init: maybe",
            "compose.yml:4:11: init must be true or false, not \"maybe\"",
        ),
        (
            "command: \"a 'b\"",
            "compose.yml:4:14: command: a quote has no end",
        ),
        (
            "user: ${A",
            "compose.yml:4:11: ${ without its } in \"${A\"; for a dollar sign write $$",
        ),
        (
            "user: $5",
            "compose.yml:4:11: \"$5\": for a dollar sign write $$",
        ),
        (
            "restart: often",
            "compose.yml:4:14: restart must be no, always, on-failure or unless-stopped, not \"often\"",
        ),
        (
            "depends_on: [db]",
            "compose.yml:4:18: there is no service \"db\" to depend on",
        ),
        (
            "depends_on: [web]",
            "compose.yml:2:3: service \"web\" waits for itself, by what it depends on: web",
        ),
        (
            "extends: web",
            "compose.yml:3:5: service \"web\" extends itself, or too many others",
        ),
        ("secrets: [key]", "compose.yml:4:15: secrets has no \"key\""),
        (
            "healthcheck: { test: [sleep] }",
            "compose.yml:4:26: test must begin with NONE, CMD or CMD-SHELL, and a command",
        ),
        (
            "user: \"a\\0b\"",
            "compose.yml:4:11: a text must not contain a NUL character",
        ),
        (
            "scale: -1",
            "compose.yml:4:12: scale: \"-1\" is no number up to 10000",
        ),
    ] {
        assert_eq!(refusal("compose.yml", &service(lines)), wanted, "{lines}");
    }
}

#[test]
fn files_without_sense_are_refused() {
    for (name, text, wanted) in [
        (
            "compose.yml",
            "services: {}",
            "compose.yml:1:1: there are no services in this file",
        ),
        (
            "compose.yml",
            "services:\n  web: {}",
            "compose.yml:2:3: service \"web\" has neither image nor build",
        ),
        (
            "compose.yml",
            "services:\n  'a b': { image: x }",
            "compose.yml:2:3: \"a b\" is no name of a service: letters, digits, -, _ and dots, at most 60",
        ),
        (
            "compose.yml",
            "just text",
            "compose.yml:1:1: a compose file must be a map of names and values",
        ),
        (
            "a.service",
            "[Service]\nType=simple",
            "a.service: there is no ExecStart in a section [Service]: nothing can be started",
        ),
        (
            "a.service",
            "ExecStart=/bin/true",
            "a.service:1:1: \"ExecStart\" stands before the first section",
        ),
        (
            "a.service",
            "[Service]\nnonsense",
            "a.service:2:1: \"nonsense\" is neither a section nor KEY=VALUE",
        ),
        (
            "a.service",
            "[Service\n",
            "a.service:1:1: \"[Service\" is no section",
        ),
        (
            "a.service",
            "[Service]\nExecStart=/bin/echo \"x",
            "a.service:2:1: ExecStart: a quote has no end",
        ),
        (
            "a.service",
            "[Service]\nExecStart=-@",
            "a.service:2:1: ExecStart names no program",
        ),
        (
            "a.service",
            "[Service]\nExecStart=/a\nExecStart=/b",
            "a.service:3:1: only a service of Type=oneshot has several ExecStart",
        ),
        (
            "a.service",
            "[Service]\nExecStart=/a\nRestart=perhaps",
            "a.service:3:1: Restart=perhaps is not known",
        ),
        (
            "a.service",
            "[Service]\nExecStart=/a\nEnvironment=X",
            "a.service:3:1: Environment must have words of the form NAME=VALUE",
        ),
        (
            "a.container",
            "[Container]\nExec=x",
            "a.container: there is no Image in a section [Container]",
        ),
        (
            "a.container",
            "[Container]\nImage=x\nPublishPort=0:0:0:0",
            "a.container:3:1: \"0:0:0:0\" is no port",
        ),
        (
            "a.timer",
            "[Timer]\n",
            "a.timer: name the service that it starts, too",
        ),
        (
            "a.txt",
            "",
            "a.txt: its kind is recognised by its name: .yml or .yaml (compose), .service, .timer or .container",
        ),
    ] {
        assert_eq!(refusal(name, text), wanted, "{text}");
    }
}

#[test]
fn timer_of_another_service_is_refused() {
    let directory = "/etc/systemd/system";
    let service = Source {
        name: "a.service",
        directory,
        text: "[Service]\nExecStart=/bin/true\n",
    };
    let timer = Source {
        name: "b.timer",
        directory,
        text: "[Timer]\nUnit=b.service\n",
    };
    let refused = import(&[service, timer])
        .expect_err("it starts another one")
        .to_string();
    assert_eq!(
        refused,
        "b.timer:2:1: this timer starts b.service, and not a.service"
    );
}

/// Each is more than is read; all are refused, and soon.
#[test]
fn everything_has_a_bound() {
    let nested = format!("services: {}{}", "[".repeat(500), "]".repeat(500));
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for at in 1..12 {
        let before = format!("*a{}, ", at - 1).repeat(10);
        laughs.push_str(&format!(
            "a{at}: &a{at} [{}]\n",
            before.trim_end_matches(", ")
        ));
    }
    laughs.push_str("services: { web: { image: x, command: *a11 } }\n");
    let many: String = (0..201)
        .map(|at| format!("  s{at}: {{ image: x }}\n"))
        .collect();
    let mut chain = String::new();
    for at in 0..25 {
        chain.push_str(&format!("  s{at}: {{ image: x, extends: s{} }}\n", at + 1));
    }
    chain.push_str("  s25: { image: x }\n");
    let wide: String = (0..6)
        .map(|at| format!("      - {}-{}\n", at * 100 + 1, at * 100 + 100))
        .collect();
    let defaults = format!("user: {}x{}", "${A:-".repeat(20), "}".repeat(20));
    let variables: String = (0..1_100).map(|at| format!(" $V{at}")).collect();
    let entries = format!("[Service]\n{}", "A=1\n".repeat(10_001));
    let words = format!("[Service]\nExecStart=/a {}", "x ".repeat(1_100));
    // Each of a hundred services is a task of each of a hundred others.
    let mut tasks = String::new();
    let list: Vec<String> = (0..90)
        .map(|at| format!("f{at}: {{ condition: service_completed_successfully }}"))
        .collect();
    for at in 0..90 {
        tasks.push_str(&format!(
            "  f{at}: {{ image: x }}\n  g{at}: {{ image: x, depends_on: {{ {} }} }}\n",
            list.join(", ")
        ));
    }
    for (name, text) in [
        ("compose.yml", "x".repeat(MAX_SIZE + 1)),
        ("compose.yml", nested),
        ("compose.yml", laughs),
        ("compose.yml", format!("services:\n{many}")),
        ("compose.yml", format!("services:\n{chain}")),
        ("compose.yml", format!("services:\n{tasks}")),
        ("compose.yml", service("ports: ['1-60000']")),
        ("compose.yml", format!("{}    ports:\n{wide}", service(""))),
        ("compose.yml", service(&defaults)),
        ("compose.yml", service(&format!("command:{variables}"))),
        ("a.service", entries),
        ("a.service", words),
    ] {
        let shown: String = text.chars().take(60).collect();
        assert!(try_import(name, &text).is_err(), "{shown}");
    }
}

/// Whatever the key, its name is found in what is written, unless it says nothing.
#[test]
fn unknown_settings_are_named() {
    let file = service(
        "zz-known-to-nobody: 5\ndeploy: { zz-deploy: 1 }\nhealthcheck: { test: x, zz-check: 1 }",
    ) + "volumes: { v: { zz-volume: 1 } }\nnetworks: { n: { zz-network: 1 } }\nsecrets: { s: { file: x, zz-secret: 1 } }\nzz-file: 1\n";
    let found = try_import("compose.yml", &file).unwrap();
    for key in [
        "zz-known-to-nobody",
        "zz-deploy",
        "zz-check",
        "zz-volume",
        "zz-network",
        "zz-secret",
        "zz-file",
    ] {
        assert!(found.contains(key), "{key} is missing:\n{found}");
    }
    let unit = "[Unit]\nZzUnit=1\n[Service]\nExecStart=/bin/true\nZzService=1\n[Install]\nZzInstall=1\n[Zz]\nZzOther=1\n";
    let found = try_import("a.service", unit).unwrap();
    for key in ["ZzUnit", "ZzService", "ZzInstall", "ZzOther"] {
        assert!(found.contains(key), "{key} is missing:\n{found}");
    }
    let quadlet = "[Container]\nImage=x\nZzContainer=1\n[Service]\nZzService=1\n";
    let found = try_import("a.container", quadlet).unwrap();
    for key in ["ZzContainer", "ZzService"] {
        assert!(found.contains(key), "{key} is missing:\n{found}");
    }
}

/// A comment is a comment, whatever the text is that it speaks of.
#[test]
fn text_of_files_does_not_leave_comments_and_quotes() {
    let hostile = "\"a\\nb } ${x} %{ if true } \\u2028 */ EOT\"";
    for lines in [
        format!("labels: {{ {hostile}: {hostile} }}"),
        format!("{hostile}: 1"),
        format!("deploy: {{ {hostile}: 1 }}"),
        "command: [\"a\\nb\", \"$${X}\", \"%{x}\", \"\\t\\\"\"]".to_owned(),
    ] {
        let lines = lines.replace("${x}", "$${x}");
        let found = try_import("compose.yml", &service(&lines)).unwrap();
        let body = found.parse::<hcl_edit::structure::Body>();
        assert!(body.is_ok(), "{lines}\n{found}");
        assert_eq!(body.unwrap().blocks().count(), 1, "{found}");
    }
}

#[test]
fn values_of_units_are_reset_by_empty_ones() {
    let unit = "[Service]\nExecStart=/bin/old\nExecStart=\nExecStart=/bin/new\nEnvironment=A=1\nEnvironment=\nEnvironment=B=2\n";
    let found = try_import("a.service", unit).unwrap();
    assert!(
        found.contains("\"/bin/new\"") && !found.contains("/bin/old"),
        "{found}"
    );
    assert!(
        found.contains("B = \"2\"") && !found.contains("A = "),
        "{found}"
    );
}
