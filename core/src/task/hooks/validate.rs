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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::world_tests::{Began, World, last_words};
    use crate::model::value::Value;

    fn begin(driver: &str, config: &[(&str, &str)]) -> Began {
        let mut world = World::with(|task| {
            task.driver = driver.to_owned();
            let value = |text: &str| Value::String(text.to_owned());
            let config = config.iter();
            task.config = config
                .map(|(name, text)| ((*name).to_owned(), value(text)))
                .collect();
        });
        let mut task = world.task();
        world.begin(&mut task, &Validate)
    }

    #[test]
    fn validate_of_fitting_configuration_asks_for_nothing() {
        assert_eq!(begin("raw_exec", &[("command", "/bin/true")]), Began::Done);
    }

    #[test]
    fn validate_leaves_configuration_without_known_schema_to_its_driver() {
        assert_eq!(begin("plugin", &[("anything", "at all")]), Began::Done);
    }

    #[test]
    fn validate_of_configuration_that_does_not_fit_names_each_mistake_and_fails_for_good() {
        let config = [("command", "/bin/true"), ("colour", "red"), ("size", "9")];
        let Began::Refuses(again, why) = begin("raw_exec", &config) else {
            panic!("nothing is wrong with it");
        };
        assert!(!again, "the next start finds the same");
        let parts: Vec<&str> = why.split("; ").collect();
        assert_eq!(parts.len(), 2, "{why}");
        assert!(
            why.contains("\"colour\"") && why.contains("\"size\""),
            "{why}"
        );
    }

    #[test]
    fn validate_of_what_agent_forbids_names_the_setting() {
        let asked = [("command", "/bin/true"), ("pid_mode", "host")];
        let Began::Refuses(false, why) = begin("exec", &asked) else {
            panic!("it is allowed, or may be tried again");
        };
        assert!(why.contains("allow_host_pid"), "{why}");
    }

    #[test]
    fn failed_validation_has_event_of_its_own_and_nothing_else_is_prepared() {
        let mut world = World::with(|task| task.driver = "raw_exec".to_owned());
        let mut task = world.task();
        assert!(
            world.start_well(&mut task).is_empty(),
            "a directory is made"
        );
        let events = &task.state().events;
        let failed = events
            .iter()
            .find(|event| event.kind == EventType::FailedValidation);
        let why = failed.and_then(|event| event.details.get("validation_error"));
        assert!(
            why.is_some_and(|why| why.contains("command")),
            "{}",
            last_words(&task)
        );
    }
}
