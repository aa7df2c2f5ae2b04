//! What templates ask for, and what comes of answers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test may panic"
)]

mod world;

use std::collections::BTreeSet;

use drover_template::{Answer, Answers, ErrorKind, Need, Options, Rendering, Source, Template};

fn template(text: &str) -> Template {
    Template::parse(text, Options::default()).unwrap()
}

fn missing(text: &str, answers: &Answers) -> Vec<String> {
    match template(text).render(answers).unwrap() {
        Rendering::Waiting { missing, asked } => {
            assert!(missing.is_subset(&asked));
            missing.iter().map(Need::to_string).collect()
        }
        Rendering::Done { text, .. } => panic!("done: {}", String::from_utf8_lossy(&text)),
    }
}

fn done(text: &str, answers: &Answers) -> (String, BTreeSet<Need>) {
    match template(text).render(answers).unwrap() {
        Rendering::Done { text, asked } => (String::from_utf8(text).unwrap(), asked),
        Rendering::Waiting { missing, .. } => panic!("waits for {missing:?}"),
    }
}

#[test]
fn missing_needs_are_reported_at_once() {
    let text = r#"{{ file "a" }}{{ with nomadVar "v" }}{{ file .path.Value }}{{ end }}{{ nomadServices }}
        {{- nomadService "s" }}{{ nomadService 2 "key" "s" }}{{ nomadVarList "p" }}{{ timestamp }}"#;
    let mut answers = Answers::default();
    let first = [
        "file a",
        "nomadVar v",
        "nomadVarList p",
        "nomadService s",
        "nomadService 2 key s",
        "nomadServices",
        "timestamp",
    ];
    assert_eq!(missing(text, &answers), first);

    answers.known.extend([
        (Need::File("a".into()), Answer::Text(b"A".into())),
        (Need::Services, Answer::Services(Vec::new())),
        (Need::Service("s".into()), Answer::Instances(Vec::new())),
        (Need::Variables("p".into()), Answer::Variables(Vec::new())),
        (Need::Time, Answer::Time(0)),
    ]);
    let mut variable = drover_template::Variable::default();
    variable.items.insert("path".into(), "b".into());
    answers
        .known
        .insert(Need::Variable("v".into()), Answer::Variable(variable));
    assert_eq!(missing(text, &answers), ["file b", "nomadService 2 key s"]);
}

#[test]
fn used_needs_are_reported_after_render() {
    let (text, asked) = done(
        "{{ env \"PORT\" }} {{ file \"motd.txt\" | len }}",
        &world::answers(),
    );
    assert_eq!(text, "8080 30");
    let wanted = [Need::Env("PORT".into()), Need::File("motd.txt".into())];
    assert_eq!(asked, BTreeSet::from(wanted));
}

#[test]
fn untaken_branch_needs_nothing() {
    let text = "{{ if false }}{{ file \"a\" }}{{ end }}{{ and false (file \"b\") }}{{ or 1 (file \"c\") }}";
    let (text, asked) = done(text, &Answers::default());
    assert_eq!((text.as_str(), asked.len()), ("false1", 0));
}

#[test]
fn absent_variable_is_awaited_unless_exists_is_asked() {
    let mut answers = Answers::default();
    let need = Need::Variable("v".into());
    answers.known.insert(need, Answer::Absent);
    assert_eq!(
        missing("{{ with nomadVar \"v\" }}{{ .a }}{{ end }}", &answers),
        ["nomadVar v"]
    );
    let guarded = "{{ if nomadVarExists \"v\" }}{{ nomadVar \"v\" }}{{ else }}none{{ end }}";
    assert_eq!(done(guarded, &answers).0, "none");
    let safe = "{{ nomadVarListSafe \"none\" }}";
    assert_eq!(missing(safe, &world::answers()), ["nomadVarList none"]);
    assert_eq!(
        done("{{ len (nomadVarList \"none\") }}", &world::answers()).0,
        "0"
    );
}

#[test]
fn error_with_missing_needs_waits() {
    let text = "{{ file \"a\" | parseInt | divide 0 }}{{ file \"later\" }}";
    let mut answers = Answers::default();
    assert_eq!(missing(text, &answers), ["file a"]);
    answers
        .known
        .insert(Need::File("a".into()), Answer::Text(b"7".into()));
    let error = template(text).render(&answers).unwrap_err();
    assert_eq!(
        (error.kind(), error.line(), error.column()),
        (ErrorKind::Failed, 1, 26)
    );
}

#[test]
fn forbidden_need_is_error_despite_missing_needs() {
    let mut answers = Answers::default();
    let refused = Answer::Refused("../secret leads out of the task's directory".into());
    answers
        .known
        .insert(Need::File("../secret".into()), refused);
    let text = "{{ file \"a\" }}\nx {{ file \"../secret\" }}";
    let error = template(text).render(&answers).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let wanted = "line 2, column 6: file: ../secret leads out of the task's directory";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn answer_of_wrong_kind_is_error() {
    let mut answers = Answers::default();
    answers
        .known
        .insert(Need::File("a".into()), Answer::Time(1));
    answers
        .known
        .insert(Need::Time, Answer::Text(b"now".into()));
    for text in ["{{ file \"a\" }}", "{{ timestamp }}"] {
        assert!(template(text).render(&answers).is_err(), "{text}");
    }
}

#[test]
fn time_is_formatted_by_layout() {
    let mut answers = Answers::default();
    answers
        .known
        .insert(Need::Time, Answer::Time(1_234_567_890_012_345_678));
    let shown = |layout: &str| done(&format!("{{{{ timestamp {layout} }}}}"), &answers).0;
    assert_eq!(shown(""), "2009-02-13T23:31:30Z");
    assert_eq!(shown("\"unix\""), "1234567890");
    assert_eq!(
        shown("\"2006-01-02 15:04:05.000 MST\""),
        "2009-02-13 23:31:30.012 UTC"
    );
    assert_eq!(
        shown("\"Mon, _2 Jan 06 3:04PM -0700\""),
        "Fri, 13 Feb 09 11:31PM +0000"
    );
    assert_eq!(
        shown("\"Monday January 2 002 03.999999999\""),
        "Friday February 13 044 11.012345678"
    );
}

/// One who knows nothing but says what it was asked.
struct Nobody;

impl Source for Nobody {
    fn answer(&self, _: &Need) -> Option<Answer> {
        None
    }
}

#[test]
fn unknown_differs_from_absent() {
    let rendering = template("{{ env \"HOME\" }}").render(&Nobody).unwrap();
    let Rendering::Waiting { missing, .. } = rendering else {
        panic!()
    };
    assert_eq!(missing, BTreeSet::from([Need::Env("HOME".into())]));
}

#[test]
fn same_answers_render_same_text() {
    let text = "{{ range $k, $v := parseJSON (env \"CONFIG\") }}{{ $k }}{{ $v | toYAML }}{{ end }}";
    assert_eq!(done(text, &world::answers()), done(text, &world::answers()));
}
