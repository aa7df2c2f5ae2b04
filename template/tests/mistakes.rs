//! Where mistakes are, and how they are reported.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test may panic")]

mod world;

use drover_template::{Error, ErrorKind, Options, Template};

fn mistake(text: &str) -> Error {
    let template = Template::parse(text, Options::default());
    template
        .and_then(|template| template.render(&world::answers()))
        .unwrap_err()
}

fn fails_with(text: &str, wanted: &str) {
    assert_eq!(mistake(text).to_string(), wanted, "{text}");
}

#[test]
fn error_position_is_line_and_column() {
    fails_with(
        "a\nbé{{ nofunc }}",
        "line 2, column 6: there is no function \"nofunc\"; text is written in quotes",
    );
    fails_with(
        "\n\n{{ if true }}",
        "line 3, column 1: {{if}} is not closed: add {{end}}",
    );
    fails_with(
        "{{ $x }}",
        "line 1, column 4: there is no variable $x here: set it first with :=",
    );
    fails_with(
        "x\n  {{ index (sprig_list 1) 5 }}",
        "line 2, column 6: index: the index is out of range: compare it with len first",
    );
    fails_with(
        "{{ \"a\nb\" }}",
        "line 1, column 4: the text is not closed on its line: add \"",
    );
    fails_with(
        "{{ 1 ",
        "line 1, column 1: the action is not closed: add \"}}\"",
    );
    fails_with(
        "{{ (1 }}",
        "line 1, column 4: \"(\" is not closed: add \")\"",
    );
    fails_with(
        "ok {{ end }}",
        "line 1, column 4: {{end}} without a block that it belongs to",
    );
    fails_with(
        "{{ template \"t\" }}",
        "line 1, column 1: no template \"t\" is defined",
    );
    fails_with(
        "{{ toUpper 5 }}",
        "line 1, column 4: toUpper: argument 1 must be text, and is int",
    );
    fails_with(
        "{{ toUpper }}",
        "line 1, column 4: toUpper: 0 arguments are not what it takes: toUpper text",
    );
}

#[test]
fn innermost_error_position_is_reported() {
    let text =
        "{{ define \"t\" }}\n  {{ .a.b.c }}\n{{ end }}{{ template \"t\" (sprig_dict \"a\" 1) }}";
    let error = mistake(text);
    assert_eq!((error.line(), error.column()), (2, 6));
    assert_eq!(
        error.message(),
        "int has no field b: test it with {{with}} first if it may be missing"
    );
    let error = mistake("{{ print 1 |\n  printf \"%d\" 2 (index (sprig_list) 0) }}");
    assert_eq!((error.line(), error.column()), (2, 18));
}

#[test]
fn consul_and_vault_functions_are_refused_at_parse() {
    let text = "{{ if false }}\n{{ key \"a\" }}{{ end }}";
    let error = Template::parse(text, Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let wanted = "line 2, column 4: the function \"key\" is refused: it needs Consul, which this agent does not speak to";
    assert_eq!(error.to_string(), wanted);
    for name in [
        "secret",
        "service",
        "plugin",
        "executeTemplate",
        "writeToFile",
        "sockaddr",
        "call",
        "spew_dump",
    ] {
        let error = mistake(&format!("{{{{ {name} \"x\" }}}}"));
        assert_eq!(error.kind(), ErrorKind::Refused, "{name}");
    }
}

/// Messages end up in events that others read than those who may know the data.
#[test]
fn template_errors_contain_no_data() {
    let templates = [
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | parseInt }}",
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | parseJSON }}",
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | parseYAML | divide 1 }}",
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | base64Decode }}",
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | add 1 }}",
        "{{ eq (nomadVar \"nomad/jobs/web\").password.Value 1 }}",
        "{{ index (sprig_list) (nomadVar \"nomad/jobs/web\").password.Value }}",
        "{{ (nomadVar \"nomad/jobs/web\").password.Value | parseBool }}",
    ];
    for text in templates {
        let error = mistake(text).to_string();
        assert!(!error.contains("p<w>"), "{text}: {error}");
    }
}

#[test]
fn missing_key_is_error_if_configured() {
    let options = Options {
        error_on_missing_key: true,
        ..Options::default()
    };
    let template = Template::parse("a\n{{ (sprig_dict).key }}", options).unwrap();
    let error = template.render(&world::answers()).unwrap_err();
    let wanted = "line 2, column 4: there is no key \"key\", and missing keys are errors here";
    assert_eq!(error.to_string(), wanted);
}
