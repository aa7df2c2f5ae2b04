//! A notice as it is sent: JSON, and the same as variables for programs and templates.

use std::collections::{BTreeMap, BTreeSet};

use drover_core::model::notice::Notice;
use drover_core::time::Timestamp;
use drover_template::{Answer, Need, Rendering, Source, Template};
use serde_json::{Map, Value, json};

/// What the variables of a message begin with.
const PREFIX: &str = "NOTICE_";

/// Where it happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeName {
    /// The node's name.
    pub name: String,
    /// Its id.
    pub id: String,
}

/// What a target is sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Message(Map<String, Value>);

impl Message {
    /// With how many notices the target missed before this one.
    pub(super) fn new(notice: &Notice, node: &NodeName, missed: u64) -> Message {
        let subject = &notice.subject;
        let job = subject.job.as_ref();
        let exit = notice.exit.as_ref();
        let fields = [
            ("id", json!(notice.id)),
            ("event", json!(notice.event.as_str())),
            ("time", json!(rfc3339(notice.time))),
            (
                "text",
                json!(format!("{} (node {})", notice.text, node.name)),
            ),
            ("reason", json!(notice.reason)),
            ("node", json!(node.name)),
            ("node_id", json!(node.id)),
            ("namespace", json!(job.map(|job| &*job.namespace))),
            ("job", json!(job.map(|job| &*job.id))),
            ("version", json!(subject.version)),
            ("group", json!(subject.group)),
            ("allocation", json!(subject.alloc.map(|id| id.to_string()))),
            ("allocation_name", json!(subject.alloc_name)),
            ("task", json!(subject.task)),
            (
                "deployment",
                json!(subject.deployment.map(|id| id.to_string())),
            ),
            ("exit_code", json!(exit.and_then(|exit| exit.code))),
            (
                "signal",
                json!(exit.map(|exit| exit.signal).filter(|it| *it != 0)),
            ),
            ("missed", json!(Some(missed).filter(|missed| *missed > 0))),
        ];
        let there = fields.into_iter().filter(|(_, value)| !value.is_null());
        Message(
            there
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// As JSON.
    pub(super) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0).unwrap_or_default()
    }

    /// As variables: `NOTICE_EVENT` and so on.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let named = |name: &String| format!("{PREFIX}{}", name.to_uppercase());
        let fields = self.0.iter();
        fields
            .map(|(name, value)| (named(name), text(value)))
            .collect()
    }

    /// As a template wants it, which knows the variables.
    ///
    /// # Errors
    /// It fails, or asks for something else.
    pub(super) fn rendered(&self, template: &Template) -> Result<Vec<u8>, String> {
        let rendering = template.render(&Variables(self.variables()));
        match rendering.map_err(|error| error.to_string())? {
            Rendering::Done { text, .. } => Ok(text),
            Rendering::Waiting { missing, .. } => Err(waits_for(&missing)),
        }
    }
}

fn waits_for(missing: &BTreeSet<Need>) -> String {
    let all: Vec<String> = missing.iter().map(Need::to_string).collect();
    format!(
        "the template asks for what it cannot have: {}",
        all.join(", ")
    )
}

/// What templates of messages may know.
struct Variables(BTreeMap<String, String>);

impl Source for Variables {
    fn answer(&self, need: &Need) -> Option<Answer> {
        Some(match need {
            Need::Env(name) => {
                let value = self.0.get(name).cloned().unwrap_or_default();
                Answer::Text(value.into_bytes())
            }
            _ => Answer::Refused("templates of messages know the message alone".to_owned()),
        })
    }
}

fn rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(time.0.into())
        .unwrap_or_default()
        .to_string()
}
