//! Events as JSON, made once for all who read them.

use std::sync::OnceLock;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::changes::Change;
use super::topics::Topics;
use crate::http::dto::{Alloc, EvaluationDto, full_job};

/// What one step of the core changed.
#[derive(Debug)]
pub(super) struct Step {
    index: u64,
    changes: Vec<Change>,
    rendered: OnceLock<Rendered>,
}

#[derive(Debug)]
struct Rendered {
    events: Vec<Event>,
    /// The line of all of them.
    whole: Bytes,
}

/// One event, and by what readers choose it.
#[derive(Debug)]
struct Event {
    topic: &'static str,
    key: String,
    namespace: String,
    filter_keys: Vec<String>,
    text: String,
}

/// An event as it is written.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Shown<'a> {
    topic: &'a str,
    #[serde(rename = "Type")]
    kind: &'a str,
    key: &'a str,
    namespace: &'a str,
    filter_keys: Option<&'a [String]>,
    index: u64,
    payload: Value,
}

impl Step {
    pub(super) fn new(index: u64, changes: Vec<Change>) -> Step {
        Step {
            index,
            changes,
            rendered: OnceLock::new(),
        }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// How much changed.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// How much memory its JSON takes.
    pub(super) fn bytes(&self) -> usize {
        self.rendered.get().map_or(0, |it| 2 * it.whole.len())
    }

    /// The line for a reader; none if nothing of the step is wanted.
    pub(super) fn line(&self, topics: &Topics) -> Option<Bytes> {
        let rendered = self.rendered.get_or_init(|| self.render());
        if topics.is_all() {
            return Some(rendered.whole.clone());
        }
        let wanted = rendered.events.iter().filter(|event| {
            let keys = std::iter::once(&event.key).chain(&event.filter_keys);
            topics.want(event.topic, &event.namespace, keys.map(String::as_str))
        });
        let texts: Vec<&str> = wanted.map(|event| event.text.as_str()).collect();
        (!texts.is_empty()).then(|| self.joined(&texts))
    }

    fn render(&self) -> Rendered {
        let events: Vec<Event> = self.changes.iter().map(|it| self.event(it)).collect();
        let texts: Vec<&str> = events.iter().map(|event| event.text.as_str()).collect();
        Rendered {
            whole: self.joined(&texts),
            events,
        }
    }

    fn joined(&self, texts: &[&str]) -> Bytes {
        let (index, events) = (self.index, texts.join(","));
        Bytes::from(format!("{{\"Index\":{index},\"Events\":[{events}]}}\n"))
    }

    fn event(&self, change: &Change) -> Event {
        let (topic, kind, key, namespace, filter_keys, object) = parts(change);
        let shown = Shown {
            topic,
            kind,
            key: &key,
            namespace: &namespace,
            filter_keys: Some(filter_keys.as_slice()).filter(|keys| !keys.is_empty()),
            index: self.index,
            payload: json!({ topic: object }),
        };
        let text = serde_json::to_string(&shown).unwrap_or_default();
        Event {
            topic,
            key,
            namespace,
            filter_keys,
            text,
        }
    }
}

type Parts = (
    &'static str,
    &'static str,
    String,
    String,
    Vec<String>,
    Value,
);

/// Topic, type, key, namespace, further keys, and the object.
fn parts(change: &Change) -> Parts {
    match change {
        Change::Job {
            record,
            status,
            kind,
        } => {
            let job = &record.job;
            let (id, namespace) = (job.id.clone(), job.namespace.clone());
            let tag = record.tags.get(&job.version);
            let object = full_job(job, status, tag);
            ("Job", kind, id, namespace, vec![], object)
        }
        Change::JobGone(key) => {
            let (id, namespace) = (key.id.to_string(), key.namespace.to_string());
            let object =
                json!({ "ID": id, "Namespace": namespace, "Stop": true, "Status": "dead" });
            ("Job", "JobDeregistered", id, namespace, vec![], object)
        }
        Change::Eval(eval) => {
            let dto = EvaluationDto::of(eval);
            let keys = vec![dto.job_id.clone(), dto.deployment_id.clone()];
            let (id, namespace) = (dto.id.clone(), dto.namespace.clone());
            let kind = "EvaluationUpdated";
            ("Evaluation", kind, id, namespace, keys, value(&dto))
        }
        Change::Alloc { alloc, kind } => {
            let dto = Alloc::without_job(alloc);
            let mut keys = vec![dto.stub.job_id.clone()];
            let deployment = Some(&dto.stub.deployment_id).filter(|id| !id.is_empty());
            keys.extend(deployment.cloned());
            let (id, namespace) = (dto.stub.id.clone(), dto.stub.namespace.clone());
            let mut object = value(&dto);
            // Which job it is of is said; what the job is has events of its own.
            if let Some(fields) = object.as_object_mut() {
                fields.remove("Job");
            }
            ("Allocation", kind, id, namespace, keys, object)
        }
        Change::Deployment { deployment, kind } => {
            let keys = vec![deployment.job_id.clone()];
            let (id, namespace) = (deployment.id.clone(), deployment.namespace.clone());
            (
                "Deployment",
                kind,
                id,
                namespace,
                keys,
                value(&**deployment),
            )
        }
        Change::Service { instance, kind } => {
            let keys = vec![instance.job_id.clone(), instance.service_name.clone()];
            let (id, namespace) = (instance.id.clone(), instance.namespace.clone());
            ("Service", kind, id, namespace, keys, value(&**instance))
        }
        // It is of no namespace.
        Change::Node { node, kind } => (
            "Node",
            kind,
            node.id.clone(),
            String::new(),
            vec![],
            node.full(),
        ),
    }
}

fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
