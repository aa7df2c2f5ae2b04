//! Templates of an enemy: all end, with an error that has a line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test may panic"
)]

mod world;

use drover_template::{Error, ErrorKind, Limits, Options, Rendering, Template};

/// Fewer steps than usual, so that the tests take less time.
fn mistake(text: &str) -> Error {
    let limits = Limits {
        steps: 1_500_000,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let template = Template::parse(text, options);
    let rendered = template.and_then(|template| template.render(&world::answers()));
    match rendered {
        Ok(_) => panic!(
            "no mistake: {}",
            text.get(..80.min(text.len())).unwrap_or_default()
        ),
        Err(error) => error,
    }
}

fn limited(text: &str, expected: &str) {
    let error = mistake(text);
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(error.message().contains(expected), "{error}");
}

#[test]
fn too_deep_template_is_refused() {
    let deep = 100_000;
    limited(
        &format!("{{{{ {}1{} }}}}", "(".repeat(deep), ")".repeat(deep)),
        "inside of each other",
    );
    limited(&"{{if 1}}".repeat(deep), "inside of each other");
    limited(
        &format!("{}{}", "{{range 1}}".repeat(101), "{{end}}".repeat(101)),
        "inside of each other",
    );
    limited(
        "{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}",
        "inside of each other",
    );
    let inside = "{{define \"a\"}}{{if 1}}{{with 1}}{{range 1}}{{template \"a\" (((1)))}}";
    let text = format!("{inside}{}{{{{template \"a\"}}}}", "{{end}}".repeat(4));
    limited(&text, "inside of each other");
}

/// On the stack that threads usually have, also where nothing is optimised.
#[test]
fn template_at_maximum_depth_fits_stack() {
    let blocks = format!("{}x{}", "{{with 1}}".repeat(98), "{{end}}".repeat(98));
    let parens = format!("{{{{ {}1{} }}}}", "(print ".repeat(98), ")".repeat(98));
    let calls = "{{define \"a\"}}{{if .}}{{template \"a\" (subtract 1 .)}}{{end}}{{end}}{{template \"a\" 45}}";
    let maps = format!("{}1{}", "{\"a\":".repeat(62), "}".repeat(62));
    let lists = format!("{}1{}", "[".repeat(62), "]".repeat(62));
    let encoded = |json: &str| {
        format!(
            "{{{{ $x := parseJSON {json:?} }}}}{{{{ $x | toJSON | parseYAML | toYAML }}}}{{{{ $x }}}}"
        )
    };
    let templates = [
        blocks,
        parens,
        calls.into(),
        encoded(&maps),
        encoded(&lists),
    ];
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let render = move || {
        for text in templates {
            let template = Template::parse(&text, Options::default()).unwrap();
            let rendered = template.render(&world::answers());
            assert!(
                matches!(rendered, Ok(Rendering::Done { .. })),
                "{text}: {rendered:?}"
            );
        }
    };
    thread.spawn(render).unwrap().join().unwrap();
}

#[test]
fn too_deep_data_is_refused() {
    for yaml in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        (0..1000)
            .map(|depth| format!("{}a:\\n", " ".repeat(depth)))
            .collect(),
    ] {
        mistake(&format!("{{{{ parseYAML \"{yaml}\" }}}}"));
    }
    for json in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        mistake(&format!("{{{{ parseJSON {json:?} }}}}"));
    }
}

#[test]
fn long_pipeline_is_not_deep() {
    let arms = "{{else if eq 1 2}}a".repeat(20_000);
    let text = format!("{{{{if false}}}}{arms}{{{{else}}}}b{{{{end}}}}");
    let template = Template::parse(&text, Options::default()).unwrap();
    template.render(&world::answers()).unwrap();
}

#[test]
fn long_loop_is_stopped() {
    limited("{{ range 1000000000 }}{{ end }}", "steps");
    limited("{{ range loop 9000000000000000000 }}{{ end }}", "steps");
    limited(
        "{{ range 3000 }}{{ range 3000 }}{{ $_ := print 1 }}{{ end }}{{ end }}",
        "steps",
    );
    limited("{{ sprig_until 1000000000 }}", "");
    limited("{{ sprig_untilStep 0 9000000000000000000 1 }}", "");
    limited(
        "{{ $l := sprig_until 100000 }}{{ range 1000000 }}{{ $_ := sprig_has -1 $l }}{{ end }}",
        "steps",
    );
    limited(
        "{{ $l := sprig_until 10000 }}{{ range 100000 }}{{ $_ := sprig_uniq $l }}{{ end }}",
        "steps",
    );
}

