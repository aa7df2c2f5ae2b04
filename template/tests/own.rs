//! What is on purpose not as in Nomad, and what Nomad has no word for.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test may panic"
)]

mod world;

use drover_template::{ErrorKind, Options, Rendering, Template};

fn rendered(text: &str) -> Vec<u8> {
    let template = Template::parse(text, Options::default()).unwrap();
    match template.render(&world::answers()).unwrap() {
        Rendering::Done { text, .. } => text,
        Rendering::Waiting { missing, .. } => panic!("{text} waits for {missing:?}"),
    }
}

fn renders(text: &str, wanted: &str) {
    assert_eq!(String::from_utf8_lossy(&rendered(text)), wanted, "{text}");
}

fn fails(text: &str) {
    let rendered = Template::parse(text, Options::default())
        .and_then(|template| template.render(&world::answers()));
    assert_eq!(rendered.unwrap_err().kind(), ErrorKind::Failed, "{text}");
}

#[test]
fn variable_item_renders_as_text() {
    renders(
        "{{ with nomadVar \"nomad/jobs/web\" }}{{ .user | toUpper }}{{ end }}",
        "ADA",
    );
    renders(
        "{{ with nomadVar \"nomad/jobs/web\" }}{{ eq .user \"ada\" }}{{ end }}",
        "true",
    );
    renders(
        "{{ with nomadVar \"nomad/jobs/web\" }}{{ .maxconns | parseInt | add 1 }}{{ end }}",
        "16",
    );
    renders(
        "{{ with nomadVar \"nomad/jobs/web\" }}{{ join \",\" (sprig_list .user \"x\") }}{{ end }}",
        "ada,x",
    );
    renders(
        "{{ with nomadVar \"nomad/jobs/web\" }}{{ contains \"da\" .user.Value }}{{ end }}",
        "true",
    );
}

#[test]
fn typed_lists_are_accepted() {
    renders(
        "{{ join \",\" (parseJSON \"[\\\"a\\\",\\\"b\\\"]\") }}",
        "a,b",
    );
    renders(
        "{{ containsAll (split \",\" \"a\") (split \",\" \"a,b\") }}",
        "true",
    );
    renders(
        "{{ explodeMap (splitToMap \",\" \":\" \"a/b:1\") }}",
        "map[a:map[b:1]]",
    );
    fails("{{ join \",\" (sprig_list 1 2) }}");
}

#[test]
fn services_are_shown_with_their_fields() {
    renders("{{ nomadServices }}", "[{db []} {web [http primary]}]");
}

#[test]
fn overflowing_number_is_refused() {
    for text in [
        "{{ add 9223372036854775807 1 }}",
        "{{ subtract 1 (parseInt \"-9223372036854775808\") }}",
        "{{ multiply 9223372036854775807 2 }}",
        "{{ divide 0 1 }}",
        "{{ modulo 0 1 }}",
        "{{ divide -1 (parseInt \"-9223372036854775808\") }}",
        "{{ sprig_mod (parseInt \"-9223372036854775808\") -1 }}",
        "{{ sprig_mul 9223372036854775807 9 }}",
    ] {
        fails(text);
    }
}

#[test]
fn merge_does_not_change_arguments() {
    let text = "{{ $a := sprig_dict \"x\" 1 }}{{ $b := mergeMap $a (sprig_dict \"y\" 2) }}{{ $a }}{{ $b }}";
    renders(text, "map[x:1]map[x:1 y:2]");
}

#[test]
fn bytes_are_rendered_unchanged() {
    assert_eq!(rendered("{{ base64Decode \"/wD+\" }}"), [0xff, 0, 0xfe]);
    assert_eq!(
        rendered("{{ slice \"é\" 0 1 }}{{ print \"\\xff\" \"a\" }}"),
        [0xc3, 0xff, b'a']
    );
    renders(
        "{{ \"\\xff\" | toJSON }}{{ \"\\xff\" | toYAML }}",
        "\"\\ufffd\"!!binary /w==",
    );
}

#[test]
fn empty_template_renders_empty() {
    renders("", "");
    renders("{{/* nothing */}}", "");
}

#[test]
fn empty_delimiters_mean_default() {
    let options = Options {
        left: String::new(),
        right: String::new(),
        ..Options::default()
    };
    let template = Template::parse("{{ 1 }}", options).unwrap();
    assert!(
        matches!(template.render(&world::answers()), Ok(Rendering::Done { text, .. }) if text == b"1")
    );
}

/// A template is read once and rendered in many places.
#[test]
fn templates_can_be_shared_between_threads() {
    let template = Template::parse("{{ env \"PORT\" }}", Options::default()).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let template = template.clone();
            std::thread::spawn(move || template.render(&world::answers()).unwrap())
        })
        .collect();
    for thread in threads {
        assert!(matches!(thread.join().unwrap(), Rendering::Done { text, .. } if text == b"8080"));
    }
}

/// Work that is honest is far from all limits.
#[test]
fn large_template_renders() {
    let text = "{{ $m := sprig_dict }}{{ range $i := loop 3000 }}{{ $_ := sprig_set $m (printf \"k%04d\" $i) $i }}{{ end }}\
        {{- range $i := loop 3000 }}{{ sprig_get $m (printf \"k%04d\" $i) }}\n{{ end }}\
        {{- range sprig_until 700 }}{{ range sprig_until 700 }}{{ end }}{{ end }}";
    assert_eq!(
        rendered(text).iter().filter(|byte| **byte == b'\n').count(),
        3000
    );
}
