//! Events of tasks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use drover_core::model::event::TaskEvent;
use drover_core::text::parse_duration;
use serde::{Deserialize, Serialize, Serializer};

/// Something that happened to a task. There are several for each allocation: a long list of them copies none.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "TaskEventFields<'static>")]
pub enum TaskEventDto {
    /// As its record has it.
    Shared(Arc<TaskEvent>),
    /// As an answer told it.
    Read(Box<TaskEventFields<'static>>),
}

/// What is shown of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct TaskEventFields<'a> {
    #[serde(rename = "Type")]
    pub kind: Cow<'a, str>,
    pub time: i64,
    pub display_message: Cow<'a, str>,
    pub details: Cow<'a, BTreeMap<String, String>>,
    pub message: Cow<'a, str>,
    pub fails_task: bool,
    pub exit_code: i64,
    pub signal: i64,
    /// What older programs read instead of the details.
    #[serde(flatten)]
    pub old: OldEvent<'a>,
}

/// The fields of an event from before there were details.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
#[expect(missing_docs, reason = "the names are Nomad's")]
pub struct OldEvent<'a> {
    pub disk_limit: i64,
    pub download_error: Cow<'a, str>,
    pub driver_error: Cow<'a, str>,
    pub driver_message: Cow<'a, str>,
    pub failed_sibling: Cow<'a, str>,
    pub generic_source: Cow<'a, str>,
    pub kill_error: Cow<'a, str>,
    pub kill_reason: Cow<'a, str>,
    pub kill_timeout: i64,
    pub restart_reason: Cow<'a, str>,
    pub setup_error: Cow<'a, str>,
    pub start_delay: i64,
    pub task_signal: Cow<'a, str>,
    pub task_signal_reason: Cow<'a, str>,
    pub validation_error: Cow<'a, str>,
    pub vault_error: Cow<'a, str>,
}

impl TaskEventDto {
    /// What is shown of it.
    pub fn fields(&self) -> TaskEventFields<'_> {
        match self {
            TaskEventDto::Shared(event) => TaskEventFields::of(event),
            TaskEventDto::Read(fields) => TaskEventFields::clone(fields),
        }
    }
}

impl From<TaskEventFields<'static>> for TaskEventDto {
    fn from(fields: TaskEventFields<'static>) -> TaskEventDto {
        TaskEventDto::Read(Box::new(fields))
    }
}

impl Serialize for TaskEventDto {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            TaskEventDto::Shared(event) => TaskEventFields::of(event).serialize(to),
            TaskEventDto::Read(fields) => fields.serialize(to),
        }
    }
}

impl<'a> TaskEventFields<'a> {
    pub(crate) fn of(event: &'a TaskEvent) -> TaskEventFields<'a> {
        let details = &event.details;
        let number = |name| {
            let text = details.get(name);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        TaskEventFields {
            kind: event.kind.as_str().into(),
            time: event.time.0,
            display_message: Cow::Borrowed(&event.display_message),
            message: text(details, "message"),
            fails_task: event.fails_task,
            exit_code: number("exit_code"),
            signal: number("signal"),
            old: OldEvent::of(details),
            details: Cow::Borrowed(details),
        }
    }
}

impl<'a> OldEvent<'a> {
    fn of(details: &'a BTreeMap<String, String>) -> OldEvent<'a> {
        let mut old = OldEvent::default();
        // Most events have none, or few.
        for (name, value) in details {
            let field = match name.as_str() {
                "kill_timeout" => {
                    old.kill_timeout = nanos(value);
                    continue;
                }
                "start_delay" => {
                    old.start_delay = nanos(value);
                    continue;
                }
                "download_error" => &mut old.download_error,
                "driver_error" => &mut old.driver_error,
                "driver_message" => &mut old.driver_message,
                "failed_sibling" => &mut old.failed_sibling,
                "kill_error" => &mut old.kill_error,
                "kill_reason" => &mut old.kill_reason,
                "restart_reason" => &mut old.restart_reason,
                "setup_error" => &mut old.setup_error,
                "task_signal" => &mut old.task_signal,
                "task_signal_reason" => &mut old.task_signal_reason,
                "validation_error" => &mut old.validation_error,
                _ => continue,
            };
            *field = Cow::Borrowed(value);
        }
        old
    }
}

/// A length of time: a number of nanoseconds, or as people write it.
fn nanos(text: &str) -> i64 {
    let span = text.parse().ok();
    span.or_else(|| Some(parse_duration(text).ok()?.0))
        .unwrap_or(0)
}

/// A detail of an event, or nothing.
fn text<'a>(details: &'a BTreeMap<String, String>, name: &str) -> Cow<'a, str> {
    details.get(name).map(Cow::from).unwrap_or_default()
}
