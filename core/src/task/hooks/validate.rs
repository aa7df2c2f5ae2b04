//! `validate`: the driver's configuration must fit the driver. Drivers without a known schema
//! validate it themselves.

use super::TaskHook;
use crate::cx::Cx;
use crate::driver::admission::admit;
use crate::driver::config::schema_for;
use crate::driver::schema;
use crate::hooks::HookStart;
use crate::model::event::EventType;
use crate::op::Failure;
use crate::task::runner::{Scope, TaskRunner};

/// The hook.
pub struct Validate;

impl TaskHook for Validate {
    fn name(&self) -> &'static str {
        "validate"
    }

    fn begin(&self, task: &mut TaskRunner, cx: &mut Cx<'_>, _scope: Scope<'_>) -> HookStart {
        let (group, task) = (task.spec().group(), task.spec().task());
        // So nothing is fetched for a task that cannot start.
        if let Err(why) = admit(&cx.config.exec, &cx.config.docker, group, task) {
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
