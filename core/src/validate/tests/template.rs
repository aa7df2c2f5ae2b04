use super::*;

/// What is wrong with a template, without the place of its task.
fn with(change: impl FnOnce(&mut Template)) -> Vec<String> {
    let mut template = Template {
        embedded_tmpl: "x".into(),
        dest_path: "local/x".into(),
        ..Template::default()
    };
    change(&mut template);
    let found = task_with(|t| t.templates = vec![template]);
    let strip = |line: &String| {
        let place = "group[\"web\"].task[\"server\"].template[0]";
        line.strip_prefix(place).unwrap_or(line).to_owned()
    };
    found.iter().map(strip).collect()
}

#[test]
fn template_has_one_text_and_one_file() {
    assert_eq!(with(|_| {}), [""; 0]);
    let none = with(|t| t.embedded_tmpl = String::new());
    assert_eq!(none, [": must have a source or data"]);
    let both = with(|t| t.source_path = "local/y".into());
    assert_eq!(both, [": must not have both a source and data"]);
    let nowhere = with(|t| t.dest_path = String::new());
    assert_eq!(nowhere, [".destination: must be given"]);
    let one = Template {
        embedded_tmpl: "x".into(),
        dest_path: "local/x".into(),
        ..Template::default()
    };
    let twice = task_with(|t| t.templates = vec![one.clone(), one.clone()]);
    assert_eq!(twice.len(), 1);
    assert!(twice[0].contains("template[1].destination"), "{twice:?}");
    let many = task_with(|t| t.templates = vec![one; 257]);
    assert_eq!(many.len(), 1, "{many:?}");
}

#[test]
fn change_script_needs_command_and_timeout() {
    let with = |change: &dyn Fn(&mut ChangeScript)| {
        with(|t| {
            let mut script = ChangeScript {
                command: "/bin/true".into(),
                ..ChangeScript::default()
            };
            change(&mut script);
            t.change_mode = ChangeMode::Script;
            t.change_script = Some(script);
        })
    };
    assert_eq!(with(&|_| {}), [""; 0]);
    assert_eq!(
        with(&|script| script.command = String::new()),
        [".change_script.command: must be given"]
    );
    assert_eq!(
        with(&|script| script.timeout = Span::secs(-1)),
        [".change_script.timeout: must be more than nothing"]
    );
    assert_eq!(
        with(&|script| script.args = vec!["a\0b".into()]),
        [".change_script: must not hold a NUL character"]
    );
}

#[test]
fn change_mode_script_needs_script() {
    let none = with(|t| t.change_mode = ChangeMode::Script);
    assert_eq!(
        none,
        [".change_script: must be given where change_mode is script"]
    );
}

#[test]
fn template_paths_are_validated() {
    for bad in [
        "../x",
        "../other/x",
        "local/../../y",
        "local/a\0b",
        "local/..",
    ] {
        assert_eq!(with(|t| t.dest_path = bad.into()).len(), 1, "{bad:?}");
        let source = |t: &mut Template| {
            t.embedded_tmpl = String::new();
            t.source_path = bad.into();
        };
        assert_eq!(with(source).len(), 1, "{bad:?}");
    }
    // What a reference stands for is seen later.
    let later = with(|t| t.dest_path = "${NOMAD_SECRETS_DIR}/x".into());
    assert_eq!(later, [""; 0]);
}

#[test]
fn template_times_modes_and_permissions_are_validated() {
    for bad in ["9", "rw", "1777", "4755", "-1"] {
        assert_eq!(with(|t| t.perms = bad.into()).len(), 1, "{bad}");
    }
    assert_eq!(with(|t| t.perms = "600".into()), [""; 0]);
    let negative = with(|t| t.splay = Span::secs(-1));
    assert_eq!(negative, [".splay: must not be negative"]);
    let wait = |min, max| {
        let wait = Wait {
            min: Span::secs(min),
            max: Span::secs(max),
        };
        with(|t| t.wait = Some(wait))
    };
    assert_eq!(wait(1, 2), [""; 0]);
    assert_eq!(wait(3, 2), [".wait.max: must be at least min"]);
    assert_eq!(wait(-1, 2), [".wait.min: must not be negative"]);
    let signal = |envvars| {
        with(|t| {
            t.change_mode = ChangeMode::Signal;
            t.change_signal = "SIGHUP".into();
            t.envvars = envvars;
        })
    };
    assert_eq!(signal(false), [""; 0]);
    assert_eq!(signal(true).len(), 1);
}
