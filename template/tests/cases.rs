//! What Go's own engine and Nomad's functions say of templates of ours.
//!
//! `cases.json` was made by giving our templates to Go 1.26's text/template with the functions of
//! consul-template 0.42, in the world below, and noting what came out. Only the results are theirs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "a test may panic"
)]

mod world;

use drover_template::{Options, Rendering, Template};
use serde_json::Value;

fn outcome(case: &Value) -> Value {
    let mut options = Options::default();
    if let Some(delimiters) = case["delims"].as_str() {
        let (left, right) = delimiters.split_once(' ').unwrap();
        options.left = left.into();
        options.right = right.into();
    }
    options.error_on_missing_key = case["strict"].as_bool().unwrap_or_default();
    let text = case["template"].as_str().unwrap();
    let rendered =
        Template::parse(text, options).and_then(|template| template.render(&world::answers()));
    match rendered {
        Ok(Rendering::Done { text, .. }) => {
            serde_json::json!({ "renders": String::from_utf8_lossy(&text) })
        }
        Ok(Rendering::Waiting { .. }) => serde_json::json!({ "waits": true }),
        Err(error) => serde_json::json!({ "fails": error.to_string() }),
    }
}

#[test]
fn templates_render_like_nomad() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases.json")).unwrap();
    assert!(cases.len() > 300);
    let mut wrong = Vec::new();
    for case in &cases {
        let found = outcome(case);
        let same = match found["fails"].is_string() {
            true => case["fails"].as_bool() == Some(true),
            false => case["renders"] == found["renders"] && case["waits"] == found["waits"],
        };
        if !same {
            let template = &case["template"];
            let wanted = (&case["renders"], &case["fails"], &case["waits"]);
            wrong.push(format!("{template}\n  there: {wanted:?}\n  here:  {found}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
