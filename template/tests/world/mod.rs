//! The world in which templates are rendered here.

use std::collections::BTreeMap;

use drover_template::{Answer, Answers, Instance, Need, Service, Variable, VariableMeta};

fn meta(path: &str) -> VariableMeta {
    VariableMeta {
        namespace: "default".into(),
        path: path.into(),
        create_index: 11,
        modify_index: 12,
        create_time: 1_700_000_000_000_000_000,
        modify_time: 1_700_000_001_500_000_000,
    }
}

fn variable(path: &str, items: &[(&str, &str)]) -> Answer {
    let text = |text: &str| text.to_owned();
    Answer::Variable(Variable {
        meta: meta(path),
        items: items
            .iter()
            .map(|(key, value)| (text(key), text(value)))
            .collect(),
    })
}

fn instance(number: u8, tags: &[&str]) -> Instance {
    let letter = if number == 1 { 'a' } else { 'b' };
    Instance {
        id: format!("_nomad-task-{letter}"),
        name: "web".into(),
        node: format!("node-{number}"),
        address: format!("10.0.0.{number}"),
        port: 8079 + i64::from(number),
        datacenter: format!("dc{number}"),
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        job_id: "site".into(),
        alloc_id: format!("a{number}"),
    }
}

fn service(name: &str, tags: &[&str]) -> Service {
    Service {
        name: name.into(),
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
    }
}

/// What is known in it. The time is not.
pub(crate) fn answers() -> Answers {
    let env = [
        ("USER_NAME", "ada"),
        ("EMPTY", ""),
        ("PORT", "8080"),
        ("LIST", "c,a,b"),
        ("CONFIG", r#"{"a":{"b":[1,2.5,"x",null,true]},"z":"<&>"}"#),
    ];
    let web = [instance(1, &["http", "primary"]), instance(2, &["http"])];
    let choice = Need::ServiceChoice {
        name: "web".into(),
        count: 1,
        key: "alloc".into(),
    };
    let items = [("user", "ada"), ("password", "p<w>&d"), ("maxconns", "15")];
    let services = vec![service("db", &[]), service("web", &["http", "primary"])];
    let known = [
        (
            Need::File("motd.txt".into()),
            Answer::Text(b"Hello from a file\nsecond line\n".into()),
        ),
        (Need::File("empty.txt".into()), Answer::Text(Vec::new())),
        (
            Need::Variable("nomad/jobs/web".into()),
            variable("nomad/jobs/web", &items),
        ),
        (
            Need::Variable("app/other".into()),
            variable("app/other", &[("only", "one")]),
        ),
        (
            Need::Variables(String::new()),
            Answer::Variables(vec![meta("app/other"), meta("nomad/jobs/web")]),
        ),
        (
            Need::Variables("app".into()),
            Answer::Variables(vec![meta("app/other")]),
        ),
        (
            Need::Variables("none".into()),
            Answer::Variables(Vec::new()),
        ),
        (Need::Service("web".into()), Answer::Instances(web.to_vec())),
        (
            Need::Service("nobody".into()),
            Answer::Instances(Vec::new()),
        ),
        (
            choice,
            Answer::Instances(web.get(..1).unwrap_or_default().to_vec()),
        ),
        (Need::Services, Answer::Services(services)),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Answers {
        env: BTreeMap::from(env),
        known: BTreeMap::from(known),
    }
}
