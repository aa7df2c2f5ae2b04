//! `validate`: the driver's configuration must fit the driver. Drivers without a known schema
//! validate it themselves.

use super::TaskHook;
use crate::cx::Cx;
use crate::driver::config::{DockerConfig, schema_for};
use crate::driver::isolation::DOCKER;
use crate::driver::schema;
use crate::hooks::HookStart;
use crate::interpolate::has_reference;
use crate::model::event::EventType;
use crate::model::task::Task;
use crate::model::value::Value;
use crate::op::Failure;
use crate::task::runner::{Scope, TaskRunner};

/// The hook.
pub struct Validate;

impl TaskHook for Validate {
    fn name(&self) -> &'static str {
        "validate"
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let task = task.spec().task();
        if let Err(why) = allowed(cx, task) {
            return HookStart::Failed(Failure::fatal(why));
        }
        let Some(schema) = schema_for(&task.driver) else {
            return HookStart::Done;
        };
        let problems = schema::validate(schema, &task.config);
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        if texts.is_empty() {
            return HookStart::Done;
        }
        HookStart::Failed(Failure::fatal(texts.join("; ")))
    }

    fn failure_event(&self) -> Option<(EventType, &'static str)> {
        Some((EventType::FailedValidation, "validation_error"))
    }
}

/// Whether a container may be as it is asked for, as far as that is known before its references are replaced: so
/// nothing is fetched for a task that cannot start.
fn allowed(cx: &Cx<'_>, task: &Task) -> Result<(), String> {
    if task.driver != DOCKER || task.config.values().any(refers) {
        return Ok(());
    }
    // What is no configuration at all is said of its schema.
    let Ok(asked) = DockerConfig::decode(&task.config) else {
        return Ok(());
    };
    cx.config.docker.admit(&asked)
}

fn refers(value: &Value) -> bool {
    match value {
        Value::String(text) => has_reference(text),
        Value::List(items) => items.iter().any(refers),
        Value::Map(map) => map.values().any(refers),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => false,
    }
}