#[test]
fn oversized_value_is_stopped() {
    limited(
        "{{ $x := \"aaaaaaaaaaaaaaaa\" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}",
        "bytes",
    );
    limited("{{ sprig_repeat 1000000000 \"abc\" }}", "bytes");
    limited("{{ sprig_repeat 9000000000000000000 \"abc\" }}", "bytes");
    limited(
        "{{ $x := sprig_repeat 10000000 \"a\" }}{{ replaceAll \"a\" $x $x }}",
        "bytes",
    );
    limited(
        "{{ $x := sprig_repeat 1000000 \"a\" }}{{ regexReplaceAll \"a\" $x $x }}",
        "",
    );
    limited(
        "{{ $x := sprig_repeat 100000 \"a\" }}{{ regexReplaceAll \"(a+)\" (sprig_repeat 10000 \"$1\") $x }}",
        "bytes",
    );
    limited(
        "{{ range 300 }}{{ printf \"%1000000d\" 1 }}{{ end }}",
        "bytes",
    );
    limited("{{ indent 1000000000 \"a\" }}", "bytes");
    limited("{{ sprig_indent 9000000000000000000 \"a\" }}", "bytes");
    limited(
        "{{ $x := sprig_list 1 }}{{ range 60 }}{{ $x = sprig_concat $x $x }}{{ end }}",
        "",
    );
}

#[test]
fn output_is_limited() {
    let limits = Limits {
        output: 100,
        ..Limits::default()
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let text = "{{ range 30 }}\n1234{{ end }}";
    let error = Template::parse(text, options)
        .unwrap()
        .render(&world::answers())
        .unwrap_err();
    assert_eq!((error.kind(), error.line()), (ErrorKind::Limit, 1));
    assert_eq!(
        error.message(),
        "output of more than 100 bytes: make it shorter"
    );
}

#[test]
fn oversized_template_is_refused() {
    let text = "x".repeat((1 << 20) + 1);
    let error = Template::parse(&text, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let text = "x".repeat(1 << 20);
    Template::parse(&text, Options::default())
        .unwrap()
        .render(&world::answers())
        .unwrap();
}

/// Maps can be put into themselves; whatever goes through them ends.
#[test]
fn template_cycle_counts_as_depth() {
    let circle = "{{ $d := sprig_dict }}{{ $_ := sprig_set $d \"d\" $d }}";
    for what in [
        "$d",
        "toJSON $d",
        "toYAML $d",
        "toTOML $d",
        "printf \"%v\" $d",
        "sprig_deepCopy $d",
        "mergeMap $d $d",
        "sprig_toString $d",
    ] {
        limited(&format!("{circle}{{{{ {what} }}}}"), "deep");
    }
    limited(
        "{{ $x := sprig_list }}{{ range 100000 }}{{ $x = sprig_list $x }}{{ end }}",
        "deep",
    );
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    limited(&format!("{{{{ parseJSON {nested:?} }}}}"), "deep");
    mistake(&format!("{{{{ parseJSON {:?} }}}}", "[".repeat(100_000)));
}

/// Each list is shown twice in the next one: there are few lists and very much to show.
#[test]
fn shared_value_counts_each_time() {
    let text = "{{ $x := sprig_list }}{{ range 50 }}{{ $x = sprig_list $x $x }}{{ end }}";
    let limits = Limits {
        output: 1 << 20,
        memory: 4 << 20,
        ..Limits::default()
    };
    for what in [
        "$x",
        "toJSON $x",
        "toYAML $x",
        "sprig_deepCopy $x",
        "printf \"%d\" $x",
    ] {
        let options = Options {
            limits,
            ..Options::default()
        };
        let template = Template::parse(&format!("{text}{{{{ {what} }}}}"), options).unwrap();
        let error = template.render(&world::answers()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit, "{what}");
    }
}

/// A chain of maps is as long as one likes, and is taken apart without going down it.
#[test]
fn long_chain_of_maps_is_dropped_iteratively() {
    let text = "{{ $first := sprig_dict }}{{ $d := $first }}{{ range 100000 }}{{ $n := sprig_dict }}\
        {{- $_ := sprig_set $d \"n\" $n }}{{ $d = $n }}{{ end }}done";
    let template = Template::parse(text, Options::default()).unwrap();
    template.render(&world::answers()).unwrap();
}

#[test]
fn expressions_are_limited() {
    for pattern in [
        "(a{1000}){1000}",
        "((((((((((a{10}){10}){10}){10}){10}){10}){10}){10}){10}){10}",
    ] {
        let error = mistake(&format!("{{{{ regexMatch {pattern:?} \"a\" }}}}"));
        assert!(error.message().contains("regular expression"), "{error}");
    }
    limited(
        "{{ range 100000 }}{{ $_ := regexMatch (print \"a\" .) \"a\" }}{{ end }}",
        "",
    );
    let bomb =
        "{{ range 100000 }}{{ $_ := regexMatch \"(x+x+)+y\" (sprig_repeat 1000 \"x\") }}{{ end }}";
    limited(bomb, "");
}

/// Aliases of YAML that stand for very much.
#[test]
fn aliases_are_limited() {
    let mut yaml = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\\n");
    for at in 1..8 {
        let before = format!("*a{}, ", at - 1).repeat(10);
        yaml.push_str(&format!("a{at}: &a{at} [{before}]\\n"));
    }
    mistake(&format!("{{{{ parseYAML \"{yaml}\" }}}}"));
}
