//! Templates: that reading and rendering them ends, and says where it went wrong.

use std::collections::BTreeMap;

use drover_template::{
    Answer, Answers, Error, Instance, Limits, Need, Options, Rendering, Template, Variable,
};

/// A template's text, with a few answers at hand.
///
/// # Panics
/// If a mistake cannot be placed in the text, two renderings differ, or more is written than may be.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let limits = Limits {
        input: 64 << 10,
        output: 64 << 10,
        memory: 1 << 20,
        steps: 20_000,
    };
    let options = Options {
        error_on_missing_key: bytes.len() % 2 == 1,
        limits,
        ..Options::default()
    };
    let template = match Template::parse(text, options) {
        Ok(template) => template,
        Err(error) => return has_a_place(text, &error),
    };
    let answers = answers();
    let rendered = template.render(&answers);
    assert_eq!(rendered, template.render(&answers), "two renderings differ");
    match rendered {
        Ok(Rendering::Done { text, .. }) => assert!(text.len() <= limits.output),
        Ok(Rendering::Waiting { missing, asked }) => {
            assert!(!missing.is_empty() && missing.is_subset(&asked));
        }
        Err(error) => has_a_place(text, &error),
    }
}

fn has_a_place(text: &str, error: &Error) {
    let line = (error.line().checked_sub(1)).and_then(|line| text.split('\n').nth(line));
    let column = error.column();
    let fits = line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&column));
    assert!(fits, "{error}");
    assert!(!error.message().is_empty() && error.message().len() < text.len() + 4096);
}

fn answers() -> Answers {
    let mut items = BTreeMap::new();
    items.insert("user".into(), "ada".into());
    items.insert("json".into(), r#"{"a":[1,2.5,null,{"b":"c"}]}"#.into());
    let variable = Variable {
        items,
        ..Variable::default()
    };
    let instance = Instance {
        name: "web".into(),
        address: "10.0.0.1".into(),
        port: 80,
        tags: vec!["a".into(), "b".into()],
        ..Instance::default()
    };
    let known = [
        (
            Need::File("f".into()),
            Answer::Text(b"one\ntwo\xff\n".into()),
        ),
        (Need::Variable("v".into()), Answer::Variable(variable)),
        (Need::Variable("none".into()), Answer::Absent),
        (
            Need::Service("web".into()),
            Answer::Instances(vec![instance]),
        ),
        (Need::Time, Answer::Time(1_700_000_000_123_456_789)),
        (
            Need::File("no".into()),
            Answer::Refused("it leads out".into()),
        ),
    ];
    Answers {
        env: BTreeMap::from([("PORT".into(), "8080".into())]),
        known: BTreeMap::from(known),
    }
}
